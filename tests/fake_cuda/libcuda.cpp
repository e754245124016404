// The functions of libcuda's stand-in. See README.md. Read first: machine.hpp.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "api.hpp"

using namespace fake;

namespace {

std::mutex api;  // one call at a time

constexpr int usual_shared = 49152;  // bytes of shared memory of a block

/// The same of a kernel that asks for more.
int largest_shared() {
  const int architecture = Machine::instance().options.architecture;
  if (architecture < 80) return 64 << 10;
  if (architecture == 80) return 163 << 10;
  return architecture == 90 || architecture == 100 ? 227 << 10 : 99 << 10;
}

/// What the calling thread was told last, for cuGetErrorString.
thread_local Trouble said{success, {}};
thread_local std::vector<Context*> current;
thread_local const char* other_name = nullptr;

/// Codes after which a context cannot be used any more.
bool is_lost(int code) { return code >= illegal_address && code <= launch_failed; }

void maybe_fail(const char* name) {
  Machine& machine = Machine::instance();
  const int64_t number = ++machine.calls.try_emplace(name, 0).first->second;
  const auto found = machine.options.fails.find(name);
  if (found == machine.options.fails.end() || !found->second.contains(number)) return;
  const int fitting = std::strstr(name, "Alloc") ? out_of_memory : operating_system;
  const Trouble trouble{machine.options.code ? machine.options.code : fitting,
                        std::string(name) + " fails as " FAKE_OPTIONS " asks"};
  if (is_lost(trouble.code) && !current.empty()) machine.lose(*current.back(), trouble);
  throw trouble;
}

void check_lost(const Context& context) {
  if (context.lost) throw Trouble{context.lost, context.why};
}

constexpr std::string_view mark = FAKE_MARK;  // kernels that were compiled with other files are no images

/// The library inside an image, opened from a file that goes at once.
void* open_image(const void* image) {
  uint64_t bytes = 0;
  if (!image || std::memcmp(image, mark.data(), mark.size()) != 0)
    throw Trouble{invalid_image, "no image of a program"};
  std::memcpy(&bytes, static_cast<const char*>(image) + mark.size(), sizeof bytes);
  std::string path = (std::filesystem::temp_directory_path() / "fake-cuda-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) throw Trouble{invalid_image, "no room for the program"};
  const char* content = static_cast<const char*>(image) + mark.size() + sizeof bytes;
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t count = write(file, content + done, bytes - done);
    if (count <= 0) break;
    done += static_cast<uint64_t>(count);
  }
  close(file);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  if (!library) throw Trouble{invalid_image, dlerror()};
  return library;
}

template <class T> T symbol(void* library, const std::string& name) {
  void* found = dlsym(library, name.c_str());
  if (!found) throw Trouble{not_found, "no kernel " + name};
  return reinterpret_cast<T>(found);
}

Function function_of(Module& module, const std::string& name) {
  Function made;
  made.module = &module;
  made.name = name;
  if (!module.library) return made;
  made.item = symbol<Item*>(module.library, "fake_item");
  made.run = symbol<void (*)(void**)>(module.library, "fake_run_" + name);
  made.items = *symbol<const int*>(module.library, "fake_items_" + name);
  made.barrier = *symbol<const int*>(module.library, "fake_barrier_" + name) != 0;
  for (const int* size = symbol<const int*>(module.library, "fake_sizes_" + name); *size >= 0; ++size) {
    made.sizes.push_back(*size);
  }
  return made;
}

}  // namespace

fake::Named::Named(const char* name) {
  other_name = name;
  const std::lock_guard guard(api);
  Machine& machine = Machine::instance();
  if (current.empty() && machine.options.devices > 0) current = {&machine.context_of(0)};
}
fake::Named::~Named() { other_name = nullptr; }
const char* fake::said_of(int code) { return said.code == code ? said.text.c_str() : "no error"; }
void fake::set_context(Context& context) { current = {&context}; }

int fake::call(const char* own_name, const std::function<void(Machine&)>& f) {
  const char* name = other_name ? other_name : own_name;
  const std::lock_guard guard(api);
  try {
    maybe_fail(name);
    f(Machine::instance());
    return success;
  } catch (const Trouble& trouble) {
    said = {trouble.code, std::string(name) + ": " + trouble.text};
    return trouble.code;
  }
}

