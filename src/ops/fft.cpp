// Fourier transforms; see rosin/fft.hpp. One op, on the parts of complex numbers: what it does is linear, and its
// adjoint is the unscaled way back.
#include <rosin/fft.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/transfer.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

Array transformed(const Array& parts, const FourierAttributes& how);

const Op& fourier_op =
    (*register_op({.name = "fourier",
                   .kind = Kind::routine,
                   .operands = 1,
                   .doc = "unscaled discrete Fourier transform along a dim, of parts; of real numbers "
                          "where the first dim has size 1",
                   .routine = Routine::fourier,
                   .attribute_words = 1}))
        .with_gradient([](Backward& b) {
          const auto how = b.attributes<FourierAttributes>();
          const Array back = transformed(b.gradient, {how.dim, 1 - how.inverse});
          b.give(0, slice(back, 0, 0, b.in(0).size(0)));
        });

Array transformed(const Array& parts, const FourierAttributes& how) {
  return record_one(fourier_op, parts, parts.dtype(), with_dims(parts.shape(), 0, 1, {2}), Attributes::of(how));
}

/// The parts of x on the CPU; of real numbers their real ones alone.
Array parts_of(std::string_view op, const Array& x) {
  require(fourier_op, x);
  const DType type = x.dtype();
  if (type == Float16 || type == BFloat16) {
    refuse(ErrorKind::dtype, op, "it takes Float32, Float64 or complex elements", to_string(type),
           "convert it with cast(x, Float32)");
  }
  const Array there = transferred(x, 0);
  if (is_complex(type)) return view_as_real(there);
  if (x.rank() == Shape::max_rank) return view_as_real(complex(there, 0));  // says what it takes
  return reshape(is_float(type) ? there : cast(there, Float32), with_dims(x.shape(), 0, 0, {1}));
}

/// Of parts, which may be real ones alone.
Array complex_of(const Array& parts) {
  return parts.size(0) == 2 ? view_as_complex(parts) : complex(reshape(parts, with_dims(parts.shape(), 0, 1, {})), 0);
}

/// What a transform of `count` elements is divided by.
double divisor(FftNorm norm, bool inverse, int64_t count) {
  const auto n = static_cast<double>(count);
  if (norm == FftNorm::ortho) return std::sqrt(n);
  return (norm == FftNorm::backward) == inverse ? n : 1;
}

/// Along the dims of the mask.
Array transform(std::string_view op, const Array& x, uint64_t dims, bool inverse, FftNorm norm = FftNorm::backward) {
  Array parts = parts_of(op, x);
  int64_t count = 1;
  for (int d = 0; d < x.rank(); ++d) {
    if (!(dims >> d & 1)) continue;
    if (x.size(d) == 0) {
      refuse(ErrorKind::shape, op, "a dim that is transformed has elements", to_string(x.shape()), "leave it out");
    }
    count *= x.size(d);
    if (x.size(d) > 1) parts = transformed(parts, {d + 1, inverse});
  }
  if (const double by = divisor(norm, inverse, count); by != 1) parts = parts / by;
  return transferred(complex_of(parts), x.node()->device);
}

Array along(std::string_view op, const Array& x, int dim, bool inverse) {
  return transform(op, x, uint64_t{1} << checked_dim(op, dim, x.shape()), inverse);
}

/// The dim with `size` elements, cut or followed by zeros.
Array sized(const Array& x, int dim, int64_t size) {
  const int64_t now = x.size(dim);
  return size <= now ? slice(x, dim, 0, size) : pad(x, dim, 0, size - now);
}

void check_sizes(std::string_view op, const FftOptions& options, size_t dims) {
  const bool good = options.sizes.size() == dims && *std::min_element(options.sizes.begin(), options.sizes.end()) > 0;
  if (good || options.sizes.empty()) return;
  refuse(ErrorKind::argument, op, "each dim that is transformed has a size of at least 1",
         std::to_string(options.sizes.size()) + " sizes for " + std::to_string(dims) + " dims", "give one for each");
}

Array along(std::string_view op, const Array& given, Dims dims, bool inverse, const FftOptions& options) {
  Array x = given;
  const uint64_t mask = dims_mask(op, dims, x.shape());
  check_sizes(op, options, dims.list().size());
  for (size_t i = 0; i < options.sizes.size(); ++i) {
    x = sized(x, checked_dim(op, dims.list()[i], x.shape()), options.sizes[i]);
  }
  return transform(op, x, mask, inverse, options.norm);
}

