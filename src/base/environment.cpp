// The table of ROSIN_* variables, and the one place that reads the environment.
#include "base/environment.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <utility>

#include <rosin/log.hpp>

#include "base/nearest.hpp"
#include "platform/environment.hpp"
#include "platform/paths.hpp"

namespace rosin {
namespace {

constexpr std::array<EnvironmentVariable, 30> table = {{
    {Setting::autoload, "ROSIN_AUTOLOAD", "0: plug-ins are loaded by `use` alone", "1"},
    {Setting::plugin_path, "ROSIN_PLUGIN_PATH", "absolute folders, parted by `:`, that may hold plug-ins",
     "the folder beside librosin alone"},
    {Setting::gpu_backend, "ROSIN_GPU_BACKEND", "the back end to choose; beats preference files", "what a file says"},
    {Setting::preferences, "ROSIN_PREFERENCES", "the preference file", "the places named above"},
    {Setting::opencl_cpu, "ROSIN_OPENCL_CPU", "1: OpenCL devices of type CPU may be chosen", "0"},
    {Setting::cuda_libraries, "ROSIN_CUDA_LIBRARIES",
     "absolute folders, parted by `:`, where CUDA's driver and libraries are looked for first", "see [CUDA](cuda.md)"},
    {Setting::rocm_libraries, "ROSIN_ROCM_LIBRARIES",
     "absolute folders, parted by `:`, where HIP, hipRTC and AMD's libraries are looked for first",
     "see [AMDGPU](amdgpu.md)"},
    {Setting::metal_libraries, "ROSIN_METAL_LIBRARIES",
     "absolute folders, parted by `:`, where Metal and the Objective-C runtime are looked for first",
     "see [Metal](metal.md)"},
    {Setting::tune, "ROSIN_TUNE", "1: algorithms of a vendor's library are timed once, the fastest is taken", "0"},
    {Setting::cache_dir, "ROSIN_CACHE_DIR", "folder for compiled kernels", "`rosin` in the user's cache folder"},
    {Setting::num_threads, "ROSIN_NUM_THREADS", "threads that compute on the CPU; results do not depend on it",
     "one for each core that the process may use"},
    {Setting::strict, "ROSIN_STRICT", "1: what layers convert with a warning is an error; see `set_strict`", "0"},
    {Setting::sync, "ROSIN_SYNC", "1: launches one by one, so that a device fault names its op", "0"},
    {Setting::graphs, "ROSIN_GRAPHS", "0: never launches a whole step as one graph of the device", "1"},
    {Setting::jit, "ROSIN_JIT",
     "0: the CPU's kernels and convolutions are no machine code of the library's own, but compiled loops and other "
     "engines; `avx2`: none of it is AVX-512; the same bits but of convolutions, whose sums have another order",
     "1"},
    {Setting::perf_map, "ROSIN_PERF_MAP",
     "1: names of machine code that is written at run time go to `/tmp/perf-PID.map`, for `perf report`", "0"},
    {Setting::jitdump, "ROSIN_JITDUMP",
     "1: such code and its names go to `jit-PID.dump` in the working folder, for `perf annotate`", "0"},
    {Setting::gdb, "ROSIN_GDB", "1: gdb knows the names and frames of such code", "0"},
    {Setting::large_pages, "ROSIN_LARGE_PAGES",
     "1: on Linux, memory of 8 MB and more asks for pages of 2 MB; see [performance](performance.md)", "0"},
    {Setting::eager, "ROSIN_EAGER", "1: every op is evaluated at its call, so that an error is thrown there", "0"},
    {Setting::nan_check, "ROSIN_NAN_CHECK", "1: the same, and an op whose result has NaN is an error that names it",
     "0"},
    {Setting::log, "ROSIN_LOG", "notices on stderr: `info` (all), `warning` or `none`", "`info`"},
    {Setting::rank, "ROSIN_RANK", "the number of this process; set by `rosin run`", "alone"},
    {Setting::world_size, "ROSIN_WORLD_SIZE", "how many processes there are; set by `rosin run`", "alone"},
    {Setting::local_fd, "ROSIN_LOCAL_FD", "set by `rosin run`: the memory that the processes share", "alone"},
    {Setting::mpi_library, "ROSIN_MPI_LIBRARY", "the file of the MPI library for `MPIBackend`", "that of the launcher"},
    {Setting::mpi_gpu_aware, "ROSIN_MPI_GPU_AWARE",
     "1: MPI gets arrays of CUDA devices as they lie there; beats preference files", "what a file says"},
    {Setting::nccl_library, "ROSIN_NCCL_LIBRARY", "the file of NCCL for `NCCLBackend`", "`libnccl.so.2`"},
    {Setting::rccl_library, "ROSIN_RCCL_LIBRARY", "the file of RCCL for `NCCLBackend` on AMD's GPUs", "`librccl.so.1`"},
    {Setting::master, "ROSIN_MASTER", "`host:port` of rank 0, for ranks that no launcher joins; see `ROSIN_RANK`",
     "none"},
}};

const EnvironmentVariable& entry(Setting setting) { return table[static_cast<size_t>(setting)]; }

void warn_about_value(Setting setting, const std::string& expected, const std::string& value) {
  const std::string name(entry(setting).name);
  warn_once("environment-value",
            "environment: " + name + " must be " + expected + "; got \"" + value + "\", which is ignored", name);
}

void check_variables() {
  for (const std::string& name : platform::environment_names()) {
    if (is_unknown_variable(name)) warn_once("unknown-variable", unknown_variable_text(name), name);
  }
  const std::string level = environment(Setting::log).value_or("info");
  if (level != "info" && level != "warning" && level != "none") {
    warn_about_value(Setting::log, "info, warning or none", level);
  }
}

/// Variables with these beginnings are read by others: the reference back end, the tests (two name folders with files
/// for them), the benchmarks.
bool is_read_by_others(std::string_view name) {
  constexpr std::string_view beginnings[] = {"ROSIN_REFERENCE", "ROSIN_TEST_", "ROSIN_BENCH_", "ROSIN_FILES",
                                             "ROSIN_DATA"};
  return std::any_of(std::begin(beginnings), std::end(beginnings), [&](auto text) { return name.starts_with(text); });
}

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return table; }

bool is_unknown_variable(std::string_view name) {
  return name.starts_with("ROSIN_") && !is_read_by_others(name) &&
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
  // A flag, not call_once: the log asks for ROSIN_LOG while the check is warning.
  static std::atomic<bool> checked{false};
  if (!checked.exchange(true)) check_variables();
  std::optional<std::string> value = platform::environment_value(entry(setting).name.data());
  if (value && value->empty()) value.reset();
  return value;
}

std::optional<int64_t> environment_number(Setting setting, int64_t least) {
  const std::optional<std::string> text = environment(setting);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= least) return value;
  warn_about_value(setting, "a whole number of at least " + std::to_string(least), *text);
  return std::nullopt;
}