Context& fake::context_now() {
  if (current.empty()) throw Trouble{invalid_context, "the thread has no context"};
  Context& context = *current.back();
  check_lost(context);
  return context;
}

Stream& fake::stream_now(Stream* stream) {
  Stream& known = Machine::instance().checked(stream);
  if (known.context != &context_now()) throw Trouble{invalid_context, "a stream of another context"};
  return known;
}

std::vector<std::vector<unsigned char>> fake::values_of(const Function& function, void** parameters,
                                                        std::vector<uint64_t>& addresses) {
  std::vector<std::vector<unsigned char>> values;
  for (size_t i = 0; i < function.sizes.size(); ++i) {
    const auto bytes = static_cast<size_t>(function.sizes[i] == 0 ? 8 : function.sizes[i]);
    const auto* from = static_cast<const unsigned char*>(parameters[i]);
    values.emplace_back(from, from + bytes);
    if (function.sizes[i] != 0) continue;
    uint64_t address = 0;
    std::memcpy(&address, from, sizeof address);
    Machine::instance().check_range(*function.module->context, address, 0);
    addresses.push_back(address);
  }
  return values;
}

void fake::check_grid(const Function& function, const unsigned (&grid)[3], const unsigned (&block)[3],
                      unsigned shared) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[1] > 65535 || grid[2] > 65535) {
    throw Trouble{invalid_value, "a grid without blocks, or with too many"};
  }
  if (function.items == 0) return;  // nothing is known of it
  if (static_cast<int>(block[0]) != function.items || block[1] != 1 || block[2] != 1) {
    throw Trouble{invalid_value, "blocks of another size than the kernel states"};
  }
  if (static_cast<int>(shared) > std::max(function.largest_shared, usual_shared)) {
    throw Trouble{invalid_value, "more shared memory than the kernel was allowed"};
  }
}

/// For tests: a line for each function with the number of its calls, then one for each kind of object that lives.
extern "C" __attribute__((visibility("default"))) const char* FAKE_COUNTS() {
  static std::string text;
  const std::lock_guard guard(api);
  const Machine& machine = Machine::instance();
  text.clear();
  const auto say = [](const std::string& name, int64_t count) { text += name + " " + std::to_string(count) + "\n"; };
  for (const auto& [name, count] : machine.calls) say(name, count);
  say("blocks", static_cast<int64_t>(machine.blocks()));
  say("pinned", static_cast<int64_t>(machine.pinned()));
  say("streams", static_cast<int64_t>(machine.streams()));
  say("events", static_cast<int64_t>(machine.events()));
  say("modules", machine.modules);
  say("graphs", machine.graphs);
  return text.c_str();
}

FAKE_CUDA_API cuInit(unsigned) {
  return call("cuInit", [](Machine& machine) {
    const char* visible = getenv("CUDA_VISIBLE_DEVICES");
    const bool hidden = visible && (!*visible || *visible == '-');
    if (hidden || machine.options.devices == 0) throw Trouble{no_device, "no CUDA-capable device is detected"};
  });
}

FAKE_CUDA_API cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", [&](Machine& machine) { *version = machine.options.driver; });
}

FAKE_CUDA_API cuGetErrorName(int code, const char** text) {
  *text = code == success ? "CUDA_SUCCESS" : code == out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  return success;
}

FAKE_CUDA_API cuGetErrorString(int code, const char** text) {
  *text = said_of(code);
  return success;
}

FAKE_CUDA_API cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", [&](Machine& machine) { *count = machine.options.devices; });
}

FAKE_CUDA_API cuDeviceGet(int* device, int ordinal) {
  return call("cuDeviceGet", [&](Machine& machine) { *device = machine.context_of(ordinal).device; });
}

FAKE_CUDA_API cuDeviceGetName(char* name, int length, int device) {
  return call("cuDeviceGetName", [&](Machine& machine) {
    machine.context_of(device);
    std::snprintf(name, static_cast<size_t>(length), "NVIDIA Pretended GPU %d", device);
  });
}

FAKE_CUDA_API cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return call("cuDeviceTotalMem_v2", [&](Machine& machine) {
    machine.context_of(device);
    *bytes = machine.options.memory;
  });
}

