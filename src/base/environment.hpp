// The environment variables that rosin reads: one table of them, and typed access. Nothing else reads them.
// Read next: environment.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rosin {

/// What the environment can say, in the order of the table.
enum class Setting : uint8_t {
  autoload,
  plugin_path,
  gpu_backend,
  preferences,
  opencl_cpu,
  cuda_libraries,   // read by the plug-in
  rocm_libraries,   // the same
  metal_libraries,  // the same
  tune,
  cache_dir,
  num_threads,
  strict,
  sync,
  graphs,
  jit,
  perf_map,
  jitdump,
  gdb,
  large_pages,
  eager,
  nan_check,
  log,
  rank,  // this and the next two are set by `rosin run`, and read by its transport
  world_size,
  local_fd,
  mpi_library,  // read by the transport
  mpi_gpu_aware,
  nccl_library,  // this and the next ones are read by transports
  rccl_library,
  master
};

struct EnvironmentVariable {
  Setting setting;
  std::string_view name;     // "ROSIN_NUM_THREADS"
  std::string_view meaning;  // one line for people
  std::string_view when_unset;
};

/// All variables, in the order of Setting.
std::span<const EnvironmentVariable> environment_variables();

/// The value of a variable; nothing when it is unset or empty. The first call of the process warns about variables that
/// begin with ROSIN_ and are not in the table (warning `unknown-variable`), and about a ROSIN_LOG that says nothing.
std::optional<std::string> environment(Setting setting);

/// The value as a whole number of at least `least`; nothing when it is unset, or, with one warning
/// (`environment-value`), when it is no such number.
std::optional<int64_t> environment_number(Setting setting, int64_t least);

/// The value of a switch, "0" or "1"; nothing when it is unset, or, with one warning (`environment-value`), otherwise.
std::optional<bool> environment_switch(Setting setting);

/// The folders of ROSIN_PLUGIN_PATH. Relative and empty elements are left out with a warning (`plugin-path`), all of
/// them in a process that runs with more rights than its user has (AT_SECURE).
std::vector<std::string> plugin_folders();

/// ROSIN_CACHE_DIR. A relative folder counts as unset with a warning (`cache-folder`), as does any in a process that
/// runs with more rights than its user has (AT_SECURE).
std::optional<std::string> cache_dir_setting();

/// Where rosin may keep what it can make again: `rosin` in the user's folder for that (platform/environment.hpp).
std::optional<std::string> user_cache_folder();

/// What started this process as one of several, by the variables that it leaves: `rosin run`, or an mpiexec or Slurm.
enum class Launcher : uint8_t { none, rosin, mpi };
Launcher launcher();

/// Whether a variable is meant for rosin (it begins with ROSIN_) but not in the table, and what is said about it then.
bool is_unknown_variable(std::string_view name);
std::string unknown_variable_text(std::string_view name);

}  // namespace rosin
