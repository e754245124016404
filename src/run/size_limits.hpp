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
  int64_t taps = 0;  // of filters of single channels

  static SizeLimits of(const plan::Target& target) {
    return {target.longest_row(), target.longest_line(), target.elements_for_each_row(), target.least_plane(),
            target.most_plane_taps()};
  }

  /// What a plan is told of a node's sizes.
  bool is_small(const Node& node) const {
    if (node.op->kind == Kind::reduction) return hold(node);
    if (node.op->kind != Kind::contraction || node.op->contraction == Contraction::matmul) return false;
    return has_small_planes(node) || has_large_filters(node);
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
    if (is_by_weights(convolution) && taps_of(convolution) > plan::most_taps_in_blocks) return false;
    const Node& images = *convolution.in[0];
    return images.count() < plane * images.sizes[images.rank - 2] * images.sizes[images.rank - 1];
  }

  /// Of single channels, in a convolution that most_plane_taps() speaks of.
  bool has_large_filters(const Node& convolution) const {
    if (is_by_weights(convolution) || convolution.dtype != DType::Float32) return false;
    const int64_t groups = convolution.attributes.as<WindowAttributes>().groups;
    const Node& weights = weights_of(convolution);
    const int64_t filters = weights.sizes[weights.rank - 1], depth = weights.sizes[weights.rank - 2];
    return groups > 1 && depth == 1 && filters == groups && taps_of(convolution) > taps;
  }

  static bool is_by_weights(const Node& convolution) {
    return convolution.op->contraction == Contraction::convolution_weights;
  }
  static const Node& weights_of(const Node& convolution) {
    return is_by_weights(convolution) ? convolution : *convolution.in[1];
  }

  /// Whether windows are single points.
  static bool is_of_points(const Node& convolution) {
    const Node& weights = weights_of(convolution);
    return (weights.wide & ((1u << (weights.rank - 2)) - 1)) == 0;
  }

  static int64_t taps_of(const Node& convolution) {
    const Node& weights = weights_of(convolution);
    int64_t taps = 1;
    for (int d = 0; d < weights.rank - 2; ++d) taps *= weights.sizes[d];
    return taps;
  }

  /// The size of the fastest dim that has several elements.
  static int64_t fastest(const Node& node) { return node.wide == 0 ? 1 : node.sizes[std::countr_zero(node.wide)]; }
};

}  // namespace rosin
