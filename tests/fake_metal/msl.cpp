// See msl.hpp. Metal's words become CUDA's, which ../fake_cuda/host_program.cpp knows.
#include "msl.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string_view>
#include <utility>

#include "host_program.hpp"

namespace fake_metal {
namespace {

namespace fs = std::filesystem;
using fake::Trouble;

// ---- What is none of the language.

std::string error_at(const std::string& text, size_t at, const std::string& what) {
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
  const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  return "program_source:" + std::to_string(line) + ":" + std::to_string(at - begin + 1) + ": error: " + what + "\n";
}

const std::regex& head() {
  static const std::regex form(
      R"(\[\[max_total_threads_per_threadgroup\((\d+)\)\]\] kernel void (\w+)\()"
      R"(constant (\w+)& (\w+) \[\[buffer\(0\)\]\], )"
      R"(uint3 (\w+) \[\[threadgroup_position_in_grid\]\], uint (\w+) \[\[thread_index_in_threadgroup\]\]\) \{)");
  return form;
}

/// Words that Metal does not take from C++, and heads that this stand-in does not know.
std::string refusal_of(const std::string& text) {
  static const std::pair<std::regex, const char*> refused[] = {
      {std::regex(R"(\bdouble\b)"), "'double' is not supported in Metal"},
      {std::regex(R"(\blong long\b)"), "'long long' is not supported in Metal"},
      {std::regex(R"(\b(dynamic_cast|typeid|new|delete|noexcept|goto|thread_local|virtual|try|catch|throw)\b)"),
       "Metal has no such word of C++"},
      {std::regex(R"(\b(asm|__asm__|__shared__|__global__|__device__)\b)"), "unknown word"}};
  std::string errors;
  for (const auto& [word, what] : refused) {
    std::smatch found;
    if (std::regex_search(text, found, word)) errors += error_at(text, static_cast<size_t>(found.position()), what);
  }
  static const std::regex kernel(R"(\bkernel\b[^{]*\{)");
  for (std::sregex_iterator at(text.begin(), text.end(), kernel), end; at != end; ++at) {
    const size_t place = static_cast<size_t>(at->position()), line = text.rfind('\n', place) + 1;
    const std::string whole = text.substr(line, place + static_cast<size_t>(at->length()) - line);
    if (!std::regex_match(whole, head())) errors += error_at(text, place, "no head of a kernel as rosin writes it");
  }
  return errors;
}

/// What clang says of the text as C++ for OpenCL, see syntax/metal_stdlib. Nothing where there is no clang.
std::string syntax_errors(const std::string& text) {
  const fake::Folder folder;
  if (folder.path().empty() || !*FAKE_METAL_CLANG) return {};
  std::ofstream(folder.path() / "program_source") << text;
  const std::string command =
      "cd " + folder.path().string() +
      " && " FAKE_METAL_CLANG " -x cl -cl-std=clc++2021 -cl-no-stdinc -target spir64 -fsyntax-only " +
      "-Xclang -cl-ext=-__opencl_c_generic_address_space,-__opencl_c_device_enqueue,-__opencl_c_pipes " +
      "-Wno-unknown-attributes -I" FAKE_METAL_SOURCES "/syntax " + "program_source >log 2>&1";
  return std::system(command.c_str()) == 0 ? std::string() : fake::content_of(folder.path() / "log");
}

// ---- From Metal to CUDA.

std::string cuda_text(std::string text) {
  static const std::pair<std::regex, const char*> words[] = {
      {head(),
       "extern \"C\" __global__ void __launch_bounds__($1) $2($3 $4) { const auto $5 = blockIdx; "
       "const uint $6 = threadIdx.x;"},
      {std::regex(R"(device (const )?(\w+)\* (p\d+);)"), "DevicePointer $3;"},
      {std::regex(R"(device const (\w+)\* const (p\d+) = (\w+)\.(p\d+);)"), "Global<$1, true> $2($3.$4.host());"},
      {std::regex(R"(device (\w+)\* const (p\d+) = (\w+)\.(p\d+);)"), "Global<$1> $2($3.$4.host());"},
      {std::regex(R"(threadgroup_barrier\(mem_flags::mem_threadgroup\);)"), "__syncthreads();"},
      {std::regex(R"(\bthreadgroup )"), "__shared__ "},
      {std::regex(R"(\bdevice )"), ""}};
  for (const auto& [word, by] : words) text = std::regex_replace(text, word, by);
  return text;
}

std::string options_of(const std::string& text, bool fast_math) {
  const bool contracts = text.find("#pragma clang fp contract(off)") == text.npos;
  return std::string(" -fsigned-char -I" FAKE_METAL_SOURCES " -ffp-contract=") + (contracts ? "fast" : "off") +
         (fast_math ? " -ffast-math" : "");
}

// ---- Compiled kernels on disk.

uint64_t hash_of(std::string_view bytes, uint64_t hash) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

fs::path file_of(const std::string& text, const std::string& options) {
  const std::string key = std::string(fake::mark) + FAKE_METAL_MARK + options + "\n" + text;
  const std::string name = std::to_string(hash_of(key, 0xcbf29ce484222325u)) + "-" + std::to_string(hash_of(key, 7));
  return fs::path(FAKE_METAL_KERNELS) / (name + ".so");
}

/// Others may be about to write the same file.
bool write_file(const fs::path& path, std::string_view content) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const fs::path fresh = path.string() + "." + std::to_string(getpid());
  std::ofstream(fresh, std::ios::binary) << content;
  fs::rename(fresh, path, failed);
  return !failed;
}

/// The log where it does not compile.
std::string compile_to(const fs::path& path, const std::string& text, const std::string& options) {
  fake::Program program{cuda_text(text), {}, {}, "program_source"};
  if (fake::compile(program, options) != fake::good) return program.log.empty() ? "no compiler" : program.log;
  const std::string_view content = std::string_view(program.binary).substr(fake::mark.size() + sizeof(uint64_t));
  return write_file(path, content) ? "" : "no room for compiled kernels";
}

// ---- What a pipeline knows of its kernel.

/// Of Metal's types, and of the names that kernels give them.
uint64_t size_of_shared(const std::string& type) {
  static const std::regex wide("u?long|[iu]64"), usual("u?int|float|[iuf]32"), narrow("u?short|half|[iu]16");
  if (std::regex_match(type, wide)) return 8;
  if (std::regex_match(type, usual)) return 4;
  return std::regex_match(type, narrow) ? 2 : 1;
}

uint64_t shared_of(const std::string& body) {
  static const std::regex array(R"(threadgroup (\w+) \w+\[(\d+)\];)");
  uint64_t bytes = 0;
  for (std::sregex_iterator at(body.begin(), body.end(), array), end; at != end; ++at)
    bytes += (size_of_shared((*at)[1]) * std::stoull((*at)[2]) + 15) / 16 * 16;
  return bytes;
}

std::map<std::string, Kernel> kernels_of(const std::string& text) {
  std::map<std::string, Kernel> kernels;
  for (std::sregex_iterator at(text.begin(), text.end(), head()), end; at != end; ++at) {
    Kernel kernel;
    kernel.name = (*at)[2];
    kernel.max_threads = std::stoi((*at)[1]);
    const size_t begin = static_cast<size_t>(at->position() + at->length());
    kernel.shared_bytes = shared_of(text.substr(begin, text.find("\n}\n", begin) - begin));
    kernels.emplace(kernel.name, kernel);
  }
  return kernels;
}

// ---- Running.

std::span<const Resource> used;  // by the launch that runs

fake::Block find_block(fake::u64 address) {
  for (const Resource& resource : used) {
    if (address < resource.address || address >= resource.address + resource.bytes) continue;
    fake::Block block = fake::Machine::instance().find(address);
    block.constant = !resource.written;
    return block;
  }
  return {};  // any access is beyond it
}

uint64_t product_of(const std::array<uint32_t, 3>& sizes) { return uint64_t{sizes[0]} * sizes[1] * sizes[2]; }

template <class T> T symbol(void* library, const std::string& name) {
  void* found = dlsym(library, name.c_str());
  if (!found) throw Trouble{fake::not_found, "no kernel " + name};
  return reinterpret_cast<T>(found);
}

}  // namespace

