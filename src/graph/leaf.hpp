// Leaves: nodes that are data, C++ numbers, and arguments of gradient calls.
#pragma once

#include <rosin/array.hpp>

#include "graph/op.hpp"

namespace rosin {

extern const Op& leaf_op;
extern const Op& scalar_op;
extern const Op& argument_op;

/// A ready node on this memory (one owner of the buffer passes to the node).
Array leaf(Memory* buffer, DType type, const Shape& shape);
/// A fresh array with memory that the caller fills before anybody else sees it.
Array fresh_leaf(DType type, const Shape& shape);
/// x, a leaf of the CPU, as a constant: values that stand in the program, and so follow what they meet (follow.hpp).
Array constant(Array x);
inline bool is_constant(const Node& node) { return node.op == &leaf_op && node.attributes.bytes[0] != 0; }
/// A fresh identity of x: what a gradient call differentiates by.
Array argument(const Array& x);
/// Whether the node is a C++ number.
inline bool is_scalar(const Node& node) { return node.op == &scalar_op; }
inline ScalarValue scalar_value(const Node& node) { return node.attributes.as<ScalarValue>(); }

/// The array with its value in memory of the CPU: x itself, evaluated, or a copy of what is on another device.
Array on_cpu(const Array& x);

/// Bytes of an array; Error (memory) when they do not fit an address.
size_t bytes_of(DType type, const Shape& shape);

}  // namespace rosin
