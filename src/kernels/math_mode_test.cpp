// What a writer of kernels makes of a mode: instructions that round together, and quick functions. Expected lists are
// written by hand.
#include <gtest/gtest.h>

#include "kernels/code.hpp"
#include "scalar/scalar.hpp"

namespace rosin::kernels {
namespace {

constexpr ScalarType f32 = ScalarType::float32;

/// How often the code has the operation.
template <class Operation> int64_t count(const Launch& launch, Operation operation) {
  return std::count_if(launch.code.instructions.begin(), launch.code.instructions.end(),
                       [&](const KernelInstruction& i) { return i.is(operation); });
}

/// A kernel that stores what f makes of three elements.
template <class F> Launch launch_of(Allowed allowed, F&& f) {
  KernelWriter w("test", 1, ScalarType::int32);
  const int from = w.buffer(DType::Float32, {0, -1}), to = w.buffer(DType::Float32, {1, -1});
  const Term x = w.load(from, w.index(0)), y = w.load(from, w.index(1)), z = w.load(from, w.index(2));
  w.allow(allowed);
  const Term made = f(w, x, y, z);
  w.allow({});
  w.store(to, w.index(0), made);
  return w.finish(1);
}

TEST(MathModeOfKernels, AProductAndASumAreOneInstructionWhereTheyMayRoundOnce) {
  const auto sum = [](KernelWriter&, Term x, Term y, Term z) { return x * y + z; };
  const Launch apart = launch_of({}, sum), together = launch_of({.contraction = true}, sum);
  EXPECT_EQ(count(apart, Primitive::fma), 0);
  EXPECT_EQ(count(apart, Primitive::multiply), 1);
  EXPECT_EQ(count(together, Primitive::fma), 1);
  EXPECT_EQ(count(together, Primitive::multiply), 0);
  EXPECT_EQ(count(together, Primitive::add), 0);
  EXPECT_NE(apart.code.name, together.code.name);
}

TEST(MathModeOfKernels, DifferencesTurnASign) {
  const Launch from = launch_of({.contraction = true}, [](KernelWriter&, Term x, Term y, Term z) { return z - x * y; });
  const Launch less = launch_of({.contraction = true}, [](KernelWriter&, Term x, Term y, Term z) { return x * y - z; });
  for (const Launch* launch : {&from, &less}) {
    EXPECT_EQ(count(*launch, Primitive::fma), 1);
    EXPECT_EQ(count(*launch, Primitive::negate), 1);
    EXPECT_EQ(count(*launch, Primitive::subtract), 0);
  }
}

TEST(MathModeOfKernels, AProductThatOthersReadStays) {
  const Launch launch = launch_of({.contraction = true}, [](KernelWriter&, Term x, Term y, Term z) {
    const Term product = x * y;
    return (product + z) / product;
  });
  EXPECT_EQ(count(launch, Primitive::multiply), 1);
  EXPECT_EQ(count(launch, Primitive::fma), 1);
}

TEST(MathModeOfKernels, AProductOfWhatMayNotRoundTogetherStaysApart) {
  const Launch launch = launch_of({}, [](KernelWriter& w, Term x, Term y, Term z) {
    const Term product = x * y;
    w.allow({.contraction = true});
    return product + z;
  });
  EXPECT_EQ(count(launch, Primitive::fma), 0);
}

TEST(MathModeOfKernels, AVariableIsReadWhereTheProductStands) {
  const Launch launch = launch_of({.contraction = true}, [](KernelWriter& w, Term x, Term y, Term z) {
    const Term changing = w.variable(x);
    const Term product = changing * y;
    w.assign(changing, z);
    return product + z;
  });
  EXPECT_EQ(count(launch, Primitive::fma), 0);
}

TEST(MathModeOfKernels, IntegersStayAsTheyAre) {
  const Launch launch = launch_of({.contraction = true}, [](KernelWriter& w, Term x, Term, Term) {
    const Term i = w.convert(x, ScalarType::int32);
    return w.convert(i * i + i, f32);
  });
  EXPECT_EQ(count(launch, Primitive::fma), 0);
}

/// Codes of Float32 that may be quick.
ScalarCode quick_code(bool quick, scalar::Sym<float> (*f)(scalar::Sym<float>)) {
  ScalarCode code;
  code.quick = quick;
  const scalar::Sym<float> x{&code, append(code, {.primitive = Primitive::input, .type = f32})};
  code.result = f(x).place;
  return code;
}

TEST(MathModeOfKernels, QuotientsAreReciprocalsWhereTheyMayBeQuick) {
  const auto one_over = [](scalar::Sym<float> x) { return plain_quotient(lit(x, 1), x); };
  for (const bool quick : {false, true}) {
    const ScalarCode code = quick_code(quick, one_over);
    const Launch launch =
        launch_of({}, [&](KernelWriter& w, Term x, Term, Term) { return w.apply(code, std::span(&x, 1)); });
    EXPECT_EQ(count(launch, KernelOperation::reciprocal_approximate), quick);
    EXPECT_EQ(count(launch, Primitive::divide), !quick);
  }
}

}  // namespace
}  // namespace rosin::kernels
