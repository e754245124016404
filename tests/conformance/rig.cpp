// See rig.hpp.
#include "rig.hpp"

#include <algorithm>
#include <exception>
#include <optional>

#include "kernels/text.hpp"

namespace rosin::conformance {
namespace {

kernels::KernelCode with_text(const Code& code) {
  kernels::KernelCode all;
  all.name = code.name;
  all.group = code.group;
  for (const int32_t type : code.buffers) all.buffers.push_back(static_cast<DType>(type));
  for (const int32_t type : code.parameters) all.parameters.push_back(static_cast<ScalarType>(type));
  for (const rosin_shared_array& array : code.shared) {
    all.shared.push_back({static_cast<ScalarType>(array.type), array.count});
  }
  for (const rosin_instruction& in : code.list) {
    kernels::KernelInstruction out{in.operation, static_cast<ScalarType>(in.type), {}, in.immediate};
    std::copy(in.operands, in.operands + 3, out.operands);
    all.instructions.push_back(out);
  }
  return all;
}

std::optional<kernels::Language> language(int32_t number) {
  switch (number) {
    case ROSIN_LANGUAGE_OPENCL: return kernels::Language::opencl;
    case ROSIN_LANGUAGE_CUDA: return kernels::Language::cuda;
    case ROSIN_LANGUAGE_HIP: return kernels::Language::hip;
    case ROSIN_LANGUAGE_METAL: return kernels::Language::metal;
    default: return std::nullopt;
  }
}

}  // namespace

const char* name_of(rosin_status status) {
  switch (status) {
    case ROSIN_OK: return "ROSIN_OK";
    case ROSIN_NOT_READY: return "ROSIN_NOT_READY";
    case ROSIN_OUT_OF_MEMORY: return "ROSIN_OUT_OF_MEMORY";
    case ROSIN_UNSUPPORTED: return "ROSIN_UNSUPPORTED";
    case ROSIN_INVALID: return "ROSIN_INVALID";
    case ROSIN_COMPILE_FAILED: return "ROSIN_COMPILE_FAILED";
    case ROSIN_DEVICE_FAULT: return "ROSIN_DEVICE_FAULT";
  }
  return "a status that backend.h does not know";
}

Memory::Memory(Rig& rig, uint64_t bytes) : rig_(rig) { rig.good(rig.api.alloc(rig.device, bytes, &memory_), "alloc"); }
Memory::~Memory() {
  // After a check that failed, work may still be under way.
  if (std::uncaught_exceptions() > 0) (void)rig_.api.stream_sync(rig_.stream);
  rig_.api.release(rig_.device, memory_);
}

Module::Module(Rig& rig, std::span<const Code> codes) : rig_(rig) {
  const std::vector<char> bytes = rig.compiled(codes);
  rig.good(rig.api.load(rig.device, bytes.data(), bytes.size(), &module_), "load");
}
Module::~Module() { rig_.api.unload(module_); }

rosin_kernel* Module::kernel(const std::string& name) const {
  rosin_kernel* kernel = nullptr;
  rig_.good(rig_.api.kernel(module_, name.c_str(), &kernel), "kernel " + name);
  return kernel;
}

Rig::Rig(const rosin_backend& backend, int32_t at) : api(backend), number(at) {
  info.size = sizeof(info);
  good(api.device_info(at, &info), "device_info");
  good(api.open(at, &device), "open");
  good(api.stream_create(device, &stream), "stream_create");
}

Rig::~Rig() {
  if (stream) api.stream_destroy(stream);
  if (device) api.close(device);
}

void Rig::good(rosin_status status, const std::string& what) const {
  if (status != ROSIN_OK) throw Broken(what + " gave " + name_of(status) + ": " + api.error_text());
}

void Rig::fails(rosin_status status, rosin_status wanted, const std::string& what) const {
  expect(status == wanted, what + " gave " + name_of(status) + " where backend.h wants " + name_of(wanted));
  const char* text = api.error_text();
  expect(text && *text, what + " failed without an error text");
}

rosin_status Rig::compile(std::span<const Code> codes, rosin_device* with, std::vector<char>& bytes) const {
  std::vector<rosin_kernel_code> views;
  std::vector<kernels::KernelCode> twins;
  const auto dialect = language(info.language);
  for (const Code& code : codes) {
    views.push_back(code.view());
    if (dialect) twins.push_back(with_text(code));
  }
  const std::string text = dialect ? kernels::kernel_text(*dialect, twins, info.shared_bytes) : "";
  rosin_program program{};
  program.size = sizeof(program);
  program.text = dialect ? text.c_str() : nullptr;
  program.kernel_count = static_cast<uint32_t>(views.size());
  program.kernels = views.data();
  void* made = nullptr;
  uint64_t count = 0;
  const rosin_status status = api.compile(with, info.target, &program, &made, &count);
  if (status != ROSIN_OK) return status;
  bytes.assign(static_cast<char*>(made), static_cast<char*>(made) + count);
  api.free_bytes(made);
  return status;
}

std::vector<char> Rig::compiled(std::span<const Code> codes) const {
  std::vector<char> bytes;
  good(compile(codes, device, bytes), "compile");
  return bytes;
}

void Rig::launch(rosin_stream* on, rosin_kernel* kernel, std::span<const rosin_place> buffers, uint32_t groups,
                 std::span<const rosin_number> parameters) const {
  // Both lists are copied and overwritten afterwards: they may go when launch() returns.
  std::vector<rosin_place> places(buffers.begin(), buffers.end());
  std::vector<rosin_number> numbers(parameters.begin(), parameters.end());
  rosin_launch all{};
  all.size = sizeof(all);
  all.groups[0] = groups;
  all.groups[1] = all.groups[2] = 1;
  all.buffers = places.data();
  all.parameters = numbers.data();
  good(api.launch(on, kernel, &all), "launch");
  std::fill(places.begin(), places.end(), rosin_place{});
  std::fill(numbers.begin(), numbers.end(), rosin_number{});
}

rosin_number number(int32_t value) {
  rosin_number all{};
  all.int32 = value;
  return all;
}

}  // namespace rosin::conformance
