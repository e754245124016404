// The reference back end: devices that are this processor, with memory and streams of their own, running the code of
// kernels instruction by instruction. It plays what tests need (options.hpp), finds what a GPU would not tell
// (interpret.hpp), and is the shortest full example of a plug-in.
// Read first: rosin/backend.h. Read next: device.hpp, stream.hpp, program.hpp, interpret.hpp.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "graph.hpp"
#include "work.hpp"

namespace rosin::reference {
namespace {

// ---- Devices ----

/// What device_count saw last. Never destroyed: threads may ask until the process ends.
struct Visible {
  std::mutex mutex;
  bool read = false;
  Options options;
};

Visible& visible() {
  static auto* all = new Visible;
  return *all;
}

Options options_now(bool again) {
  Visible& seen = visible();
  const std::lock_guard lock(seen.mutex);
  if (again || !seen.read) seen.options = read_options();
  seen.read = true;
  return seen.options;
}

Options options_for(int32_t device) {
  const Options options = options_now(false);
  need(device >= 0 && device < static_cast<int32_t>(options.visible.size()), "no such device");
  return options;
}

const char* last_error() { return error_text().c_str(); }

rosin_status device_count(int32_t* count) {
  const rosin_status status = guarded([&] { *count = static_cast<int32_t>(options_now(true).visible.size()); });
  if (status == ROSIN_OK) error_text() = options_now(false).hidden_by;
  return status;
}

template <size_t n> void put(char (&to)[n], const std::string& text) { std::snprintf(to, n, "%s", text.c_str()); }

rosin_status device_info(int32_t device, rosin_device_info* info) {
  return guarded([&] {
    const Options options = options_for(device);
    need(info != nullptr && info->size >= sizeof(info->size), "device_info: a struct without its size");
    rosin_device_info all{};
    all.size = info->size;
    const int32_t hardware = options.visible[static_cast<size_t>(device)];
    put(all.name, std::string(role.device) + " " + std::to_string(hardware));
    put(all.driver, std::string("rosin reference ") + ROSIN_VERSION);
    put(all.capability, role.capability);
    put(all.target, target_name(options.float64));
    all.memory = all.largest_allocation = options.memory;
    all.kind = options.kind;
    all.language = ROSIN_LANGUAGE_NONE;
    all.float64 = options.float64;
    all.largest_group = largest_group;
    all.shared_bytes = shared_bytes;
    all.alignment = alignment;
    all.units = 1;  // a stream has one thread
    all.warp = options.first_page ? 1 : warp;
    all.vector_bytes = vector_bytes;
    all.largest_shared = largest_shared;
    if (!options.first_page) {
      all.instructions = ROSIN_TAKES_VECTORS | ROSIN_TAKES_READ_ONLY | ROSIN_TAKES_SHUFFLE | ROSIN_TAKES_LARGE_SHARED |
                         ROSIN_TAKES_MATRICES | ROSIN_TAKES_CHOICES | ROSIN_TAKES_ARRIVALS;
      all.matrix_types = matrix_types;
    }
    all.uuid[0] = 1;
    all.uuid[15] = static_cast<unsigned char>(hardware);
    std::memcpy(info, &all, std::min(info->size, sizeof(all)));
  });
}

/// What rosin does for this plug-in, once it has said so.
std::atomic<const rosin_host*> host{nullptr};

void attach(const rosin_host* given) { host = given; }

/// Counts openings on disk, and says how many there were: keep=1.
void note_opening() {
  const rosin_host* services = host;
  if (!services) return;
  uint32_t count = 0;
  if (services->cache_get(services, "openings", &count, sizeof count) != sizeof count) count = 0;
  ++count;
  services->cache_put(services, "openings", &count, sizeof count);
  services->log(services, ROSIN_LOG_INFO, ("opened " + std::to_string(count) + " times").c_str());
}

rosin_status open(int32_t device, rosin_device** out) {
  return guarded([&] {
    auto opened = std::make_unique<rosin_device>();
    opened->options = options_for(device);
    if (opened->options.keep) note_opening();
    opened->target = target_name(opened->options.float64);
    *out = opened.release();
  });
}

void close(rosin_device* device) { delete device; }

// ---- Memory ----

rosin_status alloc(rosin_device* device, uint64_t bytes, rosin_memory** out) {
  return guarded([&] { *out = device->alloc(bytes); });
}

void release(rosin_device* device, rosin_memory* memory) { device->release(memory); }

rosin_status memory_left(rosin_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
  return guarded([&] {
    *total_bytes = device->options.memory;
    *free_bytes = device->options.memory - device->used();
  });
}

rosin_status pinned_alloc(rosin_device* device, uint64_t bytes, void** out) {
  return guarded([&] {
    device->need_alive();
    *out = alloc_pinned(bytes);
  });
}

void pinned_release(rosin_device*, void* memory) { release_pinned(memory); }

// ---- Streams and events ----

rosin_status stream_create(rosin_device* device, rosin_stream** out) {
  return guarded([&] {
    device->need_alive();
    *out = new rosin_stream(*device);
  });
}

void stream_destroy(rosin_stream* stream) { delete stream; }

rosin_status stream_sync(rosin_stream* stream) {
  return guarded([&] {
    stream->wait();
    stream->device.need_alive();
  });
}

rosin_status event_create(rosin_device* device, rosin_event** out) {
  return guarded([&] {
    auto event = std::make_unique<rosin_event>();
    event->device = device;
    *out = event.release();
  });
}

void event_destroy(rosin_event* event) { delete event; }

rosin_status event_record(rosin_event* event, rosin_stream* stream) {
  return guarded([&] {
    if (event->clock) {
      stream->give_always([clock = event->clock] { clock->time = std::chrono::steady_clock::now(); });
    }
    event->progress = stream->progress;
    event->number = stream->given();
  });
}

rosin_status event_query(rosin_event* event) {
  bool reached = true;
  const rosin_status status = guarded([&] {
    event->device->need_alive();
    reached = !event->progress || event->progress->reached(event->number);
  });
  return status == ROSIN_OK && !reached ? ROSIN_NOT_READY : status;
}

rosin_status event_sync(rosin_event* event) {
  return guarded([&] {
    if (event->progress) event->progress->wait(event->number);
    event->device->need_alive();
  });
}

rosin_status stream_wait(rosin_stream* stream, rosin_event* event) {
  return guarded([&] {
    if (!event->progress) return;
    stream->give([progress = event->progress, number = event->number] { progress->wait(number); });
  });
}

// ---- Copies ----

rosin_status copy_in(rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
  return guarded([&] {
    stream->device.need_alive();
    char* target = bytes_at(stream->device, to, bytes);
    if (bytes == 0) return;
    if (is_pinned(from, bytes)) return stream->give([=] { std::memcpy(target, from, bytes); });
    const auto* letters = static_cast<const char*>(from);
    stream->give([target, kept = std::vector<char>(letters, letters + bytes)] {
      std::memcpy(target, kept.data(), kept.size());
    });
  });
}

rosin_status copy_out(rosin_stream* stream, void* to, rosin_place from, uint64_t bytes) {
  return guarded([&] {
    stream->device.need_alive();
    const char* source = bytes_at(stream->device, from, bytes);
    if (bytes == 0) return;
    const bool waits = !is_pinned(to, bytes);
    stream->give([=, &device = stream->device, number = stream->device.give_copy_out()] {
      std::memcpy(to, source, bytes);
      device.end_copy_out(number);
    });
    if (!waits) return;
    stream->wait();
    stream->device.need_alive();
  });
}

rosin_status copy(rosin_stream* stream, rosin_place to, rosin_place from, uint64_t bytes) {
  return guarded([&] {
    stream->device.need_alive();
    stream->give(copy_work(stream->device, to, from, bytes));
  });
}

rosin_status copy_peer(rosin_stream* stream, rosin_place to, rosin_device* from_device, rosin_place from,
                       uint64_t bytes) {
  return guarded([&] {
    stream->device.need_alive();
    from_device->need_alive();
    char* target = bytes_at(stream->device, to, bytes);
    const char* source = bytes_at(*from_device, from, bytes);
    stream->give([=] { std::memmove(target, source, bytes); });
  });
}

rosin_status fill(rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value) {
  return guarded([&] {
    stream->device.need_alive();
    stream->give(fill_work(stream->device, to, bytes, value));
  });
}

rosin_status alloc_ordered(rosin_stream* stream, uint64_t bytes, rosin_memory** out) {
  return guarded([&] { *out = stream->device.alloc(bytes); });
}

rosin_status release_ordered(rosin_stream* stream, rosin_memory* memory) {
  return guarded([&] {
    need(memory != nullptr && memory->device == &stream->device, "release_ordered: memory of another device");
    stream->give_always([memory, &device = stream->device] { device.release(memory); });
  });
}

rosin_status pin(rosin_device* device, void* memory, uint64_t bytes) {
  return guarded([&] {
    device->need_alive();
    pin_memory(memory, bytes);
  });
}

void unpin(rosin_device*, void* memory) { unpin_memory(memory); }

rosin_status peer(rosin_device*, int32_t other, int32_t* reaches) {
  return guarded([&] {
    options_for(other);
    *reaches = 1;
  });
}

// ---- Streams and events, what is optional ----

/// All priorities are one.
rosin_status stream_create_with(rosin_device* device, int32_t priority, rosin_stream** out) {
  return guarded([&] {
    need(priority >= ROSIN_PRIORITY_LOW && priority <= ROSIN_PRIORITY_HIGH, "stream_create_with: no such priority");
    device->need_alive();
    *out = new rosin_stream(*device);
  });
}

rosin_status event_create_timed(rosin_device* device, rosin_event** out) {
  const rosin_status status = event_create(device, out);
  if (status == ROSIN_OK) (*out)->clock = std::make_shared<EventClock>();
  return status;
}

rosin_status event_elapsed(rosin_event* from, rosin_event* to, double* seconds) {
  return guarded([&] {
    need(from->clock && to->clock, "event_elapsed: an event that keeps no time");
    for (const rosin_event* event : {from, to}) {
      need(event->progress && event->progress->reached(event->number), "event_elapsed: an event that has not ended");
    }
    *seconds = std::chrono::duration<double>(to->clock->time - from->clock->time).count();
  });
}

/// What this thread has begun.
thread_local int ranges = 0;

void range_begin(rosin_device*, const char*) { ++ranges; }
void range_end(rosin_device*) { --ranges; }

// ---- Kernels ----

rosin_status compile(rosin_device*, const char* target, const rosin_program* program, void** bytes, uint64_t* count) {
  return guarded([&] {
    const std::string made = program_bytes(taken(program), target);
    *bytes = std::malloc(made.size());
    if (!*bytes) throw std::bad_alloc();
    std::memcpy(*bytes, made.data(), made.size());
    *count = made.size();
  });
}

void free_bytes(void* bytes) { std::free(bytes); }

rosin_status load(rosin_device* device, const void* bytes, uint64_t count, rosin_module** out) {
  return guarded([&] {
    device->need_alive();
    auto made = std::make_unique<rosin_module>();
    made->kernels = kernels_in({static_cast<const char*>(bytes), count}, *device);
    *out = made.release();
  });
}

void unload(rosin_module* module) { delete module; }

rosin_status kernel(rosin_module* module, const char* name, rosin_kernel** out) {
  return guarded([&] {
    for (rosin_kernel& one : module->kernels) {
      if (one.code.name() != name) continue;
      *out = &one;
      return;
    }
    throw Failure(ROSIN_INVALID, std::string("kernel: the module has no ") + name);
  });
}

rosin_status launch(rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch) {
  return guarded([&] {
    stream->device.need_alive();
    stream->give(launch_work(stream->device, *kernel, launch));
  });
}

// ---- Vendor calls ----

rosin_status call_takes(rosin_device* device, const rosin_call_description* description, int32_t* orders) {
  return guarded([&] {
    checked_matmul(*device, taken(description));
    orders[0] = orders[1] = ROSIN_ORDER_STRIDED;
  });
}

rosin_status call_prepare(rosin_device* device, const rosin_call_description* description, rosin_call** out,
                          uint64_t* workspace) {
  return guarded([&] {
    auto call = std::make_unique<rosin_call>();
    *call = {device, checked_matmul(*device, taken(description)), {}};
    check_sizes(*device, call->what, taken(description).workspace);
    *out = call.release();
    *workspace = matmul_workspace;
  });
}

void call_destroy(rosin_call* call) { delete call; }

rosin_status call_run(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                      const rosin_call_numbers* numbers) {
  return guarded([&] {
    stream->device.need_alive();
    stream->give(call_work(stream->device, *call, buffers, workspace, numbers));
  });
}

rosin_status call_tune(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                       uint64_t, const rosin_call_numbers* numbers, uint64_t* needed) {
  return guarded([&] {
    using Clock = std::chrono::steady_clock;
    Clock::duration best = Clock::duration::max();
    MatmulWay fastest = MatmulWay::columns;
    for (const MatmulWay way : {MatmulWay::columns, MatmulWay::rows}) {
      stream->wait();
      const Clock::time_point begin = Clock::now();
      call->what.way = way;
      stream->give(call_work(stream->device, *call, buffers, workspace, numbers));
      stream->wait();
      stream->device.need_alive();
      const Clock::duration took = Clock::now() - begin;
      if (took >= best) continue;
      best = took;
      fastest = way;
    }
    call->what.way = fastest;
    *needed = matmul_workspace;
  });
}

rosin_status call_choice(rosin_call* call, const void** bytes, uint64_t* count) {
  return guarded([&] {
    put_choice(*call);
    *bytes = call->choice;
    *count = sizeof(call->choice);
  });
}

// ---- Graphs ----

rosin_status graph_create(rosin_device* device, rosin_graph** out) {
  return guarded([&] {
    device->need_alive();
    device->need_graphs("create");
    *out = new rosin_graph(*device);
  });
}

rosin_status graph_add(rosin_graph* graph, const rosin_graph_node* node) {
  return guarded([&] {
    const rosin_graph_node known = taken(node);
    graph->device.need_graphs(known.kind == ROSIN_GRAPH_CALL ? "call" : "add");
    graph->add(known);
  });
}

rosin_status graph_finish(rosin_graph* graph) {
  return guarded([&] {
    graph->device.need_graphs("finish");
    graph->finish();
  });
}

rosin_status graph_update(rosin_graph* graph, uint32_t node, const rosin_graph_node* arguments) {
  return guarded([&] {
    graph->device.need_graphs("update");
    graph->update(node, taken(arguments));
  });
}

rosin_status graph_launch(rosin_stream* stream, rosin_graph* graph) {
  return guarded([&] {
    stream->device.need_alive();
    stream->device.need_graphs("launch");
    if (stream->device.graph_fails()) throw Failure(ROSIN_INVALID, "graph_launch: refused; graph_fail says so");
    graph->launch(*stream);
  });
}

void graph_destroy(rosin_graph* graph) { delete graph; }

/// The matmul that vendor=1 and vendor=2 offer.
rosin_status capabilities(const rosin_capability** list, uint32_t* count) {
  return guarded([&] {
    static constexpr rosin_capability all[] = {{"reference-matmul", ROSIN_VERSION, nullptr}};
    *list = all;
    *count = options_now(false).vendor ? 1 : 0;
  });
}

/// What is optional.
void add_the_rest(rosin_backend& all) {
  all.call_takes = &call_takes;
  all.call_prepare = &call_prepare;
  all.call_destroy = &call_destroy;
  all.call_run = &call_run;
  all.call_tune = &call_tune;
  all.call_choice = &call_choice;
  all.graph_create = &graph_create;
  all.graph_add = &graph_add;
  all.graph_finish = &graph_finish;
  all.graph_update = &graph_update;
  all.graph_launch = &graph_launch;
  all.graph_destroy = &graph_destroy;
  all.attach = &attach;
  all.fill = &fill;
  all.alloc_ordered = &alloc_ordered;
  all.release_ordered = &release_ordered;
  all.pin = &pin;
  all.unpin = &unpin;
  all.peer = &peer;
  all.stream_create_with = &stream_create_with;
  all.event_create_timed = &event_create_timed;
  all.event_elapsed = &event_elapsed;
  all.range_begin = &range_begin;
  all.range_end = &range_end;
}

rosin_backend table() {
  rosin_backend all{};
  all.size = sizeof(all);
  all.abi = ROSIN_BACKEND_ABI;
  all.name = role.name;
  all.version = ROSIN_VERSION;
  all.error_text = &last_error;
  all.device_count = &device_count;
  all.capabilities = &capabilities;
  all.device_info = &device_info;
  all.open = &open;
  all.close = &close;
  all.alloc = &alloc;
  all.release = &release;
  all.memory_left = &memory_left;
  all.alloc_pinned = &pinned_alloc;
  all.release_pinned = &pinned_release;
  all.stream_create = &stream_create;
  all.stream_destroy = &stream_destroy;
  all.stream_sync = &stream_sync;
  all.event_create = &event_create;
  all.event_destroy = &event_destroy;
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
  all.unload = &unload;
  all.kernel = &kernel;
  all.launch = &launch;
  add_the_rest(all);
  return all;
}

}  // namespace
}  // namespace rosin::reference

extern "C" __attribute__((visibility("default"))) const rosin_backend* rosin_backend_open(uint32_t abi) {
  static const rosin_backend all = rosin::reference::table();
  return abi == ROSIN_BACKEND_ABI ? &all : nullptr;
}
