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

void stream_destroy(rosin_stream* stream) {
  if (!stream) return;
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

rosin_status event_create(rosin_device* device, rosin_event** out) {
  return guarded([&] {
    auto event = std::make_unique<rosin_event>();
    event->device = device;
    const Current current(*device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.event_create(&event->event, without_timing), "creation of an event");
    *out = event.release();
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
