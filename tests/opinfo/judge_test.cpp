// PyTorch's own tests of its ops as judge: every sample of every row is computed here, with gradient and second
// gradient, and compared with what PyTorch gave. What rosin refuses stands in refusals.txt, with the message; the test
// fails when that list is no longer true. ROSIN_TEST_REFUSALS=write writes it anew. With ROSIN_TEST_DEVICE=OpenCL:0 the
// first sample of each row that is not refused runs there instead, in Float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

const std::string list_path = ROSIN_SOURCE_DIR "/tests/opinfo/refusals.txt";
constexpr int stages = 3;
constexpr const char* stage_names[stages] = {"value", "gradient", "second gradient"};

/// The weights of make_opinfo.py.
Array weights(const Array& x, size_t which) {
  std::vector<double> values(static_cast<size_t>(x.count()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = (static_cast<double>((7 * k + 3 * which) % 11) - 4.5) / 8;
  return cast(Array(values, x.shape()), x.dtype()) | x.device();
}

/// The number that is differentiated.
Array weighted(const Arrays& arrays, const std::function<bool(size_t)>& counts) {
  Array total;
  const auto add = [&](const Array& x, size_t which) {
    const Array part = sum(weights(x, which) * x);
    total = total.is_nothing() ? part : total + part;
  };
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].is_nothing() || !counts(i)) continue;
    if (is_complex(arrays[i].dtype())) {
      add(real(arrays[i]), i);
      add(imag(arrays[i]), i + 1);
    } else {
      add(arrays[i], i);
    }
  }
  return total;
}

/// Outputs, gradients and second gradients: as many of the three as were asked for.
struct Answer {
  Arrays parts[stages];
};

Arrays variables_of(const Call& call) {
  Arrays all;
  for (const size_t at : call.variables) all.push_back(call.arrays[at]);
  return all;
}

Answer answer(const Row& row, const Sample& sample, Call& call, int stage) {
  const auto outputs = [&](const Arrays& variables) {
    for (size_t i = 0; i < variables.size(); ++i) call.arrays[call.variables[i]] = variables[i];
    return row.run(call);
  };
  const auto loss = [&](const Arrays& variables) {
    Arrays out = outputs(variables);
    Array value = weighted(out, [&](size_t i) { return i < sample.outputs.size() && sample.outputs[i].in_the_loss; });
    if (value.is_nothing()) value = zeros({}, variables[0].dtype());
    return std::tuple{value, out};
  };
  const Arrays variables = variables_of(call);
  if (stage == 0) return {{outputs(variables)}};
  if (stage == 1) {
    const auto first = withgradient(loss, variables);
    return {{std::get<1>(first.value), first.gradient}};
  }
  const auto slope = [&](const Arrays& inner) {
    auto [value, gradient] = withgradient(loss, inner);
    Array next = weighted(gradient, [](size_t) { return true; });
    if (next.is_nothing()) next = zeros({}, inner[0].dtype());
    return std::tuple{next, std::get<1>(value), gradient};
  };
  const auto second = withgradient(slope, variables);
  return {{std::get<1>(second.value), std::get<2>(second.value), second.gradient}};
}

std::vector<double> elements(const Array& x) {
  if (!is_complex(x.dtype())) return x.to_vector<double>();
  return view_as_real(x).to_vector<double>();
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) {
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  }
  return most;
}

std::string another_type(DType got, const Expected& want, DType run) {
  const std::string& name = want.types[run == Float64];
  switch (want.kind) {
    case Expected::Kind::boolean: return got == Bool ? "" : std::string("the type is ") + to_string(got) + ", not Bool";
    case Expected::Kind::integer:
      return got != Bool && !is_float(got) && !is_complex(got) ? "" : std::string("the type is ") + to_string(got);
    default: break;
  }
  const DType complex_run = run == Float64 ? ComplexF64 : ComplexF32;
  const DType wanted = !name.empty() ? type_named(name) : want.kind == Expected::Kind::real ? run : complex_run;
  return got == wanted ? "" : std::string("the type is ") + to_string(got) + " instead of " + to_string(wanted);
}

