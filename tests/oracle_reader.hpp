// Reads the expected values under tests/oracles/ and compares results with them. Standard library only.
// Read next: oracles/README.md (format, rules, tolerances), oracles/make_oracles.py (how the values were made).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <istream>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rosin::oracles {

/// One array of a case, column-major.
struct OracleArray {
  std::string role;               // "in", "out", "cotangent", "grad0" (gradient by input 0), "grad1" ...
  std::string dtype;              // rosin's name of the element type, e.g. "Float32"
  std::vector<int64_t> shape;     // empty: 0-d
  std::vector<double> values;     // one per element; complex types have two, real part first
  std::vector<int64_t> integers;  // the same, exact, for Bool and integers (UInt64: its bits); empty for all others
};

/// A result is right when |got - want| <= atol + rtol * |want| + ulp * (spacing of the type at want).
struct OracleTolerance {
  bool exact = false;  // the same bits (the sign of zero counts), except that every NaN equals every NaN
  double ulp = 0;
  double rtol = 0;
  double atol = 0;
};

/// One call of an op: inputs, attributes, expected outputs, and gradients where the case has them.
struct OracleCase {
  std::string op;
  std::string dtype;
  std::map<std::string, std::string> attributes;
  std::vector<OracleArray> inputs;
  std::vector<OracleArray> outputs;
  std::vector<OracleArray> cotangents;  // one per output, or none where the case has no gradients
  std::vector<OracleArray> gradients;   // of sum over outputs of sum(cotangent * output), by the inputs named in role
  OracleTolerance tolerance;
  OracleTolerance gradient_tolerance;
  int line = 0;  // where the case begins in its file

  bool has(const std::string& key) const { return attributes.count(key) != 0; }

  /// The attribute cut at its commas; empty where the case has no such attribute.
  std::vector<std::string> words(const std::string& key) const {
    std::vector<std::string> result;
    const auto found = attributes.find(key);
    if (found == attributes.end()) return result;
    std::istringstream text(found->second);
    for (std::string word; std::getline(text, word, ',');) result.push_back(word);
    return result;
  }

  /// The same as numbers ("0.5,2" gives {0.5, 2}).
  std::vector<double> numbers(const std::string& key) const {
    std::vector<double> result;
    for (const std::string& word : words(key)) result.push_back(std::strtod(word.c_str(), nullptr));
    return result;
  }

  /// The same as integers.
  std::vector<int64_t> integers(const std::string& key) const {
    std::vector<int64_t> result;
    for (const std::string& word : words(key)) result.push_back(std::strtoll(word.c_str(), nullptr, 10));
    return result;
  }

  /// The attribute as one number, or `otherwise` where the case has no such attribute.
  double number(const std::string& key, double otherwise) const {
    const std::vector<double> list = numbers(key);
    return list.empty() ? otherwise : list.front();
  }

  /// Expected gradient by that input, or null where there is none (indices, conditions, cases without gradients).
  const OracleArray* gradient_of(size_t input) const {
    const std::string role = "grad" + std::to_string(input);
    for (const OracleArray& gradient : gradients) {
      if (gradient.role == role) return &gradient;
    }
    return nullptr;
  }
};

/// Distance between neighbouring numbers of that type around `value`; 1 for types that are not real floats.
inline double spacing(const std::string& dtype, double value) {
  struct Format {
    const char* name;
    int digits;             // of the significand, the hidden one included
    int smallest_exponent;  // of a normal number
  };
  constexpr std::array<Format, 5> formats = {{{"Float16", 11, -14},
                                              {"BFloat16", 8, -126},
                                              {"Float32", 24, -126},
                                              {"ComplexF32", 24, -126},
                                              {"Float64", 53, -1022}}};
  for (const Format& format : formats) {
    if (dtype != format.name) continue;
    const int exponent = value == 0 ? format.smallest_exponent : std::max(std::ilogb(value), format.smallest_exponent);
    return std::ldexp(1.0, exponent - format.digits + 1);
  }
  return 1;
}

/// Whether `got` is right where `want` is expected in an array of that type.
inline bool matches(const OracleTolerance& tolerance, const std::string& dtype, double want, double got) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (tolerance.exact) return want == got && std::signbit(want) == std::signbit(got);
  if (want == got) return true;
  if (std::isinf(want) || std::isinf(got)) return false;
  double allowed = tolerance.atol + tolerance.rtol * std::abs(want);
  if (tolerance.ulp > 0) allowed += tolerance.ulp * spacing(dtype, want);
  return std::abs(want - got) <= allowed;
}

/// Reads one file line by line; `name` and the line number stand in its errors.
class OracleParser {
 public:
  OracleParser(std::istream& file, std::string name) : file_(file), name_(std::move(name)) {}

