// One line of JSON, written field by field: results for scripts, without a library for it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace gpu_check {

class JsonLine {
 public:
  JsonLine& text(std::string_view name, std::string_view value) {
    begin(name);
    quote(value);
    return *this;
  }
  JsonLine& number(std::string_view name, double value) {
    begin(name);
    put(value);
    return *this;
  }
  JsonLine& whole(std::string_view name, int64_t value) {
    begin(name);
    line_ += std::to_string(value);
    return *this;
  }
  JsonLine& numbers(std::string_view name, const std::vector<double>& values) {
    begin(name);
    line_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) line_ += ", ";
      put(values[i]);
    }
    line_ += ']';
    return *this;
  }
  void print() const {
    std::printf("{%s}\n", line_.c_str());
    std::fflush(stdout);
  }

 private:
  void begin(std::string_view name) {
    if (!line_.empty()) line_ += ", ";
    quote(name);
    line_ += ": ";
  }
  void quote(std::string_view value) {
    line_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') line_ += '\\';
      line_ += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
    line_ += '"';
  }
  /// With all digits of a Float32, and more; JSON has no NaN and no infinity.
  void put(double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.12g", value);
    line_ += std::isfinite(value) ? digits : "null";
  }

  std::string line_;
};

}  // namespace gpu_check
