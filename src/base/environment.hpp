// The environment variables that rosin reads: one table of them, and typed access. Nothing else calls getenv.
// Read next: environment.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rosin {

/// What the environment can say, in the order of the table.
enum class Setting : uint8_t {
  autoload,
  plugin_path,
  gpu_backend,
  preferences,
  opencl_cpu,
  cache_dir,
  num_threads,
  jit,
  strict,
  sync,
  eager,
  nan_check,
  log
};

struct EnvironmentVariable {
  Setting setting;
  std::string_view name;     // "ROSIN_NUM_THREADS"
  std::string_view meaning;  // one line for people
};

/// All variables, in the order of Setting.
std::span<const EnvironmentVariable> environment_variables();

/// The value of a variable; nothing when it is unset or empty. The first call of the process warns about variables that
/// begin with ROSIN_ and are not in the table (warning `unknown-variable`).
std::optional<std::string> environment(Setting setting);

/// The value as a whole number of at least `least`; nothing when it is unset, or, with one warning
/// (`environment-value`), when it is no such number.
std::optional<int64_t> environment_number(Setting setting, int64_t least);

/// Whether a variable is meant for rosin (it begins with ROSIN_) but not in the table, and what is said about it then.
bool is_unknown_variable(std::string_view name);
std::string unknown_variable_text(std::string_view name);

}  // namespace rosin
