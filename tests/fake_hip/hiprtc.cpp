// hipRTC's stand-in: HIP's words become CUDA's, which the host then compiles. See README.md.
#include <cstring>
#include <initializer_list>
#include <regex>
#include <string>
#include <utility>

#include "host_program.hpp"

#define FAKE_HIPRTC_API extern "C" __attribute__((visibility("default"))) int

using namespace fake;

namespace {

std::string cuda_text(std::string text) {
  const std::initializer_list<std::pair<std::regex, const char*>> words = {
      {std::regex(R"rx(__attribute__\(\(target\("no-packed-fp32-ops"\)\)\) )rx"), ""},
      {std::regex(R"(__attribute__\(\(global\)\) __attribute__\(\(amdgpu_flat_work_group_size\((\d+), \d+\)\)\) void)"),
       "__global__ void __launch_bounds__($1)"},
      {std::regex(R"(__attribute__\(\(shared\)\)( __attribute__\(\(aligned\(16\)\)\))?)"), "__shared__"},
      {std::regex(R"(__attribute__\(\(device\)\) __attribute__\(\(always_inline\)\))"), "__forceinline__"},
      {std::regex(R"(__builtin_amdgcn_fence[^;]*;\s*__builtin_amdgcn_s_barrier\(\);\s*__builtin_amdgcn_fence[^;]*;)"),
       "__syncthreads();"},
      {std::regex(R"(__builtin_amdgcn_fence[^;]*;)"), "__threadfence();"},
      {std::regex(R"(__hip_atomic_fetch_add\(([^,]*), 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT\))"),
       "atomicAdd($1, 1)"},
      {std::regex(R"(__builtin_amdgcn_workgroup_id_([xyz])\(\))"), "blockIdx.$1"},
      {std::regex(R"(__builtin_amdgcn_workitem_id_x\(\))"), "threadIdx.x"},
      {std::regex(R"(__builtin_amdgcn_ds_bpermute\(4 \* y, x\))"), "__shfl_sync(0xffffffffu, x, y)"},
      {std::regex(R"(typedef unsigned int words([24]) __attribute__\(\(ext_vector_type\([24]\)\)\);)"),
       "typedef uint$1 words$1;"}};
  for (const auto& [word, by] : words) text = std::regex_replace(text, word, by);
  return text;
}

/// With "idle=1" nothing runs: the "binary" is a line with the options, then the text, for another compiler.
int keep(Program& program, int count, const char** options) {
  program.binary = "//";
  for (int i = 0; i < count; ++i) program.binary += std::string(" ") + options[i];
  program.binary += "\n" + program.text;
  return good;
}

}  // namespace

FAKE_HIPRTC_API hiprtcVersion(int* major, int* minor) {
  *major = 6;
  *minor = 0;
  return good;
}

FAKE_HIPRTC_API hiprtcCreateProgram(Program** program, const char* text, const char*, int, const char**, const char**) {
  if (!program || !text) return invalid_input;
  *program = new Program{text, {}, {}};
  return good;
}

FAKE_HIPRTC_API hiprtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return good;
}

/// clang contracts within expressions unless it is told not to, for devices even across.
FAKE_HIPRTC_API hiprtcCompileProgram(Program* program, int count, const char** options) {
  std::string contract = "fast", architecture;
  for (int i = 0; i < count; ++i) {
    const std::string option(options[i]), named = "--gpu-architecture=";
    if (option == "-ffp-contract=off") contract = "off";
    if (option.starts_with(named + "gfx")) architecture = option.substr(named.size(), option.find(':') - named.size());
  }
  if (architecture.empty()) {
    program->log = "no architecture is named";
    return compilation_failed;
  }
  if (is_idle("FAKE_HIP")) return keep(*program, count, options);
  program->text = cuda_text(program->text);
  return compile(*program, " -ffp-contract=" + contract + " -D__" + architecture + "__ -DFAKE_GFX=0x" +
                               architecture.substr(std::strlen("gfx")));
}

FAKE_HIPRTC_API hiprtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return good;
}

FAKE_HIPRTC_API hiprtcGetProgramLog(Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return good;
}

FAKE_HIPRTC_API hiprtcGetCodeSize(Program* program, size_t* bytes) {
  *bytes = program->binary.size();
  return program->binary.empty() ? invalid_program : good;
}

FAKE_HIPRTC_API hiprtcGetCode(Program* program, char* bytes) {
  std::memcpy(bytes, program->binary.data(), program->binary.size());
  return program->binary.empty() ? invalid_program : good;
}
