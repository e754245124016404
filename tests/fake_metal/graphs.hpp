// What graphs of MPSGraph's stand-in are made of. Read first: objects.hpp. Read next: graphs.cpp (the classes),
// graph_numbers.cpp (what comes out).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace fake_metal {

using Sizes = std::vector<int64_t>;

/// MPSDataType
constexpr uint32_t float16 = 0x10000010, float32 = 0x10000020, bfloat16 = 0x90000010, boolean = 0x80000008;

struct Window {
  int64_t stride[2], dilation[2], groups, low[2], high[2];  // along x, then y
};

enum class Does {
  input,
  constant,
  cast,
  transpose,
  reshape,
  reverse,
  add,
  less,
  select,
  multiply_matrices,
  convolution,
  convolution_data,
  convolution_weights,
  band_part,
  attention  // of queries, keys, values and, where there is one, a mask
};

struct Node {
  Does does = Does::input;
  uint32_t type = float32;
  Sizes sizes;
  std::vector<std::shared_ptr<const Node>> from;
  Sizes dims;        // of a transposition, or that are reversed; diagonals below and above of a band, below 0: all
  double value = 0;  // of a constant; the scale of attention
  Window window{};
};

int64_t count_of(const Sizes& sizes);
uint64_t bytes_of(uint32_t type);
/// The sizes that both broadcast to; empty: none.
Sizes common_sizes(const Sizes& a, const Sizes& b);

/// Computes `result` and stores it. `places`: where inputs lie.
void compute_graph(const Node& result, const std::map<const Node*, uint64_t>& places, uint64_t to);

}  // namespace fake_metal
