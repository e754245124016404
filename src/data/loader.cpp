// What all loaders share: checks, orders, printing, and the threads that prepare batches.
#include <rosin/loader.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include <rosin/error.hpp>
#include <rosin/log.hpp>
#include <rosin/views.hpp>

#include "model/number_text.hpp"

namespace rosin {

LoaderOptions detail::checked_options(LoaderOptions options, int64_t n, bool draws) {
  if (options.batchsize < 1) {
    throw Error(ErrorKind::argument, "DataLoader: the batch size must be at least 1; got " +
                                         std::to_string(options.batchsize) +
                                         "; for single observations use .batchsize = 1");
  }
  constexpr int64_t most_workers = 1024;
  if (options.num_workers < 0 || options.num_workers > most_workers) {
    const std::string rule = options.num_workers < 0 ? "cannot be negative" : "can be at most 1024";
    throw Error(ErrorKind::argument, "DataLoader: the number of workers " + rule + "; got " +
                                         std::to_string(options.num_workers) + "; 0 prepares batches in the loop");
  }
  const auto [number, of] = options.part;
  if (number < 0 || number >= of) {
    throw Error(ErrorKind::argument, "DataLoader: a part must be one of 0 to " + std::to_string(of - 1) +
                                         ", of at least 1; got number " + std::to_string(number) + " of " +
                                         std::to_string(of) + "; distributed::batch_part gives it");
  }
  if (n > 0 && options.batchsize > n) {
    warn_once(
        "batchsize-decreased",
        "DataLoader: Number of observations less than batch-size, decreasing the batch-size to " + std::to_string(n));
    options.batchsize = n;
  }
  if (!options.rng)
    options.rng = options.shuffle || draws || !options.weights.empty() ? default_rng().split() : default_rng();
  return options;
}

std::vector<int64_t> detail::epoch_order(const LoaderOptions& options, int64_t n, uint64_t epoch) {
  if (!options.weights.empty()) {
    Rng rng = options.rng->derive(epoch);
    return detail::weighted_places(n, n, options.weights, rng);
  }
  if (options.shuffle) {
    Rng rng = options.rng->derive(epoch);
    return detail::shuffled_order(n, rng);
  }
  return detail::natural_order(n);
}

std::span<const int64_t> detail::batch_of(std::span<const int64_t> order, const LoaderOptions& options, int64_t batch) {
  const auto size = static_cast<size_t>(options.batchsize), begin = static_cast<size_t>(batch) * size;
  const std::span<const int64_t> whole = order.subspan(begin, std::min(size, order.size() - begin));
  const auto number = static_cast<size_t>(options.part.number), parts = static_cast<size_t>(options.part.of);
  const size_t first = number * whole.size() / parts, last = (number + 1) * whole.size() / parts;
  return whole.subspan(first, last - first);
}

namespace {

/// The arrays of a batch as headings: "2×5 Array{Float32}", or several in parentheses.
class Headings : public ModelVisitor {
 public:
  void array(const Array& x, const ModelPath&) override {
    if (x.is_nothing()) return;
    if (count_++ > 0) list_.append(", ");
    list_ += heading_text(x.shape(), x.dtype());
  }
  std::string text() const { return count_ == 1 ? list_ : "(" + list_ + ")"; }

 private:
  std::string list_;
  int count_ = 0;
};

}  // namespace

std::string detail::loader_text(const LoaderOptions& options, int64_t batches, const ModelView* first) {
  std::string text = std::to_string(batches) + "-element DataLoader(batchsize=" + std::to_string(options.batchsize);
  if (options.shuffle) text += ", shuffle=true";
  if (!options.partial) text += ", partial=false";
  if (options.num_workers > 0) text += ", num_workers=" + std::to_string(options.num_workers);
  text += ")";
  if (!first) return text;
  Headings headings;
  first->visit_with(headings);
  return text + "\n  with first element:\n  " + headings.text();
}

namespace {

void check_place(int64_t epoch, int64_t batch, int64_t batches) {
  if (epoch < 0 || epoch == std::numeric_limits<int64_t>::max() || batch < 0 || batch > batches) {
    throw Error(ErrorKind::argument, "seek: epochs count from 0 and batches up to the " + std::to_string(batches) +
                                         " of an epoch; got epoch " + std::to_string(epoch) + ", batch " +
                                         std::to_string(batch) +
                                         "; give what epoch() and batch() were for the same data and batch size");
  }
}

}  // namespace

void detail::check_loader_state(const LoaderState& now, const LoaderState& saved) {
  const auto text = [](const LoaderState& state) {
    return std::to_string(state.observations) + " observations, batchsize=" + std::to_string(state.batchsize) +
           (state.shuffle ? ", shuffle=true" : ", shuffle=false") + (state.partial ? "" : ", partial=false");
  };
  if (text(now) != text(saved)) {
    throw Error(ErrorKind::argument, "DataLoader: it goes on where a loader of the same data and options was; got " +
                                         text(saved) + " for a loader of " + text(now) +
                                         "; make it as it was, or begin anew with seek(epoch)");
  }
  const int64_t rest = now.observations % now.batchsize != 0 && now.partial ? 1 : 0;
  check_place(saved.epoch, saved.batch, now.observations / now.batchsize + rest);
}

double detail::seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

detail::ObservationDraws::ObservationDraws(const Rng& rng, uint64_t epoch, int64_t observation)
    : before_(default_rng()) {
  default_rng() = rng.derive(epoch).derive(static_cast<uint64_t>(observation));
}

detail::ObservationDraws::~ObservationDraws() { default_rng() = before_; }

/// Owned by one LoaderPosition and by those that follow it.
struct detail::LoaderPosition::State {
  std::atomic<int> owners = 1;
  std::mutex lock;
  Place begin;  // of the next loop
  Place now;    // the batch after the last one that was given
  LoaderStats stats;
  State* followed = nullptr;  // its loops go on with the loops of this one

