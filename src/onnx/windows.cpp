// See windows.hpp.
#include "onnx/windows.hpp"

#include <algorithm>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

/// So that there are ceil(size / stride) windows; the odd element goes to the end, or to the beginning.
void pad_to_same(Windows& windows, const Array& x, bool more_at_the_end) {
  for (size_t d = 0; d < windows.dims(); ++d) {
    const int64_t size = x.size(static_cast<int>(d)), stride = windows.stride[d];
    const int64_t count = (size + stride - 1) / stride;
    const int64_t all = std::max<int64_t>((count - 1) * stride + windows.reach(d) - size, 0);
    windows.low[d] = more_at_the_end ? all / 2 : all - all / 2;
    windows.high[d] = all - windows.low[d];
  }
}

/// Rounded up, a last window may reach beyond the padding, but must begin before it.
void round_up(Windows& windows, const Array& x) {
  for (size_t d = 0; d < windows.dims(); ++d) {
    const int64_t size = x.size(static_cast<int>(d)), stride = windows.stride[d];
    const int64_t left = size + windows.low[d] + windows.high[d] - windows.reach(d);
    if (left < 0 || left % stride == 0) continue;
    const int64_t begin = (left / stride + 1) * stride;
    if (begin < size + windows.low[d]) windows.extra[d] = stride - left % stride;
  }
}

}  // namespace

bool Windows::is_padded() const noexcept {
  const auto some = [](const std::vector<int64_t>& list) {
    return std::any_of(list.begin(), list.end(), [](int64_t width) { return width != 0; });
  };
  return some(low) || some(high) || some(extra);
}

bool Windows::is_dilated() const noexcept {
  return std::any_of(dilation.begin(), dilation.end(), [](int64_t step) { return step != 1; });
}

Extents Windows::pads() const {
  std::vector<int64_t> list;
  for (size_t d = 0; d < dims(); ++d) {
    list.push_back(low[d]);
    list.push_back(high[d] + extra[d]);
  }
  return extents(list);
}

void check_extent(const NodeCall& call, int64_t value) {
  if (value < -most_extent || value > most_extent) {
    call.refuse("sizes, steps and pads are at most 2^24", std::to_string(value));
  }
}

std::vector<int64_t> spatial_list(const NodeCall& call, std::string_view name, size_t dims, int64_t fallback) {
  std::vector<int64_t> list = reversed(call.integers(name));
  if (list.empty()) list.assign(dims, fallback);
  for (int64_t value : list) check_extent(call, value);
  if (list.size() != dims) {
    call.refuse(std::string(name) + " must have one number for each of " + std::to_string(dims) + " axes",
                std::to_string(list.size()));
  }
  return list;
}

Windows windows_of(const NodeCall& call, const Array& x, std::vector<int64_t> size) {
  const size_t dims = size.size();
  Windows windows{std::move(size),
                  spatial_list(call, "strides", dims, 1),
                  spatial_list(call, "dilations", dims, 1),
                  std::vector<int64_t>(dims),
                  std::vector<int64_t>(dims),
                  std::vector<int64_t>(dims)};
  for (size_t d = 0; d < dims; ++d) {
    check_extent(call, windows.size[d]);
    const int64_t least = std::min({windows.size[d], windows.stride[d], windows.dilation[d]});
    if (least < 1) call.refuse("sizes, strides and dilations must be 1 or more", std::to_string(least));
  }
  const std::string automatic = call.text("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    pad_to_same(windows, x, automatic == "SAME_UPPER");
  } else if (automatic != "VALID" && call.find("pads")) {
    const std::vector<int64_t> pads = call.integers("pads");
    for (int64_t width : pads) check_extent(call, width);
    if (pads.size() != 2 * dims) call.refuse("pads must be two for each axis", std::to_string(pads.size()));
    for (size_t d = 0; d < dims; ++d) {
      windows.low[d] = pads[dims - 1 - d];
      windows.high[d] = pads[2 * dims - 1 - d];
    }
  }
  if (call.integer("ceil_mode", 0) != 0) round_up(windows, x);
  return windows;
}

}  // namespace rosin::onnx
