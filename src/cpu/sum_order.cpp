// See sum_order.hpp.
#include "cpu/sum_order.hpp"

#include <algorithm>

#include "plan/structure.hpp"

namespace rosin::cpu {
namespace {

constexpr int64_t least_part = 16 * 1024;  // elements
constexpr int64_t most_parts = 64;

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Blocks {
  int64_t block, span;
};

/// Blocks that are a multiple of all products of leading sizes that fit a strip, or of a first size that is a line: of
/// each a row program could make its row. The span is the first product that does not fit.
Blocks blocks_of(std::span<const int64_t> sizes, int64_t total) {
  int64_t row = 1, product = 1, span = total;
  for (const int64_t size : sizes) {
    product *= size;
    const bool fits = product <= strip_limit || (product == size && product <= line_limit);
    if (!fits) {
      span = product;
      break;
    }
    row = product;
  }
  return {row > cached_elements ? row : cached_elements / row * row, span};
}

}  // namespace

SumOrder SumOrder::cut(int64_t total, int64_t span, int64_t block, int64_t target) {
  SumOrder order{block, span, 1, 1, total};
  const int64_t unit = target >= span ? span : block;
  order.part = quotient_up(target, unit) * unit;
  if (order.part > span && span < total && unit == block) order.part = span;
  order.parts = order.part_of(total - 1) + 1;
  return order;
}

SumOrder sum_order(std::span<const int64_t> sizes, int64_t results) {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  if (total == 0) return {};
  const auto [block, span] = blocks_of(sizes, total);
  SumOrder order = SumOrder::cut(total, span, block, std::max(least_part, quotient_up(total, most_parts)));
  // Partial results take a quarter of the domain's memory at most.
  const int64_t most = std::clamp<int64_t>(total / (4 * std::max<int64_t>(results, 1)), 1, most_parts);
  while (order.parts > most) {
    const bool leaves_span = order.part < span && 2 * order.part > span && span < total;
    order.part = leaves_span ? span : 2 * order.part;
    order.parts = order.part_of(total - 1) + 1;
  }
  return order;
}

}  // namespace rosin::cpu