  std::vector<OracleCase> read() {
    std::vector<OracleCase> cases;
    bool inside = false;
    for (std::string text; std::getline(file_, text);) {
      ++line_;
      std::istringstream words(text);
      std::string first;
      if (!(words >> first) || first[0] == '#') continue;
      if (first == "case") {
        if (inside) fail("a case inside a case");
        cases.push_back(header(words));
      } else if (!inside) {
        fail("'" + first + "' outside a case");
      }
      inside = first != "end";
      if (first != "case" && first != "end") body(first, words, cases.back());
    }
    if (inside) fail("the last case has no end");
    return cases;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(name_ + ":" + std::to_string(line_) + ": " + what);
  }

  OracleCase header(std::istringstream& words) const {
    OracleCase result;
    result.line = line_;
    if (!(words >> result.op >> result.dtype)) fail("a case needs an op and an element type");
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) fail("expected attribute=value, got '" + word + "'");
      result.attributes[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return result;
  }

  void body(const std::string& role, std::istringstream& words, OracleCase& target) const {
    if (role == "tol") {
      target.tolerance = tolerance(words);
    } else if (role == "gradtol") {
      target.gradient_tolerance = tolerance(words);
    } else if (role == "in") {
      target.inputs.push_back(array(role, words));
    } else if (role == "out") {
      target.outputs.push_back(array(role, words));
    } else if (role == "cotangent") {
      target.cotangents.push_back(array(role, words));
    } else if (role.rfind("grad", 0) == 0) {
      target.gradients.push_back(array(role, words));
    } else {
      fail("unknown line '" + role + "'");
    }
  }

  OracleTolerance tolerance(std::istringstream& words) const {
    OracleTolerance result;
    for (std::string word; words >> word;) {
      const double number = std::strtod(word.substr(word.find('=') + 1).c_str(), nullptr);
      if (word == "exact") {
        result.exact = true;
      } else if (word.rfind("ulp=", 0) == 0) {
        result.ulp = number;
      } else if (word.rfind("rtol=", 0) == 0) {
        result.rtol = number;
      } else if (word.rfind("atol=", 0) == 0) {
        result.atol = number;
      } else {
        fail("unknown tolerance '" + word + "'");
      }
    }
    return result;
  }

  OracleArray array(const std::string& role, std::istringstream& words) const {
    OracleArray result;
    std::string shape;
    std::string colon;
    result.role = role;
    if (!(words >> result.dtype >> shape >> colon) || colon != ":") fail("expected 'ROLE TYPE SHAPE : VALUES'");
    result.shape = sizes(shape);
    const bool integral = result.dtype == "Bool" || result.dtype.find("Int") != std::string::npos;
    for (std::string word; words >> word;) {
      char* rest = nullptr;
      if (integral) {
        const bool widest = result.dtype == "UInt64";  // its bits, as of a signed number
        const uint64_t bits = widest ? std::strtoull(word.c_str(), &rest, 10) : 0;
        result.integers.push_back(widest ? static_cast<int64_t>(bits) : std::strtoll(word.c_str(), &rest, 10));
        result.values.push_back(widest ? static_cast<double>(bits) : static_cast<double>(result.integers.back()));
      } else {
        result.values.push_back(std::strtod(word.c_str(), &rest));
      }
      if (*rest != '\0') fail("not a number: '" + word + "'");
    }
    size_t count = result.dtype.rfind("Complex", 0) == 0 ? 2 : 1;
    for (const int64_t size : result.shape) count *= static_cast<size_t>(size);
    if (count != result.values.size()) {
      fail("shape " + shape + " of " + result.dtype + " needs " + std::to_string(count) + " values, got " +
           std::to_string(result.values.size()));
    }
    return result;
  }

  std::vector<int64_t> sizes(const std::string& text) const {
    std::vector<int64_t> result;
    if (text == "scalar") return result;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, 'x');) {
      char* rest = nullptr;
      result.push_back(std::strtoll(word.c_str(), &rest, 10));
      if (word.empty() || *rest != '\0' || result.back() < 0) fail("not a shape: '" + text + "'");
    }
    return result;
  }

  std::istream& file_;
  std::string name_;
  int line_ = 0;
};

/// All cases of a file; throws std::runtime_error `PATH:LINE: what is wrong`.
inline std::vector<OracleCase> read_oracles(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  return OracleParser(file, path).read();
}

/// Path of a file of this folder's oracles/, e.g. oracle_path("elementwise.txt"), wherever the tests run.
inline std::string oracle_path(const std::string& file) {
  const std::string here = __FILE__;
  const size_t slash = here.find_last_of('/');
  return (slash == std::string::npos ? std::string(".") : here.substr(0, slash)) + "/oracles/" + file;
}

}  // namespace rosin::oracles
