// Windows of convolution and pooling as the format states them: lists by axis of the file, automatic padding, rounding
// up. Lists here are in the order of arrays' dims: the file's last axis first.
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/pool.hpp>

#include "onnx/node_call.hpp"

namespace rosin::onnx {

struct Windows {
  std::vector<int64_t> size, stride, dilation, low, high;
  std::vector<int64_t> extra;  // beyond `high`, where sizes are rounded up

  size_t dims() const noexcept { return size.size(); }
  /// Elements that a window spans.
  int64_t reach(size_t d) const noexcept { return (size[d] - 1) * dilation[d] + 1; }
  bool is_padded() const noexcept;
  bool is_dilated() const noexcept;
  /// low, high of each dim; `extra` is part of high.
  Extents pads() const;
};

/// Larger sizes, steps and pads are refused, so that sums of them are numbers.
inline constexpr int64_t most_extent = int64_t{1} << 24;
void check_extent(const NodeCall& call, int64_t value);
/// Windows of these sizes over the first dims of x.
Windows windows_of(const NodeCall& call, const Array& x, std::vector<int64_t> size);
/// The list of an attribute in the order of dims, or `fallback` for each.
std::vector<int64_t> spatial_list(const NodeCall& call, std::string_view name, size_t dims, int64_t fallback);
inline Extents extents(const std::vector<int64_t>& list) { return Extents(std::span<const int64_t>(list)); }

}  // namespace rosin::onnx
