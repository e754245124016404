// Compiling text, and launching kernels. Metal has no binaries that a program could keep, so what compile() gives is
// the text; the system keeps compiled kernels on disk by itself. A kernel has one argument, a struct of eight bytes for
// each buffer (its address) and parameter. Read first: common/program_bytes.hpp.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "metal/metal.hpp"

namespace rosin::metal {
namespace {

constexpr const char* the_target = "metal3";

/// Without what changes numbers.
Owned compile_options() {
  const Owned options = Owned::given(send::make(runtime().get_class("MTLCompileOptions")));
  send::set_language(options.get(), language_3_0);
  if (send::responds(options.get(), send::set_math_mode.selector())) {  // from macOS 15 on
    send::set_math_mode(options.get(), math_safe);
    send::set_math_functions(options.get(), math_precise);
  } else {
    send::set_fast_math(options.get(), false);
  }
  return options;
}

std::string text_of_error(Id error, const char* otherwise) {
  const std::string text = text_of(send::localized_description(error));
  return text.empty() ? otherwise : text;
}

}  // namespace

Owned library_of(const rosin_device& device, const char* text) {
  const Owned options = compile_options();
  Id error = nullptr;
  Owned library = Owned::given(send::new_library(device.id(), string_of(text), options.get(), &error));
  if (!library) throw Failure{ROSIN_COMPILE_FAILED, text_of_error(error, "the compiler gives no log")};
  return library;
}

Owned pipeline_of(const rosin_device& device, const Owned& library, const Signature& signature) {
  const Owned function = Owned::given(send::new_function(library.get(), string_of(signature.name.c_str())));
  if (!function) throw Failure{ROSIN_INVALID, "the program has no kernel " + signature.name};
  Id error = nullptr;
  Owned pipeline = Owned::given(send::new_pipeline(device.id(), function.get(), &error));
  if (!pipeline)
    throw Failure{ROSIN_COMPILE_FAILED, signature.name + ": " + text_of_error(error, "Metal makes no pipeline of it")};
  const uint64_t most = send::max_threads(pipeline.get());
  if (most < signature.group) {
    throw Failure{ROSIN_UNSUPPORTED, signature.name + ": the device runs groups of " + std::to_string(most) +
                                         " items of it at most, it has " + std::to_string(signature.group)};
  }
  return pipeline;
}

rosin_status compile(rosin_device* device, const char* /*target*/, const rosin_program* program, void** bytes,
                     uint64_t* count) {
  return pooled([&] {
    if (!device) throw Failure{ROSIN_UNSUPPORTED, "Metal compiles only for a device that is open"};
    if (!program->text) throw Failure{ROSIN_INVALID, "the program has no text"};
    Owned library = library_of(*device, program->text);
    plugin::ProgramBytes compiled{the_target, {}, program->text};
    for (uint32_t i = 0; i < program->kernel_count; ++i)
      compiled.kernels.push_back(plugin::signature_of(program->kernels[i]));
    *bytes = plugin::packed(compiled, *count);
    const std::lock_guard guard(device->lock);
    device->compiled_text = std::move(compiled.content);
    device->compiled = std::move(library);
  });
}

void free_bytes(void* bytes) { std::free(bytes); }

namespace {

/// What compile() has just made, or the text compiled anew.
Owned compiled_library(rosin_device& device, const std::string& text) {
  {
    const std::lock_guard guard(device.lock);
    if (device.compiled && device.compiled_text == text) return std::exchange(device.compiled, {});
  }
  return library_of(device, text.c_str());
}

}  // namespace

rosin_status load(rosin_device* device, const void* bytes, uint64_t count, rosin_module** out) {
  return pooled([&] {
    plugin::ProgramBytes compiled = plugin::unpack({static_cast<const char*>(bytes), count});
    if (compiled.target != the_target) throw Failure{ROSIN_INVALID, "the program was compiled for " + compiled.target};
    const Owned library = compiled_library(*device, compiled.content);
    auto module = std::make_unique<rosin_module>();
    for (Signature& signature : compiled.kernels) {
      rosin_kernel& kernel = module->kernels.emplace_back();
      kernel.pipeline = pipeline_of(*device, library, signature);
      kernel.signature = std::move(signature);
    }
    *out = module.release();
  });
}

void unload(rosin_module* module) {
  pooled([&] { delete module; });
}

rosin_status kernel(rosin_module* module, const char* name, rosin_kernel** out) {
  return guarded([&] { *out = plugin::kernel_named(module->kernels, name); });
}

void give_launch(rosin_stream& stream, Id pipeline, uint64_t group, Size groups, const Arguments& arguments) {
  const Id encoder = compute_encoder(stream);
  send::set_pipeline(encoder, pipeline);
  const std::vector<uint64_t>& words = arguments.words();
  send::set_bytes(encoder, words.data(), words.size() * sizeof(uint64_t), 0);
  for (const Id buffer : arguments.buffers()) {
    const auto place = std::lower_bound(stream.used.begin(), stream.used.end(), buffer, std::less<>{});
    if (place != stream.used.end() && *place == buffer) continue;
    stream.used.insert(place, buffer);
    send::use_resource(encoder, buffer, usage_read | usage_write);
  }
  send::dispatch(encoder, groups, {group, 1, 1});
  note_work(stream);
}

namespace {

uint64_t bits_of(const rosin_number& number, int32_t type) {
  const bool is_wide = type == ROSIN_SCALAR_INT64 || type == ROSIN_SCALAR_UINT64 || type == ROSIN_SCALAR_FLOAT64;
  uint64_t bits = 0;
  std::memcpy(&bits, &number, is_wide ? sizeof(int64_t) : sizeof(int32_t));
  return bits;
}

void collect(const Signature& signature, const rosin_launch& launch, Arguments& arguments) {
  arguments.clear();
  for (uint32_t i = 0; i < signature.buffer_count; ++i) {
    const rosin_place& place = launch.buffers[i];
    if (!place.memory) throw Failure{ROSIN_INVALID, signature.name + ": buffer " + std::to_string(i) + " is null"};
    arguments.add({place.memory->buffer.get(), place.offset});
  }
  for (size_t i = 0; i < signature.parameters.size(); ++i)
    arguments.add(bits_of(launch.parameters[i], signature.parameters[i]));
  if (arguments.words().size() * sizeof(uint64_t) > largest_inline)
    throw Failure{ROSIN_UNSUPPORTED, signature.name + ": a launch has 512 arguments at most"};
}

}  // namespace

rosin_status launch(rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch) {
  return pooled([&] {
    check_lost(*stream->device);
    if (launch->groups[0] == 0 || launch->groups[1] == 0 || launch->groups[2] == 0)
      throw Failure{ROSIN_INVALID, kernel->signature.name + ": a launch has at least one group along each dim"};
    thread_local Arguments arguments;  // which stay with the thread, as launches shall not allocate
    collect(kernel->signature, *launch, arguments);
    give_launch(*stream, kernel->pipeline.get(), kernel->signature.group,
                {launch->groups[0], launch->groups[1], launch->groups[2]}, arguments);
  });
}

/// Bytes of compile() are texts, so they depend on nothing of the machine.
rosin_status compile_key(rosin_device*, const char** key) {
  *key = "MSL 3.0, safe mathematics";
  return ROSIN_OK;
}

}  // namespace rosin::metal
