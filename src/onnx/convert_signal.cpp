// Conversions of Fourier transforms. Signals have their parts, one or two, along dim 0 here. Read first: convert.hpp.
#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/fft.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "onnx/convert.hpp"
#include "onnx/windows.hpp"

namespace rosin::onnx {
namespace {

/// Without the dim of the parts; halves in Float32.
Array signal_of(const NodeCall& call, const Array& x) {
  if (x.rank() < 2 || x.size(0) > 2) call.refuse("a signal has one or two parts", to_string(x.shape()));
  const Array wide = x.dtype() == Float16 || x.dtype() == BFloat16 ? cast(x, Float32) : x;
  return x.size(0) == 2 ? view_as_complex(wide) : squeeze(wide, 0);
}

/// The first half of frequencies, and the parts along dim 0.
Array parts_of(const Array& y, int dim, bool onesided, DType type) {
  return as(view_as_real(onesided ? slice(y, dim, 0, y.size(dim) / 2 + 1) : y), type);
}

}  // namespace

Arrays fourier(const NodeCall& call) {
  const Array& x = call[0];
  const bool inverse = call.integer("inverse", 0) != 0, onesided = call.integer("onesided", 0) != 0;
  const int64_t axis = call.opset() < 20 ? call.integer("axis", 1) : call.has(2) ? call.integer_in(2) : -2;
  const int dim = call.dim(axis, x.rank()) - 1;
  if (dim < 0) call.refuse("the axis must not be that of the parts", std::to_string(axis));
  const Array signal = signal_of(call, x);
  const bool halves = inverse && onesided;
  const int64_t own = halves ? 2 * (signal.size(dim) - 1) : signal.size(dim);
  const int64_t length = call.has(1) ? call.integer_in(1) : own;
  check_extent(call, length);
  if (halves) return {as(unsqueeze(irfft(signal, dim, length), 0), x.dtype())};
  const FftOptions options{.sizes = {length}};
  return {parts_of(inverse ? ifft(signal, dim, options) : fft(signal, dim, options), dim, onesided, x.dtype())};
}

/// x is (parts, length, batch); pieces come out as (2, frequencies, pieces, batch).
Arrays short_time_fourier(const NodeCall& call) {
  const Array signal = signal_of(call, call[0]);
  const int64_t step = call.integer_in(1), all = signal.size(0);
  const int64_t length = call.has(3) ? call.integer_in(3) : call.has(2) ? call[2].count() : all;
  check_extent(call, step);
  if (step < 1 || length < 1 || length > all) call.refuse("pieces must be parts of the signal", std::to_string(length));
  std::vector<int64_t> places;
  const int64_t count = (all - length) / step + 1;
  if (count > (int64_t{1} << 28) / length) call.refuse("pieces have at most 2^28 elements", std::to_string(count));
  for (int64_t piece = 0; piece < count; ++piece) {
    for (int64_t i = 0; i < length; ++i) places.push_back(piece * step + i);
  }
  Array pieces = gather(signal, worked_out(places, {length, count}), 0);
  if (call.has(2)) pieces = pieces * along(as(call[2], call[0].dtype()), 0, pieces.rank());
  return {parts_of(fft(pieces, 0), 0, call.integer("onesided", 1) != 0, call[0].dtype())};
}

}  // namespace rosin::onnx
