// hipRTC: from the text of kernels to code objects of one architecture. See hip.hpp.
#include <memory>
#include <vector>

#include "amdgpu/hip.hpp"

namespace rosin::amdgpu {

using driver::Failure;

std::string version_text(int version) {
  return std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100);
}

/// ROCm 5 has hipRTC inside of the runtime too.
Compiler::Compiler(int hip_version) {
  const std::string name = "libhiprtc.so." + std::to_string(hip_version / 10000000);
  Library library = open_library(places(), {name});
  if (!library.handle && hip_library().find("hiprtcCreateProgram")) library = hip_library();
  if (!library.handle) {
    reason_ = "hipRTC, which compiles the kernels, is missing: " + library.reason +
              " (ROCm's package hip-runtime-amd has it); name its folder in ROSIN_ROCM_LIBRARIES";
    return;
  }
  find_functions(library);
  int major = 0, minor = 0;
  if (reason_.empty() && functions_.version(&major, &minor) == 0) {
    version_ = std::to_string(major) + "." + std::to_string(minor);
  }
}

void Compiler::find_functions(const Library& library) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    if (!function && reason_.empty()) reason_ = std::string("hipRTC is too old: it has no ") + name;
  };
  find(functions_.version, "hiprtcVersion");
  find(functions_.create, "hiprtcCreateProgram");
  find(functions_.destroy, "hiprtcDestroyProgram");
  find(functions_.compile, "hiprtcCompileProgram");
  find(functions_.log_bytes, "hiprtcGetProgramLogSize");
  find(functions_.log, "hiprtcGetProgramLog");
  find(functions_.code_bytes, "hiprtcGetCodeSize");
  find(functions_.code, "hiprtcGetCode");
}

std::string Compiler::log_of(Program program) const {
  size_t bytes = 0;
  if (functions_.log_bytes(program, &bytes) != 0 || bytes == 0) return "the compiler gives no log";
  std::string log(bytes, '\0');
  functions_.log(program, log.data());
  return log.c_str();  // without the zero at its end
}

std::string Compiler::compile(const std::string& target, const char* text) const {
  if (!reason_.empty()) throw Failure{ROSIN_UNSUPPORTED, reason_};
  const std::string architecture = "--gpu-architecture=" + target;
  std::vector<const char*> options = {architecture.c_str(), "-std=c++17", "-O3", "-ffp-contract=off", "-fno-fast-math"};
  Program program = nullptr;
  if (functions_.create(&program, text, "kernels.hip", 0, nullptr, nullptr) != 0) {
    throw Failure{ROSIN_COMPILE_FAILED, "hipRTC takes no program"};
  }
  const auto give_back = [this](Program made) { functions_.destroy(&made); };
  const std::unique_ptr<OpaqueProgram, decltype(give_back)> owner(program, give_back);
  if (functions_.compile(program, static_cast<int>(options.size()), options.data()) != 0) {
    throw Failure{ROSIN_COMPILE_FAILED, log_of(program)};
  }
  size_t bytes = 0;
  std::string made;
  if (functions_.code_bytes(program, &bytes) == 0) made.resize(bytes);
  if (made.empty() || functions_.code(program, made.data()) != 0) {
    throw Failure{ROSIN_COMPILE_FAILED, "hipRTC gives no code for " + target};
  }
  return made;
}

}  // namespace rosin::amdgpu
