// The table of ROSIN_* variables, and the one place that reads the environment.
#include "base/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <vector>

#include <rosin/log.hpp>

#include "base/nearest.hpp"

extern char** environ;

namespace rosin {
namespace {

constexpr std::array<EnvironmentVariable, 13> table = {{
    {Setting::autoload, "ROSIN_AUTOLOAD", "0: plug-ins are found only after use(\"NAME\")"},
    {Setting::plugin_path, "ROSIN_PLUGIN_PATH", "absolute folders, parted by ':', that hold plug-ins beside lib/rosin"},
    {Setting::gpu_backend, "ROSIN_GPU_BACKEND", "the back end to choose; beats preference files"},
    {Setting::preferences, "ROSIN_PREFERENCES", "the preference file to read"},
    {Setting::opencl_cpu, "ROSIN_OPENCL_CPU", "1: OpenCL devices of type CPU may be chosen"},
    {Setting::cache_dir, "ROSIN_CACHE_DIR", "folder for compiled kernels"},
    {Setting::num_threads, "ROSIN_NUM_THREADS", "threads that compute on the CPU; results do not depend on it"},
    {Setting::jit, "ROSIN_JIT", "0: kernels are interpreted"},
    {Setting::strict, "ROSIN_STRICT", "1: conversions that are warned about are errors"},
    {Setting::sync, "ROSIN_SYNC", "1: launches one by one, so that a device fault names its op"},
    {Setting::eager, "ROSIN_EAGER", "1: every op is computed when it is called"},
    {Setting::nan_check, "ROSIN_NAN_CHECK", "1: the first op with a NaN or Inf result is named"},
    {Setting::log, "ROSIN_LOG", "what is written to stderr: warning, info or none"},
}};

const EnvironmentVariable& entry(Setting setting) { return table[static_cast<size_t>(setting)]; }

void warn_about_unknown_variables() {
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = text.substr(0, text.find('='));
    if (is_unknown_variable(name)) warn_once("unknown-variable", unknown_variable_text(name), name);
  }
}

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return table; }

bool is_unknown_variable(std::string_view name) {
  return name.starts_with("ROSIN_") &&
         std::none_of(table.begin(), table.end(), [&](const EnvironmentVariable& known) { return known.name == name; });
}

std::string unknown_variable_text(std::string_view name) {
  std::vector<std::string_view> names;
  for (const EnvironmentVariable& known : table) names.push_back(known.name);
  std::string text("environment: rosin reads no variable ");
  text.append(name);
  const std::string_view meant = nearest_name(name, names);
  if (!meant.empty()) text.append("; did you mean ").append(meant).append("?");
  return text;
}

std::optional<std::string> environment(Setting setting) {
  static std::once_flag checked;
  std::call_once(checked, warn_about_unknown_variables);
  const char* value = std::getenv(entry(setting).name.data());
  if (!value || !*value) return std::nullopt;
  return value;
}

std::optional<int64_t> environment_number(Setting setting, int64_t least) {
  const std::optional<std::string> text = environment(setting);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= least) return value;
  const std::string name(entry(setting).name);
  warn_once("environment-value",
            "environment: " + name + " must be a whole number of at least " + std::to_string(least) + "; got \"" +
                *text + "\", which is ignored",
            name);
  return std::nullopt;
}

}  // namespace rosin
