// The op suite, gradients: the oracles' gradients in every layout, then first and second gradients of every
// differentiable op against central differences in Float64. Read first: op_suite.hpp.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

void expect_gradients(const Arrays& got, const OracleCase& entry, const std::string& where) {
  for (size_t i = 0; i < got.size(); ++i) {
    const OracleArray* want = entry.gradient_of(i);
    if (want == nullptr) continue;
    EXPECT_EQ(difference(got[i], *want, entry.gradient_tolerance), "") << where;
  }
}

/// Where the layout is made: before the gradient call (the argument is a view) or inside (the gradient flows through
/// it).
enum class Place { before, inside };

Arrays oracle_gradients(const OpEntry& row, const OracleCase& entry, Layout layout, Place place) {
  const Function f = [&](const Arrays& x) {
    Arrays inputs = x;
    if (place == Place::inside) {
      for (Array& input : inputs) input = laid_out(input, layout);
    }
    return row.call(entry, inputs);
  };
  return gradients_of(f, inputs_of(entry, place == Place::before ? layout : Layout::contiguous), cotangents_of(entry));
}

class OpSuiteGradients : public testing::TestWithParam<std::string> {};

TEST_P(OpSuiteGradients, AgreeWithTheOraclesInEveryLayout) {
  for_each_case({GetParam()}, [](const OpEntry& row, const OracleCase& entry, const std::string& where) {
    if (entry.cotangents.empty() || row.call(entry, inputs_of(entry)).empty()) return;
    for (const Layout layout : tested_layouts()) {
      for (const Place place : {Place::before, Place::inside}) {
        if (compiles_there() && (place == Place::inside) != (layout == Layout::tangled)) continue;
        const Arrays got = oracle_gradients(row, entry, layout, place);
        expect_gradients(got, entry, where + ", " + name_of(layout) + (place == Place::inside ? " inside" : " before"));
      }
    }
  });
}

TEST_P(OpSuiteGradients, AreTheSameBitsFusedAndAlone) {
  for_each_case({GetParam()}, [](const OpEntry& row, const OracleCase& entry, const std::string& where) {
    if (entry.cotangents.empty() || row.call(entry, inputs_of(entry)).empty()) return;
    const auto make = [&] { return oracle_gradients(row, entry, Layout::tangled, Place::before); };
    const Arrays fused = make(), alone = one_by_one(make);
    for (size_t i = 0; i < fused.size(); ++i) {
      EXPECT_EQ(bit_difference(fused[i], alone[i]), "") << where << ", gradient " << i << " fused and alone";
    }
  });
}

TEST_P(OpSuiteGradients, AreTheSameBitsWhenValuesAreReadOnTheWay) {
  if (compiles_there()) GTEST_SKIP() << "about evaluation, which is the same on the reference device";
  for_each_case({GetParam()}, [](const OpEntry& row, const OracleCase& entry, const std::string& where) {
    if (entry.cotangents.empty() || row.call(entry, inputs_of(entry)).empty()) return;
    const auto make = [&](bool read) {
      const Function f = [&](const Arrays& x) {
        Arrays outputs = row.call(entry, x);
        if (read) eval(outputs[0]);
        return outputs;
      };
      return gradients_of(f, inputs_of(entry, Layout::pending), cotangents_of(entry));
    };
    const Arrays read = make(true), unread = make(false);
    for (size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(bit_difference(read[i], unread[i]), "") << where << ", gradient " << i << " with and without reading";
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Files, OpSuiteGradients, testing::ValuesIn(op_oracle_files()),
                         [](const auto& file) { return file.param.substr(0, file.param.find('.')); });

/// Random inputs and directions; the same on every machine.
class Samples {
 public:
  Array numbers(const Shape& shape, double low, double high) {
    std::vector<double> values(static_cast<size_t>(shape.count()));
    for (double& value : values) value = low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
    return there(Array(values, shape));
  }
  Array mask(const Shape& shape) { return evaluated(numbers(shape, 0, 1) > 0.5); }

 private:
  std::mt19937_64 engine_{7};
};

/// One function of several arrays at one point; it is differentiated by those that are free.
struct Point {
  std::string where;
  Function f;
  Arrays inputs;
  std::vector<bool> free;
};

double value_at(const Function& f, const Arrays& inputs, const Arrays& cotangents) {
  return weighted(f(inputs), cotangents).item();
}

Arrays moved(const Arrays& inputs, const Arrays& direction, double by) {
  Arrays result = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!direction[i].is_nothing()) result[i] = evaluated(inputs[i] + direction[i] * by);
  }
  return result;
}

Arrays like_floats(const Arrays& arrays, Samples& samples) {
  Arrays result;
  for (const Array& x : arrays) result.push_back(is_float(x.dtype()) ? samples.numbers(x.shape(), -1, 1) : Array());
  return result;
}

Arrays direction_at(const Point& point, Samples& samples) {
  Arrays direction = like_floats(point.inputs, samples);
  for (size_t i = 0; i < direction.size(); ++i) {
    if (!point.free[i]) direction[i] = Array();
  }
  return direction;
}

/// sum(a * b) over those arrays that are both there.
double product(const Arrays& a, const Arrays& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].is_nothing() && !b[i].is_nothing()) total += sum(a[i] * b[i]).item();
  }
  return total;
}

