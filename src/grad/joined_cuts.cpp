#include "grad/joined_cuts.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

namespace rosin {

int32_t JoinedCuts::add(int32_t list, int dim, int64_t start, Array gradient) {
  cuts_.push_back({list, dim, start, std::move(gradient)});
  return static_cast<int32_t>(cuts_.size()) - 1;
}

Array JoinedCuts::take(int32_t list, const Shape& shape) {
  for (int32_t at = list; at != none; at = cuts_[static_cast<size_t>(at)].next) {
    waiting_.push_back(std::move(cuts_[static_cast<size_t>(at)]));
  }
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Cut& a, const Cut& b) { return a.dim != b.dim ? a.dim < b.dim : a.start < b.start; });
  Array sum;
  while (!waiting_.empty()) {
    Array row = join_row(shape);
    sum = sum.is_nothing() ? std::move(row) : sum + row;
  }
  return sum;
}

/// Those of the first dim that do not overlap, one after another; the rest stays.
Array JoinedCuts::join_row(const Shape& shape) {
  const int dim = waiting_.front().dim;
  const int64_t first = waiting_.front().start;
  int64_t end = first;
  for (Cut& cut : waiting_) {
    if (cut.dim != dim || cut.start < end) {
      rest_.push_back(std::move(cut));
      continue;
    }
    if (cut.start > end) {
      std::vector<int64_t> sizes(shape.begin(), shape.end());
      sizes[static_cast<size_t>(dim)] = cut.start - end;
      parts_.push_back(zeros(Shape(std::span<const int64_t>(sizes)), cut.gradient.dtype()));
    }
    end = cut.start + cut.gradient.size(dim);
    parts_.push_back(std::move(cut.gradient));
  }
  waiting_.swap(rest_);
  rest_.clear();
  const Array row = parts_.size() == 1 ? parts_[0] : concat(parts_, dim);
  parts_.clear();
  return first == 0 && end == shape[dim] ? row : pad(row, dim, first, shape[dim] - end);
}

}  // namespace rosin
