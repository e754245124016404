// Fourier transforms against NumPy and PyTorch (tests/oracles/fourier.txt), long lines against the definition, and what
// they say to wrong input.
#include <gtest/gtest.h>

#include <rosin/approx.hpp>
#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/fft.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/random.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::OracleCase;
using Inputs = std::vector<Array>;
using Whole = Array (*)(const Array&);
using OverDims = Array (*)(const Array&, Dims);

/// Of complex arrays that are given as parts.
oracles::OracleCall along(Array (*f)(const Array&, int)) {
  return [f](const OracleCase& e, const Inputs& x) {
    return Inputs{view_as_real(f(view_as_complex(x[0]), oracles::dim_of(e)))};
  };
}

oracles::OracleCall over(Whole whole, OverDims some) {
  return [=](const OracleCase& e, const Inputs& x) {
    const Array z = view_as_complex(x[0]);
    return Inputs{view_as_real(e.has("dims") ? some(z, oracles::dims_of(e)) : whole(z))};
  };
}

oracles::OracleCall shift(Whole whole, OverDims some) {
  return [=](const OracleCase& e, const Inputs& x) {
    return Inputs{e.has("dims") ? some(x[0], oracles::dims_of(e)) : whole(x[0])};
  };
}

Inputs irfft_of(const OracleCase& e, const Inputs& x) {
  const int64_t length = e.has("n") ? e.integers("n")[0] : -1;
  return {irfft(view_as_complex(x[0]), oracles::dim_of(e), length)};
}

StftOptions options_of(const OracleCase& e) {
  return {.n_fft = 8,
          .hop_length = e.integers("hop")[0],
          .window = 0.54 - 0.46 * cos(arange(0.0, 8.0, 1.0, Float64) * (3.14159265358979323846 / 4)),
          .center = e.number("center", 1) != 0,
          .normalized = e.number("normalized", 0) != 0};
}

oracles::OracleCall frequencies(Array (*f)(int64_t, double)) {
  return [f](const OracleCase& e, const Inputs&) { return Inputs{f(e.integers("n")[0], e.number("spacing", 1))}; };
}

oracles::OracleCall window(Array (*f)(int64_t, bool)) {
  return
      [f](const OracleCase& e, const Inputs&) { return Inputs{f(e.integers("n")[0], e.number("periodic", 1) != 0)}; };
}

TEST(Fft, AgreesWithTheOracles) {
  oracles::run_oracles(
      "fourier.txt",
      {{"fft", along(fft)},
       {"ifft", along(ifft)},
       {"rfft",
        [](const OracleCase& e, const Inputs& x) { return Inputs{view_as_real(rfft(x[0], oracles::dim_of(e)))}; }},
       {"irfft", irfft_of},
       {"fft2", over(fft2, nullptr)},
       {"ifft2", over(ifft2, nullptr)},
       {"fftn", over(fftn, fftn)},
       {"ifftn", over(ifftn, ifftn)},
       {"fftshift", shift(fftshift, fftshift)},
       {"ifftshift", shift(ifftshift, ifftshift)},
       {"fftfreq", frequencies(fftfreq)},
       {"rfftfreq", frequencies(rfftfreq)},
       {"hann_window", window(hann_window)},
       {"hamming_window", window(hamming_window)},
       {"stft", [](const OracleCase& e, const Inputs& x) { return Inputs{view_as_real(stft(x[0], options_of(e)))}; }},
       {"istft",
        [](const OracleCase& e, const Inputs& x) {
          return Inputs{istft(view_as_complex(x[0]), options_of(e), e.integers("length")[0])};
        }},
       {"complex_matmul", [](const OracleCase&, const Inputs& x) {
          return Inputs{view_as_real(matmul(view_as_complex(x[0]), view_as_complex(x[1])))};
        }}});
}

/// By the definition, as a product with the matrix of roots.
Array by_definition(const Array& z) {
  const int64_t n = z.size(0);
  const Array k = arange(n);
  const Array angle =
      cast(mod(k * reshape(k, {1, n}), n), Float64) * (-2 * 3.14159265358979323846 / static_cast<double>(n));
  return matmul(complex(cos(angle), sin(angle)), z);
}

TEST(Fft, LongLinesFollowTheDefinition) {
  seed(5);
  for (const int64_t n : {97, 121, 128, 210, 251, 360, 509, 600}) {
    const Array z = complex(cast(randn({n, 2}), Float64), cast(randn({n, 2}), Float64));
    EXPECT_TRUE(allclose(abs(fft(z) - by_definition(z)), zeros({n, 2}, Float64), {.atol = 1e-10})) << n;
    const Array narrow = complex(randn({n}), randn({n}));
    EXPECT_TRUE(allclose(abs(ifft(fft(narrow)) - narrow), zeros({n}), {.atol = 2e-6})) << n;
    const Array x = randn({n});
    EXPECT_TRUE(allclose(irfft(rfft(x), 0, n), x, {.atol = 2e-6})) << n;
  }
}

