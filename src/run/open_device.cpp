// See open_device.hpp.
#include "run/open_device.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <rosin/error.hpp>

#include "base/workers.hpp"
#include "run/status.hpp"

namespace rosin {
namespace {

constexpr size_t listed_launches = 8;
constexpr const char* without_it = "other devices work on, this one needs a new process";

}  // namespace

rosin_device* OpenDevice::open(int id) {
  info.size = sizeof info;
  require_ok(functions, functions.device_info(id, &info), "open", name);
  rosin_device* opened = nullptr;
  require_ok(functions, functions.open(id, &opened), "open", name);
  return opened;
}

OpenDevice::OpenDevice(const rosin_backend& backend, int id, std::string text, int index)
    : functions(backend), name(std::move(text)), device(open(id)), pool(*this, index, info.largest_allocation),
      kernels(*this) {
  for (int kind = 0; kind < stream_kinds; ++kind) {
    streams_[static_cast<size_t>(kind)] = std::make_unique<DeviceStream>(*this, index, static_cast<StreamKind>(kind));
  }
  try {
    const DeviceStream::Turn turn(compute());
  } catch (const Error&) {
    const std::string said = functions.error_text();
    functions.close(device);
    throw Error(ErrorKind::device, "open: " + name + " gives no stream; " + said);
  }
}

void OpenDevice::refuse_if_failed() {
  const std::lock_guard guard(faults_);
  refuse_failed();
}

/// Holds `faults_`.
void OpenDevice::refuse_failed() const {
  if (fault_.empty()) return;
  throw Error(ErrorKind::backend,
              name + ": the device failed before and is not used any more; " + fault_ + "; " + without_it);
}

void OpenDevice::finish() {
  for (const auto& stream : streams_) stream->synchronize();
}

void OpenDevice::synchronize() {
  finish();
  flags.look(compute().last());
}

/// Holds `retiring_`.
template <class Over> void OpenDevice::free_retired(Over is_over) noexcept {
  std::erase_if(retired_, [&](const Retired& one) {
    const bool over = is_over(one.used_by);
    if (over) one.graph ? functions.graph_destroy(one.graph) : functions.call_destroy(one.call);
    return over;
  });
}

void OpenDevice::retire(Retired retired) noexcept {
  const std::lock_guard guard(retiring_);
  free_retired([](Ticket used_by) { return is_over(used_by); });
  try {
    retired_.push_back(retired);
  } catch (const std::bad_alloc&) {  // then it stays
  }
}

/// The launches of the last runs that are not known to be over. Holds `faults_`.
std::string OpenDevice::in_flight() const {
  std::vector<const std::string*> launches;
  for (size_t i = noted_ - std::min(noted_, last_runs_.size()); i < noted_; ++i) {
    const Note& note = last_runs_[i % last_runs_.size()];
    if (is_over(note.run)) continue;
    for (const std::string& ops : *note.ops) launches.push_back(&ops);
  }
  std::string text;
  const size_t first = launches.size() - std::min(launches.size(), listed_launches);
  for (size_t i = first; i < launches.size(); ++i) text += " [" + *launches[i] + "]";
  return text;
}

void OpenDevice::fail(rosin_status status, std::string_view what) {
  if (status != ROSIN_DEVICE_FAULT) throw_status(functions, status, what, name);
  const std::lock_guard guard(faults_);
  refuse_failed();
  fault_ = functions.error_text();
  if (fault_.empty()) fault_ = "the back end gives no reason";
  std::string text = std::string(what) + ": " + name + " failed; " + fault_;
  if (const std::string launches = in_flight(); !launches.empty()) text += "; in flight, the last ones:" + launches;
  throw Error(ErrorKind::backend, text + "; " + without_it + "; ROSIN_SYNC=1 launches one by one and names the op");
}

void OpenDevice::give_up(const std::string& why) {
  const std::lock_guard guard(faults_);
  if (fault_.empty()) fault_ = "a run was cut off, after which values are neither old nor new: " + why;
}

void OpenDevice::note(Ticket run, std::shared_ptr<const std::vector<std::string>> ops) {
  const std::lock_guard guard(faults_);
  last_runs_[noted_++ % last_runs_.size()] = {run, std::move(ops)};
}

void OpenDevice::trim() {
  unload_kernels();
  pool.trim();
}

void OpenDevice::unload_kernels() {
  const DeviceStream::Turn turn(compute());
  check(functions.stream_sync(compute().queue()), "synchronize");
  {
    const std::lock_guard guard(retiring_);
    free_retired([](Ticket) { return true; });  // graphs go before the kernels that stand in them
  }
  kernels.unload_unused();
}

namespace {

/// Between the program's memory and staging. One thread is slower than the bus.
void copy_bytes(void* to, const void* from, size_t bytes) {
  constexpr size_t chunk = size_t{1} << 20;
  parallel_for(static_cast<int64_t>((bytes + chunk - 1) / chunk), [&](int64_t i) {
    const size_t begin = static_cast<size_t>(i) * chunk;
    std::memcpy(static_cast<unsigned char*>(to) + begin, static_cast<const unsigned char*>(from) + begin,
                std::min(chunk, bytes - begin));
  });
}

}  // namespace

Ticket OpenDevice::upload(DeviceBlock& to, const void* from, size_t bytes) {
  DeviceStream& stream = this->stream(StreamKind::copy_in);
  Ticket copied;
  for (size_t begin = 0; begin < bytes; begin += Staging::most_bytes) {
    const size_t count = std::min(bytes - begin, Staging::most_bytes);
    Staged staged(staged_in_, count);
    copy_bytes(staged.memory(), static_cast<const unsigned char*>(from) + begin, count);
    const DeviceStream::Turn turn(stream);
    stream.order_to_write(to);
    const rosin_place place{static_cast<rosin_memory*>(to.data), begin};
    check(functions.copy_in(stream.queue(), place, staged.memory(), count), "copy to the device");
    copied = stream.record();
    staged.used_by(copied);
    stream.has_written(to, copied);
    to.made_by.store({}, std::memory_order_relaxed);
  }
  return copied;
}

/// A part of a download, in memory that the device can copy to.
struct OpenDevice::Piece {
  Piece(Staging& staging, size_t from, size_t bytes) : begin(from), count(bytes), staged(staging, bytes) {}
  size_t begin, count;
  Staged staged;
  Ticket copied;
};

void OpenDevice::start_download(DeviceBlock& from, Piece& piece) {
  DeviceStream& stream = this->stream(StreamKind::copy_out);
  const DeviceStream::Turn turn(stream);
  stream.order_to_read(from);
  const rosin_place place{static_cast<rosin_memory*>(from.data), piece.begin};
  check(functions.copy_out(stream.queue(), piece.staged.memory(), place, piece.count), "copy from the device");
  piece.copied = stream.record();
  piece.staged.used_by(piece.copied);
  stream.has_read(from, piece.copied);
}

void OpenDevice::finish_download(void* to, const Piece& piece) {
  stream(StreamKind::copy_out).wait(piece.copied);
  copy_bytes(static_cast<unsigned char*>(to) + piece.begin, piece.staged.memory(), piece.count);
}

void OpenDevice::download(void* to, DeviceBlock& from, size_t bytes) {
  std::optional<Piece> pieces[2];  // while one is taken out, the next is on its way
  size_t next = 0;
  for (size_t begin = 0; begin < bytes; begin += Staging::most_bytes, next ^= 1) {
    pieces[next].emplace(staged_out_, begin, std::min(bytes - begin, Staging::most_bytes));
    start_download(from, *pieces[next]);
    if (pieces[next ^ 1]) finish_download(to, *pieces[next ^ 1]);
  }
  if (pieces[next ^ 1]) finish_download(to, *pieces[next ^ 1]);
  flags.look(from.made_by);
  flags.refuse_lost(from);
}

}  // namespace rosin