std::optional<bool> environment_switch(Setting setting) {
  const std::optional<std::string> text = environment(setting);
  if (!text) return std::nullopt;
  if (*text == "0" || *text == "1") return *text == "1";
  warn_about_value(setting, "0 or 1", *text);
  return std::nullopt;
}

Launcher launcher() {
  if (environment(Setting::local_fd)) return Launcher::rosin;
  constexpr const char* left_by_mpi[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK",
                                         "MPI_LOCALNRANKS"};
  const bool is_mpi = std::any_of(std::begin(left_by_mpi), std::end(left_by_mpi),
                                  [](const char* name) { return platform::environment_value(name).has_value(); });
  return is_mpi ? Launcher::mpi : Launcher::none;
}

std::vector<std::string> plugin_folders() {
  std::vector<std::string> folders;
  const std::optional<std::string> path = environment(Setting::plugin_path);
  if (!path) return folders;
  if (platform::has_more_rights_than_its_user()) {
    warn_once("plugin-path", "environment: ROSIN_PLUGIN_PATH is ignored in a program with more rights than its user");
    return folders;
  }
  for (size_t begin = 0; begin <= path->size();) {
    const size_t end = std::min(path->find(platform::path_list_separator, begin), path->size());
    std::string folder = path->substr(begin, end - begin);
    begin = end + 1;
    if (platform::is_absolute(folder)) {
      folders.push_back(std::move(folder));
      continue;
    }
    const std::string what = folder.empty() ? "an empty element" : "the relative folder \"" + folder + "\"";
    warn_once("plugin-path",
              "environment: ROSIN_PLUGIN_PATH takes absolute folders; got " + what + ", which is ignored", folder);
  }
  return folders;
}

std::optional<std::string> cache_dir_setting() {
  std::optional<std::string> folder = environment(Setting::cache_dir);
  if (!folder) return std::nullopt;
  if (platform::has_more_rights_than_its_user()) {
    warn_once("cache-folder", "environment: ROSIN_CACHE_DIR is ignored in a program with more rights than its user");
    return std::nullopt;
  }
  if (platform::is_absolute(*folder)) return folder;
  warn_once("cache-folder",
            "environment: ROSIN_CACHE_DIR must be an absolute folder; got \"" + *folder + "\", which is ignored",
            *folder);
  return std::nullopt;
}

std::optional<std::string> user_cache_folder() {
  std::optional<std::string> folder = platform::remade_files_folder();
  if (folder) folder->append("/rosin");
  return folder;
}

}  // namespace rosin
