// Recording: how ops in src/ops make nodes. Checks of types, shapes and devices happen here, at the call.
#pragma once

#include <span>
#include <string>

#include <rosin/array.hpp>

#include "graph/attributes.hpp"
#include "graph/op.hpp"

namespace rosin {

/// Records an elementwise op: operands broadcast (dims are aligned from dim 0; size 1 and missing last dims repeat),
/// their common type is found by the rules of D1. Errors (shape, dtype, device).
Array record(const Op& op, const Array& a);
Array record(const Op& op, const Array& a, const Array& b);
Array record(const Op& op, const Array& a, const Array& b, const Array& c);
/// The same for up to eight operands; those after the fourth must be C++ numbers, of which there are four at most.
Array record_elementwise(const Op& op, std::span<const Array* const> operands);

/// Records a node as stated: for all other kinds, with any number of operands. These must not be nothing.
Array record(const Op& op, std::span<const Array* const> operands, DType type, const Shape& shape,
             const Attributes& attributes = {});

/// What one of several results is.
struct ResultForm {
  DType type;
  Shape shape;
};

/// Records an op of several results, of these forms, which `results` takes; nobody need hold them all.
void record(const Op& op, std::span<const Array* const> operands, std::span<const ResultForm> forms,
            const Attributes& attributes, std::span<Array> results);
/// Result number k of such a node.
Array record_part(Node* node, int k, const ResultForm& form);

/// Records an elementwise op of one operand whose result type is stated (cast).
Array record_as(const Op& op, const Array& a, DType type);

/// Records an op that was recorded before once more, on that device, on others in the place of its arrays() of the same
/// types and shapes.
Array record_again(const Node& original, std::span<Node* const> in, uint8_t device);
/// The same with another shape and other attributes (of an elementwise op: its numbers), on operands that fit these.
Array record_again(const Node& original, std::span<Node* const> in, uint8_t device, const Shape& shape,
                   const Attributes& attributes);

/// A weak scalar that is an Int64 whatever its neighbours are (keys and offsets of random ops).
Array scalar_argument(int64_t value);

/// The common type of operands by D1: weak ones follow the others; two different floats: Error (dtype).
DType common_type(const Op& op, std::span<const Array* const> operands);

/// The shape to which both broadcast; Error (shape) naming `op`.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);

/// Throws Error (argument) `op: an operand is nothing ...`; require() does for an empty handle.
[[noreturn]] void refuse_nothing(const Op& op);
inline void require(const Op& op, const Array& x) {
  if (x.is_nothing()) refuse_nothing(op);
}

/// dim counted from the end when negative; Error (shape) when there is none.
int checked_dim(std::string_view op, int dim, const Shape& shape);

}  // namespace rosin