/// The first dim of some, whose size counts once more, and the others.
struct HalfDims {
  int first;
  std::vector<int> others;
  FftOptions of_first, of_others;
};
HalfDims half_dims(std::string_view op, const Array& x, Dims dims, const FftOptions& options) {
  dims_mask(op, dims, x.shape());
  if (dims.list().empty()) refuse(ErrorKind::argument, op, "some dim is transformed", "none", "name one");
  check_sizes(op, options, dims.list().size());
  HalfDims half{checked_dim(op, dims.list()[0], x.shape()),
                {dims.list().begin() + 1, dims.list().end()},
                {{}, options.norm},
                {{}, options.norm}};
  if (options.sizes.empty()) return half;
  half.of_first.sizes = {options.sizes[0]};
  half.of_others.sizes.assign(options.sizes.begin() + 1, options.sizes.end());
  return half;
}

Array half_transform(std::string_view op, const Array& x, Dims dims, const FftOptions& options) {
  if (is_complex(x.dtype())) refuse(ErrorKind::dtype, op, "it takes real elements", to_string(x.dtype()), "use fftn");
  const HalfDims half = half_dims(op, x, dims, options);
  const Array y = rfft(x, half.first, half.of_first);
  return half.others.empty() ? y : fftn(y, Dims(half.others), half.of_others);
}

Array half_back(std::string_view op, const Array& y, Dims dims, const FftOptions& options) {
  const HalfDims half = half_dims(op, y, dims, options);
  const Array x = half.others.empty() ? y : ifftn(y, Dims(half.others), half.of_others);
  return irfft(x, half.first, half.of_first);
}

