// See sum_order.hpp.
#include "cpu/sum_order.hpp"

#include <algorithm>

#include "lower/structure.hpp"

namespace rosin::cpu {
namespace {

constexpr int64_t block_target = 1024;     // elements: a few registers of this size stay in the first cache
constexpr int64_t least_part = 16 * 1024;  // elements
constexpr int64_t most_parts = 64;

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A multiple of all products of leading sizes that fit a tile: of each a row program could make its row.
int64_t block_of(std::span<const int64_t> sizes) {
  int64_t row = 1, product = 1;
  for (const int64_t size : sizes) {
    product *= size;
    if (product > lower::tile_limit) break;
    row = product;
  }
  return row > block_target ? row : block_target / row * row;
}

}  // namespace

SumOrder sum_order(std::span<const int64_t> sizes, int64_t results) {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  if (total == 0) return {};
  SumOrder order;
  order.block = block_of(sizes);
  // Partial results take a quarter of the domain's memory at most.
  const int64_t most = std::clamp<int64_t>(total / (4 * std::max<int64_t>(results, 1)), 1, most_parts);
  order.part = quotient_up(std::max(least_part, quotient_up(total, most_parts)), order.block) * order.block;
  while (quotient_up(total, order.part) > most) order.part *= 2;
  order.parts = quotient_up(total, order.part);
  return order;
}

}  // namespace rosin::cpu