FAKE_CUDA_API cuDeviceGetAttribute(int* value, int attribute, int device) {
  return call("cuDeviceGetAttribute", [&](Machine& machine) {
    machine.context_of(device);
    switch (attribute) {
      case 1: *value = 1024; break;                                // threads of a block
      case 8: *value = usual_shared; break;                        // shared memory of a block
      case 10: *value = 32; break;                                 // items of a warp
      case 12: *value = 65536; break;                              // registers of a block
      case 16: *value = 4; break;                                  // multiprocessors
      case 38: *value = 1 << 20; break;                            // bytes of the second cache
      case 97: *value = largest_shared(); break;                   // shared memory of a block that asks for more
      case 75: *value = machine.options.architecture / 10; break;  // compute capability
      case 76: *value = machine.options.architecture % 10; break;
      default: throw Trouble{invalid_value, "no such attribute"};
    }
  });
}

FAKE_CUDA_API cuDeviceGetPCIBusId(char* text, int length, int device) {
  return call("cuDeviceGetPCIBusId", [&](Machine& machine) {
    machine.context_of(device);
    std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", device + 1);
  });
}

FAKE_CUDA_API cuDevicePrimaryCtxRetain(Context** context, int device) {
  return call("cuDevicePrimaryCtxRetain", [&](Machine& machine) {
    Context& known = machine.context_of(device);
    check_lost(known);
    ++known.uses;
    *context = &known;
  });
}

FAKE_CUDA_API cuDevicePrimaryCtxRelease_v2(int device) {
  return call("cuDevicePrimaryCtxRelease_v2", [&](Machine& machine) {
    if (machine.context_of(device).uses-- <= 0) throw Trouble{invalid_context, "released more often than retained"};
  });
}

FAKE_CUDA_API cuCtxPushCurrent_v2(Context* context) {
  return call("cuCtxPushCurrent_v2", [&](Machine&) {
    if (!context || context->uses <= 0) throw Trouble{invalid_context, "no such context"};
    current.push_back(context);
  });
}

FAKE_CUDA_API cuCtxPopCurrent_v2(Context** context) {
  return call("cuCtxPopCurrent_v2", [&](Machine&) {
    if (current.empty()) throw Trouble{invalid_context, "the thread has no context"};
    *context = current.back();
    current.pop_back();
  });
}

FAKE_CUDA_API cuMemGetInfo_v2(size_t* left, size_t* total) {
  return call("cuMemGetInfo_v2", [&](Machine& machine) {
    *left = machine.left(context_now());
    *total = machine.options.memory;
  });
}

FAKE_CUDA_API cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  return call("cuMemAlloc_v2", [&](Machine& machine) { *address = machine.alloc(context_now(), bytes); });
}

FAKE_CUDA_API cuMemFree_v2(uint64_t address) {
  return call("cuMemFree_v2", [&](Machine& machine) { machine.free(context_now(), address); });
}

FAKE_CUDA_API cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  return call("cuMemHostAlloc", [&](Machine& machine) {
    context_now();
    *address = machine.alloc_host(bytes);
  });
}

FAKE_CUDA_API cuMemFreeHost(void* address) {
  return call("cuMemFreeHost", [&](Machine& machine) { machine.free_host(address); });
}

FAKE_CUDA_API cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
  return call("cuMemcpyHtoDAsync_v2", [&](Machine& machine) {
    Stream& known = stream_now(stream);
    machine.check_range(*known.context, to, bytes);
    Work work;
    work.addresses = {to};
    if (machine.is_pinned(from, bytes)) {
      work.run = [&machine, to, from, bytes] {
        if (!machine.is_pinned(from, bytes)) throw Trouble{illegal_address, "pinned memory was freed before its copy"};
        std::memcpy(reinterpret_cast<void*>(to), from, bytes);
      };
    } else {
      const auto* source = static_cast<const unsigned char*>(from);
      work.run = [to, aside = std::vector<unsigned char>(source, source + bytes)] {
        std::memcpy(reinterpret_cast<void*>(to), aside.data(), aside.size());
      };
    }
    machine.give(known, std::move(work));
  });
}

