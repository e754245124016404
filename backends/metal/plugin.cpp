// The table of functions that librosin_metal.so exports. Read first: rosin/backend.h, metal.hpp.
#include "metal/graph.hpp"
#include "metal/metal.hpp"

namespace rosin::metal {
namespace {

void* native_memory(rosin_memory* memory) { return memory->buffer.get(); }

rosin_backend make_table() {
  rosin_backend table{};
  table.size = sizeof table;
  table.abi = ROSIN_BACKEND_ABI;
  table.name = "Metal";
  table.version = "Metal " ROSIN_VERSION;
  table.error_text = error_text;
  table.device_count = device_count;
  table.capabilities = capabilities;
  table.device_info = device_info;
  table.open = open;
  table.close = close;
  table.alloc = alloc;
  table.release = release;
  table.memory_left = memory_left;
  table.alloc_pinned = alloc_pinned;
  table.release_pinned = release_pinned;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_sync = stream_sync;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_query = event_query;
  table.event_sync = event_sync;
  table.stream_wait = stream_wait;
  table.copy_in = copy_in;
  table.copy_out = copy_out;
  table.copy = copy;
  table.compile = compile;
  table.free_bytes = free_bytes;
  table.load = load;
  table.unload = unload;
  table.kernel = kernel;
  table.launch = launch;
  table.call_takes = call_takes;
  table.call_prepare = call_prepare;
  table.call_destroy = call_destroy;
  table.call_run = call_run;
  table.native_stream = native_stream;
  table.native_memory = native_memory;
  table.compile_key = compile_key;
  table.fill = fill;
  table.stream_adopt = stream_adopt;
  table.event_create_timed = event_create_timed;
  table.event_elapsed = event_elapsed;
  return table;
}

}  // namespace
}  // namespace rosin::metal

extern "C" __attribute__((visibility("default"))) const rosin_backend* rosin_backend_open(uint32_t abi) {
  static const rosin_backend table = rosin::metal::make_table();
  return abi == ROSIN_BACKEND_ABI ? &table : nullptr;
}
