// Tests of complex arrays: how they are made and looked at, what meets what, what is refused. Values and gradients of
// their functions stand in tests/oracles/complex.txt.
#include <rosin/complex.hpp>

#include <gtest/gtest.h>

#include <complex>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
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
  EXPECT_EQ(cast(z, Float32).to_vector(), (Values{1, 2, 3, 4}));
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
  EXPECT_EQ(error_of([&] { static_cast<void>(z < z); }, ErrorKind::dtype),
            "lt: not defined for elements of type ComplexF32; got such an operand; convert it with cast(x, type)");
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
