// The table of functions that librosin_opencl.so exports. Read first: rosin/backend.h, opencl.hpp.
#include "opencl.hpp"

namespace rosin::opencl {
namespace {

void* native_stream(rosin_stream* stream) { return stream->queue.get(); }
void* native_memory(rosin_memory* memory) { return memory->memory.get(); }

const rosin_backend table = {
    .size = sizeof(rosin_backend),
    .abi = ROSIN_BACKEND_ABI,
    .name = "OpenCL",
    .version = "OpenCL 1.2 and later",
    .error_text = error_text,
    .device_count = device_count,
    .capabilities = capabilities,
    .device_info = device_info,
    .open = open,
    .close = close,
    .alloc = alloc,
    .release = release,
    .memory_left = nullptr,
    .alloc_pinned = alloc_pinned,
    .release_pinned = release_pinned,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_sync = stream_sync,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_sync = event_sync,
    .stream_wait = stream_wait,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy = copy,
    .copy_peer = nullptr,
    .compile = compile,
    .free_bytes = free_bytes,
    .load = load,
    .unload = unload,
    .kernel = kernel,
    .launch = launch,
    .call_takes = nullptr,
    .call_prepare = nullptr,
    .call_destroy = nullptr,
    .call_run = nullptr,
    .call_tune = nullptr,
    .call_choice = nullptr,
    .graph_create = nullptr,
    .graph_add = nullptr,
    .graph_finish = nullptr,
    .graph_update = nullptr,
    .graph_launch = nullptr,
    .graph_destroy = nullptr,
    .native_stream = native_stream,
    .native_memory = native_memory,
    .attach = nullptr,
    .compile_key = nullptr,
    .fill = fill,
    .alloc_ordered = nullptr,
    .release_ordered = nullptr,
    .pin = nullptr,
    .unpin = nullptr,
    .peer = nullptr,
    .stream_create_with = nullptr,
    .stream_adopt = stream_adopt,
    .event_create_timed = nullptr,
    .event_elapsed = nullptr,
    .range_begin = nullptr,
    .range_end = nullptr,
    .call_reserve = nullptr,
};

}  // namespace
}  // namespace rosin::opencl

extern "C" __attribute__((visibility("default"))) const rosin_backend* rosin_backend_open(uint32_t abi) {
  return abi == ROSIN_BACKEND_ABI ? &rosin::opencl::table : nullptr;
}
