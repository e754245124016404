// SizeLimits: which rows a device reduces and then uses within one kernel, and which images it has for small. Part of
// the key of a plan.
#pragma once

#include <bit>
#include <cstdint>

#include "graph/node.hpp"
#include "plan/call.hpp"

namespace rosin {

struct SizeLimits {
  int64_t row = 0;   // elements
  int64_t line = 0;  // the same of rows that are one dim
  int64_t many = 0;  // for each of the rows
  int64_t plane = 0;

  static SizeLimits of(const plan::Target& target) {
    return {target.longest_row(), target.longest_line(), target.elements_for_each_row(), target.least_plane()};
  }

  /// What a plan is told of a node's sizes.
  bool is_small(const Node& node) const {
    if (node.op->kind == Kind::reduction) return hold(node);
    return node.op->kind == Kind::contraction && node.op->contraction != Contraction::matmul && has_small_planes(node);
  }

 private:
  /// Whether what the node reduces is such a row. Not where there is nothing to reduce: no strip would write the
  /// result.
  bool hold(const Node& node) const {
    const int64_t elements = node.in[0]->count();
    if (elements == 0) return false;
    const int64_t rows = node.count(), reduced = elements / rows;
    return reduced <= row || (reduced <= line && reduced == fastest(*node.in[0])) || reduced <= many * rows;
  }

  bool has_small_planes(const Node& convolution) const {
    const bool of_groups = convolution.attributes.as<WindowAttributes>().groups > 1;
    if ((!of_groups && !is_of_points(convolution)) || convolution.dtype != DType::Float32) return false;
    if (is_of_many_taps(convolution)) return false;
    const Node& images = *convolution.in[0];
    return images.count() < plane * images.sizes[images.rank - 2] * images.sizes[images.rank - 1];
  }

  /// Whether windows are single points.
  static bool is_of_points(const Node& convolution) {
    const bool by_weights = convolution.op->contraction == Contraction::convolution_weights;
    const Node& weights = by_weights ? convolution : *convolution.in[1];
    return (weights.wide & ((1u << (weights.rank - 2)) - 1)) == 0;
  }

  /// Whether it is a gradient by filters of so many taps that planes of any size are best.
  static bool is_of_many_taps(const Node& convolution) {
    int64_t taps = convolution.op->contraction == Contraction::convolution_weights ? 1 : 0;
    for (int d = 0; d < convolution.rank - 2; ++d) taps *= convolution.sizes[d];
    return taps > plan::most_taps_in_blocks;
  }

  /// The size of the fastest dim that has several elements.
  static int64_t fastest(const Node& node) { return node.wide == 0 ? 1 : node.sizes[std::countr_zero(node.wide)]; }
};

}  // namespace rosin
