// The order in which reductions over other dims than rows are added up. It follows from sizes alone: not from the
// number of threads, and not from what else the kernel computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace rosin::cpu {

/// Elements that a strip holds at most: rows up to this length can be reduced and used within one kernel.
inline constexpr int64_t strip_limit = 4096;
/// The same of rows that are one dim.
inline constexpr int64_t line_limit = 65536;
/// Elements of which a few registers stay in the first cache.
inline constexpr int64_t cached_elements = 1024;

/// Elements of the domain, in their logical order, are combined block by block into the result of their part; the
/// results of the parts are combined one after the other. Within a block, whole columns of one result are halved until
/// one is left, and runs that belong to one element are added in sixteen lanes. How an array stands in memory changes
/// nothing: see plane_sums.hpp for images in CWHN.
struct SumOrder {
  int64_t block = 1;  // elements; whole rows of every row program that the domain may have, where these fit a strip
  int64_t span = 1;   // elements: blocks and parts start anew at its multiples; a product of leading sizes
  int64_t part = 1;   // elements, a multiple of the block or of the span; one of two parts of a domain holds the other
  int64_t parts = 0;
  int64_t total = 0;

  /// Cuts so many elements into parts of about `target`.
  static SumOrder cut(int64_t total, int64_t span, int64_t block, int64_t target);

  int64_t parts_of_span() const { return (span + part - 1) / part; }
  int64_t part_of(int64_t i) const { return part >= span ? i / part : i / span * parts_of_span() + i % span / part; }
  int64_t begin(int64_t p) const {
    return part >= span ? p * part : p / parts_of_span() * span + p % parts_of_span() * part;
  }
  int64_t end(int64_t p) const {
    if (part >= span) return std::min(total, (p + 1) * part);
    return std::min(begin(p) + part, (p / parts_of_span() + 1) * span);
  }
  /// Where the stretch of up to `length` elements from i on ends, if it starts anew with the span.
  int64_t stretch_end(int64_t i, int64_t length) const { return std::min(i + length, (i / span + 1) * span); }
};

/// For a domain of these sizes (the fastest dim first) and so many results.
SumOrder sum_order(std::span<const int64_t> sizes, int64_t results);

}  // namespace rosin::cpu
