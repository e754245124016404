// For tests of math modes: the program's mode for a while, and names.
#pragma once

#include <string>

#include <rosin/math_mode.hpp>

namespace rosin {

/// The program's mode, until the test ends.
class ProgramMode {
 public:
  explicit ProgramMode(MathMode mode) : before_(math_mode()) { math_mode(mode); }
  ~ProgramMode() { math_mode(before_); }
  ProgramMode(const ProgramMode&) = delete;
  ProgramMode& operator=(const ProgramMode&) = delete;

 private:
  MathMode before_;
};

inline constexpr MathMode math_modes[] = {MathMode::exact, MathMode::standard, MathMode::fast};

inline std::string name_of(MathMode mode) {
  constexpr const char* names[] = {"usual", "exact", "standard", "fast"};
  return names[static_cast<int>(mode)];
}

}  // namespace rosin