  void gives(Place batch, bool first, double waited_seconds) {
    {
      const std::lock_guard hold(lock);
      if (first && batch.epoch >= begin.epoch) begin = {batch.epoch + 1, 0};
      now = {batch.epoch, batch.batch + 1};
      ++stats.batches;
      stats.waited_seconds += waited_seconds;
    }
    if (followed) followed->gives(batch, first, waited_seconds);
  }

  void leaves(int64_t epoch, bool empty) noexcept {
    {
      const std::lock_guard hold(lock);
      if (empty && epoch >= begin.epoch) begin = {epoch + 1, 0};
      if (now.epoch == epoch) now = begin;
    }
    if (followed) followed->leaves(epoch, empty);
  }

  static void release(State* state) noexcept {
    while (state && --state->owners == 0) delete std::exchange(state, state->followed);
  }
};

detail::LoaderPosition::LoaderPosition() : state_(new State) {}

detail::LoaderPosition::LoaderPosition(const detail::LoaderPosition& other) : state_(nullptr) {
  if (!other.state_) return;
  const std::lock_guard hold(other.state_->lock);
  state_ = new State;
  state_->begin = other.state_->begin;
  state_->now = other.state_->now;
  state_->stats = other.state_->stats;
}

detail::LoaderPosition::~LoaderPosition() { State::release(state_); }

detail::LoaderPosition::State& detail::LoaderPosition::state() const {
  if (state_) return *state_;
  throw Error(ErrorKind::argument,
              "DataLoader: a loader that was moved from has no data; got one; use the loader that it was moved to");
}

detail::LoaderPosition detail::LoaderPosition::followed() const {
  const Place begin = next();
  State* const made = new State;
  made->begin = made->now = begin;
  made->followed = state_;
  ++state_->owners;
  return detail::LoaderPosition(made);
}

detail::LoaderPosition::Place detail::LoaderPosition::now() const {
  State& s = state();
  const std::lock_guard hold(s.lock);
  return s.now;
}

detail::LoaderPosition::Place detail::LoaderPosition::next() const {
  State& s = state();
  const std::lock_guard hold(s.lock);
  return s.begin;
}

LoaderStats detail::LoaderPosition::stats() const {
  State& s = state();
  const std::lock_guard hold(s.lock);
  return s.stats;
}

void detail::LoaderPosition::seek(int64_t epoch, int64_t batch, int64_t batches) {
  check_place(epoch, batch, batches);
  State& s = state();
  const std::lock_guard hold(s.lock);
  s.begin = s.now = {epoch, batch};
}

void detail::LoaderPosition::gives(Place batch, bool first, double waited_seconds) {
  state().gives(batch, first, waited_seconds);
}

void detail::LoaderPosition::leaves(int64_t epoch, bool empty) noexcept {
  if (state_) state_->leaves(epoch, empty);
}

struct detail::BatchWorkers::State {
  int64_t batches, ahead;
  void (*make)(void*, int64_t);
  void* context;

  std::mutex lock;
  std::condition_variable changed;
  int64_t next = 0;    // the first batch that no thread has begun
  int64_t wanted = 0;  // the batch that is waited for, or was last
  bool stopped = false;
  std::vector<bool> made;                  // by batch
  std::vector<std::exception_ptr> failed;  // by batch
  std::vector<std::thread> threads;

  bool may_begin() const { return stopped || next == batches || next < wanted + ahead; }

  void work() {
    std::unique_lock hold(lock);
    for (;;) {
      changed.wait(hold, [this] { return may_begin(); });
      if (stopped || next == batches) return;
      const int64_t batch = next++;
      hold.unlock();
      std::exception_ptr error = make_one(batch);
      hold.lock();
      failed[static_cast<size_t>(batch)] = std::move(error);
      made[static_cast<size_t>(batch)] = true;
      changed.notify_all();
    }
  }

  /// What is recorded on this thread is computed here, so that the loop's thread gets values.
  std::exception_ptr make_one(int64_t batch) const noexcept {
    try {
      make(context, batch);
      eval();
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  void stop() noexcept {
    {
      const std::lock_guard hold(lock);
      stopped = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

detail::BatchWorkers::BatchWorkers(int64_t first, int64_t batches, int64_t threads, int64_t ahead,
                                   void (*make)(void*, int64_t), void* context)
    : state_(new State) {
  State& s = *state_;
  s.batches = batches;
  s.next = s.wanted = first;
  s.ahead = ahead;
  s.make = make;
  s.context = context;
  s.made.resize(static_cast<size_t>(batches));
  s.failed.resize(static_cast<size_t>(batches));
  try {
    for (int64_t i = 0; i < threads; ++i) s.threads.emplace_back([state = state_] { state->work(); });
  } catch (...) {
    s.stop();
    delete state_;
    throw;
  }
}

detail::BatchWorkers::~BatchWorkers() {
  state_->stop();
  delete state_;
}

void detail::BatchWorkers::wait(int64_t batch) {
  State& s = *state_;
  std::unique_lock hold(s.lock);
  s.wanted = batch;
  s.changed.notify_all();
  s.changed.wait(hold, [&] { return s.made[static_cast<size_t>(batch)]; });
  if (const std::exception_ptr error = s.failed[static_cast<size_t>(batch)]) std::rethrow_exception(error);
}

}  // namespace rosin