TEST(Fft, WaysBackUndo) {
  seed(6);
  const Array x = randn({5, 4, 3});
  const auto undone = [&](const Array& z) { return allclose(real(z), x, {.atol = 2e-6}); };
  EXPECT_TRUE(undone(ifft2(fft2(x))));
  EXPECT_TRUE(undone(ifftn(fftn(x))));
  EXPECT_TRUE(undone(ifftshift(fftshift(x))));
  EXPECT_EQ(fftfreq(4).to_vector<float>(), (std::vector<float>{0, 0.25f, -0.5f, -0.25f}));
  EXPECT_EQ(rfftfreq(4).to_vector<float>(), (std::vector<float>{0, 0.25f, 0.5f}));
  EXPECT_EQ(hamming_window(1).item(), 1);
}

TEST(Fft, ArraysOfADeviceComeBackThere) {
  const Device device = some_device();
  const Array x = cos(arange(0.0, 8.0, 1.0)), there = device(x);
  EXPECT_EQ(fft(there).device().position(), device.position());
  EXPECT_EQ(view_as_real(fft(there)).to_vector<float>(), view_as_real(fft(x)).to_vector<float>());
  const StftOptions options{.n_fft = 4, .window = hann_window(4)};
  EXPECT_TRUE(allclose(cpu(istft(stft(there, options), options)), x, {.atol = 1e-6}));
}

TEST(Fft, SecondGradientsAgreeWithDifferences) {
  const Array x = reshape(cos(arange(0.0, 12.0, 1.0, Float64)), {12});
  const auto slope_of = [](const std::function<Array(const Array&)>& f) {
    return [f](const Array& at) {
      return gradient([&](const Array& a) { return layer_testing::weighed(square(abs(f(a)))); }, at);
    };
  };
  layer_testing::check_function_gradient(slope_of([](const Array& a) { return fft(a); }), x, "fft");
  layer_testing::check_function_gradient(slope_of([](const Array& a) { return irfft(fft(a)); }), x, "irfft");
  const StftOptions options{.n_fft = 4};
  layer_testing::check_function_gradient(slope_of([&](const Array& a) { return stft(a, options); }), x, "stft");
}

TEST(Fft, TakesNumbersOfOtherTypesAndSaysWhatNot) {
  EXPECT_EQ(fft(Array({1, 2, 3}, {3})).dtype(), ComplexF32);
  EXPECT_EQ(fft(ones({3}, Float64)).dtype(), ComplexF64);
  EXPECT_EQ(matmul(complex(ones({2, 2}), ones({2, 2})), eye(2)).dtype(), ComplexF32);
  EXPECT_EQ(error_of([] { fft(ones({2}, Float16)); }, ErrorKind::dtype),
            "fft: it takes Float32, Float64 or complex elements; got Float16; convert it with cast(x, Float32)");
  EXPECT_EQ(error_of([] { irfft(fft(ones({3})), 0, 9); }, ErrorKind::shape),
            "irfft: for a length there are length / 2 + 1 elements; got 3 for 9; cut y or pad it with zeros");
  error_of([] { rfft(fft(ones({3}))); }, ErrorKind::dtype);
  error_of([] { fft(zeros({0})); }, ErrorKind::shape);
  error_of([] { fft(ones({3}), 1); }, ErrorKind::shape);
  error_of([] { hann_window(0); }, ErrorKind::argument);
  error_of([] { stft(ones({3}), {.n_fft = 8, .center = false}); }, ErrorKind::shape);
  error_of([] { stft(ones({30}), {.n_fft = 8, .window = ones({7})}); }, ErrorKind::shape);
  error_of([] { istft(fft(ones({3}))); }, ErrorKind::shape);
  const Array back = istft(stft(ones({64}), {.n_fft = 16}), {.n_fft = 16}, 80);
  EXPECT_EQ(back.shape(), (Shape{80})) << "filled with zeros";
}

TEST(Fourier, SizesAndNormsAreThoseOfTheOptions) {
  const Array x = rand({6, 5, 2});
  EXPECT_TRUE(allclose(real(fft(x, 0, {.sizes = {8}})), real(fft(pad(x, 0, 0, 2), 0))));
  EXPECT_TRUE(allclose(abs(ifft(fft(x, 1, {.norm = FftNorm::ortho}), 1, {.norm = FftNorm::ortho})), x, {.atol = 1e-5}));
  EXPECT_TRUE(allclose(abs(rfftn(x)), abs(slice(fftn(x), 0, 0, 4)), {.rtol = 1e-4, .atol = 1e-4}));
  EXPECT_TRUE(allclose(irfftn(rfftn(x, {1, 0}), {1, 0}, {{5, 6}}), x, {.rtol = 1e-4, .atol = 1e-5}));
  EXPECT_TRUE(allclose(irfft2(rfft2(x)), x, {.rtol = 1e-4, .atol = 1e-5}));
  EXPECT_EQ(rfftn(x, {1, 2}).shape(), (Shape{6, 3, 2}));
  EXPECT_EQ(error_of(
                [&] {
                  fftn(x, {0, 1}, {.sizes = {4}});
                },
                ErrorKind::argument),
            "fftn: each dim that is transformed has a size of at least 1; got 1 sizes for 2 dims; give one for each");
  error_of([&] { irfft(x, 0, {.sizes = {0}}); }, ErrorKind::argument);
  error_of([&] { rfftn(fft(x, 0)); }, ErrorKind::dtype);
}

}  // namespace
}  // namespace rosin
