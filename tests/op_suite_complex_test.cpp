// The op suite, complex arrays: every public op computes the right values of them, or refuses them at the call under
// its own name. Read first: op_suite.hpp.
#include <gtest/gtest.h>

#include <map>

#include <rosin/approx.hpp>
#include <rosin/complex.hpp>
#include <rosin/error.hpp>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

/// Functions whose values and gradients are stated in src/ops/complex_test.cpp, as computed by NumPy; of matmul in
/// fft_test.cpp.
const std::set<std::string_view> stated_there = {"dot",  "huber_loss", "mae",   "matmul", "mse",
                                                 "norm", "normalise",  "outer", "stddev", "var"};

bool has_complex_oracle(const OpEntry& row) {
  const std::vector<OracleCase>& cases = cases_of("complex.txt");
  return std::any_of(cases.begin(), cases.end(), [&](const OracleCase& entry) { return entry.op == row.oracle; });
}

/// Whether a message begins with the function's name, or with that of the op that it is the mirror of.
bool is_named(const std::string& text, const OpEntry& row) {
  static const std::map<std::string_view, std::string> mirrored = {{"gt", "lt"}, {"ge", "le"}};
  const auto mirror = mirrored.find(row.oracle);
  const std::string names[] = {std::string(row.name), std::string(row.oracle),
                               mirror == mirrored.end() ? std::string(row.name) : mirror->second};
  return std::any_of(std::begin(names), std::end(names),
                     [&](const std::string& name) { return text.starts_with(name + ":"); });
}

/// The inputs of a case with imaginary parts; integers and Bool stay.
struct Inputs {
  Arrays whole, real, imaginary, zero;
};
Inputs complex_inputs(const OracleCase& entry) {
  Inputs inputs;
  for (const Array& given : inputs_of(entry)) {
    const bool number = is_float(given.dtype()) || is_complex(given.dtype());
    const Array re = number ? evaluated(cast(real(given), Float32)) : given;
    const Array im = number ? evaluated(0.25 - 0.5 * re) : given;
    inputs.real.push_back(re);
    inputs.imaginary.push_back(im);
    inputs.whole.push_back(number ? evaluated(complex(re, im)) : given);
    inputs.zero.push_back(number ? evaluated(re * 0.0) : given);
  }
  return inputs;
}

/// What is linear in all its numbers, up to a constant c, has f(re + i*im) = f(re) + i*(f(im) - c).
void expect_linear(const OpEntry& row, const OracleCase& entry, const Inputs& inputs, const Arrays& got) {
  const Arrays re = row.call(entry, inputs.real), im = row.call(entry, inputs.imaginary);
  const Arrays constant = row.call(entry, inputs.zero);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(is_complex(got[i].dtype())) << row.name << " drops imaginary parts";
    EXPECT_TRUE(allclose(real(got[i]), re[i])) << row.name << ", real part of result " << i;
    EXPECT_TRUE(allclose(imag(got[i]), im[i] - constant[i])) << row.name << ", imaginary part of result " << i;
  }
}

TEST(OpSuiteComplex, EveryOpIsRightForComplexArraysOrRefusesThemByItsName) {
  if (!has_type_there(ComplexF32)) GTEST_SKIP() << "the device has no complex numbers";
  if (!has_type_there(Float64)) GTEST_SKIP() << "most examples are Float64, which the device lacks";
  std::set<std::string_view> found;
  int refused = 0, linear = 0;
  for (const OpEntry& row : op_table()) {
    const OracleCase* example = row.oracle.empty() ? nullptr : example_of(row);
    if (!example || !has_types_there(*example)) continue;
    const Inputs inputs = complex_inputs(*example);
    const bool any =
        std::any_of(inputs.whole.begin(), inputs.whole.end(), [](const Array& x) { return is_complex(x.dtype()); });
    if (!any) continue;
    Arrays got;
    try {
      got = row.call(*example, inputs.whole);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::dtype) << row.name << ": " << error.what();
      EXPECT_TRUE(is_named(error.what(), row)) << row.name << " refuses with: " << error.what();
      ++refused;
      continue;
    }
    found.insert(row.name);
    if (has_complex_oracle(row) || stated_there.count(row.name)) continue;
    expect_linear(row, *example, inputs, got);
    ++linear;
  }
  for (const std::string_view name : stated_there) EXPECT_TRUE(found.count(name)) << name << " is refused";
  EXPECT_GT(refused, 60);
  EXPECT_GT(linear, 15);
}

}  // namespace
}  // namespace rosin::suite
