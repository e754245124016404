// Bodies of elementwise ops without the graph: compiled loops of every instruction set against values made by mpmath,
// NumPy and PyTorch, and against the interpreter, bit for bit. Read first: src/scalar/make_body.hpp, oracle_reader.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "cpu/machine_loop.hpp"
#include "graph/op.hpp"
#include "oracle_reader.hpp"
#include "scalar/interpret_testing.hpp"

namespace rosin {
namespace {

using oracles::OracleArray;
using oracles::OracleCase;

using Memory = std::vector<unsigned char>;

std::vector<InstructionSet> usable_sets() {
  std::vector<InstructionSet> sets;
  for (InstructionSet set : {InstructionSet::baseline, InstructionSet::wide, InstructionSet::widest})
    if (set <= best_instruction_set()) sets.push_back(set);
  return sets;
}

void store(Memory& memory, ScalarType type, size_t at, double real, int64_t integer) {
  const auto put = [&](auto value) { std::memcpy(memory.data() + at * sizeof value, &value, sizeof value); };
  switch (type) {
    case ScalarType::boolean: put(static_cast<uint8_t>(integer)); break;
    case ScalarType::int32: put(static_cast<int32_t>(integer)); break;
    case ScalarType::uint32: put(static_cast<uint32_t>(integer)); break;
    case ScalarType::int64:
    case ScalarType::uint64: put(integer); break;
    case ScalarType::float32: put(static_cast<float>(real)); break;
    case ScalarType::float64: put(real); break;
  }
}

double load(const Memory& memory, ScalarType type, size_t at) {
  const auto get = [&](auto value) {
    std::memcpy(&value, memory.data() + at * sizeof value, sizeof value);
    return static_cast<double>(value);
  };
  switch (type) {
    case ScalarType::boolean: return get(uint8_t{});
    case ScalarType::int32: return get(int32_t{});
    case ScalarType::uint32: return get(uint32_t{});
    case ScalarType::int64: return get(int64_t{});
    case ScalarType::uint64: return get(uint64_t{});
    case ScalarType::float32: return get(float{});
    default: return get(double{});
  }
}

bool same_bits(const Memory& a, const Memory& b, ScalarType type, size_t at) {
  const auto size = static_cast<size_t>(bytes_of(type));
  if (std::memcmp(a.data() + at * size, b.data() + at * size, size) == 0) return true;
  return std::isnan(load(a, type, at)) && std::isnan(load(b, type, at));
}

ScalarType operand_type(const Op& op, ScalarType type, size_t operand) {
  return op.mask_first && operand == 0 ? ScalarType::boolean : type;
}

/// One call of a body: operands and the result of each executor.
struct BodyCall {
  const Op& op;
  ScalarType type;
  std::vector<Memory> operands;
  size_t count;

  ScalarType result_type() const { return op.body.result[static_cast<int>(type)]; }

