// What is AMD's own in librosin_amdgpu.so: the HIP runtime and its compiler hipRTC. The rest is what CUDA and HIP
// share.
// Read first: driver/driver.hpp. Read next: plugin.cpp, runtime.cpp, compiler.cpp, graphs.cpp.
#pragma once

#include <string>
#include <string_view>

#include "driver/driver.hpp"
#include "driver/libraries.hpp"

namespace rosin::amdgpu {

using driver::Library;

/// Where AMD's libraries are (driver/rocm.hpp).
const driver::Places& places();

/// libamdhip64, opened once.
const Library& hip_library();

/// Whether a library was built for the HIP runtime that is open: streams of one are nothing to another.
bool is_of_this_runtime(const Library& library);

/// 60032831 is 6.0.32831, of which the first two are said.
std::string version_text(int version);

/// The functions under HIP's names, or in terms of them; the name of the first that is missing.
std::string find_functions(const Library& library, driver::Functions& all);

/// The architecture of a device with its features, "gfx90a:sramecc+:xnack-"; empty where HIP does not say it.
std::string architecture_of(int ordinal);

/// Whether that is CDNA with matrix units: 908 and later of the ninth generation.
bool is_cdna(std::string_view architecture);

/// hipRTC, opened when it is first asked for.
class Compiler {
 public:
  /// `hip_version`: of the runtime, whose major version it must have.
  explicit Compiler(int hip_version);

  /// Why it cannot be used; empty: it can.
  const std::string& reason() const { return reason_; }
  const std::string& version() const { return version_; }
  /// The code object of a program for an architecture. Throws ROSIN_COMPILE_FAILED with the log.
  std::string compile(const std::string& target, const char* text) const;

 private:
  using Program = struct OpaqueProgram*;
  void find_functions(const Library& library);
  std::string log_of(Program program) const;

  struct Functions {
    int (*version)(int* major, int* minor);
    int (*create)(Program* program, const char* text, const char* name, int headers, const char** sources,
                  const char** names);
    int (*destroy)(Program* program);
    int (*compile)(Program program, int count, const char** options);
    int (*log_bytes)(Program program, size_t* bytes);
    int (*log)(Program program, char* text);
    int (*code_bytes)(Program program, size_t* bytes);
    int (*code)(Program program, char* bytes);
  };
  Functions functions_{};
  std::string reason_, version_;
};

/// The one compiler. Throws ROSIN_UNSUPPORTED where there is no driver.
const Compiler& the_compiler();

/// Who keeps programs from one process to the next; null: nobody.
extern const rosin_host* host_of_programs;

}  // namespace rosin::amdgpu