std::string errors_of(const std::string& text) {
  const std::string refused = refusal_of(text);
  return refused.empty() ? syntax_errors(text) : refused;
}

std::shared_ptr<Library> Library::build(const std::string& text, bool fast_math, std::string& error) {
  const std::string options = options_of(text, fast_math);
  const fs::path path = file_of(text, options);
  error = fs::exists(path) ? "" : errors_of(text);
  if (error.empty() && !fs::exists(path)) error = compile_to(path, text, options);
  std::shared_ptr<Library> made(new Library);
  if (error.empty() && !(made->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))) error = dlerror();
  if (!error.empty()) return nullptr;
  made->kernels_ = kernels_of(text);
  for (auto& [name, kernel] : made->kernels_)
    kernel.argument_bytes = static_cast<uint64_t>(*symbol<const int*>(made->library_, "fake_sizes_" + name));
  return made;
}

Library::~Library() {
  if (library_) dlclose(library_);
}

std::vector<std::string> Library::names() const {
  std::vector<std::string> all;
  for (const auto& [name, kernel] : kernels_) all.push_back(name);
  return all;
}

std::shared_ptr<const Kernel> Library::find(const std::string& name) const {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) return nullptr;
  auto kernel = std::make_shared<Kernel>(found->second);
  kernel->library = shared_from_this();
  return kernel;
}

