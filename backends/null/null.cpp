// The null back end: accepts everything, computes nothing, keeps no element, counts calls. With it the host's own cost
// of a step is measured. What is copied out is zero. rosin_null_counts("launch") says how often a function was called.
// Read first: rosin/backend.h.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <string_view>

#include <rosin/backend.h>

struct rosin_device {};
struct rosin_memory {};
struct rosin_stream {};
struct rosin_event {};
struct rosin_kernel {};
struct rosin_graph {
  uint32_t nodes = 0;
  bool finished = false;
};
struct rosin_module {
  rosin_kernel kernel;
};

namespace rosin::null {
namespace {

/// Order and names: `names`.
enum class Function {
  alloc,
  release,
  alloc_pinned,
  release_pinned,
  stream_create,
  stream_destroy,
  stream_sync,
  event_create,
  event_destroy,
  event_record,
  event_query,
  event_sync,
  stream_wait,
  copy_in,
  copy_out,
  copy,
  copy_peer,
  compile,
  load,
  unload,
  kernel,
  launch,
  graph_create,
  graph_add,
  graph_finish,
  graph_update,
  graph_launch,
  graph_destroy,
  fill
};

constexpr std::string_view names[] = {
    "alloc",        "release",      "alloc_pinned",  "release_pinned", "stream_create", "stream_destroy",
    "stream_sync",  "event_create", "event_destroy", "event_record",   "event_query",   "event_sync",
    "stream_wait",  "copy_in",      "copy_out",      "copy",           "copy_peer",     "compile",
    "load",         "unload",       "kernel",        "launch",         "graph_create",  "graph_add",
    "graph_finish", "graph_update", "graph_launch",  "graph_destroy",  "fill"};
static_assert(std::size(names) == static_cast<size_t>(Function::fill) + 1);

std::atomic<uint64_t> counts[std::size(names)];
thread_local const char* text = "";

rosin_status count(Function function) {
  counts[static_cast<size_t>(function)].fetch_add(1, std::memory_order_relaxed);
  text = "";
  return ROSIN_OK;
}

rosin_status refuse(rosin_status status, const char* why) {
  text = why;
  return status;
}

template <class T> rosin_status make(Function function, T** out) {
  *out = new (std::nothrow) T;
  return *out ? count(function) : refuse(ROSIN_OUT_OF_MEMORY, "out of memory on the host");
}

template <class T, Function function> void destroy(T* object) {
  count(function);
  delete object;
}

const char* error_text() { return text; }

rosin_status device_count(int32_t* devices) {
  *devices = 1;
  return ROSIN_OK;
}

rosin_status device_info(int32_t device, rosin_device_info* info) {
  if (device != 0 || !info || info->size < sizeof(info->size)) return refuse(ROSIN_INVALID, "device_info: no device 0");
  rosin_device_info all{};
  all.size = info->size;
  std::strcpy(all.name, "Null device 0");
  std::strcpy(all.driver, "rosin null");
  std::strcpy(all.capability, "null");
  std::strcpy(all.target, "null");
  all.memory = all.largest_allocation = uint64_t{1} << 40;
  all.kind = ROSIN_DEVICE_OTHER;
  all.language = ROSIN_LANGUAGE_NONE;
  all.float64 = 1;
  all.largest_group = 256;
  all.shared_bytes = 16384;
  all.alignment = 256;
  all.units = all.warp = 1;
  all.vector_bytes = 16;
  all.argument_bytes = 4096;
  std::memcpy(info, &all, info->size < sizeof(all) ? info->size : sizeof(all));
  return ROSIN_OK;
}

rosin_status open(int32_t device, rosin_device** out) {
  if (device != 0) return refuse(ROSIN_INVALID, "open: no such device");
  *out = new (std::nothrow) rosin_device;
  return *out ? ROSIN_OK : refuse(ROSIN_OUT_OF_MEMORY, "out of memory on the host");
}

void close(rosin_device* device) { delete device; }

rosin_status alloc(rosin_device*, uint64_t bytes, rosin_memory** out) {
  return bytes == 0 ? refuse(ROSIN_INVALID, "alloc: 0 bytes") : make(Function::alloc, out);
}

void release(rosin_device*, rosin_memory* memory) {
  count(Function::release);
  delete memory;
}

rosin_status alloc_pinned(rosin_device*, uint64_t bytes, void** out) {
  *out = std::calloc(1, bytes);
  return *out ? count(Function::alloc_pinned) : refuse(ROSIN_OUT_OF_MEMORY, "out of memory on the host");
}

void release_pinned(rosin_device*, void* memory) {
  count(Function::release_pinned);
  std::free(memory);
}

rosin_status stream_create(rosin_device*, rosin_stream** out) { return make(Function::stream_create, out); }
rosin_status stream_sync(rosin_stream*) { return count(Function::stream_sync); }
rosin_status event_create(rosin_device*, rosin_event** out) { return make(Function::event_create, out); }
rosin_status event_record(rosin_event*, rosin_stream*) { return count(Function::event_record); }
rosin_status event_query(rosin_event*) { return count(Function::event_query); }
rosin_status event_sync(rosin_event*) { return count(Function::event_sync); }
rosin_status stream_wait(rosin_stream*, rosin_event*) { return count(Function::stream_wait); }

rosin_status copy_in(rosin_stream*, rosin_place, const void*, uint64_t) { return count(Function::copy_in); }
rosin_status copy_out(rosin_stream*, void* to, rosin_place, uint64_t bytes) {
  std::memset(to, 0, bytes);
  return count(Function::copy_out);
}
rosin_status copy(rosin_stream*, rosin_place, rosin_place, uint64_t) { return count(Function::copy); }
rosin_status copy_peer(rosin_stream*, rosin_place, rosin_device*, rosin_place, uint64_t) {
  return count(Function::copy_peer);
}

constexpr std::string_view program = "rosin null program";

rosin_status compile(rosin_device*, const char*, const rosin_program*, void** bytes, uint64_t* size) {
  *bytes = std::malloc(program.size());
  if (!*bytes) return refuse(ROSIN_OUT_OF_MEMORY, "out of memory on the host");
  std::memcpy(*bytes, program.data(), program.size());
  *size = program.size();
  return count(Function::compile);
}

void free_bytes(void* bytes) { std::free(bytes); }

rosin_status load(rosin_device*, const void* bytes, uint64_t size, rosin_module** out) {
  if (std::string_view(static_cast<const char*>(bytes), size) != program) {
    return refuse(ROSIN_INVALID, "load: these bytes are no program of the null device");
  }
  return make(Function::load, out);
}

rosin_status kernel(rosin_module* module, const char*, rosin_kernel** out) {
  *out = &module->kernel;
  return count(Function::kernel);
}

rosin_status launch(rosin_stream*, rosin_kernel*, const rosin_launch*) { return count(Function::launch); }

rosin_status graph_create(rosin_device*, rosin_graph** out) { return make(Function::graph_create, out); }

rosin_status graph_add(rosin_graph* graph, const rosin_graph_node* node) {
  if (graph->finished) return refuse(ROSIN_INVALID, "graph_add: the graph is finished");
  for (uint32_t i = 0; i < node->dependency_count; ++i) {
    if (node->dependencies[i] >= graph->nodes) return refuse(ROSIN_INVALID, "graph_add: a dependency comes later");
  }
  ++graph->nodes;
  return count(Function::graph_add);
}

rosin_status graph_finish(rosin_graph* graph) {
  graph->finished = true;
  return count(Function::graph_finish);
}

rosin_status graph_update(rosin_graph* graph, uint32_t node, const rosin_graph_node*) {
  if (!graph->finished || node >= graph->nodes) return refuse(ROSIN_INVALID, "graph_update: no such node");
  return count(Function::graph_update);
}

rosin_status graph_launch(rosin_stream*, rosin_graph* graph) {
  return graph->finished ? count(Function::graph_launch) : refuse(ROSIN_INVALID, "graph_launch: not finished");
}

rosin_status fill(rosin_stream*, rosin_place, uint64_t, uint8_t) { return count(Function::fill); }
rosin_status alloc_ordered(rosin_stream*, uint64_t bytes, rosin_memory** out) { return alloc(nullptr, bytes, out); }
rosin_status release_ordered(rosin_stream*, rosin_memory* memory) {
  release(nullptr, memory);
  return ROSIN_OK;
}
rosin_status pin(rosin_device*, void*, uint64_t) { return ROSIN_OK; }
void unpin(rosin_device*, void*) {}
rosin_status stream_create_with(rosin_device*, int32_t, rosin_stream** out) {
  return make(Function::stream_create, out);
}

/// It has none: what it computes is nothing.
rosin_status capabilities(const rosin_capability** list, uint32_t* number) {
  *list = nullptr;
  *number = 0;
  return ROSIN_OK;
}

rosin_backend table() {
  rosin_backend all{};
  all.size = sizeof(all);
  all.abi = ROSIN_BACKEND_ABI;
  all.name = "null";
  all.version = ROSIN_VERSION;
  all.error_text = &error_text;
  all.device_count = &device_count;
  all.capabilities = &capabilities;
  all.device_info = &device_info;
  all.open = &open;
  all.close = &close;
  all.alloc = &alloc;
  all.release = &release;
  all.alloc_pinned = &alloc_pinned;
  all.release_pinned = &release_pinned;
  all.stream_create = &stream_create;
  all.stream_destroy = &destroy<rosin_stream, Function::stream_destroy>;
  all.stream_sync = &stream_sync;
  all.event_create = &event_create;
  all.event_destroy = &destroy<rosin_event, Function::event_destroy>;
  all.event_record = &event_record;
  all.event_query = &event_query;
  all.event_sync = &event_sync;
  all.stream_wait = &stream_wait;
  all.copy_in = &copy_in;
  all.copy_out = &copy_out;
  all.copy = &copy;
  all.copy_peer = &copy_peer;
  all.compile = &compile;
  all.free_bytes = &free_bytes;
  all.load = &load;
  all.unload = &destroy<rosin_module, Function::unload>;
  all.kernel = &kernel;
  all.launch = &launch;
  all.graph_create = &graph_create;
  all.graph_add = &graph_add;
  all.graph_finish = &graph_finish;
  all.graph_update = &graph_update;
  all.graph_launch = &graph_launch;
  all.graph_destroy = &destroy<rosin_graph, Function::graph_destroy>;
  all.fill = &fill;
  all.alloc_ordered = &alloc_ordered;
  all.release_ordered = &release_ordered;
  all.pin = &pin;
  all.unpin = &unpin;
  all.stream_create_with = &stream_create_with;
  return all;
}

}  // namespace
}  // namespace rosin::null

extern "C" __attribute__((visibility("default"))) const rosin_backend* rosin_backend_open(uint32_t abi) {
  static const rosin_backend all = rosin::null::table();
  return abi == ROSIN_BACKEND_ABI ? &all : nullptr;
}

/// How often the function of that name was called with success in this process; 0 for names that are not counted.
extern "C" __attribute__((visibility("default"))) uint64_t rosin_null_counts(const char* function) {
  for (size_t i = 0; i < std::size(rosin::null::names); ++i) {
    if (rosin::null::names[i] == function) return rosin::null::counts[i].load(std::memory_order_relaxed);
  }
  return 0;
}
