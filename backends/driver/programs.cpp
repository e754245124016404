// Compiled programs: loading them, and launching their kernels.
#include <cstdlib>
#include <memory>

#include "driver/driver.hpp"

namespace rosin::driver {

using plugin::ProgramBytes;
using plugin::Signature;

rosin_status compile(rosin_device* device, const char* target, const rosin_program* program, void** bytes,
                     uint64_t* count) {
  return guarded([&] {
    if (!program->text) throw Failure{ROSIN_INVALID, "the program has no text"};
    const std::string goal = target && *target ? target : device ? device->target : "";
    ProgramBytes compiled{goal, {}, compiled_text(goal, program->text)};
    for (uint32_t i = 0; i < program->kernel_count; ++i) {
      compiled.kernels.push_back(plugin::signature_of(program->kernels[i]));
    }
    *bytes = plugin::packed(compiled, *count);
  });
}

void free_bytes(void* bytes) { std::free(bytes); }

namespace {

void unload_now(rosin_module* module) {
  guarded([&] {
    const Current current(*module->device);
    the_driver().functions.module_unload(module->module);
  });
}

/// Lets a kernel have more shared memory than usual, where its arrays need it.
void allow_shared(rosin_kernel& kernel) {
  if (kernel.signature.shared_bytes <= static_cast<uint64_t>(kernel.device->shared_bytes)) return;
  constexpr int largest_dynamic_shared = 8;  // of the driver's attributes of functions
  const Driver& driver = the_driver();
  if (!driver.functions.function_set) throw Failure{ROSIN_UNSUPPORTED, "the driver is too old for large shared arrays"};
  kernel.large_shared = static_cast<unsigned>(kernel.signature.shared_bytes);
  driver.check(
      driver.functions.function_set(kernel.function, largest_dynamic_shared, static_cast<int>(kernel.large_shared)),
      "shared memory of a kernel");
}

/// Images that this driver does not take are compiled again by rosin.
Module loaded(const std::string& image) {
  const Driver& driver = the_driver();
  Module module = nullptr;
  const Code code = driver.functions.module_load(&module, image.data());
  if (code != 0 && driver.status_of(code) == ROSIN_INVALID) {
    throw Failure{ROSIN_INVALID, "the driver does not take the compiled program"};
  }
  driver.check(code, "load of a program");
  return module;
}

}  // namespace

rosin_status load(rosin_device* device, const void* bytes, uint64_t count, rosin_module** out) {
  return guarded([&] {
    ProgramBytes compiled = plugin::unpack({static_cast<const char*>(bytes), count});
    if (compiled.target != device->target) {
      throw Failure{ROSIN_INVALID, "the program was compiled for " + compiled.target};
    }
    const Current current(*device);
    const Driver& driver = the_driver();
    const auto give_back = [](rosin_module* module) {
      if (module->module) unload_now(module);
      delete module;
    };
    std::unique_ptr<rosin_module, decltype(give_back)> module(new rosin_module, give_back);
    module->device = device;
    module->module = loaded(compiled.content);
    for (Signature& signature : compiled.kernels) {
      rosin_kernel& kernel = module->kernels.emplace_back();
      driver.check(driver.functions.module_function(&kernel.function, module->module, signature.name.c_str()),
                   "search for a kernel");
      kernel.signature = std::move(signature);
      kernel.device = device;
      allow_shared(kernel);
    }
    *out = module.release();
  });
}

void unload(rosin_module* module) {
  if (!module) return;
  unload_now(module);
  delete module;
}

rosin_status kernel(rosin_module* module, const char* name, rosin_kernel** out) {
  return guarded([&] { *out = plugin::kernel_named(module->kernels, name); });
}

LaunchArguments LaunchPlaces::fill(const rosin_kernel& kernel, const rosin_launch& launch) {
  const Signature& signature = kernel.signature;
  addresses.resize(signature.buffer_count);
  places.clear();
  for (uint32_t i = 0; i < signature.buffer_count; ++i) {
    const rosin_place& place = launch.buffers[i];
    if (!place.memory) throw Failure{ROSIN_INVALID, signature.name + ": buffer " + std::to_string(i) + " is null"};
    addresses[i] = place.memory->address + place.offset;
    places.push_back(&addresses[i]);
  }
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    places.push_back(const_cast<rosin_number*>(&launch.parameters[i]));  // which are read
  }
  LaunchArguments arguments{kernel.function, {}, signature.group, kernel.large_shared, places.data()};
  for (int d = 0; d < 3; ++d) {
    arguments.groups[d] = launch.groups[d];
    if (launch.groups[d] == 0) {
      throw Failure{ROSIN_INVALID, signature.name + ": a launch has at least one group along each dim"};
    }
  }
  return arguments;
}

rosin_status launch(rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch) {
  return guarded([&] {
    thread_local LaunchPlaces places;  // which stay with the thread, as launches shall not allocate
    const LaunchArguments made = places.fill(*kernel, *launch);
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.launch(made.function, made.groups[0], made.groups[1], made.groups[2], made.items, 1,
                                         1, made.large_shared, stream->stream, made.parameters, nullptr),
                 kernel->signature.name.c_str());
  });
}

}  // namespace rosin::driver
