// Streams, events, and several threads at once. What takes time here are copies, so that the checks need no kernel.
#include <algorithm>
#include <atomic>
#include <thread>

#include "checks.hpp"

namespace rosin::conformance {
namespace {

constexpr size_t large = size_t{4} << 20;

class Stream {
 public:
  explicit Stream(Rig& rig) : rig_(rig) { rig.good(rig.api.stream_create(rig.device, &stream_), "stream_create"); }
  ~Stream() {
    (void)rig_.api.stream_sync(stream_);
    rig_.api.stream_destroy(stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  rosin_stream* get() const { return stream_; }

 private:
  Rig& rig_;
  rosin_stream* stream_ = nullptr;
};

class Event {
 public:
  explicit Event(Rig& rig) : rig_(rig) { rig.good(rig.api.event_create(rig.device, &event_), "event_create"); }
  ~Event() { rig_.api.event_destroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  rosin_event* get() const { return event_; }

 private:
  Rig& rig_;
  rosin_event* event_ = nullptr;
};

// Streams stand after the memory they use, so that they end first, whatever happens.

/// Gives the stream work that ends with `value` in every byte of `memory` (of `large` bytes).
void long_work(Rig& rig, rosin_stream* stream, const Memory& memory, const Memory& scratch, uint8_t value) {
  const std::vector<uint8_t> bytes(large, value);
  rig.good(rig.api.copy_in(stream, scratch.at(), bytes.data(), large), "copy_in");
  for (int i = 0; i < 8; ++i) {
    rig.good(rig.api.copy(stream, memory.at(), scratch.at(), large), "copy");
    rig.good(rig.api.copy(stream, scratch.at(), memory.at(), large), "copy");
  }
}

bool all_are(const std::vector<uint8_t>& bytes, uint8_t value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](uint8_t byte) { return byte == value; });
}

void an_event_never_recorded_has_ended(Rig& rig) {
  Event event(rig);
  rig.good(rig.api.event_query(event.get()), "event_query");
  rig.good(rig.api.event_sync(event.get()), "event_sync");
  rig.good(rig.api.stream_wait(rig.stream, event.get()), "stream_wait");
  rig.sync();
}

void an_event_ends_with_the_work_before_it(Rig& rig) {
  Memory memory(rig, large), scratch(rig, large);
  Event event(rig);
  Stream stream(rig);
  for (uint8_t round = 1; round < 4; ++round) {
    long_work(rig, stream.get(), memory, scratch, round);
    rig.good(rig.api.event_record(event.get(), stream.get()), "event_record");
    const rosin_status now = rig.api.event_query(event.get());
    expect(now == ROSIN_OK || now == ROSIN_NOT_READY, std::string("event_query gave ") + name_of(now));
    rig.good(rig.api.event_sync(event.get()), "event_sync");
    rig.good(rig.api.event_query(event.get()), "event_query after event_sync");
    expect(all_are(rig.read<uint8_t>(memory.at(), large), round), "event_sync returned before the work was done");
  }
}

void stream_sync_waits_for_all_work(Rig& rig) {
  Memory memory(rig, large), scratch(rig, large);
  Event event(rig);
  Stream stream(rig);
  long_work(rig, stream.get(), memory, scratch, 9);
  rig.good(rig.api.event_record(event.get(), stream.get()), "event_record");
  rig.good(rig.api.stream_sync(stream.get()), "stream_sync");
  rig.good(rig.api.event_query(event.get()), "event_query after stream_sync");
  expect(all_are(rig.read<uint8_t>(memory.at(), large), 9), "stream_sync returned before the work was done");
}

void a_stream_waits_for_another(Rig& rig) {
  Memory memory(rig, large), scratch(rig, large), result(rig, large);
  Event ready(rig), taken(rig);
  Stream one(rig), other(rig);
  for (uint8_t round = 1; round < 6; ++round) {
    // `one` writes again only when `other` has read: two events, both ways.
    rig.good(rig.api.stream_wait(one.get(), taken.get()), "stream_wait");
    long_work(rig, one.get(), memory, scratch, round);
    rig.good(rig.api.event_record(ready.get(), one.get()), "event_record");
    rig.good(rig.api.stream_wait(other.get(), ready.get()), "stream_wait");
    rig.good(rig.api.copy(other.get(), result.at(), memory.at(), large), "copy");
    rig.good(rig.api.event_record(taken.get(), other.get()), "event_record");
    std::vector<uint8_t> bytes(large);
    rig.good(rig.api.copy_out(other.get(), bytes.data(), result.at(), large), "copy_out");
    expect(all_are(bytes, round), "a stream did not wait for an event of another");
  }
}

void a_wait_means_the_event_as_it_was(Rig& rig) {
  Memory memory(rig, large), scratch(rig, large), result(rig, large);
  Event event(rig);
  Stream one(rig), other(rig);
  for (uint8_t round = 1; round < 6; ++round) {
    long_work(rig, one.get(), memory, scratch, round);
    rig.good(rig.api.event_record(event.get(), one.get()), "event_record");
    rig.good(rig.api.stream_wait(other.get(), event.get()), "stream_wait");
    // Recorded anew elsewhere: the wait above still stands for the work of `one`.
    rig.good(rig.api.event_record(event.get(), rig.stream), "event_record");
    rig.good(rig.api.copy(other.get(), result.at(), memory.at(), large), "copy");
    rig.good(rig.api.stream_sync(other.get()), "stream_sync");
    expect(all_are(rig.read<uint8_t>(result.at(), large), round), "recording an event anew undid a wait");
  }
}

void devices_wait_for_each_other(Rig& rig) {
  int32_t count = 0;
  rig.good(rig.api.device_count(&count), "device_count");
  for (int32_t i = 0; i < count; ++i) {
    if (i == rig.number) continue;
    Rig other(rig.api, i);
    Memory memory(rig, large), scratch(rig, large), there(other, large);
    Event event(rig);
    long_work(rig, rig.stream, memory, scratch, 5);
    rig.good(rig.api.event_record(event.get(), rig.stream), "event_record");
    other.good(rig.api.stream_wait(other.stream, event.get()), "stream_wait on another device");
    const std::vector<uint8_t> bytes(large, 6);
    other.write<uint8_t>(there.at(), bytes);
    expect(all_are(other.read<uint8_t>(there.at(), large), 6), "another device's memory is wrong");
    expect(all_are(rig.read<uint8_t>(memory.at(), large), 5), "two devices share memory");
    other.sync();
  }
}

void threads_use_streams_of_their_own(Rig& rig) {
  std::atomic<int> broken = 0;
  const auto work = [&](uint8_t mine) {
    try {
      Stream stream(rig);
      for (int round = 0; round < 20; ++round) {
        Memory one(rig, 100000), other(rig, 100000);
        const std::vector<uint8_t> bytes(100000, mine);
        rig.good(rig.api.copy_in(stream.get(), one.at(), bytes.data(), bytes.size()), "copy_in");
        rig.good(rig.api.copy(stream.get(), other.at(), one.at(), bytes.size()), "copy");
        std::vector<uint8_t> back(bytes.size());
        rig.good(rig.api.copy_out(stream.get(), back.data(), other.at(), back.size()), "copy_out");
        if (back != bytes) ++broken;
      }
    } catch (const Broken&) {
      ++broken;
    }
  };
  std::vector<std::thread> threads;
  for (uint8_t i = 0; i < 4; ++i) threads.emplace_back(work, static_cast<uint8_t>(i + 1));
  for (std::thread& thread : threads) thread.join();
  expect(broken == 0, std::to_string(broken) + " rounds went wrong");
}

constexpr Check checks[] = {
    {"an event never recorded has ended", an_event_never_recorded_has_ended},
    {"an event ends with the work before it", an_event_ends_with_the_work_before_it},
    {"stream_sync waits for all work", stream_sync_waits_for_all_work},
    {"a stream waits for another", a_stream_waits_for_another},
    {"a wait means the event as it was", a_wait_means_the_event_as_it_was},
    {"devices wait for each other", devices_wait_for_each_other},
    {"threads use streams of their own", threads_use_streams_of_their_own},
};

}  // namespace

const Part streams_part = {"streams", checks};

}  // namespace rosin::conformance