/// The gradient of f at the point against the slope of f along random directions.
void check_slope(const Point& point, Samples& samples, const std::string& what) {
  constexpr double step = 1e-5;
  const Arrays cotangents = like_floats(point.f(point.inputs), samples);
  const Arrays got = gradients_of(point.f, point.inputs, cotangents);
  for (int trial = 0; trial < 2; ++trial) {
    const Arrays direction = direction_at(point, samples);
    const double above = value_at(point.f, moved(point.inputs, direction, step), cotangents);
    const double below = value_at(point.f, moved(point.inputs, direction, -step), cotangents);
    const double want = (above - below) / (2 * step), slope = product(got, direction);
    const double scale = 1 + std::abs(want) + (std::abs(above) + std::abs(below)) * 1e-4;
    EXPECT_NEAR(slope, want, 2e-6 * scale) << point.where << what;
  }
}

/// f's gradient as a function of its inputs and of the cotangents: its outputs are the gradients by the free inputs.
Point gradient_point(const Point& point, Samples& samples) {
  const Function f = point.f;
  const std::vector<bool> free = point.free;
  Point slope = point;
  for (const Array& cotangent : like_floats(f(point.inputs), samples)) {
    slope.inputs.push_back(cotangent.is_nothing() ? Array(0) : cotangent);
    slope.free.push_back(!cotangent.is_nothing());
  }
  slope.f = [f, free, all = slope.free](const Arrays& x) {
    Arrays cotangents(x.begin() + static_cast<std::ptrdiff_t>(free.size()), x.end());
    for (size_t i = 0; i < cotangents.size(); ++i) {
      if (!all[free.size() + i]) cotangents[i] = Array();
    }
    const Arrays inputs(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(free.size()));
    const Arrays given = gradients_of(f, inputs, cotangents);
    Arrays gradients;
    for (size_t i = 0; i < given.size(); ++i) {
      if (free[i] && !given[i].is_nothing()) gradients.push_back(given[i]);
    }
    return gradients;
  };
  return slope;
}

bool has_float_output(const Point& point) {
  const Arrays outputs = point.f(point.inputs);
  return std::any_of(outputs.begin(), outputs.end(), [](const Array& x) { return is_float(x.dtype()); });
}

/// First gradients in every layout, second gradients plain and through a pending movement.
void check_point(const Point& point, Samples& samples, bool second) {
  for (const Layout layout : tested_layouts()) {
    if (compiles_there() && layout != Layout::tangled) continue;
    const Function inner = point.f;
    const Point laid = {point.where,
                        [inner, layout](const Arrays& x) {
                          Arrays inputs;
                          for (const Array& input : x) inputs.push_back(laid_out(input, layout));
                          return inner(inputs);
                        },
                        point.inputs, point.free};
    check_slope(laid, samples, std::string(", ") + name_of(layout));
    if (layout != Layout::contiguous && layout != Layout::tangled) continue;
    const Point slope = gradient_point(laid, samples);
    if (second && has_float_output(slope))
      check_slope(slope, samples, std::string(", second gradient, ") + name_of(layout));
  }
}

