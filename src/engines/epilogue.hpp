// Epilogues of calls: what an engine does not do in its registers is done with each part of the result as soon as that
// is complete, while it is in the cache. Every step rounds as if the result had been stored before it, so the bits are
// those of separate kernels. Read after vendor.hpp.
#pragma once

#include <memory>
#include <utility>

#include "engines/conv_shape.hpp"
#include "engines/vendor.hpp"

namespace rosin::engines {

/// A result as matrices: element (row, column) of an item stands at row + column * distance + item * item_stride.
struct ResultShape {
  DType type;
  int64_t items, columns, rows, distance, item_stride;
  bool own_of_columns = false;  // a bias has a number for each column, else one for each row
  int64_t channels = 1;         // of columns then: number i is that of the columns i, i + channels, ...
};

inline ResultShape result_shape(const MatmulSpec& spec) {
  return {spec.type, spec.batch, spec.n, spec.m, spec.ldc, spec.c_batch_stride};
}
inline ResultShape result_shape(const ConvSpec& spec) {
  const bool forward = spec.kind == ConvKind::forward;
  const int64_t pixels = extent_of(forward ? spec.out : spec.in, spec.spatial, 1).count();
  const int64_t channels = forward ? spec.out_channels : spec.in_channels;
  if (spec.logical) return {spec.type, 1, spec.batch * channels, pixels, pixels, 0, true, channels};
  return {spec.type, 1, spec.batch * pixels, channels, channels, 0};
}

/// The call, and then the epilogue. Types: floats.
std::unique_ptr<VendorCall> finished(std::unique_ptr<VendorCall> call, const Epilogue& epilogue,
                                     ActivationLoop activation, const ResultShape& shape);

/// What `make` prepares for the spec, with as much of the epilogue as the engine does in its registers (bias and relu,
/// where they are the first steps), then the rest. Sums of halves are rounded before the first step, so registers hold
/// too much for it.
template <class Spec, class Make>
std::unique_ptr<VendorCall> with_epilogue(const Spec& spec, bool in_registers, Make&& make) {
  Spec inner = spec;
  inner.epilogue = {};
  Epilogue rest = spec.epilogue;
  if (in_registers && size_of(spec.type) > 2) {
    inner.epilogue.bias = std::exchange(rest.bias, false);
    if (!rest.normalises() && !rest.residual && rest.activation == Activation::relu)
      inner.epilogue.activation = std::exchange(rest.activation, Activation::none);
  }
  std::unique_ptr<VendorCall> call = make(inner);
  return rest.none() ? std::move(call) : finished(std::move(call), rest, spec.activation, result_shape(spec));
}

}  // namespace rosin::engines
