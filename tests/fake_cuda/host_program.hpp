// The text of kernels as a library of the host, for the stand-ins of NVRTC and hipRTC. The "binary": a mark, the
// number of bytes, then a shared library with, for each kernel NAME, fake_run_NAME(void** parameters), fake_items_NAME,
// fake_barrier_NAME and fake_sizes_NAME (bytes of each parameter, 0 for an address, -1 at the end).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fake {

constexpr std::string_view mark = FAKE_MARK;  // of the files that compiled kernels are made with
constexpr int good = 0, invalid_input = 3, invalid_program = 4, compilation_failed = 6;

struct Program {
  std::string text, log, binary;
  std::string name = "kernels.cu";  // of the text, in the log
};

/// From the text, as CUDA has it, to the binary or the log; one of the codes above. `options`: of the host's compiler.
int compile(Program& program, const std::string& options);

/// A folder for a compiler's files, which goes with the object. Empty where there is no room for one.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Whether the options in the variable say idle=1: kernels are compiled to be kept, not to be run.
bool is_idle(const char* variable);

std::string content_of(const std::filesystem::path& path);

}  // namespace fake