std::string Kernel::pipeline_error() const {
  if (shared_bytes > most_shared)
    return "Threadgroup memory size (" + std::to_string(shared_bytes) +
           ") exceeds the maximum threadgroup memory allowed (" + std::to_string(most_shared) + ")";
  if (max_threads < 1 || max_threads > most_threads)
    return "Requested max_total_threads_per_threadgroup is not possible";
  return {};
}

std::string Kernel::check(const Binding& arguments, const std::array<uint32_t, 3>& groups,
                          const std::array<uint32_t, 3>& threads) const {
  if (!arguments.address) return name + ": missing Buffer binding at index 0";
  if (arguments.bytes < argument_bytes)
    return name + ": buffer 0 has " + std::to_string(arguments.bytes) + " bytes, but the argument has " +
           std::to_string(argument_bytes);
  if (product_of(threads) == 0 || product_of(groups) == 0) return name + ": no threads, or no threadgroups";
  if (product_of(threads) > static_cast<uint64_t>(max_threads))
    return name + ": " + std::to_string(product_of(threads)) +
           " threads per threadgroup must be <= " + std::to_string(max_threads);
  return {};
}

void Kernel::run(const Binding& arguments, std::span<const Resource> resources, const std::array<uint32_t, 3>& groups,
                 const std::array<uint32_t, 3>& threads) const {
  if (const std::string said = check(arguments, groups, threads); !said.empty())
    throw Trouble{fake::launch_failed, said};
  fake::Function function;
  void* code = library->library_;
  function.name = name;
  function.item = symbol<fake::Item*>(code, "fake_item");
  function.run = symbol<void (*)(void**)>(code, "fake_run_" + name);
  function.items = static_cast<int>(product_of(threads));
  function.barrier = *symbol<const int*>(code, "fake_barrier_" + name) != 0;
  function.find = &find_block;
  const auto* bytes = static_cast<const unsigned char*>(arguments.address);
  used = resources;
  fake::run_kernel(function, {groups[0], groups[1], groups[2]}, {{bytes, bytes + argument_bytes}}, 0);
}

}  // namespace fake_metal
