// See host_program.hpp.
#include "host_program.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace fake {
namespace {

namespace fs = std::filesystem;

std::string replaced(const std::string& text, const std::regex& what, const std::string& by) {
  return std::regex_replace(text, what, by);
}

/// asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); becomes ptx_cvt_rn_f16_f32(y, x);
std::string without_assembler(const std::string& text) {
  static const std::regex statement(R"rx(asm(?: volatile)?\("([\w.]+)[^"]*"(?:\s*"[^"]*")*([^;]*)\);)rx");
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
  static const std::regex shared(R"(__shared__ (?:__align__\(16\) )?(\w+) (\w+)\[(\d+)\];)");
  static const std::regex head(
      R"rx(extern "C" __global__ void __launch_bounds__\((\d+)(?:, \d+)?\) (\w+)\(([^)]*)\) \{)rx");
  std::string runners;
  for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at) {
    const size_t begin = static_cast<size_t>(at->position());
    const size_t next = text.find("__global__", begin + static_cast<size_t>(at->length()));
    const bool barrier = text.substr(begin, next - begin).find("__syncthreads") != std::string::npos ||
                         text.substr(begin, next - begin).find("shuffle_") != std::string::npos ||
                         text.substr(begin, next - begin).find("matrices_") != std::string::npos ||
                         text.substr(begin, next - begin).find("group_barrier") != std::string::npos ||
                         text.substr(begin, next - begin).find("arrives_last") != std::string::npos;
    runners += runner_of((*at)[2], (*at)[1], (*at)[3], barrier);
  }
  std::string host = without_assembler(text);
  host = replaced(host, shared, "static Shared<$1, $3> $2;");
  static const std::regex large(R"(extern __shared__[^;]*;)");
  static const std::regex large_array(R"((\w+)\* const (\w+) = \(\w+\*\)\(large_shared \+ (\d+)\);)");
  host = replaced(replaced(host, large, ""), large_array, "static LargeShared<$1, $3> $2;");
  static const std::regex counters(R"(\(i32\* counters)");
  host = replaced(host, counters, "(Global<i32> counters");
  static const std::regex vector(R"(\*\((?:const )?(\w+)\*\)\(([pqs]\d+) \+ (\w+)\))");
  host = replaced(host, vector, "$2.vector<$1>($3)");
  static const std::regex chosen(R"((?:const )?(\w+)\* (q\d+) = )");
  host = replaced(host, chosen, "Global<$1> $2 = ");
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

}  // namespace

bool is_idle(const char* variable) {
  const char* value = std::getenv(variable);
  return (std::string(",") + (value ? value : "") + ",").find(",idle=1,") != std::string::npos;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "fake-compiler-XXXXXX").string();
  if (mkdtemp(name.data())) path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

int compile(Program& program, const std::string& options) {
  const Folder folder;
  if (folder.path().empty()) return invalid_program;
  const fs::path source = folder.path() / "kernels.cpp", library = folder.path() / "kernels.so";
  const fs::path log = folder.path() / "log";
  std::ofstream(source) << "#include \"" FAKE_CUDA_SOURCES "/kernel_runtime.hpp\"\n"
                        << "#include \"" FAKE_CUDA_SOURCES "/kernel_prologue.hpp\"\n#line 1 \"" << program.name
                        << "\"\n"
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

}  // namespace fake
