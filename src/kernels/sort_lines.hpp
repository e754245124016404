// What the kernels of one sort have in common: the lines that are sorted, keys of their elements, and the results.
// Read first: elements.hpp. Read next: sort.cpp (what is chosen when), sort_tile.hpp, sort_radix.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/bit_terms.hpp"
#include "kernels/elements.hpp"

namespace rosin::kernels {

/// A sort as the layout has it.
struct SortCall {
  SortCall(const CallStep& of, std::span<const int32_t> results_of, LaunchList& launches)
      : step(of), results(results_of), list(launches), x_view(of.view(of.in(0))),
        attributes(of.attributes<SortAttributes>()), dim(static_cast<size_t>(attributes.dim)), size(x_view.sizes[dim]),
        lines(count_lines(x_view, static_cast<int>(dim))), wanted(of.view(of.node).sizes[dim]),
        type(of.dtype(of.in(0))) {}

  const CallStep& step;
  std::span<const int32_t> results;  // values and places, where the step has both; -1: nobody reads them
  LaunchList& list;
  const View& x_view;
  SortAttributes attributes;
  size_t dim;
  int64_t size, lines;
  int64_t wanted;  // places of a line
  DType type;

  /// The type of element numbers where the scratch of a line has `padded` elements; twice a line's size must fit.
  ScalarType index(int64_t padded) const {
    constexpr int64_t most = int64_t{1} << 30;
    return size > most / 2 || padded > most / lines ? ScalarType::int64 : step.index();
  }
};

/// The lines in one launch of a sort. Elements are loaded and copied as if they were of type `as`.
class SortLines {
 public:
  SortLines(KernelWriter& writer, const SortCall& call, DType as)
      : writer_(writer), call_(call), as_(as), sizes_(line_sizes(writer, call.x_view, static_cast<int>(call.dim))) {}

  // What the launch needs of these is said before any loop or branch.
  void open_elements() {
    if (!x_) x_.emplace(writer_, call_.step, call_.step.in(0), as_);
  }
  void open_results() {
    if (call_.results.empty()) {
      places_.emplace(writer_, call_.step, call_.step.node);
    } else {
      if (call_.results[0] >= 0) values_.emplace(writer_, call_.step, call_.results[0], as_);
      if (call_.results[1] >= 0) places_.emplace(writer_, call_.step, call_.results[1]);
    }
    if (values_) open_elements();
    wanted_ = writer_.number(call_.wanted);
  }

  /// Elements and results are those of this line from here on.
  void go_to(Term line) { line_ = writer_.coordinates(line, sizes_); }

  Term load(Term place) {
    line_[call_.dim] = place;
    return x_->load(line_);
  }

  /// The line's result at `at`, if it is wanted, is the element at `place`.
  void put(Term at, Term place) {
    writer_.when(at < wanted_, [&] {
      std::vector<Term> from = line_, to = line_;
      from[call_.dim] = place;
      to[call_.dim] = at;
      if (places_) places_->store(to, writer_.convert(place, ScalarType::int32));
      if (values_) values_->copy(to, *x_, from);
    });
  }

 private:
  KernelWriter& writer_;
  const SortCall& call_;
  DType as_;
  std::vector<Term> sizes_;  // of the lines
  std::optional<Elements> x_, values_, places_;
  Term wanted_{};
  std::vector<Term> line_;  // coordinates of the line's elements
};

/// Lines that one group sorts.
inline constexpr int64_t sorted_tile = 2048;

/// Whether elements of the operand have keys of bits. (A C++ number that stands for an array has none.)
bool has_keys(const SortCall& call);
/// Digits of the keys, in bytes: each takes a pass of a sort by radix.
int key_digits(DType type);
/// Sorts tiles of each line, by one launch: into places in a scratch block, or, where a line is one tile, the results.
void write_sorted_tiles(const SortCall& call, std::optional<int32_t> into);
/// Sorts lines of any length by radix: three launches a digit.
void write_sort_by_radix(const SortCall& call);

/// The order of keys that stand in scratch: UInt32, with all bits set from `size` to whole tiles. They are sorted by
/// their last `digits` bytes, and equal ones stay in order; their places come out, Int32.
struct KeyOrder {
  int64_t size;
  int digits;
  int32_t keys, order;  // scratch blocks
};
constexpr int64_t padded_to_tiles(int64_t size) { return (size + sorted_tile - 1) / sorted_tile * sorted_tile; }
/// By radix; the keys stay.
void write_order_of_keys(LaunchList& list, const KeyOrder& order);

}  // namespace rosin::kernels
