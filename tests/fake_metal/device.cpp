// Devices, memory, programs and shared events. Read next: commands.cpp.
#include <chrono>
#include <thread>

#include "objects.hpp"

namespace fake_metal {
namespace {

constexpr uint64_t storage_mask = 0xf0, storage_private = 0x20, language_3_0 = 3 << 16;

fake::Machine& machine() { return fake::Machine::instance(); }
const fake::Options& options() { return machine().options; }

struct CompileOptions : State {
  bool fast_math = true, precise_functions = false;
  uint64_t language = 0;
};

struct Program : State {
  std::shared_ptr<Library> library;
};

void set_error(Object** error, const std::string& domain, int64_t code, const std::string& text) {
  if (error) *error = autoreleased(make_error(domain, code, text));
}

fake::Context& context_of(Object* device) { return *state_of<Device>(device).context; }

Object* new_buffer(Object* device, Selector, uint64_t bytes, uint64_t asked) {
  const bool failed = fails();
  const Guard guard(lock());
  if (bytes == 0 || bytes > options().memory / 2) misuse("a buffer of no bytes, or of more than maxBufferLength");
  if (failed) return nullptr;
  auto buffer = std::make_unique<Buffer>();
  try {
    buffer->address = machine().alloc(context_of(device), bytes);
  } catch (const fake::Trouble&) {
    return nullptr;
  }
  buffer->device = Kept(device);
  buffer->bytes = bytes;
  buffer->is_shared = (asked & storage_mask) != storage_private;
  return made("MTLBuffer", std::move(buffer));
}

/// Compiles without the lock, as it takes long.
Object* new_library(Object* device, Selector, Object* text, Object* given, Object** error) {
  const bool failed = fails();
  context_of(device);
  const CompileOptions usual, &asked = given ? state_of<CompileOptions>(given) : usual;
  std::string log = "the compiler fails as FAKE_METAL asks";
  std::shared_ptr<Library> library;
  if (!failed && given && asked.language < language_3_0)
    log = "program_source: error: pointers in structs need MSL 3.0";
  else if (!failed) library = Library::build(text_in(text), asked.fast_math, log);
  const Guard guard(lock());
  if (!library) {
    set_error(error, "MTLLibraryErrorDomain", 3, log);
    return nullptr;
  }
  auto program = std::make_unique<Program>();
  program->library = std::move(library);
  return made("MTLLibrary", std::move(program));
}

Object* new_function(Object* library, Selector, Object* name) {
  const bool failed = fails();
  const Guard guard(lock());
  auto function = std::make_unique<Pipeline>();
  function->kernel = state_of<Program>(library).library->find(text_in(name));
  return failed || !function->kernel ? nullptr : made("MTLFunction", std::move(function));
}

Object* new_pipeline(Object* device, Selector, Object* function, Object** error) {
  const bool failed = fails();
  const Guard guard(lock());
  context_of(device);
  auto pipeline = std::make_unique<Pipeline>();
  pipeline->kernel = state_of<Pipeline>(function).kernel;
  const std::string why = failed ? "the pipeline fails as FAKE_METAL asks" : pipeline->kernel->pipeline_error();
  if (why.empty()) return made("MTLComputePipelineState", std::move(pipeline));
  set_error(error, "AGXMetal", 3, why);
  return nullptr;
}

bool supports(Object*, Selector, int64_t family) {
  const int apple = options().apple;
  if (family > 5000) return family - 4998 <= options().metal;  // Metal3 is 5001
  if (family > 2000) return true;
  return family > 1000 && family - 1000 <= apple;
}

void define_facts() {
  const auto number = [](const char* name, uint64_t (*answer)(Object*, Selector)) {
    method("MTLDevice", name, answer);
  };
  number(
      "maxThreadgroupMemoryLength", +[](Object*, Selector) { return uint64_t{most_shared}; });
  number(
      "maxBufferLength", +[](Object*, Selector) { return options().memory / 2; });
  number(
      "recommendedMaxWorkingSetSize", +[](Object*, Selector) { return options().memory; });
  number(
      "currentAllocatedSize", +[](Object* self, Selector) {
        const Guard guard(lock());
        return options().memory - machine().left(context_of(self));
      });
  method("MTLDevice", "supportsFamily:", supports);
  method(
      "MTLDevice", "hasUnifiedMemory", +[](Object*, Selector) { return options().unified; });
  method(
      "MTLDevice", "name", +[](Object* self, Selector) {
        const Guard guard(lock());
        return autoreleased(make_string("Apple Pretended GPU " + std::to_string(context_of(self).device)));
      });
}

void define_buffers() {
  method("MTLDevice", "newBufferWithLength:options:", new_buffer);
  method(
      "MTLBuffer", "contents", +[](Object* self, Selector) {
        const Buffer& buffer = state_of<Buffer>(self);
        return buffer.is_shared ? reinterpret_cast<void*>(buffer.address) : nullptr;
      });
  method(
      "MTLBuffer", "gpuAddress",
      +[](Object* self, Selector) { return state_of<Buffer>(self).address + device_offset; });
  method(
      "MTLBuffer", "length", +[](Object* self, Selector) { return state_of<Buffer>(self).bytes; });
}

void define_programs() {
  method("MTLDevice", "newLibraryWithSource:options:error:", new_library);
  method("MTLLibrary", "newFunctionWithName:", new_function);
  method("MTLDevice", "newComputePipelineStateWithFunction:error:", new_pipeline);
  method(
      "MTLComputePipelineState", "maxTotalThreadsPerThreadgroup",
      +[](Object* self, Selector) { return static_cast<uint64_t>(state_of<Pipeline>(self).kernel->max_threads); });
  class_method(
      "MTLCompileOptions", "new", +[](Object*, Selector) {
        const Guard guard(lock());
        return made("MTLCompileOptions", std::make_unique<CompileOptions>());
      });
  method(
      "MTLCompileOptions", "setLanguageVersion:", +[](Object* self, Selector, uint64_t version) {
        state_of<CompileOptions>(self).language = version;
      });
  method(
      "MTLCompileOptions",
      "setFastMathEnabled:", +[](Object* self, Selector, bool on) { state_of<CompileOptions>(self).fast_math = on; });
  if (options().system < 15) return;
  method(
      "MTLCompileOptions", "setMathMode:", +[](Object* self, Selector, int64_t mode) {
        state_of<CompileOptions>(self).fast_math = mode != 0;
      });
  method(
      "MTLCompileOptions", "setMathFloatingPointFunctions:", +[](Object* self, Selector, int64_t kind) {
        state_of<CompileOptions>(self).precise_functions = kind == 1;
      });
}

void define_events() {
  method(
      "MTLDevice", "newSharedEvent", +[](Object*, Selector) {
        const bool failed = fails();
        const Guard guard(lock());
        return failed ? nullptr : made("MTLSharedEvent", std::make_unique<SharedEvent>());
      });
  method(
      "MTLSharedEvent", "signaledValue", +[](Object* self, Selector) {
        const Guard guard(lock());
        machine().run_one();
        return state_of<SharedEvent>(self).value;
      });
  method(
      "MTLSharedEvent", "setSignaledValue:", +[](Object* self, Selector, uint64_t value) {
        const Guard guard(lock());
        state_of<SharedEvent>(self).value = value;
      });
  method(
      "MTLSharedEvent",
      "waitUntilSignaledValue:timeoutMS:", +[](Object* self, Selector, uint64_t value, uint64_t milliseconds) {
        return wait_until([&] { return state_of<SharedEvent>(self).value >= value; },
                          static_cast<double>(milliseconds) / 1000);
      });
}

/// Objects at the end of the process, where FAKE_METAL wants none. The system keeps devices.
void check_leaks() {
  const Guard guard(lock());
  std::string text = living();
  for (const char* kept : {"MTLDevice ", "NSProcessInfo "}) {
    const size_t at = text.find(kept);
    if (at != text.npos) text.erase(at, text.find('\n', at) + 1 - at);
  }
  if (text.empty()) return;
  std::fprintf(stderr, "fake_metal: objects that nobody released:\n%s", text.c_str());
  std::_Exit(70);
}

}  // namespace

Buffer::~Buffer() {
  try {
    if (address) machine().free(context_of(device.get()), address);
  } catch (const fake::Trouble& trouble) {
    misuse("a buffer ends: " + trouble.text);
  }
}

bool wait_until(const std::function<bool()>& holds, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  do {
    {
      const Guard guard(lock());
      if (holds()) return true;
      if (machine().run_one()) continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

void define_device() {
  define_facts();
  define_buffers();
  define_programs();
  define_events();
}

void define_classes() {
  static const bool once = [] {
    const Guard guard(lock());
    define_foundation();
    define_device();
    define_commands();
    define_graphs();
    if (options().leaks) std::atexit(check_leaks);
    return true;
  }();
  (void)once;
}

}  // namespace fake_metal

using namespace fake_metal;

extern "C" __attribute__((visibility("default"))) Object* MTLCopyAllDevices() {
  define_classes();
  const Guard guard(lock());
  if (counted("MTLCopyAllDevices")) return nullptr;
  static std::vector<Object*> devices;
  for (int i = static_cast<int>(devices.size()); i < options().devices; ++i) {
    auto device = std::make_unique<Device>();
    device->context = &machine().context_of(i);
    devices.push_back(made("MTLDevice", std::move(device)));
  }
  return make_array(devices);
}
