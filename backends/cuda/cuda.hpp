// What is CUDA's own in librosin_cuda.so: its driver, its compiler, its libraries. The rest is what CUDA and HIP share.
// Read first: driver/driver.hpp. Read next: plugin.cpp, compiler.cpp.
#pragma once

#include <string>

#include "driver/driver.hpp"
#include "libraries.hpp"

namespace rosin::cuda {

/// libcuda, opened once.
const Library& driver_library();

/// That of the driver: what other libraries are made of must run there. 12080 is 12.8.
int driver_version();
std::string version_text(int version);

/// NVRTC, opened when it is first asked for. `driver_version`: what it compiles must run there.
class Compiler {
 public:
  explicit Compiler(int driver_version);

  /// Why it cannot be used; empty: it can.
  const std::string& reason() const { return reason_; }
  const std::string& version() const { return version_; }
  /// The binary of a program for a target such as "sm_90". Throws ROSIN_COMPILE_FAILED with the log.
  std::string compile(const std::string& target, const char* text) const;

 private:
  struct Functions;
  using Program = struct OpaqueProgram*;
  void find_functions(const Library& library);
  int newest_for(int architecture) const;
  std::string log_of(Program program) const;

  struct Functions {
    int (*version)(int* major, int* minor);
    int (*architecture_count)(int* count);
    int (*architectures)(int* list);
    int (*create)(Program* program, const char* text, const char* name, int headers, const char* const* sources,
                  const char* const* names);
    int (*destroy)(Program* program);
    int (*compile)(Program program, int count, const char* const* options);
    int (*log_bytes)(Program program, size_t* bytes);
    int (*log)(Program program, char* text);
    int (*binary_bytes)(Program program, size_t* bytes);
    int (*binary)(Program program, char* bytes);
    int (*assembly_bytes)(Program program, size_t* bytes);
    int (*assembly)(Program program, char* text);
  };
  Functions functions_{};
  std::string reason_, version_;
};

/// The one compiler. Throws ROSIN_UNSUPPORTED where there is no driver.
const Compiler& the_compiler();

}  // namespace rosin::cuda
