// NVRTC's stand-in: compiles the text of kernels for the host. See README.md. Its "binary": a mark, the
// number of bytes, then a shared library with, for each kernel NAME, fake_run_NAME(void** parameters), fake_items_NAME,
// fake_barrier_NAME and fake_sizes_NAME (bytes of each parameter, 0 for an address, -1 at the end).
// With FAKE_CUDA="nvrtc=FILE" the real NVRTC compiles each text first, for sm_75, sm_80 and sm_90, and must not even
// warn. With "idle=1" beside it, the binaries are the real ones, for the architecture that is asked for: libcuda's
// stand-in then runs no kernel.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr std::array architectures = {75, 80, 86, 89, 90, 100, 120};
constexpr std::string_view mark = "FAKECUDA";
constexpr int good = 0, invalid_input = 3, invalid_program = 4, compilation_failed = 6;

struct Program {
  std::string text, log, binary;
};

std::string replaced(const std::string& text, const std::regex& what, const std::string& by) {
  return std::regex_replace(text, what, by);
}

/// asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); becomes ptx_cvt_rn_f16_f32(y, x);
std::string without_assembler(const std::string& text) {
  static const std::regex statement(R"rx(asm(?: volatile)?\("([\w.]+)[^"]*"([^;]*)\);)rx");
  static const std::regex operand(R"rx("[=+]?\w"\((\w+)\))rx");
  std::string made;
  auto from = text.begin();
  for (std::sregex_iterator at(text.begin(), text.end(), statement), end; at != end; ++at) {
    made.append(from, text.begin() + at->position());
    from = text.begin() + at->position() + at->length();
    std::string name = (*at)[1], operands;
    for (char& c : name) c = c == '.' ? '_' : c;
    const std::string list = (*at)[2];
    for (std::sregex_iterator one(list.begin(), list.end(), operand); one != end; ++one) {
      operands += (operands.empty() ? "" : ", ") + (*one)[1].str();
    }
    made += "ptx_" + name + "(" + operands + ");";
  }
  return made.append(from, text.end());
}

/// What the stand-in of libcuda calls: see the head of this file.
std::string runner_of(const std::string& name, const std::string& items, const std::string& arguments, bool barrier) {
  static const std::regex argument(R"((const )?(\w+)(\*?)( __restrict__)? (\w+))");
  std::string call, sizes;
  int count = 0;
  for (std::sregex_iterator at(arguments.begin(), arguments.end(), argument), end; at != end; ++at, ++count) {
    const std::string type = (*at)[2], place = "p[" + std::to_string(count) + "]";
    const bool address = (*at)[3].length() > 0;
    const std::string memory = "Global<" + type + ((*at)[1].length() > 0 ? ", true>" : ">");
    call += (count > 0 ? ", " : "") + (address ? memory + "(*(u64*)" + place + ")" : "*(" + type + "*)" + place);
    sizes += (address ? "0" : "(int)sizeof(" + type + ")") + std::string(", ");
  }
  return "extern \"C\" void fake_run_" + name + "(void** p) { " + name + "(" + call + "); }\n" +
         "extern \"C\" { extern const int fake_items_" + name + " = " + items + ", fake_barrier_" + name + " = " +
         (barrier ? "1" : "0") + ", fake_sizes_" + name + "[] = {" + sizes + "-1}; }\n";
}

std::string host_text(const std::string& text) {
  static const std::regex shared(R"(__shared__ (\w+) (\w+)\[(\d+)\];)");
  static const std::regex head(R"rx(extern "C" __global__ void __launch_bounds__\((\d+)\) (\w+)\(([^)]*)\) \{)rx");
  std::string runners;
  for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at) {
    const size_t begin = static_cast<size_t>(at->position());
    const size_t next = text.find("__global__", begin + static_cast<size_t>(at->length()));
    const bool barrier = text.substr(begin, next - begin).find("__syncthreads") != std::string::npos ||
                         text.substr(begin, next - begin).find("shuffle_") != std::string::npos;
    runners += runner_of((*at)[2], (*at)[1], (*at)[3], barrier);
  }
  std::string host = without_assembler(text);
  host = replaced(host, shared, "static Shared<$1, $3> $2;");
  static const std::regex large(R"(extern __shared__[^;]*;)");
  static const std::regex large_array(R"((\w+)\* const (\w+) = \(\w+\*\)\(large_shared \+ (\d+)\);)");
  host = replaced(replaced(host, large, ""), large_array, "static LargeShared<$1, $3> $2;");
  static const std::regex vector(R"(\*\((?:const )?(\w+)\*\)\((p\d+) \+ (\w+)\))");
  host = replaced(host, vector, "$2.vector<$1>($3)");
  std::string made;
  auto from = host.cbegin();
  static const std::regex pointer(R"((\w+)\* (\w+))"), read_only(R"(const (\w+)\* __restrict__ (\w+))");
  for (std::sregex_iterator at(host.begin(), host.end(), head), end; at != end; ++at) {
    made.append(from, host.cbegin() + at->position());
    from = host.cbegin() + at->position() + at->length();
    made += "static void " + (*at)[2].str() + "(" +
            replaced(replaced((*at)[3], read_only, "Global<$1, true> $2"), pointer, "Global<$1> $2") + ") {";
  }
  made.append(from, host.cend());
  return made + runners;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "fake-nvrtc-XXXXXX").string();
    if (mkdtemp(name.data())) path = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

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

/// Whether kernels are compiled to be kept, not to be run.
bool is_idle() {
  static const bool idle = [] {
    const char* value = std::getenv("FAKE_CUDA");
    return (std::string(",") + (value ? value : "") + ",").find(",idle=1,") != std::string::npos;
  }();
  return idle;
}

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

int compile(Program& program, const std::string& options) {
  const Folder folder;
  if (folder.path.empty()) return invalid_program;
  const fs::path source = folder.path / "kernels.cpp", library = folder.path / "kernels.so", log = folder.path / "log";
  std::ofstream(source) << "#include \"" FAKE_CUDA_SOURCES "/kernel_runtime.hpp\"\n"
                        << "#include \"" FAKE_CUDA_SOURCES "/kernel_prologue.hpp\"\n#line 1 \"kernels.cu\"\n"
                        << host_text(program.text);
  const char* compiler = std::getenv("CXX");
  const std::string command = std::string(compiler && *compiler ? compiler : FAKE_CUDA_COMPILER) +
                              " -std=c++17 -O1 -w -fPIC -shared -fno-math-errno" + options + " -o " + library.string() +
                              " " + source.string() + " >" + log.string() + " 2>&1";
  const int status = std::system(command.c_str());
  program.log = content_of(log);
  if (status != 0) return compilation_failed;
  const std::string content = content_of(library);
  const uint64_t bytes = content.size();
  program.binary = std::string(mark).append(reinterpret_cast<const char*>(&bytes), sizeof bytes) + content;
  return good;
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
  if (real_library() && is_idle()) {
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
