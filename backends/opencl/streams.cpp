// Streams are in-order command queues; an event is the marker that was recorded last. Read next: programs.cpp.
#include <memory>
#include <utility>

#include "opencl.hpp"

namespace rosin::opencl {

rosin_status stream_create(rosin_device* device, rosin_stream** out) {
  return guarded([&] {
    auto stream = std::make_unique<rosin_stream>();
    stream->device = device;
    stream->queue = make_queue(device->context.get(), device->facts->id);
    *out = stream.release();
  });
}

rosin_status stream_adopt(rosin_device* device, void* native, rosin_stream** out) {
  return guarded([&] {
    auto* queue = static_cast<cl_command_queue>(native);
    auto stream = std::make_unique<rosin_stream>();
    stream->device = device;
    check(clRetainCommandQueue(queue), "clRetainCommandQueue");
    stream->queue = Queue(queue);
    *out = stream.release();
  });
}

void stream_destroy(rosin_stream* stream) { delete stream; }

rosin_status stream_sync(rosin_stream* stream) {
  return guarded([&] { check(clFinish(stream->queue.get()), "clFinish"); });
}

rosin_status event_create(rosin_device* device, rosin_event** out) {
  return guarded([&] {
    auto event = std::make_unique<rosin_event>();
    event->device = device;
    *out = event.release();
  });
}

namespace {

/// PoCL 3.1 aborts when the last reference to an event goes while the thread that completes it is still leaving it
/// ("PTHREAD ERROR in POclReleaseEvent"). So the last events are held for a while.
void retire(rosin_device& device, Event event) {
  constexpr size_t held_events = 256;
  if (!event.get()) return;
  const std::lock_guard guard(device.lock);
  device.retired.push_back(std::move(event));
  if (device.retired.size() > held_events) device.retired.pop_front();
}

}  // namespace

void event_destroy(rosin_event* event) {
  retire(*event->device, std::move(event->event));
  delete event;
}

rosin_status event_record(rosin_event* event, rosin_stream* stream) {
  return guarded([&] {
    cl_event made = nullptr;
    check(clEnqueueMarkerWithWaitList(stream->queue.get(), 0, nullptr, &made), "clEnqueueMarkerWithWaitList");
    retire(*event->device, std::exchange(event->event, Event(made)));
    event->device = stream->device;
    // Whoever waits for the event from elsewhere does not start this queue.
    check(clFlush(stream->queue.get()), "clFlush");
  });
}

rosin_status event_query(rosin_event* event) {
  cl_int state = CL_COMPLETE;
  const rosin_status status = guarded([&] {
    if (!event->event.get()) return;
    check(clGetEventInfo(event->event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr),
          "clGetEventInfo");
    if (state < 0) throw Failure{ROSIN_DEVICE_FAULT, "work before the event failed: error " + std::to_string(state)};
  });
  return status == ROSIN_OK && state != CL_COMPLETE ? ROSIN_NOT_READY : status;
}

rosin_status event_sync(rosin_event* event) {
  return guarded([&] {
    const cl_event waited = event->event.get();
    if (waited) check(clWaitForEvents(1, &waited), "clWaitForEvents");
  });
}

rosin_status stream_wait(rosin_stream* stream, rosin_event* event) {
  // A queue can wait only for events of its own context, which is the device's.
  if (event->device != stream->device) return event_sync(event);
  return guarded([&] {
    const cl_event waited = event->event.get();
    if (!waited) return;
    check(clEnqueueBarrierWithWaitList(stream->queue.get(), 1, &waited, nullptr), "clEnqueueBarrierWithWaitList");
  });
}

}  // namespace rosin::opencl