/// The oracle's inputs in Float64, complex ones as their parts.
Arrays wide_inputs(const OracleCase& entry) {
  Arrays inputs;
  for (const Array& x : inputs_of(entry)) {
    const Array values = is_complex(x.dtype()) ? view_as_real(x) : x;
    inputs.push_back(is_float(values.dtype()) ? evaluated(cast(values, Float64)) : values);
  }
  return inputs;
}

/// What the row computes of such inputs, complex results as their parts too.
Arrays call_by_parts(const OpEntry& row, const OracleCase& entry, const Arrays& inputs) {
  Arrays given, results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool parts = is_complex(oracles::dtype_named(entry.inputs[i].dtype));
    given.push_back(parts ? view_as_complex(inputs[i]) : inputs[i]);
  }
  for (const Array& y : row.call(entry, given)) results.push_back(is_complex(y.dtype()) ? view_as_real(y) : y);
  return results;
}

bool smooth(const OracleCase& entry) {
  const std::string samples = entry.has("samples") ? entry.attributes.at("samples") : "normal";
  return !entry.cotangents.empty() && !entry.has("edge") &&
         (samples == "normal" || samples == "negative" || samples == "repeated");
}

/// Shapes of operand `i` of an elementwise op: all alike, then broadcasting ones.
Shape sample_shape(int variant, int i) {
  if (variant == 0) return {3, 4};
  if (i == 0) return {3, 1, 2};
  return i == 1 ? Shape{1, 4} : Shape{3};
}

TEST(OpSuiteSlopes, ElementwiseOpsAgreeWithDifferencesAtRandomPoints) {
  if (!has_type_there(Float64)) GTEST_SKIP() << "differences need Float64, which the device lacks";
  Samples samples;
  std::vector<const OpEntry*> rows;
  for (const OpEntry& row : op_table()) {
    const Op* op = find_op(row.name);
    const bool smooth = op != nullptr && op->kind == Kind::elementwise && op->gradient != nullptr;
    if (smooth && op->name != "cast") rows.push_back(&row);
  }
  run_checks(rows.size(), [&](size_t at) {
    const OpEntry& row = *rows[at];
    const Op* op = find_op(row.name);
    const OracleCase* example = example_of(row);
    ASSERT_NE(example, nullptr) << row.name << " has no oracle";
    for (int variant = compiles_there() ? 1 : 0; variant < 2; ++variant) {
      Arrays inputs;
      for (size_t i = 0; i < example->inputs.size(); ++i) {
        const Shape shape = sample_shape(variant, static_cast<int>(i));
        const bool is_mask = example->inputs[i].dtype == "Bool";
        inputs.push_back(is_mask ? samples.mask(shape) : samples.numbers(shape, op->range.low, op->range.high));
      }
      std::vector<bool> free;
      for (const Array& input : inputs) free.push_back(is_float(input.dtype()));
      const Function f = [&row, example](const Arrays& x) { return row.call(*example, x); };
      try {
        check_point({std::string(row.name), f, inputs, free}, samples, true);
      } catch (const std::exception& error) {
        ADD_FAILURE() << row.name << ": " << error.what();
      }
    }
  });
}

TEST(OpSuiteSlopes, OtherOpsAgreeWithDifferencesAtTheOraclesPoints) {
  if (!has_type_there(Float64)) GTEST_SKIP() << "differences need Float64, which the device lacks";
  Samples samples;
  std::map<std::string, int> done;
  const int most = compiles_there() ? 1 : 8;
  const std::vector<std::string> files(op_oracle_files().begin() + 2, op_oracle_files().end());
  const auto choose = [&](const OpEntry& row, const OracleCase& entry, const std::string&) {
    if (!smooth(entry) || row.call(entry, inputs_of(entry)).empty()) return false;
    return ++done[std::string(row.name) + "/" + std::string(row.oracle)] <= most;
  };
  const auto check = [&](const OpEntry& row, const OracleCase& entry, const std::string& where) {
    std::vector<bool> free;
    for (size_t i = 0; i < entry.inputs.size(); ++i) free.push_back(entry.gradient_of(i) != nullptr);
    const Function call = [&](const Arrays& x) { return call_by_parts(row, entry, x); };
    check_point({where, call, wide_inputs(entry), free}, samples, true);
  };
  for_each_case(files, check, choose);
}

}  // namespace
}  // namespace rosin::suite
