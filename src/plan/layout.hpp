// Layout: a structure with sizes. Where every element stands, how much memory a run takes, what comes out.
// Read next: device.hpp (who runs it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/structure.hpp"

namespace rosin::plan {

inline constexpr size_t memory_alignment = 64;

inline constexpr size_t scalars_of_value = Node::max_positions + 1;
/// Where the number of a scalar leaf (operand -1), or of an operand that node `value` keeps, stands among the scalars.
inline size_t scalar_index(int32_t value, int32_t operand) {
  return static_cast<size_t>(value) * scalars_of_value + static_cast<size_t>(operand + 1);
}

/// Element (i, j, ...) of a value stands at offset + sum of index * stride, in elements, from the memory of `root`.
struct View {
  int32_t root = -1;
  uint8_t rank = 0;
  int64_t sizes[Shape::max_rank] = {};
  int64_t strides[Shape::max_rank] = {};
  int64_t offset = 0;

  int64_t count() const;
};

/// How one port of a kernel moves with the wide dims of the domain (stride 0: it does not).
struct PortLayout {
  int64_t offset = 0;
  int64_t strides[Shape::max_rank] = {};
};

struct KernelLayout {
  int dims = 0;  // wide dims of the domain
  int64_t sizes[Shape::max_rank] = {};
  int64_t row = 1;  // elements of a row
  int64_t rows = 1;
  std::vector<PortLayout> loads;  // as in Kernel::loads
  std::vector<PortLayout> roots;  // where the results of roots stand: stride 0 in reduced dims
  std::vector<int64_t> root_counts;
};

/// Where a value's own memory is.
struct Place {
  enum class Where : uint8_t { none, arena, output, leaf } where = Where::none;
  int64_t at = 0;  // arena: bytes from its start; output: index; leaf: the value
};

/// Memory that leaves the run: a fresh buffer, or the donated one of a leaf.
struct Output {
  int32_t value = -1;
  size_t bytes = 0;
  int32_t donor = -1;
};

/// A node that a user handle holds, and whose memory it gets.
struct Result {
  int32_t node = -1;
  int32_t output = -1;  // index, or -1: the buffer of leaf `leaf`
  int32_t leaf = -1;
};

/// Bytes that the steps of one run move. Kept: written before the backward pass begins and read in it.
struct Traffic {
  int64_t read = 0, written = 0, kept = 0;
};

struct Layout {
  std::shared_ptr<const Structure> structure;
  std::vector<View> views;             // of all values
  std::vector<Attributes> attributes;  // of all nodes, as recorded for these sizes
  std::vector<KernelLayout> kernels;
  std::vector<Place> places;
  std::vector<Output> outputs;
  std::vector<Result> results;
  size_t arena_bytes = 0;
  Traffic traffic;
  size_t bytes() const;
};

/// `sizes[v]` are the sizes of value v, for the nodes and leaves of the graph; attributes[v] those of this recording.
struct Sizes {
  std::vector<Shape> shapes;
  std::vector<Attributes> attributes;
};

Layout lay_out(std::shared_ptr<const Structure> structure, const Sizes& sizes);

}  // namespace rosin::plan