/// What differs, or nothing.
std::string compared(const Array& got, const Expected& want, DType type, double loose) {
  if (want.missing) {
    if (got.is_nothing() || largest(elements(got)) == 0) return "";
    return "PyTorch has no gradient, here it is " + to_string(got);
  }
  const std::vector<double> values = got.is_nothing() ? std::vector<double>(want.elements.size(), 0.0) : elements(got);
  if (!got.is_nothing() && got.shape() != want.shape) {
    return "the shape is " + to_string(got.shape()) + " instead of " + to_string(want.shape);
  }
  if (values.size() != want.elements.size()) return "the kind of the elements is another";
  const DType found = got.is_nothing() ? type : got.dtype();
  const bool wide = type == Float64 && found != Float32;
  const double rtol = loose * (found == BFloat16 ? 8e-3 : found == Float16 ? 1e-3 : wide ? 1e-9 : 2e-5);
  const double atol = rtol * std::max(largest(want.elements), wide ? 1e-3 : 1e-2) / 2;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = wide ? want.elements[i] : static_cast<double>(static_cast<float>(want.elements[i]));
    if (std::isnan(expected) ? std::isnan(values[i]) : values[i] == expected) continue;
    if (std::isfinite(expected) && std::abs(values[i] - expected) <= atol + rtol * std::abs(expected)) continue;
    std::ostringstream text;
    text.precision(12);
    text << "element " << i << " is " << values[i] << " instead of " << expected;
    return text.str();
  }
  return "";
}