FAKE_CUDA_API cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
  return call("cuMemcpyDtoHAsync_v2", [&](Machine& machine) {
    Stream& known = stream_now(stream);
    machine.check_range(*known.context, from, bytes);
    const bool pinned = machine.is_pinned(to, bytes);
    Work work;
    work.addresses = {from};
    work.run = [&machine, to, from, bytes, pinned] {
      if (pinned && !machine.is_pinned(to, bytes)) {
        throw Trouble{illegal_address, "pinned memory was freed before its copy"};
      }
      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    };
    machine.give(known, std::move(work));
    if (!pinned) machine.run_until([&] { return known.work.empty(); });
    check_lost(*known.context);
  });
}

FAKE_CUDA_API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
  return call("cuMemcpyDtoDAsync_v2", [&](Machine& machine) {
    Stream& known = stream_now(stream);
    machine.check_range(*known.context, from, bytes);
    machine.check_range(*known.context, to, bytes);
    if (to < from + bytes && from < to + bytes) throw Trouble{invalid_value, "a copy between ranges that overlap"};
    Work work;
    work.addresses = {to, from};
    work.run = [to, from, bytes] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    };
    machine.give(known, std::move(work));
  });
}

FAKE_CUDA_API cuMemcpyPeerAsync(uint64_t to, Context* to_context, uint64_t from, Context* from_context, size_t bytes,
                                Stream* stream) {
  return call("cuMemcpyPeerAsync", [&](Machine& machine) {
    Stream& known = stream_now(stream);
    machine.check_range(*from_context, from, bytes);
    machine.check_range(*to_context, to, bytes);
    Work work;
    work.addresses = {to, from};
    work.run = [to, from, bytes] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    };
    machine.give(known, std::move(work));
  });
}

FAKE_CUDA_API cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, Stream* stream) {
  return call("cuMemsetD8Async", [&](Machine& machine) {
    Stream& known = stream_now(stream);
    machine.check_range(*known.context, to, bytes);
    Work work;
    work.addresses = {to};
    work.run = [to, value, bytes] { std::memset(reinterpret_cast<void*>(to), value, bytes); };
    machine.give(known, std::move(work));
  });
}

FAKE_CUDA_API cuMemHostRegister_v2(void* address, size_t bytes, unsigned) {
  return call("cuMemHostRegister_v2", [&](Machine& machine) {
    context_now();
    machine.pin(address, bytes);
  });
}

FAKE_CUDA_API cuMemHostUnregister(void* address) {
  return call("cuMemHostUnregister", [&](Machine& machine) { machine.unpin(address); });
}

FAKE_CUDA_API cuDeviceCanAccessPeer(int* reaches, int device, int other) {
  return call("cuDeviceCanAccessPeer", [&](Machine& machine) {
    machine.context_of(device);
    machine.context_of(other);
    *reaches = machine.options.peer && device != other;
  });
}

FAKE_CUDA_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call("cuCtxGetStreamPriorityRange", [&](Machine&) {
    context_now();
    *least = 0;
    *greatest = -5;
  });
}

FAKE_CUDA_API cuStreamCreateWithPriority(Stream** stream, unsigned, int priority) {
  return call("cuStreamCreateWithPriority", [&](Machine& machine) {
    if (priority > 0 || priority < -5) throw Trouble{invalid_value, "no such priority"};
    *stream = machine.add_stream(context_now());
  });
}

FAKE_CUDA_API cuStreamCreate(Stream** stream, unsigned) {
  return call("cuStreamCreate", [&](Machine& machine) { *stream = machine.add_stream(context_now()); });
}

FAKE_CUDA_API cuStreamGetCtx(Stream* stream, Context** context) {
  return call("cuStreamGetCtx", [&](Machine& machine) { *context = machine.checked(stream).context; });
}

FAKE_CUDA_API cuStreamDestroy_v2(Stream* stream) {
  return call("cuStreamDestroy_v2", [&](Machine& machine) { machine.remove(stream); });
}

FAKE_CUDA_API cuStreamSynchronize(Stream* stream) {
  return call("cuStreamSynchronize", [&](Machine& machine) {
    Stream& known = stream_now(stream);
    if (known.captured) throw Trouble{not_captured, "a wait for a stream that is captured"};
    machine.run_until([&] { return known.work.empty(); });
    check_lost(*known.context);
  });
}

