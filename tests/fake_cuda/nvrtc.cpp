// NVRTC's stand-in: compiles the text of kernels for the host, see host_program.hpp.
// With FAKE_CUDA="nvrtc=FILE" the real NVRTC compiles each text first, for sm_75, sm_80 and sm_90, and must not even
// warn. With "idle=1" beside it, the binaries are the real ones, for the architecture that is asked for: libcuda's
// stand-in then runs no kernel.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "host_program.hpp"

using namespace fake;

namespace {

constexpr std::array architectures = {75, 80, 86, 89, 90, 100, 120};

/// The real library that FAKE_CUDA names, or null.
void* real_library() {
  static void* const library = []() -> void* {
    const char* value = std::getenv("FAKE_CUDA");
    const std::string given = std::string(",") + (value ? value : "");
    const size_t at = given.find(",nvrtc=");
    if (at == given.npos) return nullptr;
    const size_t begin = at + std::strlen(",nvrtc=");
    const std::string path = given.substr(begin, given.find(',', begin) - begin);
    // The name alone is this library's own.
    void* opened = path.starts_with('/') ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!opened) std::fprintf(stderr, "fake NVRTC: %s does not open\n", path.c_str());
    return opened;
  }();
  return library;
}

template <class F> F real(const char* name) { return reinterpret_cast<F>(dlsym(real_library(), name)); }

/// What the real NVRTC says of a program for one architecture: empty where it makes a binary, which may be wanted, and
/// warns of nothing.
std::string verdict_of_real(const std::string& text, std::vector<const char*> options, std::string* made = nullptr) {
  // Generated text has variables that nobody reads, and compares unsigned numbers with zero.
  options.push_back("--diag-suppress=177,186");
  void* program = nullptr;
  if (real<int (*)(void**, const char*, const char*, int, void*, void*)>("nvrtcCreateProgram")(
          &program, text.c_str(), "kernels.cu", 0, nullptr, nullptr) != good) {
    return "the real NVRTC takes no program";
  }
  const int code = real<int (*)(void*, int, const char* const*)>("nvrtcCompileProgram")(
      program, static_cast<int>(options.size()), options.data());
  size_t bytes = 0, binary = 0;
  real<int (*)(void*, size_t*)>("nvrtcGetProgramLogSize")(program, &bytes);
  std::string log(bytes, '\0');
  if (bytes > 0) real<int (*)(void*, char*)>("nvrtcGetProgramLog")(program, log.data());
  log = log.c_str();
  if (code == good) real<int (*)(void*, size_t*)>("nvrtcGetCUBINSize")(program, &binary);
  if (made && binary > 0) {
    made->resize(binary);
    real<int (*)(void*, char*)>("nvrtcGetCUBIN")(program, made->data());
  }
  real<int (*)(void**)>("nvrtcDestroyProgram")(&program);
  if (code == good && binary > 0 && log.empty()) return {};
  return "the real NVRTC, code " + std::to_string(code) + ": " + log;
}

/// The same for each of the architectures that differ, with the options of the call otherwise.
std::string verdict_of_real(const std::string& text, int count, const char* const* options) {
  std::string said;
  for (const int architecture : {75, 80, 90}) {
    const std::string named = "--gpu-architecture=sm_" + std::to_string(architecture);
    std::vector<const char*> all(options, options + count);
    for (const char*& option : all) {
      if (std::string_view(option).starts_with("--gpu-architecture=")) option = named.c_str();
    }
    if (said.empty()) said = verdict_of_real(text, std::move(all));
  }
  return said;
}

/// What the options mean to the host's compiler: NVRTC contracts unless it is told not to.
std::string host_options(int count, const char* const* options) {
  std::string contract = "fast", architecture = "750";
  for (int i = 0; i < count; ++i) {
    const std::string_view option(options[i]);
    if (option == "--fmad=false") contract = "off";
    const size_t number = option.find_last_of('_');
    if (option.starts_with("--gpu-architecture=")) architecture = std::string(option.substr(number + 1)) + "0";
  }
  return " -ffp-contract=" + contract + " -D__CUDA_ARCH__=" + architecture;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int nvrtcVersion(int* major, int* minor) {
  if (real_library()) return real<int (*)(int*, int*)>("nvrtcVersion")(major, minor);
  *major = 13;
  *minor = 0;
  return good;
}

__attribute__((visibility("default"))) int nvrtcGetNumSupportedArchs(int* count) {
  if (real_library()) return real<int (*)(int*)>("nvrtcGetNumSupportedArchs")(count);
  *count = static_cast<int>(architectures.size());
  return good;
}

__attribute__((visibility("default"))) int nvrtcGetSupportedArchs(int* list) {
  if (real_library()) return real<int (*)(int*)>("nvrtcGetSupportedArchs")(list);
  std::copy(architectures.begin(), architectures.end(), list);
  return good;
}

__attribute__((visibility("default"))) int nvrtcCreateProgram(Program** program, const char* text, const char*, int,
                                                              const char* const*, const char* const*) {
  if (!program || !text) return invalid_input;
  *program = new Program{text, {}, {}};
  return good;
}

__attribute__((visibility("default"))) int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return good;
}

__attribute__((visibility("default"))) int nvrtcCompileProgram(Program* program, int count,
                                                               const char* const* options) {
  for (int i = 0; i < count; ++i) {
    if (options[i][0] != '-') return invalid_input;
  }
  if (real_library() && is_idle("FAKE_CUDA")) {
    program->log = verdict_of_real(program->text, {options, options + count}, &program->binary);
    return program->log.empty() ? good : compilation_failed;
  }
  if (real_library()) program->log = verdict_of_real(program->text, count, options);
  return program->log.empty() ? compile(*program, host_options(count, options)) : compilation_failed;
}

__attribute__((visibility("default"))) int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return good;
}

__attribute__((visibility("default"))) int nvrtcGetProgramLog(Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return good;
}

__attribute__((visibility("default"))) int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  *bytes = program->binary.size();
  return program->binary.empty() ? invalid_program : good;
}

__attribute__((visibility("default"))) int nvrtcGetCUBIN(Program* program, char* bytes) {
  std::memcpy(bytes, program->binary.data(), program->binary.size());
  return program->binary.empty() ? invalid_program : good;
}

__attribute__((visibility("default"))) int nvrtcGetPTXSize(Program* program, size_t* bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}

__attribute__((visibility("default"))) int nvrtcGetPTX(Program* program, char* bytes) {
  return nvrtcGetCUBIN(program, bytes);
}

}  // extern "C"
