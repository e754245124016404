// Conversions of ops whose results have as many elements as values say: these are read, and the work is done on the
// host. Read first: convert.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "onnx/convert.hpp"
#include "onnx/windows.hpp"

namespace rosin::onnx {
namespace {

Array list_of(const std::vector<int64_t>& values) { return worked_out(values, {static_cast<int64_t>(values.size())}); }

/// The corners of a box (x1, y1, x2, y2), in order.
struct Box {
  double x1, y1, x2, y2;

  double area() const { return (x2 - x1) * (y2 - y1); }
};

Box box_at(const std::vector<double>& boxes, int64_t index, bool centred) {
  const double* b = boxes.data() + 4 * index;
  if (centred) return {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
  return {std::min(b[1], b[3]), std::min(b[0], b[2]), std::max(b[1], b[3]), std::max(b[0], b[2])};
}

double overlap(const Box& a, const Box& b) {
  const double w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1), h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (w <= 0 || h <= 0) return 0;
  return w * h / (a.area() + b.area() - w * h);
}

}  // namespace

/// Slices along the axis (or elements) that differ, sorted or in the order in which they first come.
Arrays unique(const NodeCall& call) {
  const bool flat = !call.find("axis");
  const Array x = flat ? reshape(call[0], {-1}) : call[0];
  const int dim = flat ? 0 : call.dim(call.integer("axis", 0), x.rank());
  const int64_t count = x.size(dim);
  // Compared as doubles, in the order of the file; so 64-bit integers beyond 2^53 are compared as such would round.
  std::vector<std::vector<double>> slices;
  for (int64_t i = 0; i < count; ++i) slices.push_back(as(select(x, dim, i), Float64).to_vector<double>());
  std::map<std::vector<double>, std::vector<int64_t>> groups;
  for (int64_t i = 0; i < count; ++i) groups[slices[static_cast<size_t>(i)]].push_back(i);
  std::vector<std::vector<int64_t>> members;
  for (const auto& [value, places] : groups) members.push_back(places);
  if (call.integer("sorted", 1) == 0) {
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  }
  std::vector<int64_t> first, inverse(static_cast<size_t>(count)), counts;
  for (size_t g = 0; g < members.size(); ++g) {
    first.push_back(members[g][0]);
    counts.push_back(static_cast<int64_t>(members[g].size()));
    for (int64_t place : members[g]) inverse[static_cast<size_t>(place)] = static_cast<int64_t>(g);
  }
  return {gather(x, list_of(first), dim), list_of(first), list_of(inverse), list_of(counts)};
}

/// Boxes (4, boxes, batch), scores (boxes, classes, batch) -> (3, chosen): batch, class, box.
Arrays non_max_suppression(const NodeCall& call) {
  const Array &boxes = call[0], &scores = call[1];
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.size(0) != 4 || boxes.size(1) != scores.size(0) ||
      boxes.size(2) != scores.size(2)) {
    call.refuse("there must be a score for each box", to_string(boxes.shape()) + " and " + to_string(scores.shape()));
  }
  const std::vector<double> corners = boxes.to_vector<double>(), marks = scores.to_vector<double>();
  const int64_t most = call.has(2) ? call.integer_in(2) : 0, count = boxes.size(1), classes = scores.size(1);
  const double shared = call.has(3) ? call.real_in(3) : 0;
  const double least = call.has(4) ? call.real_in(4) : -std::numeric_limits<double>::infinity();
  const bool centred = call.integer("center_point_box", 0) != 0;
  std::vector<int64_t> chosen;
  for (int64_t row = 0; row < scores.size(2) * classes; ++row) {
    const double* mark = marks.data() + row * count;
    std::vector<int64_t> order(static_cast<size_t>(count)), kept;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return mark[a] > mark[b]; });
    for (int64_t i : order) {
      if (static_cast<int64_t>(kept.size()) >= most || !(mark[i] > least)) continue;
      const int64_t base = row / classes * count;
      const Box box = box_at(corners, base + i, centred);
      const bool free = std::none_of(kept.begin(), kept.end(), [&](int64_t other) {
        return overlap(box, box_at(corners, base + other, centred)) > shared;
      });
      if (!free) continue;
      kept.push_back(i);
      chosen.insert(chosen.end(), {row / classes, row % classes, i});
    }
  }
  return {worked_out(chosen, {3, static_cast<int64_t>(chosen.size()) / 3})};
}

/// The way back of a max pooling: each value at its place, 0 elsewhere.
Arrays max_unpool(const NodeCall& call) {
  const Array& x = call[0];
  std::vector<int64_t> sizes = sizes_of(x);
  const size_t dims = sizes.size() < 2 ? 0 : sizes.size() - 2;
  const std::vector<int64_t> kernel = spatial_list(call, "kernel_shape", dims, 1);
  const std::vector<int64_t> stride = spatial_list(call, "strides", dims, 1);
  std::vector<int64_t> pads = call.integers("pads");
  if (pads.empty()) pads.assign(2 * dims, 0);
  if (dims == 0 || pads.size() != 2 * dims) call.refuse("pads must be two for each axis", to_string(x.shape()));
  for (int64_t width : pads) check_extent(call, width);
  for (size_t d = 0; d < dims; ++d) {
    sizes[d] = (sizes[d] - 1) * stride[d] + kernel[d] - pads[dims - 1 - d] - pads[2 * dims - 1 - d];
  }
  const Shape own{std::span<const int64_t>(sizes)};
  const Array flat = scatter(zeros({own.count()}, x.dtype()), reshape(call[1], {-1}), reshape(x, {-1}), 0);
  Array y = reshape(flat, own);
  if (!call.has(2)) return {y};
  const std::vector<int64_t> wanted = reversed(call.integers_in(2));
  if (wanted.size() != sizes.size()) call.refuse("output_shape must be for each axis", std::to_string(wanted.size()));
  for (size_t d = 0; d < dims; ++d) y = pad(y, static_cast<int>(d), 0, wanted[d] - sizes[d]);
  return {y};
}

}  // namespace rosin::onnx
