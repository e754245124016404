// Opening Metal, which devices there are, what they can do. Read next: streams.cpp.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>

#include "common/text_field.hpp"
#include "driver/libraries.hpp"
#include "metal/graph.hpp"
#include "metal/graph_messages.hpp"
#include "metal/metal.hpp"

namespace rosin::metal {
namespace {

using driver::Library;

#ifdef __APPLE__
constexpr bool is_apple = true;
#else
constexpr bool is_apple = false;
#endif

constexpr const char* variable_of_tests = "ROSIN_METAL_LIBRARIES";

Runtime opened_runtime;
Id (*copy_all_devices)() = nullptr;

Failure unusable(std::string why) { return {ROSIN_UNSUPPORTED, std::move(why)}; }

/// A library of the system, or of the folders that tests name.
Library opened(const char* path) {
  Library library = driver::open_driver_library({variable_of_tests, {}, nullptr, nullptr, nullptr}, {path});
  if (!library.handle) throw unusable("Metal is not there (" + library.reason + ")");
  return library;
}

template <class F> void find(const Library& library, F& function, const char* name) {
  function = reinterpret_cast<F>(library.find(name));
  if (!function) throw unusable(std::string("Metal is too old: there is no ") + name);
}

void open_libraries() {
  if (!is_apple && driver::variable(variable_of_tests).empty()) throw unusable("Metal exists on Apple's systems only");
  const Library objc = opened("/usr/lib/libobjc.A.dylib");
  find(objc, opened_runtime.get_class, "objc_getClass");
  find(objc, opened_runtime.register_name, "sel_registerName");
  find(objc, opened_runtime.message_send, "objc_msgSend");
  find(objc, opened_runtime.retain, "objc_retain");
  find(objc, opened_runtime.release, "objc_release");
  find(objc, opened_runtime.pool_push, "objc_autoreleasePoolPush");
  find(objc, opened_runtime.pool_pop, "objc_autoreleasePoolPop");
  find(opened("/System/Library/Frameworks/Metal.framework/Metal"), copy_all_devices, "MTLCopyAllDevices");
}

/// "macOS 14.5 (Build 23F79)"
std::string system_text() {
  const Id process = send::process_info(runtime().get_class("NSProcessInfo"));
  std::string text = text_of(send::system_version(process));
  constexpr std::string_view before = "Version ";
  return "macOS " + (text.starts_with(before) ? text.substr(before.size()) : text);
}

/// The newest family that Apple's own GPUs belong to; 0: it is none of them.
int64_t apple_family(Id device) {
  int64_t family = family_apple_newest;
  while (family >= family_apple_1 && !send::supports_family(device, family)) --family;
  return family >= family_apple_1 ? family - family_apple_1 + 1 : 0;
}

DeviceFacts facts_of(Id device, const std::string& system) {
  DeviceFacts facts;
  facts.id = Owned::shared(device);
  facts.is_unified = send::has_unified_memory(device);
  const int64_t apple = apple_family(device);
  rosin_device_info& info = facts.info;
  info.size = sizeof info;
  plugin::put(info.name, text_of(send::name(device)));
  plugin::put(info.driver, "Metal 3, " + system);
  plugin::put(info.capability, apple > 0 ? "Apple" + std::to_string(apple) : "Mac2");
  plugin::put(info.target, "metal3");
  info.memory = send::working_set_size(device);
  info.largest_allocation = send::max_buffer_length(device);
  info.kind = ROSIN_DEVICE_GPU;
  info.language = ROSIN_LANGUAGE_METAL;
  info.largest_group = largest_group;
  info.shared_bytes = static_cast<int64_t>(send::max_threadgroup_memory(device));
  info.alignment = 256;
  info.argument_bytes = largest_inline;
  info.vector_bytes = 16;
  info.instructions = ROSIN_TAKES_VECTORS | ROSIN_TAKES_READ_ONLY | ROSIN_TAKES_CHOICES;
  if (apple > 0) {  // elsewhere each kernel may have another one
    info.warp = 32;
    info.instructions |= ROSIN_TAKES_SHUFFLE;
  }
  return facts;
}

/// MPSGraph reads arrays at any place of a buffer from macOS 15 on.
std::string why_no_graphs() {
  constexpr const char* path =
      "/System/Library/Frameworks/MetalPerformanceShadersGraph.framework/MetalPerformanceShadersGraph";
  const Library library = driver::open_driver_library({variable_of_tests, {}, nullptr, nullptr, nullptr}, {path});
  if (!library.handle) return "MPSGraph is not there (" + library.reason + ")";
  const Id arrays = runtime().get_class("MPSNDArray");
  if (arrays && send::instances_respond(arrays, send::init_array.selector())) return {};
  return "MPSGraph reads no arrays within a buffer before macOS 15";
}

std::string why_unknown_attention(const Metal& metal) {
  if (!metal.why_no_graphs.empty()) return metal.why_no_graphs;
  const Id graphs = runtime().get_class("MPSGraph");
  const bool knows = graphs && send::instances_respond(graphs, send::attention.selector()) &&
                     send::instances_respond(graphs, send::masked_attention.selector());
  return knows ? "" : "MPSGraph has no attention before macOS 15";
}

Metal look_for_devices() {
  open_libraries();
  const Pool pool;
  Metal metal;
  metal.system = system_text();
  metal.why_no_graphs = why_no_graphs();
  metal.why_no_attention = why_unknown_attention(metal);
  const Owned all = Owned::given(copy_all_devices());
  const uint64_t count = send::count(all.get());
  for (uint64_t i = 0; i < count; ++i) {
    const Id device = send::object_at(all.get(), i);
    if (send::supports_family(device, family_metal_3)) {
      metal.devices.push_back(facts_of(device, metal.system));
    } else {
      metal.passed_over.append(metal.passed_over.empty() ? "" : ", ").append(text_of(send::name(device)));
    }
  }
  return metal;
}

/// Metal, or why there is none: it is opened once, and never closed.
struct Opened {
  std::optional<Metal> metal;
  Failure failure{ROSIN_OK, {}};

