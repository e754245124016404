// The thread of a stream; see stream.hpp.
#include "stream.hpp"

#include <chrono>

rosin_stream::rosin_stream(rosin_device& owner) : device(owner), thread_([this] { work(); }) {}

rosin_stream::~rosin_stream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  more_.notify_one();
  thread_.join();
}

void rosin_stream::give(Piece piece) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(piece));
  }
  ++given_;
  more_.notify_one();
}

void rosin_stream::work() {
  while (true) {
    Piece next;
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    run(next);
    next.work = nullptr;  // what it holds goes before it counts as done
    {
      const std::lock_guard lock(progress->mutex);
      ++progress->done;
    }
    progress->changed.notify_all();
  }
}

void rosin_stream::run(const Piece& piece) {
  if (piece.always) return piece.work();
  if (device.failed()) return;
  if (device.options.delay) std::this_thread::sleep_for(std::chrono::milliseconds(device.options.delay));
  try {
    piece.work();
  } catch (const std::exception& error) {
    device.fail(error.what());
  }
}
