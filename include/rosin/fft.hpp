// Discrete Fourier transforms along any dims, of any length, and what goes with them: frequencies, shifts, windows, and
// transforms of short pieces of a signal. x is real or complex, of Float32 or Float64 (Bool and integers become
// Float32); transforms are complex. They are computed on the CPU: arrays of another device are copied to the host at
// the call, and results are copied back. Everything can be differentiated, twice too.
// Errors of all: dtype (Float16, BFloat16), shape (no such dim, or one without elements).
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/dtype.hpp>
#include <rosin/export.hpp>
#include <rosin/reduce.hpp>

namespace rosin {

/// y[k] = sum over j of x[j] exp(-2 pi i j k / n) along `dim`, of n elements. Source: numpy.fft.fft, FFTW.
ROSIN_API Array fft(const Array& x);
ROSIN_API Array fft(const Array& x, int dim);
/// The way back: x[j] = sum over k of y[k] exp(2 pi i j k / n) / n.
ROSIN_API Array ifft(const Array& y);
ROSIN_API Array ifft(const Array& y, int dim);
/// Of a real x the first n / 2 + 1 elements of fft(x); the others are their conjugates. Error (dtype): x is complex.
ROSIN_API Array rfft(const Array& x);
ROSIN_API Array rfft(const Array& x, int dim);
/// The way back to a real x of `length` elements (default: twice as many as y has, less 2), for y of length / 2 + 1.
ROSIN_API Array irfft(const Array& y);
ROSIN_API Array irfft(const Array& y, int dim, int64_t length = -1);

/// fft along dims 0 and 1, all dims, or some.
ROSIN_API Array fft2(const Array& x);
ROSIN_API Array ifft2(const Array& y);
ROSIN_API Array fftn(const Array& x);
ROSIN_API Array fftn(const Array& x, Dims dims);
ROSIN_API Array ifftn(const Array& y);
ROSIN_API Array ifftn(const Array& y, Dims dims);

/// By what transforms are divided: the way back by the number n of elements (of all dims that are transformed), both
/// ways by its root, or the way there by n.
enum class FftNorm : uint8_t { backward, ortho, forward };
/// As the arguments n, s and norm of numpy.fft and torch.fft.
struct FftOptions {
  std::vector<int64_t> sizes = {};  // to which the dims are cut or filled with zeros, one each; nothing: their own
  FftNorm norm = FftNorm::backward;
};
/// The same with options; the size of irfft is that of the result. Error (argument): not one size for each dim, or one
/// below 1.
ROSIN_API Array fft(const Array& x, int dim, const FftOptions& options);
ROSIN_API Array ifft(const Array& y, int dim, const FftOptions& options);
ROSIN_API Array rfft(const Array& x, int dim, const FftOptions& options);
ROSIN_API Array irfft(const Array& y, int dim, const FftOptions& options);
ROSIN_API Array fftn(const Array& x, Dims dims, const FftOptions& options);
ROSIN_API Array ifftn(const Array& y, Dims dims, const FftOptions& options);

/// fftn of a real x along dims 0 and 1, all dims or some, with the first n / 2 + 1 elements of the first of them, as
/// FFTW and Julia have it (numpy.fft.rfftn: the last one, which in its order of dims is the same). And the way back;
/// sizes are those of the result, without them that of the first dim is even.
ROSIN_API Array rfft2(const Array& x, const FftOptions& options = {});
ROSIN_API Array irfft2(const Array& y, const FftOptions& options = {});
ROSIN_API Array rfftn(const Array& x);
ROSIN_API Array rfftn(const Array& x, Dims dims, const FftOptions& options = {});
ROSIN_API Array irfftn(const Array& y);
ROSIN_API Array irfftn(const Array& y, Dims dims, const FftOptions& options = {});

/// Frequency 0 in the middle of the dims (default: all), and the way back.
ROSIN_API Array fftshift(const Array& x);
ROSIN_API Array fftshift(const Array& x, Dims dims);
ROSIN_API Array ifftshift(const Array& x);
ROSIN_API Array ifftshift(const Array& x, Dims dims);
/// The frequencies of fft's elements for n samples that are `spacing` apart: Float32 (n), those above n / 2 negative;
/// of rfft's elements: (n / 2 + 1).
ROSIN_API Array fftfreq(int64_t n, double spacing = 1);
ROSIN_API Array rfftfreq(int64_t n, double spacing = 1);

/// Windows of Float32 (n): 0.5 - 0.5 cos(2 pi i / d) and 0.54 - 0.46 cos(2 pi i / d), with d = n for periodic ones, n -
/// 1 for symmetric ones. Error (argument): n < 1. Source: NNlib and torch of the same names.
ROSIN_API Array hann_window(int64_t n, bool periodic = true);
ROSIN_API Array hamming_window(int64_t n, bool periodic = true);

/// How a signal is cut into pieces that overlap.
struct StftOptions {
  int64_t n_fft = 512;      // elements of a piece
  int64_t hop_length = 0;   // from one piece to the next; 0: n_fft / 4
  Array window = {};        // (n_fft), by which pieces are multiplied; nothing: ones
  bool center = true;       // pieces are centred at multiples of hop_length; the ends are mirrored
  bool normalized = false;  // divided by sqrt(n_fft)
};
/// x (time, batch...), real -> rfft of its pieces, (n_fft / 2 + 1, pieces, batch...). Errors: shape (x is too short),
/// argument. Source: NNlib.stft, torch.stft.
ROSIN_API Array stft(const Array& x, const StftOptions& options = {});
/// The signal (time, batch...) whose transform with the same options is nearest to y (n_fft / 2 + 1, pieces, batch...):
/// pieces are added and divided by the sum of squares of their windows. length > 0: cut or filled to that.
/// Source: NNlib.istft, torch.istft.
ROSIN_API Array istft(const Array& y, const StftOptions& options = {}, int64_t length = 0);

}  // namespace rosin
