// Tests of complex arrays: how they are made and looked at, what meets what, what is refused. Values and gradients of
// their functions stand in tests/oracles/complex.txt.
#include <rosin/complex.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include <rosin/approx.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/model.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rules.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

Values parts(const Array& z) { return view_as_real(z).to_vector(); }
Array some() { return complex(Array({1.f, 2.f, 3.f, 4.f}, {2, 2}), Array({5.f, 6.f, 7.f, 8.f}, {2, 2})); }

TEST(Complex, IsMadeOfPartsThatBroadcast) {
  const Array z = some();
  EXPECT_EQ(z.dtype(), ComplexF32);
  EXPECT_EQ(parts(z), (Values{1, 5, 2, 6, 3, 7, 4, 8}));
  EXPECT_EQ(real(z).to_vector(), (Values{1, 2, 3, 4}));
  EXPECT_EQ(imag(z).to_vector(), (Values{5, 6, 7, 8}));
  const Array wide = complex(ones({2, 1}, Float64), Array({1.0, 2.0, 3.0}, {1, 3}));
  EXPECT_EQ(wide.dtype(), ComplexF64);
  EXPECT_EQ(wide.shape(), Shape({2, 3}));
  EXPECT_EQ(imag(wide).to_vector<double>(), (std::vector<double>{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(parts(complex(2.0, 3.0)), (Values{2, 3}));
  EXPECT_EQ(complex(2.0, 3.0).rank(), 0);
  EXPECT_EQ(parts(complex(ones({2}), 0.5)), (Values{1, 0.5, 1, 0.5}));
  EXPECT_EQ(view_as_real(complex(zeros({0, 3}), 1.0)).shape(), Shape({2, 0, 3}));
}

TEST(Complex, RealsHaveAnglesToo) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Array x({-2.0f, 0.0f, 3.0f, -infinity}, {4});
  EXPECT_EQ(angle(x).to_vector(), (Values{3.14159274f, 0, 0, 3.14159274f}));
  EXPECT_EQ(imag(x).to_vector(), (Values{0, 0, 0, 0}));
}

TEST(Complex, LooksAreUndone) {
  const Array twice = ones({2, 3}) * 2.0;
  EXPECT_TRUE(same(view_as_real(view_as_complex(twice)), twice));
}

TEST(Complex, NumbersGoToTheDeviceOfTheOtherPart) {
  const Array there = Array({1.0, 2.0}, {2}) | get_device("reference", 0).with(keep);
  EXPECT_EQ(view_as_real(complex(there, 0.5)).to_vector<double>(), (std::vector<double>{1, 0.5, 2, 0.5}));
  EXPECT_EQ(view_as_real(complex(0.5, there) * 2.0).to_vector<double>(), (std::vector<double>{1, 2, 1, 4}));
}

TEST(Complex, MovesWithBothParts) {
  const Array z = some();
  eval(z);
  EXPECT_EQ(parts(transpose(z)), (Values{1, 5, 3, 7, 2, 6, 4, 8}));
  const Array row = slice(z, 0, 1, 2), turned = flip(z, 1);
  eval();
  EXPECT_EQ(parts(row), (Values{2, 6, 4, 8}));
  EXPECT_EQ(parts(turned), (Values{3, 7, 4, 8, 1, 5, 2, 6}));
  EXPECT_EQ(parts(pad(z, 0, 1, 0)), (Values{0, 0, 1, 5, 2, 6, 0, 0, 3, 7, 4, 8}));
  EXPECT_EQ(parts(expand(row, {2, 2})), (Values{2, 6, 2, 6, 4, 8, 4, 8}));
  EXPECT_EQ(parts(reshape(transpose(z), {4})), (Values{1, 5, 3, 7, 2, 6, 4, 8}));
}

TEST(Complex, IsCastByParts) {
  const Array z = some();
  EXPECT_EQ(imag(cast(z, ComplexF64)).to_vector<double>(), (std::vector<double>{5, 6, 7, 8}));
  EXPECT_EQ(parts(cast(Array({3, 4}, {2}), ComplexF32)), (Values{3, 0, 4, 0}));
  EXPECT_EQ(parts(cast(2.5, ComplexF32)), (Values{2.5, 0}));
}

TEST(Complex, MeetsNumbersAndReals) {
  const Array z = complex(Array({1.f, 2.f}, {2}), Array({3.f, 4.f}, {2}));
  EXPECT_EQ(parts(2.0 * z), (Values{2, 6, 4, 8}));
  EXPECT_EQ(parts(z / 2), (Values{0.5, 1.5, 1, 2}));
  EXPECT_EQ(parts(z + 1.0), (Values{2, 3, 3, 4}));
  EXPECT_EQ(parts(1.0 - z), (Values{0, -3, -1, -4}));
  EXPECT_EQ(parts(z * Array({10.f, 100.f}, {1, 2})), (Values{10, 30, 20, 40, 100, 300, 200, 400}));
  EXPECT_EQ(parts(1.0 / complex(0.0, 2.0)), (Values{0, -0.5}));
  EXPECT_EQ(parts(mean(z)), (Values{1.5, 3.5}));
  EXPECT_EQ(real(ones({2})).to_vector(), (Values{1, 1}));
  EXPECT_EQ(imag(ones({2})).to_vector(), (Values{0, 0}));
  EXPECT_EQ(conj(ones({2})).dtype(), Float32);
}

/// (1 + 2i)(3 - i) and so on, by the standard library.
TEST(Complex, AgreesWithTheStandardLibrary) {
  const std::complex<double> a(1.25, -0.5), b(-0.75, 2);
  const Array x = complex(Array({a.real()}, {1}), Array({a.imag()}, {1}));
  const Array y = complex(Array({b.real()}, {1}), Array({b.imag()}, {1}));
  const auto expect = [](const Array& got, std::complex<double> want) {
    const std::vector<double> found = view_as_real(got).to_vector<double>();
    EXPECT_NEAR(found[0], want.real(), 1e-14);
    EXPECT_NEAR(found[1], want.imag(), 1e-14);
  };
  expect(x * y, a * b);
  expect(x / y, a / b);
  expect(exp(x), std::exp(a));
  expect(log(y), std::log(b));
  expect(sqrt(y), std::sqrt(b));
  expect(sqrt(-x), std::sqrt(-a));
  expect(log(conj(y)) * square(x) - reciprocal(y), std::log(std::conj(b)) * a * a - 1.0 / b);
}

// The values of the next tests are NumPy's: numpy.linalg.norm, var(ddof=1), dot and so on of [3 + 4j, 1j].
Array two() { return complex(Array({3.f, 0.f}, {2}), Array({4.f, 1.f}, {2})); }

void expect_parts(const Array& z, const Values& want) {
  const Values got = parts(z);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << "part " << i;
}

TEST(Complex, SizesAreReal) {
  const Array z = two();
  for (const Array& value : {norm(z), var(z), stddev(z), norm(z, 0, 1), mse(z, 0), mae(z, 0), huber_loss(z, 0)}) {
    EXPECT_EQ(value.dtype(), Float32);
  }
  EXPECT_NEAR(norm(z).item(), 5.0990195, 1e-6);
  EXPECT_NEAR(norm(z, 0, 1).item(), 6, 1e-6);
  EXPECT_NEAR(norm(z, 0, std::numeric_limits<double>::infinity()).item(), 5, 1e-6);
  EXPECT_NEAR(norm(z, 0, 3).item(), 5.0132979, 1e-5);
  EXPECT_EQ(norm(complex(zeros({0}), 1.0)).item(), 0);
  EXPECT_NEAR(var(z).item(), 9, 1e-5);
  EXPECT_NEAR(var(z, false).item(), 4.5, 1e-5);
  EXPECT_NEAR(stddev(z).item(), 3, 1e-6);
  EXPECT_TRUE(std::isnan(var(slice(z, 0, 0, 1)).item()));
  EXPECT_NEAR(mse(z, 0).item(), 13, 1e-5);
  EXPECT_NEAR(mae(z, 0).item(), 3, 1e-6);
  EXPECT_NEAR(huber_loss(z, 0).item(), 2.5, 1e-6);
  EXPECT_NEAR(mse(z, conj(z)).item(), 34, 1e-5);
}

/// By hand: the gradient of the norm is z / |z|, of the variance 2*(z - mean)/(n - 1), of the mean square 2*z/n.
TEST(Complex, SizesHaveTheGradientsOfTheirParts) {
  const Array z = two();
  expect_parts(gradient([](const Array& x) { return norm(x); }, z), {0.58834840f, 0.78446454f, 0, 0.19611614f});
  expect_parts(gradient([](const Array& x) { return var(x); }, z), {3, 3, -3, -3});
  expect_parts(gradient([](const Array& x) { return mse(x, 0); }, z), {3, 4, 0, 1});
  expect_parts(gradient([](const Array& x) { return norm(x); }, z * 0.0), {0, 0, 0, 0});
}

TEST(Complex, ProductsAndTruth) {
  const Array z = two();
  expect_parts(dot(z, z), {-8, 24});
  expect_parts(outer(z, z), {-7, 24, -4, 3, -4, 3, -1, 0});
  expect_parts(pow(z, 2), {-7, 24, -1, 0});
  expect_parts(normalise(z, 0, 0), {0.70710678f, 0.70710678f, -0.70710678f, -0.70710678f});
  const Array ends = complex(Array({0.f, 0.f, 2.f}, {3}), Array({0.f, 4.f, 0.f}, {3}));
  EXPECT_EQ(cast(ends, Bool).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_TRUE(any(ends).item<bool>());
  EXPECT_FALSE(all(ends).item<bool>());
  EXPECT_FALSE(any(slice(ends, 0, 0, 1)).item<bool>());
  EXPECT_TRUE(cast(complex(0.0, 4.0), Bool).item<bool>());
}

TEST(Complex, IsComparedBySizesOfDifferences) {
  const Array z = two();
  EXPECT_FALSE(isapprox(z, conj(z)));
  EXPECT_FALSE(allclose(z, conj(z)));
  EXPECT_TRUE(isapprox(z, z * (1 + 1e-6)));
  EXPECT_TRUE(allclose(z, z * (1 + 1e-6)));
  EXPECT_TRUE(isapprox(complex(Array({1.f}, {1}), 0.0), ones({1})));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(allclose(complex(ones({1}), 0.0), complex(ones({1}), infinity)));
  EXPECT_TRUE(allclose(complex(ones({1}), infinity), complex(ones({1}), infinity)));
}

TEST(Complex, IsGatheredAndScatteredWithBothParts) {
  const Array z = some(), twice({int32_t{1}, 1, 0}, {3});
  expect_parts(gather(z, twice), {3, 7, 4, 8, 3, 7, 4, 8, 1, 5, 2, 6});
  const auto squares = [](const Array& x) { return sum(square(abs(x))); };
  expect_parts(gradient([&](const Array& x) { return squares(gather(x, twice)); }, z), {2, 10, 4, 12, 12, 28, 16, 32});
  expect_parts(scatter_add(z * 0.0, twice, gather(z, twice)), {1, 5, 2, 6, 6, 14, 8, 16});
  expect_parts(scatter(z, Array({int32_t{0}}, {1}), ones({2, 1})), {1, 0, 1, 0, 3, 7, 4, 8});
  const Array places({int32_t{1}, 0}, {1, 2});
  expect_parts(take_along(z, places, 0), {2, 6, 3, 7});
  expect_parts(gradient([&](const Array& x) { return squares(take_along(x, places, 0)); }, z),
               {0, 0, 4, 12, 6, 14, 0, 0});
}

TEST(Complex, IsPrintedAsInJulia) {
  EXPECT_EQ(to_string(complex(1.5, -2.0)), "1.5 - 2.0im");
  EXPECT_EQ(to_string(two()), "2-element Array{ComplexF32} on CPU:\n 3.0 + 4.0im\n 0.0 + 1.0im");
  EXPECT_EQ(to_string(some()), "2×2 Array{ComplexF32} on CPU:\n 1.0+5.0im  3.0+7.0im\n 2.0+6.0im  4.0+8.0im");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(to_string(complex(nan, nan)), "NaN + NaN*im");
}

/// Nothing drops an imaginary part unasked.
TEST(Complex, IsNotReadAsReal) {
  const Array z = two();
  EXPECT_EQ(error_of([&] { static_cast<void>(cast(z, Float32)); }, ErrorKind::dtype),
            "cast: a complex array has no real values; got ComplexF32 for Float32; take real(z), imag(z) or abs(z)");
  EXPECT_EQ(error_of([&] { static_cast<void>(z.to_vector()); }, ErrorKind::dtype),
            "copy_to: complex elements are not real numbers; got ComplexF32; read real(z), imag(z), or both with "
            "view_as_real(z)");
  EXPECT_EQ(error_of([&] { static_cast<void>(z.item(0)); }, ErrorKind::dtype),
            "item: complex elements are not real numbers; got ComplexF32; read real(z), imag(z), or both with "
            "view_as_real(z)");
  struct Model {
    Array w;
  };
  Model real_one{ones({2})}, complex_one{two()};
  EXPECT_EQ(error_of([&] { loadmodel(real_one, complex_one); }, ErrorKind::dtype),
            "loadmodel: a real array cannot take complex values; w is Float32 and the source has ComplexF32; load "
            "real(z), imag(z) or abs(z) of it, or make the array complex");
  loadmodel(complex_one, real_one);
  expect_parts(complex_one.w, {1, 0, 1, 0});
}

/// Functions without a case of an oracle: the poolings over images of two pixels, and labels.
TEST(Complex, PoolingIsRightOrRefused) {
  const Array images = reshape(two(), {2, 1, 1});
  expect_parts(global_meanpool(images), {1.5, 2.5});
  expect_parts(label_smoothing(two(), 0.5), {1.75, 2, 0.25, 0.5});
  const auto starts = [](const std::string& text, const std::string& name) { return text.starts_with(name + ": not"); };
  const auto refused = [&](auto f) { return error_of([&] { static_cast<void>(f()); }, ErrorKind::dtype); };
  EXPECT_TRUE(starts(refused([&] { return global_maxpool(images); }), "global_maxpool"));
  EXPECT_TRUE(starts(refused([&] { return adaptive_maxpool(images, 1); }), "adaptive_maxpool"));
  EXPECT_TRUE(starts(refused([&] { return adaptive_meanpool(images, 1); }), "adaptive_meanpool"));
}

TEST(Complex, GradientsDescend) {
  struct Model {
    Array z;
  };
  Model m{complex(Array({3.f, -1.f}, {2}), Array({2.f, 5.f}, {2}))};
  const Array target = complex(Array({1.f, 2.f}, {2}), Array({-1.f, 0.5f}, {2}));
  State state = setup(Descent{0.25}, m);
  for (int i = 0; i < 60; ++i) {
    const auto loss = [&](const Model& q) { return sum(square(abs(q.z - target))); };
    update(state, m, gradient(loss, m));
  }
  const Values found = parts(m.z), wanted = parts(target);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5);
}

TEST(Complex, IsRefusedWhereItHasNoMeaning) {
  const Array z = some();
  EXPECT_EQ(
      error_of([&] { static_cast<void>(z < z); }, ErrorKind::dtype),
      "lt: not defined for elements of type ComplexF32; got such an operand; take abs(z), real(z) or imag(z), or both "
      "parts with view_as_real(z)");
  error_of([&] { static_cast<void>(tanh(z)); }, ErrorKind::dtype);
  error_of([&] { static_cast<void>(maximum(z)); }, ErrorKind::dtype);
  error_of([&] { static_cast<void>(view_as_real(ones({2}))); }, ErrorKind::dtype);
  error_of([&] { static_cast<void>(view_as_complex(ones({3, 2}))); }, ErrorKind::shape);
  error_of([&] { static_cast<void>(view_as_complex(ones({2}, Int32))); }, ErrorKind::dtype);
  error_of([&] { static_cast<void>(complex(ones({2}, Int32), 1)); }, ErrorKind::dtype);
  error_of([&] { static_cast<void>(complex(ones({1, 1, 1, 1, 1, 1, 1, 1}), 1.0)); }, ErrorKind::shape);
}

}  // namespace
}  // namespace rosin
