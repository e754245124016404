// Copies and fills of any size and place: on macOS blits take multiples of four bytes alone, so what is left is a
// kernel's. Read next: programs.cpp.
#include "metal/metal.hpp"

namespace rosin::metal {
namespace {

constexpr uint64_t word = 4, group = 256;

/// As rosin's own text of kernels is, see programs.cpp.
constexpr const char* text = R"(#include <metal_stdlib>
using namespace metal;
struct copy_bytes_arguments {
  device uchar* p0;
  device const uchar* p1;
  alignas(8) ulong a0;
};
struct fill_bytes_arguments {
  device uchar* p0;
  alignas(8) ulong a0;
  alignas(8) uint a1;
};
[[max_total_threads_per_threadgroup(256)]] kernel void copy_bytes(constant copy_bytes_arguments& list [[buffer(0)]], )"
                             R"(uint3 group_place [[threadgroup_position_in_grid]], )"
                             R"(uint item_place [[thread_index_in_threadgroup]]) {
  device uchar* const p0 = list.p0;
  device const uchar* const p1 = list.p1;
  const ulong i = (ulong)group_place.x * 256 + item_place;
  if (i < list.a0) p0[i] = p1[i];
}
[[max_total_threads_per_threadgroup(256)]] kernel void fill_bytes(constant fill_bytes_arguments& list [[buffer(0)]], )"
                             R"(uint3 group_place [[threadgroup_position_in_grid]], )"
                             R"(uint item_place [[thread_index_in_threadgroup]]) {
  device uchar* const p0 = list.p0;
  const ulong i = (ulong)group_place.x * 256 + item_place;
  if (i < list.a0) p0[i] = (uchar)list.a1;
}
)";

Signature signature_of(const char* name) { return {name, group, 0, {}, 0}; }

/// With both kernels made.
rosin_device& with_kernels(rosin_stream& stream) {
  rosin_device& device = *stream.device;
  const std::lock_guard guard(device.lock);
  if (!device.fill_bytes) {
    const Owned library = library_of(device, text);
    device.copy_bytes = pipeline_of(device, library, signature_of("copy_bytes"));
    device.fill_bytes = pipeline_of(device, library, signature_of("fill_bytes"));
  }
  return device;
}

Size groups_for(uint64_t bytes) { return {(bytes + group - 1) / group, 1, 1}; }

}  // namespace

void give_copy(rosin_stream& stream, Part to, Part from, uint64_t bytes) {
  const uint64_t words = (to.offset | from.offset) % word == 0 ? bytes / word * word : 0;
  // Before anything is given, as it may fail.
  const Id pipeline = words < bytes ? with_kernels(stream).copy_bytes.get() : nullptr;
  if (words > 0) {
    send::copy(blit_encoder(stream), from.buffer, from.offset, to.buffer, to.offset, words);
    note_work(stream);
  }
  if (!pipeline) return;
  Arguments arguments;
  arguments.add({to.buffer, to.offset + words});
  arguments.add({from.buffer, from.offset + words});
  arguments.add(bytes - words);
  give_launch(stream, pipeline, group, groups_for(bytes - words), arguments);
}

void give_fill(rosin_stream& stream, Part to, uint64_t bytes, uint8_t value) {
  const uint64_t words = to.offset % word == 0 ? bytes / word * word : 0;
  const Id pipeline = words < bytes ? with_kernels(stream).fill_bytes.get() : nullptr;
  if (words > 0) {
    send::fill(blit_encoder(stream), to.buffer, {to.offset, words}, value);
    note_work(stream);
  }
  if (!pipeline) return;
  Arguments arguments;
  arguments.add({to.buffer, to.offset + words});
  arguments.add(bytes - words);
  arguments.add(value);
  give_launch(stream, pipeline, group, groups_for(bytes - words), arguments);
}

}  // namespace rosin::metal
