// The order in which reductions over other dims than rows are added up. It follows from sizes alone: not from the
// number of threads, and not from what else the kernel computes.
#pragma once

#include <cstdint>
#include <span>

namespace rosin::cpu {

/// Elements of the domain, in memory order, are combined block by block into the result of their part; the results of
/// the parts are combined one after the other. Within a block, whole columns of one result are halved until one is
/// left, and runs that belong to one element are added in sixteen lanes.
struct SumOrder {
  int64_t block = 1;  // elements; whole rows of every row program that the domain may have, where these fit a tile
  int64_t part = 1;   // elements, a multiple of the block; of two parts of one domain one divides the other
  int64_t parts = 0;
};

/// For a domain of these sizes (the fastest dim first) and so many results.
SumOrder sum_order(std::span<const int64_t> sizes, int64_t results);

}  // namespace rosin::cpu
