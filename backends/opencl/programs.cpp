// Compiling text, loading what came of it, launching kernels. Read next: common/program_bytes.hpp.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "opencl.hpp"

namespace rosin::opencl {
namespace {

std::string build_log(cl_program program, cl_device_id id) {
  size_t bytes = 0;
  clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  return log.c_str();  // without the zeros at its end
}

void build(const rosin_device* device, cl_program program, rosin_status failed) {
  const DeviceFacts& facts = *device->facts;
  const cl_int code = clBuildProgram(program, 1, &facts.id, facts.options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return;
  std::string log = build_log(program, facts.id);
  throw Failure{failed, log.empty() ? "clBuildProgram failed: error " + std::to_string(code) : std::move(log)};
}

std::string binary_of(cl_program program) {
  size_t bytes = 0;
  check(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr), "clGetProgramInfo");
  std::string binary(bytes, '\0');
  char* address = binary.data();
  check(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof address, &address, nullptr), "clGetProgramInfo");
  return binary;
}

Program program_of_source(const rosin_device* device, const char* text) {
  cl_int code = CL_SUCCESS;
  Program program(clCreateProgramWithSource(device->context.get(), 1, &text, nullptr, &code));
  check(code, "clCreateProgramWithSource");
  return program;
}

Program program_of_binary(const rosin_device* device, const std::string& content) {
  const auto* binary = reinterpret_cast<const unsigned char*>(content.data());
  const size_t size = content.size();
  cl_int state = CL_SUCCESS, code = CL_SUCCESS;
  Program program(
      clCreateProgramWithBinary(device->context.get(), 1, &device->facts->id, &size, &binary, &state, &code));
  if (code != CL_SUCCESS || state != CL_SUCCESS) throw Failure{ROSIN_INVALID, "the driver does not take the binary"};
  return program;
}

void set_argument(cl_kernel kernel, cl_uint number, size_t bytes, const void* value) {
  check(clSetKernelArg(kernel, number, bytes, value), "clSetKernelArg");
}

size_t bytes_of_number(int32_t type) {
  const bool wide = type == ROSIN_SCALAR_INT64 || type == ROSIN_SCALAR_UINT64 || type == ROSIN_SCALAR_FLOAT64;
  return wide ? sizeof(int64_t) : sizeof(int32_t);
}

void set_arguments(const rosin_kernel& kernel, const rosin_launch& launch) {
  const Signature& signature = kernel.signature;
  cl_uint number = 0;
  for (uint32_t i = 0; i < signature.buffer_count; ++i) {
    const rosin_place& place = launch.buffers[i];
    if (!place.memory) throw Failure{ROSIN_INVALID, signature.name + ": buffer " + std::to_string(i) + " is null"};
    const cl_mem memory = place.memory->memory.get();
    const cl_ulong offset = place.offset;
    set_argument(kernel.kernel.get(), number++, sizeof memory, &memory);
    set_argument(kernel.kernel.get(), number++, sizeof offset, &offset);
  }
  for (size_t i = 0; i < signature.parameters.size(); ++i)
    set_argument(kernel.kernel.get(), number++, bytes_of_number(signature.parameters[i]), &launch.parameters[i]);
}

}  // namespace

rosin_status compile(rosin_device* device, const char* /*target*/, const rosin_program* program, void** bytes,
                     uint64_t* count) {
  return guarded([&] {
    if (!device) throw Failure{ROSIN_UNSUPPORTED, "OpenCL compiles only for a device that is open"};
    if (!program->text) throw Failure{ROSIN_INVALID, "the program has no text"};
    const Program made = program_of_source(device, program->text);
    build(device, made.get(), ROSIN_COMPILE_FAILED);
    const DeviceFacts& facts = *device->facts;
    plugin::ProgramBytes compiled{facts.info.target, {}, facts.keeps_source ? program->text : binary_of(made.get())};
    for (uint32_t i = 0; i < program->kernel_count; ++i)
      compiled.kernels.push_back(plugin::signature_of(program->kernels[i]));
    *bytes = plugin::packed(compiled, *count);
  });
}

void free_bytes(void* bytes) { std::free(bytes); }

rosin_status load(rosin_device* device, const void* bytes, uint64_t count, rosin_module** out) {
  return guarded([&] {
    plugin::ProgramBytes compiled = plugin::unpack({static_cast<const char*>(bytes), count});
    if (compiled.target != device->facts->info.target)
      throw Failure{ROSIN_INVALID, "the program was compiled for " + compiled.target};
    auto module = std::make_unique<rosin_module>();
    module->program = device->facts->keeps_source ? program_of_source(device, compiled.content.c_str())
                                                  : program_of_binary(device, compiled.content);
    build(device, module->program.get(), ROSIN_INVALID);
    for (Signature& signature : compiled.kernels) {
      cl_int code = CL_SUCCESS;
      rosin_kernel& kernel = module->kernels.emplace_back();
      kernel.kernel = Kernel(clCreateKernel(module->program.get(), signature.name.c_str(), &code));
      check(code, "clCreateKernel");
      kernel.signature = std::move(signature);
    }
    *out = module.release();
  });
}

void unload(rosin_module* module) { delete module; }

rosin_status kernel(rosin_module* module, const char* name, rosin_kernel** out) {
  return guarded([&] { *out = plugin::kernel_named(module->kernels, name); });
}

rosin_status launch(rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch) {
  return guarded([&] {
    if (launch->groups[0] == 0 || launch->groups[1] == 0 || launch->groups[2] == 0)
      throw Failure{ROSIN_INVALID, kernel->signature.name + ": a launch has at least one group along each dim"};
    const size_t group = kernel->signature.group;
    const size_t local[3] = {group, 1, 1};
    const size_t global[3] = {launch->groups[0] * group, launch->groups[1], launch->groups[2]};
    const cl_uint dims = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    const std::lock_guard lock(kernel->lock);
    set_arguments(*kernel, *launch);
    check(clEnqueueNDRangeKernel(stream->queue.get(), kernel->kernel.get(), dims, nullptr, global, local, 0, nullptr,
                                 nullptr),
          "clEnqueueNDRangeKernel");
  });
}

}  // namespace rosin::opencl
