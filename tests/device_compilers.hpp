// The compilers of GPU vendors, as far as they are on this machine, for compiling kernels with no GPU. None is linked.
// compile() runs in a child process, as some compilers crash on what they do not know. Read next: device_text_test.cpp.
#pragma once

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/text.hpp"

#if __has_include(<msl.hpp>)
#include <msl.hpp>
#define ROSIN_HAS_FAKE_METAL
#endif

namespace rosin::compilers {

/// What came of a call: empty text where all went well.
struct Compiler {
  const char* name;
  kernels::Language language;
  /// Why it is not here, or an empty text.
  std::string (*missing)(const std::string& target);
  /// Compiles the text; the log where it fails.
  std::string (*compile)(const std::string& text, const std::string& target);
};

/// Runs f in a child process; what f returned, or how the child ended.
inline std::string in_child(const std::function<std::string()>& f, int seconds) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return "pipe failed";
  const pid_t child = fork();
  if (child < 0) return "fork failed";
  if (child == 0) {
    close(pipe_ends[0]);
    const std::string said = f();
    for (size_t sent = 0; sent < said.size();) {
      const ssize_t count = write(pipe_ends[1], said.data() + sent, said.size() - sent);
      if (count <= 0) _exit(2);
      sent += static_cast<size_t>(count);
    }
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string said;
  pollfd end{pipe_ends[0], POLLIN, 0};
  bool late = false;
  for (char part[4096];;) {
    late = poll(&end, 1, seconds * 1000) <= 0;
    const ssize_t count = late ? 0 : read(pipe_ends[0], part, sizeof part);
    if (count <= 0) break;
    said.append(part, static_cast<size_t>(count));
  }
  close(pipe_ends[0]);
  if (late) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (late) return "stopped after " + std::to_string(seconds) + " s";
  if (WIFSIGNALED(status)) return "crashed with signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? said : "ended with status " + std::to_string(WEXITSTATUS(status));
}

inline void* open_first(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

/// NVRTC and hipRTC have the same functions under two names.
class RuntimeCompiler {
 public:
  RuntimeCompiler(void* library, const std::string& prefix)
      : create_(find<Create>(library, prefix + "CreateProgram")),
        compile_(find<Compile>(library, prefix + "CompileProgram")),
        log_size_(find<LogSize>(library, prefix + "GetProgramLogSize")),
        log_(find<Log>(library, prefix + "GetProgramLog")) {}

  std::string compile(const std::string& text, const std::vector<const char*>& options) const {
    void* program = nullptr;
    if (create_(&program, text.c_str(), "kernels", 0, nullptr, nullptr) != 0) return "CreateProgram failed";
    const int code = compile_(program, static_cast<int>(options.size()), options.data());
    if (code == 0) return "";
    size_t bytes = 0;
    log_size_(program, &bytes);
    std::string log(bytes, ' ');
    log_(program, log.data());
    return "error " + std::to_string(code) + ": " + log;
  }

 private:
  using Create = int (*)(void**, const char*, const char*, int, const char* const*, const char* const*);
  using Compile = int (*)(void*, int, const char* const*);
  using LogSize = int (*)(void*, size_t*);
  using Log = int (*)(void*, char*);
  template <class F> static F find(void* library, const std::string& name) {
    return reinterpret_cast<F>(dlsym(library, name.c_str()));
  }
  Create create_;
  Compile compile_;
  LogSize log_size_;
  Log log_;
};

inline void* nvrtc() {
  static void* const library = open_first(
      {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so"});
  return library;
}

/// hipRTC of ROCm 5, which lies inside the HIP runtime, or its own library.
inline void* hiprtc() { return open_first({"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.5"}); }

inline std::string nvrtc_missing(const std::string& target) {
  if (!nvrtc()) return "libnvrtc.so, of the CUDA toolkit, is not installed";
  const auto count_of = reinterpret_cast<int (*)(int*)>(dlsym(nvrtc(), "nvrtcGetNumSupportedArchs"));
  const auto list = reinterpret_cast<int (*)(int*)>(dlsym(nvrtc(), "nvrtcGetSupportedArchs"));
  if (!count_of || !list) return "";  // older than 11.2
  int count = 0;
  count_of(&count);
  std::vector<int> numbers(static_cast<size_t>(count));
  list(numbers.data());
  for (const int number : numbers)
    if ("sm_" + std::to_string(number) == target) return "";
  return "this NVRTC no longer, or not yet, compiles for " + target;
}

inline std::string nvrtc_compile(const std::string& text, const std::string& target) {
  const std::string architecture = "--gpu-architecture=" + target;
  return RuntimeCompiler(nvrtc(), "nvrtc").compile(text, {architecture.c_str(), "--fmad=false", "--std=c++17"});
}

/// Loaded in a child, as loading the HIP runtime starts threads.
inline std::string hiprtc_missing(const std::string&) {
  return in_child([] { return hiprtc() ? "" : "neither libhiprtc.so nor libamdhip64.so.5 is installed"; }, 60);
}

inline std::string hiprtc_compile(const std::string& text, const std::string& target) {
  const std::string architecture = "--gpu-architecture=" + target;
  return RuntimeCompiler(hiprtc(), "hiprtc").compile(text, {architecture.c_str(), "-O3", "-ffp-contract=off"});
}

inline std::string clang_missing(const std::string&) {
  return std::system("command -v clang-19 >/dev/null") == 0 ? "" : "clang-19 is not installed";
}

inline std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// To assembly, which needs no linker for the device.
inline std::string clang_compile(const std::string& text, const std::string& target) {
  std::string folder = (std::filesystem::temp_directory_path() / "kernels-XXXXXX").string();
  if (!mkdtemp(folder.data())) return "no temporary folder";
  const std::string source = folder + "/kernels.hip", log = folder + "/log";
  std::ofstream(source) << text;
  const std::string command = "clang-19 -x hip --offload-arch=" + target +
                              " --cuda-device-only -nogpuinc -nogpulib -O3 -ffp-contract=off -S " + source + " -o " +
                              folder + "/kernels.s >" + log + " 2>&1";
  const bool good = std::system(command.c_str()) == 0;
  const std::string said = good ? "" : "clang-19 failed: " + read_all(log);
  std::filesystem::remove_all(folder);
  return said;
}

/// Apple's compiler is not to be had here: what clang knows of Metal's language, as tests/fake_metal tells it.
inline std::string metal_missing(const std::string&) {
#ifdef ROSIN_HAS_FAKE_METAL
  return *FAKE_METAL_CLANG ? "" : "no clang is installed";
#else
  return "there is no stand-in of Metal on this system";
#endif
}

inline std::string metal_compile([[maybe_unused]] const std::string& text, const std::string&) {
#ifdef ROSIN_HAS_FAKE_METAL
  return fake_metal::errors_of(text);
#else
  return "";
#endif
}

inline constexpr Compiler nvrtc_compiler{"NVRTC", kernels::Language::cuda, nvrtc_missing, nvrtc_compile};
inline constexpr Compiler hiprtc_compiler{"hipRTC", kernels::Language::hip, hiprtc_missing, hiprtc_compile};
inline constexpr Compiler clang_compiler{"clang", kernels::Language::hip, clang_missing, clang_compile};
inline constexpr Compiler metal_compiler{"Metal", kernels::Language::metal, metal_missing, metal_compile};

}  // namespace rosin::compilers
