// Streams are command queues. Work is encoded into a command buffer, which is started when something waits for it or
// when there is much of it; each sends the next number to the stream's shared event at its end. An event of rosin is
// the command buffer that was started last, and its number. Read next: memory.cpp.
#include <algorithm>
#include <memory>

#include "metal/metal.hpp"

namespace rosin::metal {
namespace {

constexpr int most_work = 50;  // pieces in a command buffer: few, so that the device starts early

Owned found(Id object, const char* what) {
  if (!object) throw Failure{ROSIN_OUT_OF_MEMORY, std::string("Metal gives no ") + what};
  return Owned::shared(object);
}

bool has_ended(const Owned& buffer) { return !buffer || send::status(buffer.get()) >= status_completed; }

void end_encoder(rosin_stream& stream) {
  if (stream.encoder) send::end_encoding(stream.encoder.get());
  stream.encoder = {};
  stream.used.clear();
  stream.encodes = rosin_stream::Encodes::nothing;
}

std::string text_of_error(Id buffer) {
  const std::string text = text_of(send::localized_description(send::error(buffer)));
  return "a command buffer failed: " + (text.empty() ? "Metal gives no text" : text);
}

/// With the lock held. Streams that wait for what failed go on.
void lose(rosin_device& device, std::string why) {
  if (device.why_lost.empty()) device.why_lost = std::move(why);
  for (rosin_stream* stream : device.streams) send::set_signaled_value(stream->signal.get(), UINT64_MAX);
}

}  // namespace

void check_lost(rosin_device& device) {
  const std::lock_guard guard(device.lock);
  if (!device.why_lost.empty()) throw Failure{ROSIN_DEVICE_FAULT, device.why_lost};
}

void check_work(rosin_device& device) {
  {
    const std::lock_guard guard(device.lock);
    std::erase_if(device.under_way, [&](const Owned& buffer) {
      if (!has_ended(buffer)) return false;
      if (send::status(buffer.get()) == status_error) lose(device, text_of_error(buffer.get()));
      return true;
    });
  }
  check_lost(device);
}

Id open_buffer(rosin_stream& stream) {
  if (!stream.open) {
    check_work(*stream.device);
    stream.open = found(send::command_buffer(stream.queue.get()), "command buffer");
  }
  end_encoder(stream);
  return stream.open.get();
}

Id compute_encoder(rosin_stream& stream) {
  if (stream.encodes != rosin_stream::Encodes::kernels) {
    stream.encoder = found(send::compute_encoder(open_buffer(stream)), "compute encoder");
    stream.encodes = rosin_stream::Encodes::kernels;
  }
  return stream.encoder.get();
}

Id blit_encoder(rosin_stream& stream) {
  if (stream.encodes != rosin_stream::Encodes::copies) {
    stream.encoder = found(send::blit_encoder(open_buffer(stream)), "blit encoder");
    stream.encodes = rosin_stream::Encodes::copies;
  }
  return stream.encoder.get();
}

void commit(rosin_stream& stream) {
  if (!stream.open) return;
  end_encoder(stream);
  const Owned buffer = std::exchange(stream.open, {}), graphs = std::exchange(stream.graphs, {});
  stream.work = 0;
  {
    const std::lock_guard guard(stream.device->lock);
    if (!stream.device->why_lost.empty()) return;
    stream.device->under_way.push_back(buffer);
  }
  send::encode_signal(buffer.get(), stream.signal.get(), ++stream.started);
  send::commit(buffer.get());
  stream.last = buffer;
}

void go_on_in(rosin_stream& stream, Id buffer) {
  if (buffer == stream.open.get()) return;
  const std::lock_guard guard(stream.device->lock);
  stream.device->under_way.push_back(std::exchange(stream.open, Owned::shared(buffer)));
}

void note_work(rosin_stream& stream) {
  if (++stream.work >= most_work) commit(stream);
}

namespace {

/// A command buffer that fails may send nothing, and then those that wait for it would not end either.
void wait_for(rosin_device& device, const Owned& buffer, const Owned& signal, uint64_t value) {
  constexpr uint64_t milliseconds = 100;
  while (!has_ended(buffer)) {
    if (send::wait_until_signaled(signal.get(), value, milliseconds)) send::wait_until_completed(buffer.get());
    else check_work(device);
  }
  check_work(device);
}

}  // namespace

void finish(rosin_stream& stream) {
  commit(stream);
  wait_for(*stream.device, stream.last, stream.signal, stream.started);
}

bool is_idle(rosin_stream& stream) { return !stream.open && has_ended(stream.last); }

namespace {

void make_stream(rosin_device& device, Owned queue, rosin_stream** out) {
  auto stream = std::make_unique<rosin_stream>();
  stream->device = &device;
  stream->queue = std::move(queue);
  stream->signal = Owned::given(send::new_shared_event(device.id()));
  if (!stream->signal) throw Failure{ROSIN_OUT_OF_MEMORY, "Metal gives no shared event"};
  const std::lock_guard guard(device.lock);
  device.streams.push_back(stream.get());
  *out = stream.release();
}

}  // namespace

rosin_status stream_create(rosin_device* device, rosin_stream** out) {
  return pooled([&] {
    check_lost(*device);
    Owned queue = Owned::given(send::new_queue(device->id()));
    if (!queue) throw Failure{ROSIN_OUT_OF_MEMORY, "Metal gives no command queue"};
    make_stream(*device, std::move(queue), out);
  });
}

rosin_status stream_adopt(rosin_device* device, void* native, rosin_stream** out) {
  return pooled([&] { make_stream(*device, Owned::shared(static_cast<Id>(native)), out); });
}

void stream_destroy(rosin_stream* stream) {
  if (!stream) return;
  pooled([&] {
    commit(*stream);
    const std::lock_guard guard(stream->device->lock);
    std::erase(stream->device->streams, stream);
  });
  delete stream;
}

rosin_status stream_sync(rosin_stream* stream) {
  return pooled([&] { finish(*stream); });
}

/// Whoever gives work to the queue by itself does so behind ours.
void* native_stream(rosin_stream* stream) {
  pooled([&] { commit(*stream); });
  return stream->queue.get();
}

namespace {

rosin_status make_event(rosin_device* device, bool is_timed, rosin_event** out) {
  return guarded([&] {
    auto event = std::make_unique<rosin_event>();
    event->device = device;
    event->is_timed = is_timed;
    *out = event.release();
  });
}

}  // namespace

rosin_status event_create(rosin_device* device, rosin_event** out) { return make_event(device, false, out); }
rosin_status event_create_timed(rosin_device* device, rosin_event** out) { return make_event(device, true, out); }

void event_destroy(rosin_event* event) { delete event; }

rosin_status event_record(rosin_event* event, rosin_stream* stream) {
  return pooled([&] {
    check_lost(*stream->device);
    if (event->is_timed) open_buffer(*stream);  // whose end is the time
    commit(*stream);
    event->device = stream->device;
    event->buffer = stream->last;
    event->signal = stream->signal;
    event->value = stream->started;
  });
}

rosin_status event_query(rosin_event* event) {
  bool ended = true;
  const rosin_status status = pooled([&] {
    ended = has_ended(event->buffer);
    if (ended && event->buffer) check_work(*event->device);
  });
  return status == ROSIN_OK && !ended ? ROSIN_NOT_READY : status;
}

rosin_status event_sync(rosin_event* event) {
  return pooled([&] {
    if (event->buffer) wait_for(*event->device, event->buffer, event->signal, event->value);
  });
}

rosin_status event_elapsed(rosin_event* from, rosin_event* to, double* seconds) {
  return pooled([&] {
    for (const rosin_event* event : {from, to}) {
      if (!event->is_timed || !event->buffer || !has_ended(event->buffer))
        throw Failure{ROSIN_INVALID, "an event keeps no time, or has not ended"};
    }
    *seconds = send::gpu_end_time(to->buffer.get()) - send::gpu_end_time(from->buffer.get());
  });
}

rosin_status stream_wait(rosin_stream* stream, rosin_event* event) {
  if (event->device != stream->device) return event_sync(event);
  return pooled([&] {
    check_lost(*stream->device);
    if (event->signal.get() == stream->signal.get() || has_ended(event->buffer)) return;
    send::encode_wait(open_buffer(*stream), event->signal.get(), event->value);
  });
}

}  // namespace rosin::metal