  std::vector<const void*> pointers() const {
    std::vector<const void*> result;
    for (const Memory& operand : operands) result.push_back(operand.data());
    return result;
  }
  Memory compiled(InstructionSet set) const {
    Memory out(count * 8);
    op.body.variant(type, set)(out.data(), pointers().data(), static_cast<int64_t>(count));
    return out;
  }
  Memory interpreted() const {
    ScalarCode code;
    op.body.code(type, code);
    Memory out(count * 8);
    evaluate(code, out.data(), pointers().data(), static_cast<int64_t>(count));
    return out;
  }
};

int machine_loops = 0;

/// The body as machine code: elements one after another, and in rows of 7.
void expect_same_bits_from_machine_code(const BodyCall& run, const Memory& reference) {
  cpu::LoopText text;
  run.op.body.code(run.type, text.code);
  if (!cpu::machine_code_works() || !cpu::machine_knows(text.code)) return;
  ++machine_loops;
  text.inputs.assign(run.operands.size(), {cpu::Reads::each});
  text.outputs.emplace_back().place = text.code.result;
  const auto loop = cpu::machine_loop(text);
  ASSERT_NE(loop, nullptr) << run.op.name;
  for (const size_t row : {run.count, size_t{7}}) {
    Memory out(run.count * 8);
    std::vector<void*> memory = {out.data()};
    for (const Memory& operand : run.operands) memory.push_back(const_cast<unsigned char*>(operand.data()));
    const size_t rows = run.count / row;
    loop->run(memory.data(), static_cast<int64_t>(rows), static_cast<int64_t>(row));
    for (size_t i = 0; i < rows * row; ++i) {
      ASSERT_TRUE(same_bits(out, reference, run.result_type(), i))
          << run.op.name << ", type " << static_cast<int>(run.type) << ", machine code, element " << i << ": "
          << load(out, run.result_type(), i) << " and " << load(reference, run.result_type(), i) << " for operand "
          << load(run.operands[0], operand_type(run.op, run.type, 0), i);
    }
  }
}

void expect_same_bits_everywhere(const BodyCall& run) {
  const Memory reference = run.interpreted();
  expect_same_bits_from_machine_code(run, reference);
  for (InstructionSet set : usable_sets()) {
    const Memory out = run.compiled(set);
    for (size_t i = 0; i < run.count; ++i) {
      ASSERT_TRUE(same_bits(out, reference, run.result_type(), i))
          << run.op.name << ", type " << static_cast<int>(run.type) << ", instruction set " << static_cast<int>(set)
          << ", element " << i << ": " << load(out, run.result_type(), i) << " and "
          << load(reference, run.result_type(), i) << " for operand "
          << load(run.operands[0], operand_type(run.op, run.type, 0), i);
    }
  }
}

const std::vector<double>& interesting_values() {
  static const std::vector<double> values = [] {
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> list = {0.0,
                                -0.0,
                                inf,
                                -inf,
                                nan,
                                0.5,
                                -0.5,
                                1,
                                -1,
                                1.5,
                                -2.5,
                                3,
                                -7,
                                0x1p-149,
                                -0x1p-149,
                                0x1p-130,
                                0x1p-1074,
                                0x1.fffffep127,
                                -0x1.fffffep127,
                                88.5,
                                -88.5,
                                -103.9,
                                710.0,
                                -745.0,
                                1e9,
                                -1e9,
                                1e-9,
                                16777217.0,
                                0x1p31,
                                -0x1p31,
                                0x1p52};
    for (int i = 1; i <= 200; ++i) list.push_back(std::ldexp(std::sin(i * 1.7), i % 13 - 6));
    return list;
  }();
  return values;
}

TEST(ElementwiseBodies, CompiledLoopsAndTheInterpreterGiveTheSameBits) {
  int seen = 0;
  for (const Op* op : registry()) {
    if (op->kind != Kind::elementwise) continue;
    for (int t = 0; t < scalar_type_count; ++t) {
      if (!op->body.loops[t]) continue;
      const auto type = static_cast<ScalarType>(t);
      const std::vector<double>& values = interesting_values();
      BodyCall run{*op, type, {}, values.size() * 3};
      for (size_t k = 0; k < static_cast<size_t>(op->operands); ++k) {
        Memory memory(run.count * 8);
        for (size_t i = 0; i < run.count; ++i) {
          // Every operand runs through the values at its own pace.
          const double value = values[(i * (k * k + 1) + i / values.size() * k * 7) % values.size()];
          const bool fits = std::abs(value) < 2e9;
          const bool mask = operand_type(*op, type, k) == ScalarType::boolean;
          store(memory, operand_type(*op, type, k), i, value,
                mask   ? static_cast<int64_t>(i / 3 % 2)
                : fits ? static_cast<int64_t>(value)
                       : std::numeric_limits<int32_t>::min());
        }
        run.operands.push_back(std::move(memory));
      }
      expect_same_bits_everywhere(run);
      ++seen;
    }
  }
  EXPECT_GT(seen, 150);
  EXPECT_GE(machine_loops, cpu::machine_code_works() ? seen * 9 / 10 : 0);
}

/// A NaN of these bits below the quiet one.
void store_nan(Memory& memory, ScalarType type, size_t at, uint64_t payload) {
  if (type == ScalarType::float32) {
    const uint32_t bits = 0x7fc00000u | static_cast<uint32_t>(payload);
    std::memcpy(memory.data() + at * sizeof bits, &bits, sizeof bits);
  } else {
    const uint64_t bits = 0x7ff8000000000000u | payload;
    std::memcpy(memory.data() + at * sizeof bits, &bits, sizeof bits);
  }
}

/// One operand is NaN of various bits, the others are numbers.
BodyCall call_with_nan(const Op& op, ScalarType type, size_t place, bool of_various_bits) {
  constexpr double numbers[] = {0.5, 1, -2, 3, -0.25, 0};
  BodyCall run{op, type, {}, 64};
  for (size_t k = 0; k < static_cast<size_t>(op.operands); ++k) {
    Memory memory(run.count * 8);
    for (size_t i = 0; i < run.count; ++i) {
      const uint64_t payload = of_various_bits ? 0x2c5f1d3u * i % 0x3fffff : 0;
      if (k == place) store_nan(memory, type, i, payload);
      else store(memory, operand_type(op, type, k), i, numbers[(i + k) % std::size(numbers)], i % 2);
    }
    run.operands.push_back(std::move(memory));
  }
  return run;
}

TEST(ElementwiseBodies, BitsOfANaNMeanNothing) {
  int seen = 0;
  for (const Op* op : registry()) {
    if (op->kind != Kind::elementwise) continue;
    for (const ScalarType type : {ScalarType::float32, ScalarType::float64}) {
      if (!op->body.loops[static_cast<int>(type)]) continue;
      for (size_t k = 0; k < static_cast<size_t>(op->operands); ++k) {
        if (operand_type(*op, type, k) == ScalarType::boolean) continue;
        const BodyCall usual = call_with_nan(*op, type, k, false), other = call_with_nan(*op, type, k, true);
        const Memory want = usual.interpreted(), got = other.interpreted();
        for (size_t i = 0; i < usual.count; ++i) {
          ASSERT_TRUE(same_bits(got, want, usual.result_type(), i))
              << op->name << ", operand " << k << ", element " << i;
        }
        expect_same_bits_everywhere(other);
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 150);
}

TEST(ElementwiseBodies, ExponentialsStayWithinTheirBounds) {
  using Wide = long double;
  struct Bound {
    const char* name;
    Wide (*right)(Wide x);
    double ulp;
  };
  const Bound bounds[] = {
      {"exp", [](Wide x) { return std::exp(x); }, 1.1},
      {"exp2", [](Wide x) { return std::exp2(x); }, 1.1},
      {"expm1", [](Wide x) { return std::expm1(x); }, 1.7},
      {"sigmoid", [](Wide x) { return 1 / (1 + std::exp(-x)); }, 2.3},
      {"softplus", [](Wide x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }, 1.7},
      {"tanh", [](Wide x) { return std::tanh(x); }, 2.5}};
  constexpr size_t count = 200'000;
  for (const Bound& bound : bounds) {
    const Op* const op = find_op(bound.name);
    ASSERT_NE(op, nullptr) << bound.name;
    BodyCall run{*op, ScalarType::float32, {Memory(count * 8)}, count};
    for (size_t i = 0; i < count; ++i) {  // evenly over all exponents from 2^-30 to 2^7, of both signs
      const double x = std::exp2(-30 + 37.0 * static_cast<double>(i) / count) * (i % 2 ? 1 : -1);
      store(run.operands[0], run.type, i, x, 0);
    }
    const Memory out = run.compiled(best_instruction_set());
    double worst = 0;
    for (size_t i = 0; i < count; ++i) {
      const Wide want = bound.right(load(run.operands[0], run.type, i));
      if (std::abs(want) > std::numeric_limits<float>::max()) continue;
      const int exponent = std::max(std::ilogb(static_cast<double>(want)), -126);
      const Wide off = std::abs(load(out, run.type, i) - want);
      worst = std::max(worst, static_cast<double>(std::ldexp(off, 23 - exponent)));
    }
    EXPECT_LE(worst, bound.ulp) << bound.name;
    EXPECT_GE(worst, 0.5) << bound.name;
  }
}

TEST(ElementwiseBodies, EveryBodyWritesCodeThatEndsInItsResult) {
  for (const Op* op : registry()) {
    if (op->kind != Kind::elementwise) continue;
    for (int t = 0; t < scalar_type_count; ++t) {
      if (!op->body.loops[t]) continue;
      ScalarCode code;
      op->body.code(static_cast<ScalarType>(t), code);
      ASSERT_LT(code.result, code.list.size()) << op->name;
      EXPECT_EQ(code.list[code.result].type, op->body.result[t]) << op->name;
      for (size_t i = 0; i < code.list.size(); ++i)
        for (int k = 0; k < info(code.list[i].primitive).arity; ++k) EXPECT_LT(code.list[i].operands[k], i) << op->name;
    }
  }
}

TEST(ElementwiseBodies, Float32NeedsNoFloat64) {
  for (const Op* op : registry()) {
    if (op->kind != Kind::elementwise || !op->body.loops[static_cast<int>(ScalarType::float32)]) continue;
    ScalarCode code;
    op->body.code(ScalarType::float32, code);
    const bool wide = std::any_of(code.list.begin(), code.list.end(), [](const Instruction& instruction) {
      return instruction.type == ScalarType::float64;
    });
    EXPECT_FALSE(wide) << op->name;
  }
}

/// The parameter that the public function adds to its one array, by Flux's defaults.
const std::map<std::string, double>& default_parameters() {
  static const std::map<std::string, double> defaults = {
      {"leakyrelu", 0.01}, {"elu", 1}, {"celu", 1}, {"trelu", 1}, {"softshrink", 0.5}};
  return defaults;
}

bool scalar_type_named(const std::string& name, ScalarType& type) {
  static const std::map<std::string, ScalarType> names = {
      {"Bool", ScalarType::boolean},   {"Int32", ScalarType::int32},   {"UInt32", ScalarType::uint32},
      {"Int64", ScalarType::int64},    {"UInt64", ScalarType::uint64}, {"Float32", ScalarType::float32},
      {"Float64", ScalarType::float64}};
  const auto found = names.find(name);
  if (found != names.end()) type = found->second;
  return found != names.end();
}

/// The operands of a case in the type that the body computes in; one of size 1 is repeated.
Memory operand_of(const OracleArray& array, ScalarType from, ScalarType to, size_t count) {
  Memory memory(count * 8);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = array.values.size() == 1 ? 0 : i;
    const int64_t integer = array.integers.empty() ? 0 : array.integers[at];
    const bool integral = from <= ScalarType::uint64;
    store(memory, to, i, integral ? static_cast<double>(integer) : array.values[at], integer);
  }
  return memory;
}

/// sin, cos and tan of Float64 are only promised this far.
bool beyond_promise(const OracleCase& test, double x) {
  const bool circular = test.op == "sin" || test.op == "cos" || test.op == "tan";
  return circular && test.dtype == "Float64" && std::abs(x) > 1e6 && std::isfinite(x);
}

/// Runs a case when it is about a body as it stands; false for those that need the graph (broadcasting, narrow types).
bool check(const OracleCase& test) {
  const Op* op = find_op(test.op);
  if (!op || op->kind != Kind::elementwise || test.op == "cast" || test.has("n") || test.has("exponents")) return false;
  if (test.outputs.empty() || test.inputs.empty()) return false;
  const OracleArray& want = test.outputs[0];
  ScalarType type = ScalarType::boolean, out_type = ScalarType::boolean;
  if (!scalar_type_named(test.inputs.back().dtype, type) || !scalar_type_named(want.dtype, out_type)) return false;
  if (op->type_rule == TypeRule::floating && type < ScalarType::float32) type = ScalarType::float32;
  if (op->type_rule == TypeRule::number && type == ScalarType::boolean) type = ScalarType::int32;
  if (!op->body.loops[static_cast<int>(type)]) return false;
  BodyCall run{*op, type, {}, want.values.size()};
  for (const OracleArray& input : test.inputs) {
    ScalarType from = ScalarType::boolean;
    if (!scalar_type_named(input.dtype, from)) return false;
    if (input.shape != want.shape && input.values.size() != 1) return false;
    run.operands.push_back(operand_of(input, from, operand_type(*op, type, run.operands.size()), run.count));
  }
  const auto parameter = [&](double value) {
    const OracleArray array{"in", "Float64", {}, {value}, {static_cast<int64_t>(value)}};
    run.operands.push_back(operand_of(array, ScalarType::float64, type, run.count));
  };
  if (test.op == "clamp") {
    parameter(std::stod(test.attributes.at("lo")));
    parameter(std::stod(test.attributes.at("hi")));
  }
  if (default_parameters().count(test.op) && run.operands.size() == 1) parameter(default_parameters().at(test.op));
  if (run.operands.size() != static_cast<size_t>(op->operands)) return false;
  EXPECT_EQ(run.result_type(), out_type) << test.op << " of " << test.dtype << ", line " << test.line;
  expect_same_bits_everywhere(run);
  const Memory out = run.compiled(best_instruction_set());
  for (size_t i = 0; i < run.count; ++i) {
    const double expected = want.integers.empty() ? want.values[i] : static_cast<double>(want.integers[i]);
    const double got = load(out, out_type, i);
    if (beyond_promise(test, test.inputs[0].values[test.inputs[0].values.size() == 1 ? 0 : i])) continue;
    EXPECT_TRUE(oracles::matches(test.tolerance, want.dtype, expected, got))
        << test.op << " of " << test.dtype << ", line " << test.line << ", element " << i << ": f("
        << load(run.operands[0], operand_type(*op, type, 0), i) << ") = " << got << ", not " << expected;
  }
  return true;
}

TEST(ElementwiseBodies, MatchTheOracles) {
  for (const char* file : {"elementwise.txt", "activations.txt"}) {
    int checked = 0;
    for (const OracleCase& test : oracles::read_oracles(oracles::oracle_path(file))) checked += check(test);
    EXPECT_GT(checked, 100) << file;
  }
}

}  // namespace
}  // namespace rosin
