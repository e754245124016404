// Tests of oracle_reader.hpp, and that every committed oracle file can be read.
#include "oracle_reader.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

namespace rosin::oracles {
namespace {

std::vector<OracleCase> parse(const std::string& text) {
  std::istringstream stream(text);
  return OracleParser(stream, "text").read();
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* example =
    "# a comment\n"
    "case clamp Float32 lo=-0.5 dims=0,2 range0=-1,9223372036854775807,-1 samples=normal\n"
    "in Float32 2x2 : 1.5 -inf nan 0x1.8p-149\n"
    "in Int64 scalar : 9007199254740993\n"
    "out Bool 3 : 0 1 1\n"
    "cotangent Float64 1 : 2\n"
    "grad0 Float64 0x3 :\n"
    "tol ulp=2 atol=1e-6\n"
    "gradtol exact\n"
    "end\n";

TEST(OracleReader, ReadsEveryPartOfACase) {
  const std::vector<OracleCase> cases = parse(example);
  ASSERT_EQ(cases.size(), 1u);
  const OracleCase& read = cases[0];
  EXPECT_EQ(read.op, "clamp");
  EXPECT_EQ(read.dtype, "Float32");
  EXPECT_EQ(read.line, 2);
  EXPECT_EQ(read.attributes.at("samples"), "normal");
  EXPECT_EQ(read.number("lo", 0), -0.5);
  EXPECT_EQ(read.number("hi", 7), 7);
  EXPECT_EQ(read.integers("dims"), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(read.integers("range0"), (std::vector<int64_t>{-1, std::numeric_limits<int64_t>::max(), -1}));
  EXPECT_TRUE(read.has("dims"));
  EXPECT_FALSE(read.has("hi"));
  ASSERT_EQ(read.inputs.size(), 2u);
  ASSERT_EQ(read.outputs.size(), 1u);
  ASSERT_EQ(read.cotangents.size(), 1u);
  ASSERT_NE(read.gradient_of(0), nullptr);
  EXPECT_EQ(read.gradient_of(0)->shape, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(read.gradient_of(1), nullptr);
  EXPECT_EQ(read.tolerance.ulp, 2);
  EXPECT_EQ(read.tolerance.atol, 1e-6);
  EXPECT_FALSE(read.tolerance.exact);
  EXPECT_TRUE(read.gradient_tolerance.exact);
}

TEST(OracleReader, ReadsHexadecimalSpecialAndLargeNumbersExactly) {
  const OracleCase read = parse(example)[0];
  const OracleArray& x = read.inputs[0];
  EXPECT_EQ(x.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(x.values[0], 1.5);
  EXPECT_EQ(x.values[1], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(x.values[2]));
  EXPECT_EQ(x.values[3], std::ldexp(1.5, -149));
  EXPECT_TRUE(x.integers.empty());
  EXPECT_TRUE(read.inputs[1].shape.empty());
  EXPECT_EQ(read.inputs[1].integers, (std::vector<int64_t>{9007199254740993}));
}

TEST(OracleReader, NamesTheLineThatIsWrong) {
  EXPECT_EQ(error_of("case add\n"), "text:1: a case needs an op and an element type");
  EXPECT_EQ(error_of("case add Float32\ncase add Float32\n"), "text:2: a case inside a case");
  EXPECT_EQ(error_of("end\n"), "text:1: 'end' outside a case");
  EXPECT_EQ(error_of("case add Float32\n"), "text:1: the last case has no end");
  EXPECT_EQ(error_of("case add Float32\nin Float32 2x3 : 1 2\nend\n"),
            "text:2: shape 2x3 of Float32 needs 6 values, got 2");
  EXPECT_EQ(error_of("case add Float32\nin Float32 1 : one\nend\n"), "text:2: not a number: 'one'");
  EXPECT_EQ(error_of("case add Float32\ninto Float32 1 : 1\nend\n"), "text:2: unknown line 'into'");
}

TEST(OracleReader, RefusesAMissingFile) { EXPECT_THROW(read_oracles("no such file"), std::runtime_error); }

TEST(OracleTolerance, ExactTellsZerosApartButNotNaNs) {
  const OracleTolerance exact{.exact = true};
  EXPECT_TRUE(matches(exact, "Float32", 1.0, 1.0));
  EXPECT_FALSE(matches(exact, "Float32", 0.0, -0.0));
  EXPECT_TRUE(matches({}, "Float32", 0.0, -0.0));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(matches(exact, "Float32", nan, -nan));
  EXPECT_FALSE(matches({.atol = 1e30}, "Float32", nan, 1.0));
  EXPECT_FALSE(matches({.atol = 1e30}, "Float32", 1.0, nan));
}

TEST(OracleTolerance, CountsInUnitsOfTheTypeAtTheExpectedValue) {
  const OracleTolerance two{.ulp = 2};
  EXPECT_TRUE(matches(two, "Float32", 1.0, 1.0 + std::ldexp(2.0, -23)));
  EXPECT_FALSE(matches(two, "Float32", 1.0, 1.0 + std::ldexp(3.0, -23)));
  EXPECT_FALSE(matches(two, "Float64", 1.0, 1.0 + std::ldexp(2.0, -23)));
  EXPECT_TRUE(matches(two, "Float16", 1.0, 1.0 + std::ldexp(2.0, -10)));
  EXPECT_TRUE(matches(two, "BFloat16", 4.0, 4.0 + std::ldexp(8.0, -7)));
  EXPECT_TRUE(matches(two, "Float32", 0.0, std::ldexp(2.0, -149)));
  EXPECT_FALSE(matches(two, "Float32", 0.0, std::ldexp(3.0, -149)));
}

TEST(OracleTolerance, InfinityMatchesOnlyItself) {
  const double infinity = std::numeric_limits<double>::infinity();
  const OracleTolerance wide{.rtol = 1};
  EXPECT_TRUE(matches(wide, "Float32", infinity, infinity));
  EXPECT_FALSE(matches(wide, "Float32", infinity, -infinity));
  EXPECT_FALSE(matches(wide, "Float32", infinity, 3e38));
  EXPECT_FALSE(matches(wide, "Float32", 3e38, infinity));
}

class OracleFile : public testing::TestWithParam<const char*> {};

TEST_P(OracleFile, HasCasesWithOutputsAndOneCotangentEachWhereItHasGradients) {
  const std::vector<OracleCase> cases = read_oracles(oracle_path(GetParam()));
  EXPECT_FALSE(cases.empty());
  for (const OracleCase& read : cases) {
    EXPECT_FALSE(read.outputs.empty()) << read.op << " at line " << read.line;
    if (!read.gradients.empty()) {
      EXPECT_EQ(read.cotangents.size(), read.outputs.size()) << read.op << " at line " << read.line;
    }
    for (const OracleArray& gradient : read.gradients) {
      const size_t input = static_cast<size_t>(std::stoul(gradient.role.substr(4)));
      ASSERT_LT(input, read.inputs.size()) << read.op << " at line " << read.line;
      EXPECT_EQ(gradient.shape, read.inputs[input].shape) << read.op << " at line " << read.line;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OracleFile,
                         testing::Values("elementwise.txt", "activations.txt", "reduce.txt", "movement.txt",
                                         "index.txt", "matmul.txt", "conv.txt", "norm.txt", "loss.txt", "optim.txt",
                                         "random.txt"));

}  // namespace
}  // namespace rosin::oracles
