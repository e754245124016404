// What all loaders share: checks, orders, printing, and the threads that prepare batches.
#include <rosin/loader.hpp>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

namespace rosin {

LoaderOptions checked_options(LoaderOptions options, int64_t n) {
  if (options.batchsize < 1) {
    throw Error(ErrorKind::argument, "DataLoader: the batch size must be at least 1; got " +
                                         std::to_string(options.batchsize) +
                                         "; for single observations use .batchsize = 1");
  }
  if (options.num_workers < 0) {
    throw Error(ErrorKind::argument, "DataLoader: the number of workers cannot be negative; got " +
                                         std::to_string(options.num_workers) + "; 0 prepares batches in the loop");
  }
  if (n > 0 && options.batchsize > n) {
    warn_once(
        "batchsize-decreased",
        "DataLoader: Number of observations less than batch-size, decreasing the batch-size to " + std::to_string(n));
    options.batchsize = n;
  }
  if (!options.rng) options.rng = options.shuffle ? default_rng().split() : default_rng();
  return options;
}

std::vector<int64_t> epoch_order(const LoaderOptions& options, int64_t n, uint64_t epoch) {
  if (options.shuffle) {
    Rng rng = options.rng->derive(epoch);
    return shuffled_order(n, rng);
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

namespace {

/// The arrays of a batch as headings: "2×5 Array{Float32}", or several in parentheses.
class Headings : public ModelVisitor {
 public:
  void array(const Array& x, const ModelPath&) override {
    if (x.is_nothing()) return;
    if (count_++ > 0) list_.append(", ");
    const Shape shape = x.shape();
    if (shape.rank() == 1) list_.append(std::to_string(shape[0])).append("-element");
    for (int d = 0; shape.rank() > 1 && d < shape.rank(); ++d)
      list_.append(d ? "×" : "").append(std::to_string(shape[d]));
    list_.append(" Array{").append(to_string(x.dtype())).append("}");
  }
  std::string text() const { return count_ == 1 ? list_ : "(" + list_ + ")"; }

 private:
  std::string list_;
  int count_ = 0;
};

}  // namespace

std::string loader_text(const LoaderOptions& options, int64_t batches, const ModelView* first) {
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

double seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ObservationDraws::ObservationDraws(const Rng& rng, uint64_t epoch, int64_t observation) : before_(default_rng()) {
  default_rng() = rng.derive(epoch).derive(static_cast<uint64_t>(observation));
}

ObservationDraws::~ObservationDraws() { default_rng() = before_; }

struct BatchWorkers::State {
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

BatchWorkers::BatchWorkers(int64_t batches, int64_t threads, int64_t ahead, void (*make)(void*, int64_t), void* context)
    : state_(new State) {
  State& s = *state_;
  s.batches = batches;
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

BatchWorkers::~BatchWorkers() {
  state_->stop();
  delete state_;
}

void BatchWorkers::wait(int64_t batch) {
  State& s = *state_;
  std::unique_lock hold(s.lock);
  s.wanted = batch;
  s.changed.notify_all();
  s.changed.wait(hold, [&] { return s.made[static_cast<size_t>(batch)]; });
  if (const std::exception_ptr error = s.failed[static_cast<size_t>(batch)]) std::rethrow_exception(error);
}

}  // namespace rosin
