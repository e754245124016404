// What is optional and grew onto the table: services of rosin, memory beside blocks, streams and events of other kinds.
#include <algorithm>
#include <chrono>
#include <thread>

#include "checks.hpp"

namespace rosin::conformance {
namespace {

/// Whether it was done; ROSIN_UNSUPPORTED is a good answer too.
bool done(Rig& rig, rosin_status status, const char* what) {
  if (status == ROSIN_UNSUPPORTED) return false;
  rig.good(status, what);
  return true;
}

std::vector<uint8_t> bytes_from(uint8_t first, size_t count) {
  std::vector<uint8_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<uint8_t>(first + 7 * i);
  return all;
}

void a_compile_key_stays(Rig& rig) {
  if (!rig.api.compile_key) return;
  const char *key = nullptr, *again = nullptr;
  if (!done(rig, rig.api.compile_key(rig.device, &key), "compile_key")) return;
  expect(key && *key, "compile_key gives no text");
  rig.good(rig.api.compile_key(rig.device, &again), "compile_key");
  expect(std::strcmp(key, again) == 0, "compile_key gives another text the second time");
}

void a_fill_fills_its_bytes_and_no_others(Rig& rig) {
  if (!rig.api.fill) return;
  const Memory memory(rig, 1000);
  std::vector<uint8_t> wanted = bytes_from(1, 1000);
  rig.write<uint8_t>(memory.at(), wanted);
  if (!done(rig, rig.api.fill(rig.stream, memory.at(64), 129, 0xa7), "fill")) return;
  rig.good(rig.api.fill(rig.stream, memory.at(512), 0, 1), "fill of 0 bytes");
  std::fill_n(wanted.begin() + 64, 129, uint8_t{0xa7});
  expect(rig.read<uint8_t>(memory.at(), 1000) == wanted, "fill changed other bytes, or not all of its own");
}

void memory_in_the_order_of_a_stream(Rig& rig) {
  if (!rig.api.alloc_ordered) return;
  const Memory kept(rig, 4096);
  for (int turn = 0; turn < 8; ++turn) {
    rosin_memory* block = nullptr;
    if (!done(rig, rig.api.alloc_ordered(rig.stream, 4096, &block), "alloc_ordered")) return;
    const auto values = bytes_from(static_cast<uint8_t>(turn), 4096);
    rig.write<uint8_t>({block, 0}, values);
    rig.good(rig.api.copy(rig.stream, kept.at(), {block, 0}, 4096), "copy");
    rig.good(rig.api.release_ordered(rig.stream, block), "release_ordered");
    expect(rig.read<uint8_t>(kept.at(), 4096) == values, "a block was given back before the work that uses it");
  }
  rosin_memory* none = nullptr;
  rig.fails(rig.api.alloc_ordered(rig.stream, 0, &none), ROSIN_INVALID, "alloc_ordered of 0 bytes");
}

void host_memory_that_is_there_is_pinned(Rig& rig) {
  if (!rig.api.pin) return;
  constexpr size_t page = 4096, count = 4 * page;
  std::vector<uint8_t> room(count + page);
  const auto first = reinterpret_cast<uintptr_t>(room.data());
  uint8_t* memory = room.data() + (page - first % page) % page;
  if (!done(rig, rig.api.pin(rig.device, memory, count), "pin")) return;
  const Memory block(rig, count);
  const auto values = bytes_from(3, count);
  std::copy(values.begin(), values.end(), memory);
  rig.good(rig.api.copy_in(rig.stream, block.at(), memory, count), "copy_in");
  rig.sync();
  std::fill_n(memory, count, uint8_t{0});
  rig.good(rig.api.copy_out(rig.stream, memory, block.at(), count), "copy_out");
  rig.sync();
  expect(std::equal(values.begin(), values.end(), memory), "copies with pinned memory changed what they copied");
  rig.api.unpin(rig.device, memory);
  rig.good(rig.api.pin(rig.device, memory, page), "pin of what was unpinned");
  rig.api.unpin(rig.device, memory);
}

void peers_are_other_devices(Rig& rig) {
  if (!rig.api.peer) return;
  int32_t count = 0;
  rig.good(rig.api.device_count(&count), "device_count");
  for (int32_t i = 0; i < count; ++i) {
    int32_t reaches = -1;
    if (!done(rig, rig.api.peer(rig.device, i, &reaches), "peer")) return;
    expect(reaches == 0 || reaches == 1, "peer gives neither 0 nor 1");
  }
  int32_t reaches = -1;
  rig.fails(rig.api.peer(rig.device, count, &reaches), ROSIN_INVALID, "peer of no device");
  expect(reaches == -1, "peer failed and gave something out");
}

/// A stream that does its work, and goes.
void check_stream(Rig& rig, rosin_stream* stream) {
  const Memory memory(rig, 1000);
  const auto values = bytes_from(9, 1000);
  std::vector<uint8_t> got(1000);
  rig.good(rig.api.copy_in(stream, memory.at(), values.data(), 1000), "copy_in");
  rig.good(rig.api.copy_out(stream, got.data(), memory.at(), 1000), "copy_out");
  rig.good(rig.api.stream_sync(stream), "stream_sync");
  rig.api.stream_destroy(stream);
  expect(got == values, "a stream does not do its work");
}

void streams_have_priorities(Rig& rig) {
  if (!rig.api.stream_create_with) return;
  for (const int32_t priority : {ROSIN_PRIORITY_LOW, ROSIN_PRIORITY_USUAL, ROSIN_PRIORITY_HIGH}) {
    rosin_stream* stream = nullptr;
    if (!done(rig, rig.api.stream_create_with(rig.device, priority, &stream), "stream_create_with")) return;
    check_stream(rig, stream);
  }
}

void a_stream_of_the_vendor_is_adopted_and_lives_on(Rig& rig) {
  if (!rig.api.stream_adopt || !rig.api.native_stream) return;
  rosin_stream* stream = nullptr;
  if (!done(rig, rig.api.stream_adopt(rig.device, rig.api.native_stream(rig.stream), &stream), "stream_adopt")) return;
  expect(rig.api.native_stream(stream) == rig.api.native_stream(rig.stream), "the adopted stream is another one");
  check_stream(rig, stream);
  rig.sync();
}

void events_keep_the_time(Rig& rig) {
  if (!rig.api.event_create_timed) return;
  rosin_event* events[2] = {};
  for (rosin_event*& event : events) {
    if (!done(rig, rig.api.event_create_timed(rig.device, &event), "event_create_timed")) return;
  }
  const auto destroy = [&] { std::for_each(events, events + 2, rig.api.event_destroy); };
  const auto begin = std::chrono::steady_clock::now();
  rig.good(rig.api.event_record(events[0], rig.stream), "event_record");
  rig.sync();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  rig.good(rig.api.event_record(events[1], rig.stream), "event_record");
  rig.good(rig.api.event_sync(events[1]), "event_sync");
  const std::chrono::duration<double> most = std::chrono::steady_clock::now() - begin;
  double seconds = -1;
  const rosin_status status = rig.api.event_elapsed(events[0], events[1], &seconds);
  destroy();
  if (!done(rig, status, "event_elapsed")) return;
  expect(seconds >= 0 && seconds <= most.count() * 1.5, "event_elapsed gives " + std::to_string(seconds) + " s");
}

void ranges_nest(Rig& rig) {
  if (!rig.api.range_begin) return;
  for (const char* name : {"outer", "inner"}) rig.api.range_begin(rig.device, name);
  for (int i = 0; i < 2; ++i) rig.api.range_end(rig.device);
}

constexpr Check checks[] = {
    {"a compile key stays", a_compile_key_stays},
    {"a fill fills its bytes and no others", a_fill_fills_its_bytes_and_no_others},
    {"memory in the order of a stream", memory_in_the_order_of_a_stream},
    {"host memory that is there is pinned", host_memory_that_is_there_is_pinned},
    {"peers are other devices", peers_are_other_devices},
    {"streams have priorities", streams_have_priorities},
    {"a stream of the vendor is adopted and lives on", a_stream_of_the_vendor_is_adopted_and_lives_on},
    {"events keep the time", events_keep_the_time},
    {"ranges nest", ranges_nest},
};

}  // namespace

const Part services_part = {"services", checks};

}  // namespace rosin::conformance
