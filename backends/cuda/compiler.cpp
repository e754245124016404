// NVRTC: from the text of kernels to binaries of one architecture. See cuda.hpp.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cuda.hpp"

namespace rosin::cuda {
namespace {

using driver::Failure;

/// A binary runs on drivers of the same major version or a later one.
std::vector<std::string> names_for(int driver_version) {
  std::vector<std::string> names;
  for (int major = driver_version / 1000; major >= 12; --major) names.push_back("libnvrtc.so." + std::to_string(major));
  names.push_back("libnvrtc.so.11.2");
  return names;
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Compiler::Compiler(int driver_version) {
  const Library library = open_library(names_for(driver_version));
  if (!library.handle) {
    reason_ = "NVRTC, which compiles the kernels, is missing: " + library.reason +
              " (the CUDA toolkit has it, and Python's package nvidia-cuda-nvrtc); name its folder in "
              "ROSIN_CUDA_LIBRARIES";
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
    if (!function && reason_.empty()) reason_ = std::string("NVRTC is too old: it has no ") + name;
  };
  find(functions_.version, "nvrtcVersion");
  find(functions_.architecture_count, "nvrtcGetNumSupportedArchs");
  find(functions_.architectures, "nvrtcGetSupportedArchs");
  find(functions_.create, "nvrtcCreateProgram");
  find(functions_.destroy, "nvrtcDestroyProgram");
  find(functions_.compile, "nvrtcCompileProgram");
  find(functions_.log_bytes, "nvrtcGetProgramLogSize");
  find(functions_.log, "nvrtcGetProgramLog");
  find(functions_.binary_bytes, "nvrtcGetCUBINSize");
  find(functions_.binary, "nvrtcGetCUBIN");
  find(functions_.assembly_bytes, "nvrtcGetPTXSize");
  find(functions_.assembly, "nvrtcGetPTX");
}

/// The newest architecture that the compiler knows and that is not newer than this one; 0: none.
int Compiler::newest_for(int architecture) const {
  int count = 0;
  if (functions_.architecture_count(&count) != 0 || count <= 0) return 0;
  std::vector<int> known(static_cast<size_t>(count));
  if (functions_.architectures(known.data()) != 0) return 0;
  int newest = 0;
  for (const int one : known) {
    if (one <= architecture) newest = std::max(newest, one);
  }
  return newest;
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
  const int wanted = target.starts_with("sm_") ? std::atoi(target.c_str() + 3) : 0;
  const int known = newest_for(wanted);
  if (known == 0) throw Failure{ROSIN_UNSUPPORTED, "NVRTC " + version_ + " does not compile for " + target};
  // For a device that is newer than the compiler the driver compiles assembly of the newest one that it knows.
  const bool binary = known == wanted;
  const std::string architecture = "--gpu-architecture=" + (binary ? target : "compute_" + std::to_string(known));
  const std::vector<const char*> options = {architecture.c_str(), "--std=c++17",     "--fmad=false",
                                            "--ftz=false",        "--prec-div=true", "--prec-sqrt=true"};
  Program program = nullptr;
  if (functions_.create(&program, text, "kernels.cu", 0, nullptr, nullptr) != 0) {
    throw Failure{ROSIN_COMPILE_FAILED, "NVRTC takes no program"};
  }
  const auto give_back = [this](Program made) { functions_.destroy(&made); };
  const std::unique_ptr<OpaqueProgram, decltype(give_back)> owner(program, give_back);
  if (functions_.compile(program, static_cast<int>(options.size()), options.data()) != 0) {
    throw Failure{ROSIN_COMPILE_FAILED, log_of(program)};
  }
  size_t bytes = 0;
  if ((binary ? functions_.binary_bytes : functions_.assembly_bytes)(program, &bytes) != 0 || bytes == 0) {
    throw Failure{ROSIN_COMPILE_FAILED, "NVRTC gives no code for " + target};
  }
  std::string made(bytes, '\0');
  if ((binary ? functions_.binary : functions_.assembly)(program, made.data()) != 0) {
    throw Failure{ROSIN_COMPILE_FAILED, "NVRTC gives no code for " + target};
  }
  return made;
}

}  // namespace rosin::cuda
