// The arrays of a convolution or of one of its gradients, as its kernels see them.
// Read first: launches.hpp, window_terms.hpp. Read next: convolution.cpp, strip.hpp.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/launches.hpp"
#include "kernels/window_terms.hpp"
#include "scalar/convert.hpp"

namespace rosin::kernels {

/// x (spatial..., in, batch), weights (kernel..., in / groups, out), y (spatial..., out, batch) of a node.
struct Convolution {
  const Layout& layout;
  int32_t node, x, weights, y;
  Contraction what;
  WindowAttributes attributes;

  Convolution(const Layout& all, int32_t value) : layout(all), node(value) {
    const Value& call = all.structure->graph.values[static_cast<size_t>(value)];
    what = call.op->contraction;
    attributes = all.attributes[static_cast<size_t>(value)].as<WindowAttributes>();
    x = what == Contraction::convolution_data ? node : call.in[0];
    weights = what == Contraction::convolution_weights ? node : call.in[1];
    y = what == Contraction::convolution ? node : what == Contraction::convolution_data ? call.in[0] : call.in[1];
  }

  const View& view(int32_t value) const { return layout.views[static_cast<size_t>(value)]; }
  DType dtype() const { return layout.structure->graph.values[static_cast<size_t>(node)].dtype; }
  ScalarType compute() const { return scalar_type(dtype()); }
  /// Of sums that wait in memory.
  DType storage() const { return storage_of(compute()); }
  int spatial() const { return view(x).rank - 2; }
  int64_t groups() const { return attributes.groups; }
  int64_t in_of_group() const { return view(weights).sizes[spatial()]; }
  int64_t out_of_group() const { return view(weights).sizes[spatial() + 1] / groups(); }
  ScalarType index() const { return index_type(layout, std::array{x, weights, y}); }
  MathMode mode() const { return layout.structure->graph.values[static_cast<size_t>(node)].mode; }
  /// For each element that is read or written: beyond, libraries have enough to do.
  bool has_few_products() const {
    constexpr int64_t few = 128;
    const int64_t places = view(y).count() / view(y).sizes[spatial()];
    return places * view(weights).count() <= few * (view(x).count() + view(y).count());
  }
  WindowTerms windows(KernelWriter& w) const {
    return WindowTerms(w, view(x), view(y), std::span(view(weights).sizes, static_cast<size_t>(spatial())), attributes);
  }
};

// What follows gives false where nothing is written, as there are too few groups, a part of an image does not fit, or
// the mode is exact, in which sums have the order of the kernels of convolution.cpp.

/// The gradient by weights of a convolution of few channels and many images: groups add up strips of images, which they
/// keep in shared memory; who comes last adds up what they have, or a second launch does.
bool write_by_strips(const Convolution& conv, LaunchList& list);
/// Whether libraries need not be asked for it.
bool strips_beat_libraries(const Convolution& conv, const Abilities& device);

/// A convolution, or one by data whose windows stand one element apart, from tiles of images in shared memory, with the
/// epilogue of the step where tiles_take_epilogue.
bool write_by_tiles(const Convolution& conv, const Step& step, LaunchList& list);
bool tiles_take_epilogue(const Convolution& conv, const Step& step);
bool tiles_beat_libraries(const Convolution& conv, const Step& step, const Abilities& device);

}  // namespace rosin::kernels