FAKE_CUDA_API cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  return call("cuStreamWaitEvent", [&](Machine& machine) {
    Work work;
    work.waits = machine.checked(event).point;
    if (work.waits) machine.give(stream_now(stream), std::move(work));
  });
}

FAKE_CUDA_API cuEventCreate(Event** event, unsigned flags) {
  return call("cuEventCreate", [&](Machine& machine) {
    *event = machine.add_event(context_now());
    (*event)->has_time = (flags & 2) == 0;
  });
}

FAKE_CUDA_API cuEventElapsedTime(float* time, Event* from, Event* to) {
  return call("cuEventElapsedTime", [&](Machine& machine) {
    const Event &first = machine.checked(from), &last = machine.checked(to);
    if (!first.has_time || !last.has_time || !first.point || !last.point) {
      throw Trouble{invalid_handle, "an event without a time"};
    }
    if (!first.point->passed || !last.point->passed) throw Trouble{not_ready, "an event that has not passed"};
    *time = static_cast<float>(last.point->time - first.point->time);
  });
}

FAKE_CUDA_API cuEventDestroy_v2(Event* event) {
  return call("cuEventDestroy_v2", [&](Machine& machine) { machine.remove(event); });
}

FAKE_CUDA_API cuEventRecord(Event* event, Stream* stream) {
  return call("cuEventRecord", [&](Machine& machine) {
    Event& known = machine.checked(event);
    Stream& target = stream_now(stream);
    if (known.context != target.context) throw Trouble{invalid_handle, "an event of another device is recorded"};
    known.point = std::make_shared<Point>();
    Work work;
    work.marks = known.point;
    machine.give(target, std::move(work));
  });
}

FAKE_CUDA_API cuEventQuery(Event* event) {
  int state = success;
  const int code = call("cuEventQuery", [&](Machine& machine) {
    const std::shared_ptr<Point> point = machine.checked(event).point;
    if (!point || point->passed) return;
    machine.run_one();  // time goes on
    if (!point->passed) state = not_ready;
  });
  return code == success ? state : code;
}

FAKE_CUDA_API cuEventSynchronize(Event* event) {
  return call("cuEventSynchronize", [&](Machine& machine) {
    const Event& known = machine.checked(event);
    const std::shared_ptr<Point> point = known.point;
    if (point) machine.run_until([&] { return point->passed; });
    check_lost(*known.context);
  });
}

FAKE_CUDA_API cuModuleLoadData(Module** module, const void* image) {
  return call("cuModuleLoadData", [&](Machine& machine) {
    Context& context = context_now();
    auto made = std::make_unique<Module>();
    made->context = &context;
    if (!machine.options.idle) made->library = open_image(image);
    *module = made.release();
    ++machine.modules;
  });
}

FAKE_CUDA_API cuModuleUnload(Module* module) {
  return call("cuModuleUnload", [&](Machine& machine) {
    machine.finish(*module->context);
    if (module->library) dlclose(module->library);
    delete module;
    --machine.modules;
  });
}

FAKE_CUDA_API cuModuleGetFunction(Function** function, Module* module, const char* name) {
  return call("cuModuleGetFunction", [&](Machine&) {
    *function = &module->functions.emplace(name, function_of(*module, name)).first->second;
  });
}

FAKE_CUDA_API cuFuncSetAttribute(Function* function, int attribute, int value) {
  return call("cuFuncSetAttribute", [&](Machine&) {
    context_now();
    if (attribute != 8 || value < 0 || value > largest_shared()) throw Trouble{invalid_value, "no such attribute"};
    function->largest_shared = value;
  });
}

FAKE_CUDA_API cuLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z, unsigned items_x, unsigned items_y,
                             unsigned items_z, unsigned shared, Stream* stream, void** parameters, void**) {
  return call("cuLaunchKernel", [&](Machine& machine) {
    Stream& known = stream_now(stream);
    if (function->module->context != known.context) throw Trouble{invalid_context, "a kernel of another device"};
    check_grid(*function, {x, y, z}, {items_x, items_y, items_z}, shared);
    Work work;
    auto values = values_of(*function, parameters, work.addresses);
    work.what = "kernel";
    work.run = [function, x, y, z, shared, values = std::move(values)] {
      run_kernel(*function, {x, y, z}, values, shared);
    };
    machine.give(known, std::move(work));
  });
}