  Opened() {
    try {
      metal = look_for_devices();
    } catch (const Failure& why) {
      failure = why;
    }
  }
};

const DeviceFacts& facts_of(int32_t device) {
  const auto& all = the_metal().devices;
  if (device >= 0 && static_cast<size_t>(device) < all.size()) return all[static_cast<size_t>(device)];
  throw Failure{ROSIN_INVALID,
                "there is no device " + std::to_string(device) + "; devices: " + std::to_string(all.size())};
}

std::string why_none(const Metal& metal) {
  if (metal.passed_over.empty()) return "Metal finds no GPU";
  const char* which = metal.passed_over.find(", ") == std::string::npos ? "the GPU has" : "the GPUs have";
  return std::string(which) + " no Metal 3 (" + metal.passed_over + "; " + metal.system +
         "); it takes macOS 13 and a Mac that runs it";
}

}  // namespace

const Runtime& runtime() { return opened_runtime; }

const Metal& the_metal() {
  static const Opened& once = *new Opened;
  if (!once.metal) throw once.failure;
  return *once.metal;
}

rosin_status device_count(int32_t* count) {
  return guarded([&] {
    const Metal& metal = the_metal();
    if (metal.devices.empty()) plugin::set_error(why_none(metal));
    *count = static_cast<int32_t>(metal.devices.size());
  });
}

namespace {

/// "14.5" of "macOS 14.5 (Build 23F79)": what comes with the system has its version.
std::string version_of(const std::string& system) {
  const size_t begin = system.find(' ') + 1;
  return system.substr(begin, system.find(' ', begin) - begin);
}

/// The first device tries.
std::string why_no_attention_here() {
  rosin_device* opened = nullptr;
  if (open(0, &opened) != ROSIN_OK) return plugin::error_text();
  const std::unique_ptr<rosin_device, void (*)(rosin_device*)> first(opened, close);
  return why_no_attention(*first);
}

}  // namespace

rosin_status capabilities(const rosin_capability** list, uint32_t* count) {
  return guarded([&] {
    static const std::string version = version_of(the_metal().system);
    static const std::string attention = why_no_attention_here();
    static const rosin_capability all[] = {{"MPSGraph", version.c_str(), the_metal().why_no_graphs.c_str()},
                                           {"MPSGraph attention", version.c_str(), attention.c_str()}};
    *list = all;
    *count = std::size(all);
  });
}

rosin_status device_info(int32_t device, rosin_device_info* info) {
  return guarded([&] {
    rosin_device_info known = facts_of(device).info;
    known.size = std::min(info->size, sizeof known);
    std::memcpy(info, &known, known.size);
  });
}

rosin_status open(int32_t device, rosin_device** out) {
  return guarded([&] {
    const DeviceFacts& facts = facts_of(device);
    auto opened = std::make_unique<rosin_device>();
    opened->facts = &facts;
    *out = opened.release();
  });
}

void close(rosin_device* device) {
  pooled([&] { delete device; });
}

}  // namespace rosin::metal