std::string compared(const Arrays& got, const std::vector<Expected>& want, DType type, double loose, bool outputs) {
  if (got.size() != want.size()) {
    return std::to_string(got.size()) + " arrays instead of " + std::to_string(want.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (outputs && got[i].is_nothing()) continue;
    if (const std::string text = outputs ? another_type(got[i].dtype(), want[i], type) : ""; !text.empty()) return text;
    if (const std::string text = compared(got[i], want[i], type, loose); !text.empty()) {
      return std::to_string(i) + ": " + text;
    }
  }
  return "";
}

const Device& test_device() {
  static const Device device = [] {
    const char* const wanted = std::getenv("ROSIN_TEST_DEVICE");
    if (!wanted || !*wanted || std::string_view(wanted) == "CPU") return Device();
    math_mode(MathMode::exact);
    const std::string text = wanted;
    const size_t colon = text.find(':');
    return get_device(text.substr(0, colon), colon == std::string::npos ? 0 : std::stoi(text.substr(colon + 1)));
  }();
  return device;
}
bool on_other_device() { return test_device() != Device(); }

/// A sample's call with its arrays in the types of a run in `type`, on the test device.
Call call_in(const Sample& sample, DType type) {
  Call call = sample.call;
  for (Array& x : call.arrays) {
    if (is_float(x.dtype())) x = cast(x, type);
    if (is_complex(x.dtype())) x = cast(x, type == Float64 ? ComplexF64 : ComplexF32);
    if (on_other_device()) x = x | test_device();
  }
  return call;
}

/// One sample in one type: what was wrong and what was refused, with the stage.
struct Verdict {
  std::string wrong;
  std::optional<std::pair<int, std::string>> refused;
};

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// The type that a run's gradients pass through: a call may name a narrower one.
DType computed_in(const Sample& sample, DType run) {
  for (const Expected& output : sample.outputs) {
    if (output.types[1] == "float32") return Float32;
  }
  return run;
}

Verdict judged(const Row& row, const Sample& sample, DType type) {
  Verdict verdict;
  int stage = !sample.second.empty() && !on_other_device() ? 2 : !sample.gradients.empty() ? 1 : 0;
  for (; stage >= 0; --stage) {
    Call call = call_in(sample, type);
    try {
      const Answer got = answer(row, sample, call, stage);
      if (const std::string unread = call.unread(); !unread.empty())
        verdict.wrong = "the row does not look at" + unread;
      const std::vector<Expected>* const want[stages] = {&sample.outputs, &sample.gradients, &sample.second};
      for (size_t i = 0; i < std::min(got.parts[0].size(), sample.outputs.size()); ++i) {
        if (got.parts[0][i].is_nothing()) verdict.refused = {0, "no result is PyTorch's output " + std::to_string(i)};
      }
      for (int part = 0; part <= stage && verdict.wrong.empty(); ++part) {
        const std::string text = compared(got.parts[part], *want[part], part ? computed_in(sample, type) : type,
                                          row.loose * std::pow(4, part), part == 0);
        if (!text.empty()) verdict.wrong = std::string(stage_names[part]) + " " + text;
      }
      if (!verdict.wrong.empty() && !row.differs.empty()) {
        verdict.refused = {0, row.differs};
        verdict.wrong.clear();
      }
      return verdict;
    } catch (const Error& error) {
      verdict.refused = {stage, one_line(error.what())};
    } catch (const Refused& error) {
      verdict.refused = {0, one_line(error.what())};
      return verdict;
    }
  }
  return verdict;
}

/// The lines of refusals.txt by entry.
std::map<std::string, std::vector<std::string>> listed() {
  std::map<std::string, std::vector<std::string>> all;
  std::ifstream file(list_path);
  for (std::string line; std::getline(file, line);) {
    if (const size_t end = line.find(": "); end != std::string::npos && line[0] != '#') {
      all[line.substr(0, end)].push_back(line);
    }
  }
  return all;
}

/// Refusals of one row, gathered to lines "ENTRY: SAMPLES, STAGE, MESSAGE".
class Refusals {
 public:
  void add(size_t sample, DType type, int stage, const std::string& message) {
    found_[{stage, message}][sample] |= type == Float32 ? in_float : in_double;
  }
  std::vector<std::string> lines(const std::string& entry) const {
    std::vector<std::string> all;
    for (const auto& [key, samples] : found_) {
      std::string line = entry + ":";
      for (const auto& [sample, types] : samples) {
        line += " " + std::to_string(sample) + (types == in_float ? "f" : types == in_double ? "d" : "");
      }
      all.push_back(line + ", " + stage_names[key.first] + ", " + key.second);
    }
    return all;
  }

 private:
  static constexpr int in_float = 1, in_double = 2;

  std::map<std::pair<int, std::string>, std::map<size_t, int>> found_;
};

bool writes_the_list() {
  const char* const wanted = std::getenv("ROSIN_TEST_REFUSALS");
  return wanted && std::string_view(wanted) == "write";
}

/// What this process found, to be written.
std::map<std::string, std::vector<std::string>> found_lines;

class WriteList : public testing::Environment {
 public:
  void TearDown() override {
    if (!writes_the_list()) return;
    auto all = listed();
    for (const auto& [entry, lines] : found_lines) all[entry] = lines;
    std::ofstream file(list_path);
    file << "# Samples of PyTorch's OpInfo that rosin refuses, written by `ROSIN_TEST_REFUSALS=write "
            "build/release/opinfo_tests`.\n"
            "# ENTRY: SAMPLES, STAGE, MESSAGE; f or d after a sample: in Float32 or Float64 alone.\n";
    for (const auto& [entry, lines] : all) {
      for (const std::string& line : lines) file << line << "\n";
    }
  }
};
const testing::Environment* const write_list = testing::AddGlobalTestEnvironment(new WriteList);

struct Entry {
  std::string family;
  const Row* row;
};
std::vector<Entry> entries() {
  std::vector<Entry> all;
  for (const Family& family : families()) {
    for (const Row& row : family.rows) all.push_back({family.name, &row});
  }
  return all;
}

class OpInfo : public testing::TestWithParam<Entry> {};

/// Those that this run tests.
std::vector<Entry> tested() {
  std::vector<Entry> all = entries(), some;
  if (!on_other_device()) return all;
  for (size_t i = 0; i < all.size(); i += 5) some.push_back(all[i]);
  return some;
}

TEST_P(OpInfo, GivesWhatPyTorchGives) {
  const auto& [family, row] = GetParam();
  const std::vector<Sample>& samples = samples_of(family).at(row->name);
  Refusals refusals;
  int wrong = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    for (const DType type : {Float32, Float64}) {
      if (on_other_device() && type == Float64) continue;
      const Verdict verdict = judged(*row, samples[i], type);
      if (verdict.refused) refusals.add(i, type, verdict.refused->first, verdict.refused->second);
      if (!verdict.wrong.empty() && ++wrong <= 3) {
        ADD_FAILURE() << row->name << ", sample " << i << ", " << to_string(type) << ": " << verdict.wrong;
      }
      if (on_other_device() && !verdict.refused) return;
    }
  }
  EXPECT_LE(wrong, 3) << "wrong runs of " << row->name;
  if (on_other_device()) return;
  found_lines[row->name] = refusals.lines(row->name);
  if (writes_the_list()) return;
  EXPECT_EQ(refusals.lines(row->name), listed()[row->name]) << "see the top of judge_test.cpp";
}

std::string test_name(const testing::TestParamInfo<Entry>& info) {
  std::string name = info.param.row->name;
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return info.param.family + "_" + name;
}

INSTANTIATE_TEST_SUITE_P(Entries, OpInfo, testing::ValuesIn(tested()), test_name);

TEST(OpInfoTables, HaveAtLeast250EntriesAndListNoOthers) {
  std::map<std::string, int> names;
  for (const Entry& entry : entries()) ++names[entry.row->name];
  EXPECT_GE(names.size(), 250u);
  for (const auto& [name, times] : names) EXPECT_EQ(times, 1) << name;
  for (const auto& [name, lines] : listed()) EXPECT_TRUE(names.contains(name)) << name;
}

}  // namespace
}  // namespace rosin::opinfo
