// The op suite, types: every op in every element type runs or refuses at the call, and narrow types are computed in
// the wide one and rounded once. Read first: op_suite.hpp.
#include <gtest/gtest.h>

#include <random>

#include <rosin/complex.hpp>
#include <rosin/error.hpp>

#include "graph/integers.hpp"
#include "op_suite.hpp"

namespace rosin::suite {
namespace {

constexpr std::array<DType, 14> element_types = {Bool,    UInt8,    Int8,    Int32,   UInt32,     Int64, UInt64,
                                                 Float16, BFloat16, Float32, Float64, ComplexF32, Int16, UInt16};

/// Those that the test device has; where kernels are compiled, one of each sort.
std::vector<DType> tested_types() {
  std::vector<DType> types;
  for (const DType type : element_types) {
    const bool special = type == UInt8 || type == UInt32 || type == BFloat16 || type == Int16 || type == UInt16;
    if (has_type_there(type) && !(special && compiles_there())) types.push_back(type);
  }
  return types;
}

/// In which the elements of a narrow type are computed; others in their own.
DType wide_type(DType type) {
  if (type == Float16 || type == BFloat16) return Float32;
  return is_integer(type) && size_of(type) < 4 ? Int32 : type;
}

/// Numbers that every type holds nearly: whole for integers, from `low` to `high` for floats.
Array some_numbers(const Shape& shape, DType type, double low, double high, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> values(static_cast<size_t>(shape.count()));
  const bool fractions = is_float(type) || is_complex(type);
  for (double& value : values) {
    const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    value =
        fractions ? low + (high - low) * unit : std::floor(unit * 40) - (is_integer(type) && !is_signed(type) ? 0 : 20);
    if (type == Bool) value = value > 0;
  }
  const Array numbers(values, shape);
  return there(evaluated(cast(is_complex(type) ? complex(numbers, 1.0 - 0.5 * numbers) : numbers, type)));
}

/// What the function gives, or nothing where it refuses the type at the call.
Arrays results_or_refusal(const std::function<Arrays()>& call, const std::string& where) {
  Arrays results;
  try {
    results = call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype) << where << ": " << error.what();
    return {};
  }
  try {
    for (const Array& result : results) eval(result);
  } catch (const Error& error) {
    ADD_FAILURE() << where << " is refused when it runs, not at the call: " << error.what();
    return {};
  }
  return results;
}

/// Narrow inputs give what the wide ones give, rounded once, where `once`; losses and layers may round on the way.
void check_rounding(const OpEntry& row, const OracleCase& entry, const Arrays& inputs, const std::string& where,
                    bool once) {
  const Arrays got = results_or_refusal([&] { return row.call(entry, inputs); }, where);
  if (!once) return;
  Arrays wide;
  for (const Array& x : inputs) wide.push_back(evaluated(cast(x, wide_type(x.dtype()))));
  if (got.empty() || wide[0].dtype() == inputs[0].dtype()) return;
  const Arrays want = row.call(entry, wide);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(bit_difference(got[i], cast(want[i], got[i].dtype())), "") << where << ", output " << i;
  }
}

TEST(OpSuiteTypes, ElementwiseOpsRunInEveryTypeOrRefuseAtTheCall) {
  std::vector<const OpEntry*> rows;
  for (const OpEntry& row : op_table()) {
    const Op* op = find_op(row.oracle);
    if (op != nullptr && op->kind == Kind::elementwise) rows.push_back(&row);
  }
  run_checks(rows.size(), [&](size_t at) {
    const OpEntry& row = *rows[at];
    const Op* op = find_op(row.oracle);
    const OracleCase* example = example_of(row);
    for (const DType type : tested_types()) {
      const std::string where = std::string(row.name) + " of " + to_string(type);
      Arrays inputs;
      for (size_t i = 0; i < example->inputs.size(); ++i) {
        const DType own = example->inputs[i].dtype == "Bool" ? Bool : type;
        inputs.push_back(some_numbers({5, 7}, own, op->range.low, op->range.high, i + 1));
      }
      check_rounding(row, *example, inputs, where, true);
    }
  });
}

TEST(OpSuiteTypes, OtherOpsRunInEveryTypeOrRefuseAtTheCall) {
  std::set<std::string> done;
  const std::vector<std::string> files(op_oracle_files().begin() + 2, op_oracle_files().end());
  const auto choose = [&](const OpEntry& row, const OracleCase& entry, const std::string&) {
    const Arrays plain = inputs_of(entry);
    if (!is_float(plain[0].dtype()) || plain[0].count() == 0 || entry.has("samples") || row.call(entry, plain).empty())
      return false;
    return done.insert(std::string(row.name) + "/" + std::string(row.oracle)).second;
  };
  const auto check = [&](const OpEntry& row, const OracleCase& entry, const std::string& where) {
    const Arrays plain = inputs_of(entry);
    for (const DType type : tested_types()) {
      Arrays inputs;
      for (const Array& x : plain) inputs.push_back(is_float(x.dtype()) ? evaluated(cast(x, type)) : x);
      check_rounding(row, entry, inputs, where + " of " + to_string(type),
                     row.name == row.oracle && where.find("loss.txt") == std::string::npos);
    }
  };
  for_each_case(files, check, choose);
}

TEST(OpSuiteTypes, TwoDifferentFloatsAreRefusedAndWeakNumbersFollow) {
  if (!has_type_there(Float64)) GTEST_SKIP() << "one of them is Float64, which the device lacks";
  const Array half = some_numbers({3}, Float16, -1, 1, 1), wide = some_numbers({3}, Float64, -1, 1, 2);
  EXPECT_THROW(half + wide, Error);
  EXPECT_EQ((half + 1).dtype(), Float16);
  EXPECT_EQ((2.5 * wide).dtype(), Float64);
  EXPECT_EQ((some_numbers({3}, Int8, 0, 1, 3) + 1).dtype(), Int8);
  EXPECT_EQ((some_numbers({3}, Int8, 0, 1, 3) * 0.5).dtype(), Float32);
  EXPECT_EQ((some_numbers({3}, Int8, 0, 1, 3) + half).dtype(), Float16);
  EXPECT_EQ((some_numbers({3}, Bool, 0, 1, 3) + some_numbers({3}, Bool, 0, 1, 4)).dtype(), Int32);
}

TEST(OpSuiteTypes, TheGradientOfACastIsCastBack) {
  if (!has_type_there(Float64)) GTEST_SKIP() << "it is cast from Float64, which the device lacks";
  const Array x = some_numbers({3}, Float64, -1, 1, 1);
  const Array g = gradient([](const Array& a) { return sum(cast(a, Float16) * 3); }, x);
  EXPECT_EQ(g.dtype(), Float64);
  EXPECT_EQ(g.to_vector<double>(), (std::vector<double>{3, 3, 3}));
  EXPECT_TRUE(gradient([](const Array& a) { return sum(cast(cast(a, Int32), Float64)); }, x).is_nothing());
}

}  // namespace
}  // namespace rosin::suite
