// Streams and events, which are the driver's own. Read next: programs.cpp.
#include <memory>

#include "driver/driver.hpp"

namespace rosin::driver {
namespace {

constexpr unsigned beside_the_default_stream = 1, without_timing = 2;

}  // namespace

rosin_status stream_create(rosin_device* device, rosin_stream** out) {
  return guarded([&] {
    auto stream = std::make_unique<rosin_stream>();
    stream->device = device;
    const Current current(*device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.stream_create(&stream->stream, beside_the_default_stream), "creation of a stream");
    *out = stream.release();
  });
}

/// Priorities of the driver go from `least`, a larger number, to `greatest`.
rosin_status stream_create_with(rosin_device* device, int32_t priority, rosin_stream** out) {
  return guarded([&] {
    if (priority < ROSIN_PRIORITY_LOW || priority > ROSIN_PRIORITY_HIGH) {
      throw Failure{ROSIN_INVALID, "there is no priority " + std::to_string(priority)};
    }
    auto stream = std::make_unique<rosin_stream>();
    stream->device = device;
    const Current current(*device);
    const Driver& driver = the_driver();
    int least = 0, greatest = 0;
    driver.check(needed(driver.functions.priorities, "priorities")(&least, &greatest), "priorities of streams");
    const int number = priority == ROSIN_PRIORITY_LOW    ? least
                       : priority == ROSIN_PRIORITY_HIGH ? greatest
                                                         : (least + greatest) / 2;
    driver.check(
        needed(driver.functions.stream_create_with, "priorities")(&stream->stream, beside_the_default_stream, number),
        "creation of a stream");
    *out = stream.release();
  });
}

rosin_status stream_adopt(rosin_device* device, void* native, rosin_stream** out) {
  return guarded([&] {
    auto stream = std::make_unique<rosin_stream>();
    stream->device = device;
    stream->stream = static_cast<Stream>(native);
    stream->adopted = true;
    *out = stream.release();
  });
}

void stream_destroy(rosin_stream* stream) {
  if (!stream) return;
  if (!stream->adopted)
    guarded([&] {
      const Current current(*stream->device);
      the_driver().functions.stream_destroy(stream->stream);
    });
  delete stream;
}

rosin_status stream_sync(rosin_stream* stream) {
  return guarded([&] {
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.stream_sync(stream->stream), "wait for the stream");
  });
}

namespace {

rosin_status create_event(rosin_device* device, unsigned flags, rosin_event** out) {
  return guarded([&] {
    auto event = std::make_unique<rosin_event>();
    event->device = device;
    const Current current(*device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.event_create(&event->event, flags), "creation of an event");
    *out = event.release();
  });
}

}  // namespace

rosin_status event_create(rosin_device* device, rosin_event** out) { return create_event(device, without_timing, out); }
rosin_status event_create_timed(rosin_device* device, rosin_event** out) { return create_event(device, 0, out); }

rosin_status event_elapsed(rosin_event* from, rosin_event* to, double* seconds) {
  return guarded([&] {
    const Current current(*from->device);
    const Driver& driver = the_driver();
    float milliseconds = 0;
    const Code code = needed(driver.functions.event_elapsed, "time")(&milliseconds, from->event, to->event);
    if (driver.status_of(code) == ROSIN_NOT_READY) throw Failure{ROSIN_INVALID, "an event has not ended"};
    driver.check(code, "time between events");
    *seconds = static_cast<double>(milliseconds) / 1000;
  });
}

void event_destroy(rosin_event* event) {
  if (!event) return;
  guarded([&] {
    const Current current(*event->device);
    the_driver().functions.event_destroy(event->event);
  });
  delete event;
}

rosin_status event_record(rosin_event* event, rosin_stream* stream) {
  return guarded([&] {
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.event_record(event->event, stream->stream), "record of an event");
  });
}

rosin_status event_query(rosin_event* event) {
  rosin_status state = ROSIN_OK;
  const rosin_status status = guarded([&] {
    const Current current(*event->device);
    const Driver& driver = the_driver();
    const Code code = driver.functions.event_query(event->event);
    state = driver.status_of(code);
    if (state != ROSIN_NOT_READY) driver.check(code, "question for an event");
  });
  return status == ROSIN_OK ? state : status;
}

rosin_status event_sync(rosin_event* event) {
  return guarded([&] {
    const Current current(*event->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.event_sync(event->event), "wait for an event");
  });
}

rosin_status stream_wait(rosin_stream* stream, rosin_event* event) {
  return guarded([&] {
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.stream_wait(stream->stream, event->event, 0), "wait of a stream for an event");
  });
}

void* native_stream(rosin_stream* stream) { return stream->stream; }

}  // namespace rosin::driver
