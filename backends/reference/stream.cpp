// The thread of a stream; see stream.hpp.
#include "stream.hpp"

#include <chrono>

using rosin::reference::Work;

rosin_stream::rosin_stream(rosin_device& owner) : device(owner), thread_([this] { work(); }) {}

rosin_stream::~rosin_stream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  more_.notify_one();
  thread_.join();
}

void rosin_stream::give(Work work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  ++given_;
  more_.notify_one();
}

void rosin_stream::work() {
  while (true) {
    Work next;
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    run(next);
    next = nullptr;  // what it holds goes before it counts as done
    {
      const std::lock_guard lock(progress->mutex);
      ++progress->done;
    }
    progress->changed.notify_all();
  }
}

void rosin_stream::run(const Work& work) {
  if (device.failed()) return;
  if (device.options.delay) std::this_thread::sleep_for(std::chrono::milliseconds(device.options.delay));
  try {
    work();
  } catch (const std::exception& error) {
    device.fail(error.what());
  }
}