Dims every_dim(const Array& x) {
  std::vector<int> dims(static_cast<size_t>(x.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return Dims(dims);
}

uint64_t all_dims(const Array& x) { return (uint64_t{1} << x.rank()) - 1; }

/// Rolled by half of each dim, rounded down, or back.
Array shifted(Array x, uint64_t dims, bool back) {
  for (int d = 0; d < x.rank(); ++d) {
    if ((dims >> d & 1) && x.size(d) > 1) x = roll(x, back ? -(x.size(d) / 2) : x.size(d) / 2, d);
  }
  return x;
}

Array window(std::string_view op, int64_t n, bool periodic, double middle) {
  if (n < 1) refuse(ErrorKind::argument, op, "a window has an element", std::to_string(n), "give its length");
  if (n == 1) return ones({1});
  const double step = 2 * std::numbers::pi / static_cast<double>(periodic ? n : n - 1);
  return cast(middle - (1 - middle) * cos(arange(0.0, static_cast<double>(n), 1.0, Float64) * step), Float32);
}

struct Pieces {
  int64_t length, hop;
  Array window;  // (length)
};

/// The window comes to where y is.
Pieces pieces_of(std::string_view op, const StftOptions& options, DType type, const Array& y) {
  const int64_t n = options.n_fft, hop = options.hop_length == 0 ? n / 4 : options.hop_length;
  if (n < 1 || hop < 1) {
    refuse(ErrorKind::argument, op, "n_fft and hop_length are at least 1",
           std::to_string(n) + " and " + std::to_string(hop),
           "give the number of elements of a piece, and from one to the next");
  }
  const Array window =
      options.window.is_nothing() ? ones({n}, type) : cast(transferred(options.window, y.node()->device), type);
  if (window.shape() != Shape{n}) {
    refuse(ErrorKind::shape, op, "the window has n_fft elements", to_string(window.shape()), "make it that long");
  }
  return {n, hop, window};
}

/// Half a piece of mirrored elements on each side of dim 0.
Array centred(const Array& x, int64_t length) {
  std::vector<std::pair<int64_t, int64_t>> widths(static_cast<size_t>(x.rank()));
  widths[0] = {length / 2, length / 2};
  return pad(x, widths, PadMode::reflect);
}

/// The places of the elements of each piece: Int32 (length, count).
Array places(const Pieces& pieces, int64_t count) {
  return arange(pieces.length) + reshape(arange(count) * pieces.hop, {1, count});
}

/// Pieces (length, count, batch...) added where they stand: (time, batch...).
Array overlapped(const Pieces& pieces, const Array& values) {
  const int64_t count = values.size(1), time = pieces.length + (count - 1) * pieces.hop;
  const Array flat = reshape(values, with_dims(values.shape(), 0, 2, {pieces.length * count}));
  const Array none = zeros(with_dims(values.shape(), 0, 2, {time}), values.dtype());
  return scatter_add(none, reshape(places(pieces, count), {-1}), flat, 0);
}

const bool named[] = {
    name_function(fft, "fft"),       name_function(ifft, "ifft"),         name_function(rfft, "rfft"),
    name_function(irfft, "irfft"),   name_function(fft2, "fft2"),         name_function(ifft2, "ifft2"),
    name_function(fftn, "fftn"),     name_function(ifftn, "ifftn"),       name_function(rfftn, "rfftn"),
    name_function(irfftn, "irfftn"), name_function(fftshift, "fftshift"), name_function(ifftshift, "ifftshift")};

}  // namespace

Array fft(const Array& x) { return fft(x, 0); }
Array fft(const Array& x, int dim) { return along("fft", x, dim, false); }
Array ifft(const Array& y) { return ifft(y, 0); }
Array ifft(const Array& y, int dim) { return along("ifft", y, dim, true); }

Array rfft(const Array& x) { return rfft(x, 0); }

Array rfft(const Array& x, int dim) {
  if (is_complex(x.dtype())) {
    refuse(ErrorKind::dtype, "rfft", "it takes real elements", to_string(x.dtype()), "use fft");
  }
  const int at = checked_dim("rfft", dim, x.shape());
  return slice(along("rfft", x, at, false), at, 0, x.size(at) / 2 + 1);
}

Array irfft(const Array& y) { return irfft(y, 0); }

namespace {

/// irfft to n elements of y with n / 2 + 1 of them.
Array mirrored_back(const Array& y, int at, int64_t n, FftNorm norm) {
  const Array mirrored = flip(conj(slice(y, at, 1, n - y.size(at) + 1)), at);
  return real(transform("irfft", concat({y, mirrored}, at), uint64_t{1} << at, true, norm));
}

}  // namespace

Array irfft(const Array& y, int dim, int64_t length) {
  const int at = checked_dim("irfft", dim, y.shape());
  const int64_t k = y.size(at), n = length < 0 ? std::max<int64_t>(2 * k - 2, 1) : length;
  if (n < 1 || n / 2 + 1 != k) {
    refuse(ErrorKind::shape, "irfft", "for a length there are length / 2 + 1 elements",
           std::to_string(k) + " for " + std::to_string(n), "cut y or pad it with zeros");
  }
  return mirrored_back(y, at, n, FftNorm::backward);
}

Array fft(const Array& x, int dim, const FftOptions& options) { return along("fft", x, dim, false, options); }
Array ifft(const Array& y, int dim, const FftOptions& options) { return along("ifft", y, dim, true, options); }

Array rfft(const Array& x, int dim, const FftOptions& options) {
  if (is_complex(x.dtype())) {
    refuse(ErrorKind::dtype, "rfft", "it takes real elements", to_string(x.dtype()), "use fft");
  }
  const int at = checked_dim("rfft", dim, x.shape());
  const Array y = along("rfft", x, at, false, options);
  return slice(y, at, 0, y.size(at) / 2 + 1);
}

Array irfft(const Array& y, int dim, const FftOptions& options) {
  const int at = checked_dim("irfft", dim, y.shape());
  check_sizes("irfft", options, 1);
  const int64_t n = options.sizes.empty() ? std::max<int64_t>(2 * y.size(at) - 2, 1) : options.sizes[0];
  return mirrored_back(sized(y, at, n / 2 + 1), at, n, options.norm);
}

Array fft2(const Array& x) { return transform("fft2", x, dims_mask("fft2", {0, 1}, x.shape()), false); }
Array ifft2(const Array& y) { return transform("ifft2", y, dims_mask("ifft2", {0, 1}, y.shape()), true); }
Array fftn(const Array& x) { return transform("fftn", x, all_dims(x), false); }
Array fftn(const Array& x, Dims dims) { return transform("fftn", x, dims_mask("fftn", dims, x.shape()), false); }
Array ifftn(const Array& y) { return transform("ifftn", y, all_dims(y), true); }
Array ifftn(const Array& y, Dims dims) { return transform("ifftn", y, dims_mask("ifftn", dims, y.shape()), true); }

Array fftn(const Array& x, Dims dims, const FftOptions& options) { return along("fftn", x, dims, false, options); }
Array ifftn(const Array& y, Dims dims, const FftOptions& options) { return along("ifftn", y, dims, true, options); }

Array rfft2(const Array& x, const FftOptions& options) { return half_transform("rfft2", x, {0, 1}, options); }
Array irfft2(const Array& y, const FftOptions& options) { return half_back("irfft2", y, {0, 1}, options); }
Array rfftn(const Array& x) { return half_transform("rfftn", x, every_dim(x), {}); }
Array rfftn(const Array& x, Dims dims, const FftOptions& options) { return half_transform("rfftn", x, dims, options); }
Array irfftn(const Array& y) { return half_back("irfftn", y, every_dim(y), {}); }
Array irfftn(const Array& y, Dims dims, const FftOptions& options) { return half_back("irfftn", y, dims, options); }

Array fftshift(const Array& x) { return shifted(x, all_dims(x), false); }
Array fftshift(const Array& x, Dims dims) { return shifted(x, dims_mask("fftshift", dims, x.shape()), false); }
Array ifftshift(const Array& x) { return shifted(x, all_dims(x), true); }
Array ifftshift(const Array& x, Dims dims) { return shifted(x, dims_mask("ifftshift", dims, x.shape()), true); }

Array fftfreq(int64_t n, double spacing) {
  const Array k = arange(n);
  return cast(where(gt(k * 2, n - 1), k - n, k), Float32) / (static_cast<double>(n) * spacing);
}

Array rfftfreq(int64_t n, double spacing) {
  return cast(arange(n / 2 + 1), Float32) / (static_cast<double>(n) * spacing);
}

Array hann_window(int64_t n, bool periodic) { return window("hann_window", n, periodic, 0.5); }
Array hamming_window(int64_t n, bool periodic) { return window("hamming_window", n, periodic, 0.54); }

Array stft(const Array& given, const StftOptions& options) {
  const Array there = is_float(given.dtype()) ? given : cast(given, Float32);
  const Array x = options.center ? centred(there, options.n_fft) : there;
  const DeviceScope scope(*x.node());
  const Pieces pieces = pieces_of("stft", options, x.dtype(), x);
  if (x.size(0) < pieces.length) {
    refuse(ErrorKind::shape, "stft", "the signal is at least as long as a piece of " + std::to_string(pieces.length),
           to_string(x.shape()), "pad it with zeros, or choose a smaller n_fft");
  }
  const int64_t count = (x.size(0) - pieces.length) / pieces.hop + 1;
  const Array y = rfft(gather(x, places(pieces, count), 0) * pieces.window, 0);
  return options.normalized ? y / std::sqrt(static_cast<double>(pieces.length)) : y;
}

Array istft(const Array& y, const StftOptions& options, int64_t length) {
  const DeviceScope scope(*y.node());
  const DType type = y.dtype() == ComplexF64 ? Float64 : Float32;
  const Pieces pieces = pieces_of("istft", options, type, y);
  if (y.rank() < 2 || y.size(1) == 0) {
    refuse(ErrorKind::shape, "istft", "it takes (n_fft / 2 + 1, pieces, batch...)", to_string(y.shape()), "reshape it");
  }
  const Array values = irfft(y, 0, pieces.length) * pieces.window;
  const Array squares = expand(square(pieces.window), {pieces.length, y.size(1)});
  const Array sum = overlapped(pieces, values), weights = overlapped(pieces, squares);
  Array x = where(gt(weights, 1e-11), sum / where(gt(weights, 1e-11), weights, 1), 0);
  if (options.normalized) x = x * std::sqrt(static_cast<double>(pieces.length));
  const int64_t left = options.center ? pieces.length / 2 : 0;
  const int64_t right = options.center && length == 0 ? x.size(0) - left : x.size(0);
  x = slice(x, 0, left, right);
  if (length == 0 || length == x.size(0)) return x;
  return length < x.size(0) ? slice(x, 0, 0, length) : pad(x, 0, 0, length - x.size(0));
}

}  // namespace rosin
