// DataLoader: goes through data in batches, `for (auto [x, y] : loader)`. Read next: data.hpp (what can be data).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rosin/data.hpp>
#include <rosin/export.hpp>
#include <rosin/move.hpp>
#include <rosin/random.hpp>
#include <rosin/show.hpp>

namespace rosin {

/// One of several equal parts of every batch, for processes that share out each batch (distributed::batch_part): of m
/// observations, number * m / of ... (number + 1) * m / of - 1.
struct BatchPart {
  int64_t number = 0;
  int64_t of = 1;
};

/// How a DataLoader makes batches.
struct LoaderOptions {
  int64_t batchsize = 1;
  bool shuffle = false;         // a new order in every epoch
  bool partial = true;          // the last batch may have fewer observations than the others; false: it is left out
  int64_t num_workers = 0;      // threads that prepare batches ahead; results and order are the same with any number
  std::optional<Rng> rng = {};  // where the orders come from; default: this thread's generator
  BatchPart part = {};          // of each batch, what is given; batchsize is that of all parts
  std::vector<double> weights = {};  // of observations: each epoch draws as many as there are, with replacement
};

/// Where the time of a loader's loops goes, since the loader was made.
struct LoaderStats {
  int64_t batches = 0;        // given to loops
  double waited_seconds = 0;  // in which a loop stood still for a batch that was not ready
};

/// Where a loader is, with all that its next batches depend on beside the data: what a Checkpoint keeps of it.
struct LoaderState {
  int64_t epoch = 0;
  int64_t batch = 0;
  int64_t observations = 0;
  int64_t batchsize = 1;
  bool shuffle = false;
  bool partial = true;
  Rng rng;
};

namespace detail {

/// Error (argument): a loader with the state `now` cannot go on from `saved`; its batches are others.
ROSIN_API void check_loader_state(const LoaderState& now, const LoaderState& saved);

/// Seconds of a clock that only moves forward.
ROSIN_API double seconds_now() noexcept;

/// The options that are used for n observations. Without a generator the loader takes one from this
/// thread's: a new one where it draws (orders, or code of the user's in getobs), so that no two loaders draw the same.
/// Error (argument): a batch size below 1, a negative number of workers, a part that is not one of its parts.
ROSIN_API LoaderOptions checked_options(LoaderOptions options, int64_t n, bool draws);
/// Observations in the order of one epoch; it depends on the generator and the epoch alone.
ROSIN_API std::vector<int64_t> epoch_order(const LoaderOptions& options, int64_t n, uint64_t epoch);
/// Of an epoch's order what this loader gives in a batch.
ROSIN_API std::span<const int64_t> batch_of(std::span<const int64_t> order, const LoaderOptions& options,
                                            int64_t batch);
/// "938-element DataLoader(batchsize=64, shuffle=true)", and the first batch where there is one.
ROSIN_API std::string loader_text(const LoaderOptions& options, int64_t batches, const ModelView* first);

/// While it lives, functions without an Rng draw from a generator of this epoch and observation.
class ROSIN_API ObservationDraws {
 public:
  ObservationDraws(const Rng& rng, uint64_t epoch, int64_t observation);
  ~ObservationDraws();
  ObservationDraws(const ObservationDraws&) = delete;
  ObservationDraws& operator=(const ObservationDraws&) = delete;

 private:
  Rng before_;
};

/// Where a loader's loops are and begin. Several threads may use one. A copy has a place of its own;
/// what was moved from is an Error (argument) to use.
class ROSIN_API LoaderPosition {
 public:
  struct Place {
    int64_t epoch = 0;
    int64_t batch = 0;
  };

  LoaderPosition();
  LoaderPosition(const LoaderPosition& other);
  LoaderPosition(LoaderPosition&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  LoaderPosition& operator=(LoaderPosition other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~LoaderPosition();
  /// Begins here; loops from it are steps of this one too.
  LoaderPosition followed() const;

  /// The batch after the last one that was given, in a loop; between loops where the next one begins.
  Place now() const;
  /// Where the next loop begins.
  Place next() const;
  /// The next loop begins there. Error (argument): a negative epoch, or a batch that is not in 0 ... batches.
  void seek(int64_t epoch, int64_t batch, int64_t batches);
  /// A loop gives this batch; from its first one on, the next loop begins with the next epoch.
  void gives(Place batch, bool first, double waited_seconds);
  /// The loop over this epoch is left. `empty`: it had no batches, and was a loop all the same.
  void leaves(int64_t epoch, bool empty) noexcept;
  LoaderStats stats() const;
  /// Error (argument): the loader was moved from.
  void check() const { state(); }

 private:
  struct State;
  explicit LoaderPosition(State* state) noexcept : state_(state) {}
  State& state() const;

  State* state_;
};

/// Threads that call make(context, batch) for batches first, first + 1, ..., at most `ahead` of the
/// one that is waited for.
class ROSIN_API BatchWorkers {
 public:
  BatchWorkers(int64_t first, int64_t batches, int64_t threads, int64_t ahead,
               void (*make)(void* context, int64_t batch), void* context);
  /// Waits for the threads.
  ~BatchWorkers();
  BatchWorkers(const BatchWorkers&) = delete;
  BatchWorkers& operator=(const BatchWorkers&) = delete;

  /// Returns when the batch is made; throws what make threw. Batches before it are let go.
  void wait(int64_t batch);

 private:
  struct State;
  State* state_;
};

/// What a loader's batches are made of, in one epoch. Batches may be made by several threads at once.
template <Observations Data> struct EpochBatches {
  using Batch = decltype(getobs(std::declval<const Data&>(), std::span<const int64_t>()));

  const Data& data;
  LoaderOptions options;
  uint64_t epoch;
  std::vector<int64_t> order;

  Batch make(int64_t batch) const {
    const std::span<const int64_t> at = batch_of(order, options, batch);
    if constexpr (BatchData<Data> || SingleData<Data>) {
      const ObservationDraws draws(*options.rng, epoch, at.data() - order.data());
      return getobs(data, at);
    } else {
      return getobs(data, at);
    }
  }
};

/// Batches that workers prepare ahead, in slots that are used in turn.
template <Observations Data> class PreparedBatches {
 public:
  using Batch = typename EpochBatches<Data>::Batch;

  PreparedBatches(const EpochBatches<Data>& batches, int64_t first, int64_t count)
      : batches_(batches), slots_(static_cast<size_t>(2 * batches.options.num_workers)),
        workers_(first, count, batches.options.num_workers, 2 * batches.options.num_workers, make, this) {}

  /// To be taken away, once.
  Batch&& at(int64_t batch) {
    workers_.wait(batch);
    return std::move(*slots_[static_cast<size_t>(batch) % slots_.size()]);
  }

 private:
  static void make(void* self, int64_t batch) {
    auto& prepared = *static_cast<PreparedBatches*>(self);
    prepared.slots_[static_cast<size_t>(batch) % prepared.slots_.size()].emplace(prepared.batches_.make(batch));
  }

  const EpochBatches<Data>& batches_;
  std::vector<std::optional<Batch>> slots_;
  BatchWorkers workers_;  // last: the threads end before the slots go
};

}  // namespace detail

/// Batches of data, again and again: each `for` over a loader is one epoch, with a new order when `shuffle` is set. A
/// batch has the structure of the data, with arrays (..., batchsize) of their own, which stay valid as long as they are
/// held; `auto& [x, y]` refers to the loop's own handles, which last until the next batch. Orders depend on the
/// generator and the epoch alone, and so do random numbers that are drawn when data is read. The loader outlives its
/// loops. A const loader may be gone through, by several threads too, each of which sees a whole epoch.
///
///     DataLoader loader(std::tuple{X, Y}, {.batchsize = 64, .shuffle = true});
///     for (auto [x, y] : loader) ...
///
/// Errors: shape (numbers of observations differ), argument (batchsize below 1; the loader was moved from).
template <Observations Data> class DataLoader {
 public:
  using Batch = typename detail::EpochBatches<Data>::Batch;

  explicit DataLoader(Data data, LoaderOptions options = {}) : data_(std::move(data)), observations_(count(data_)) {
    options_ = detail::checked_options(std::move(options), observations_, reflect::runs_code<Data>);
  }

  /// The number of batches of an epoch.
  int64_t size() const {
    position_.check();
    const int64_t full = observations_ / options_.batchsize;
    return full + (options_.partial && observations_ % options_.batchsize != 0 ? 1 : 0);
  }
  const Data& data() const {
    position_.check();
    return data_;
  }
  const LoaderOptions& options() const noexcept { return options_; }
  LoaderStats stats() const { return position_.stats(); }

  /// The epoch of the loop that runs, from 0; between loops the one that comes next, which is how many have begun.
  int64_t epoch() const { return position_.now().epoch; }
  /// How many batches of this epoch were given.
  int64_t batch() const { return position_.now().batch; }
  /// The next loop begins with this batch of this epoch: a loader of the same data, options and generator goes on
  /// exactly where another one was, `loader.seek(epoch, batch)` with its epoch() and batch(). Where all batches of the
  /// epoch were given that loop is empty. Error (argument): there are no such epoch and batch.
  void seek(int64_t epoch, int64_t batch = 0) { position_.seek(epoch, batch, size()); }

  LoaderState state() const {
    const auto [epoch, batch] = position_.now();
    return {epoch, batch, observations_, options_.batchsize, options_.shuffle, options_.partial, *options_.rng};
  }
  /// Goes on as the loader whose state it was, with its generator: the next loop gives the batches that it would have
  /// given. Error (argument): the numbers of observations differ, or the options that make batches.
  void set_state(const LoaderState& saved) {
    detail::check_loader_state(state(), saved);
    seek(saved.epoch, saved.batch);
    options_.rng = saved.rng;
  }

  struct End {};
  /// The batches of one epoch in order; neither copied nor moved.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = int64_t;

    explicit Iterator(const DataLoader& loader)
        : position_(loader.position_), place_(position_.next()),
          batches_{loader.data_, loader.options_, static_cast<uint64_t>(place_.epoch),
                   detail::epoch_order(loader.options_, loader.observations_, static_cast<uint64_t>(place_.epoch))},
          count_(loader.size()) {
      if (loader.options_.num_workers > 0) prepared_.emplace(batches_, place_.batch, count_);
    }
    Iterator(const Iterator&) = delete;
    Iterator& operator=(const Iterator&) = delete;
    ~Iterator() { leave(); }

    Batch& operator*() {
      if (!batch_) {
        const double begin = detail::seconds_now();
        if (prepared_) batch_.emplace(prepared_->at(place_.batch));
        else batch_.emplace(batches_.make(place_.batch));
        position_.gives(place_, !std::exchange(gave_, true), detail::seconds_now() - begin);
      }
      return *batch_;
    }
    Iterator& operator++() {
      batch_.reset();
      if (++place_.batch >= count_) leave();
      return *this;
    }
    bool operator==(End) const noexcept { return place_.batch >= count_; }

   private:
    void leave() {
      if (gave_ || place_.batch >= count_) position_.leaves(place_.epoch, !gave_);
    }

    detail::LoaderPosition& position_;
    detail::LoaderPosition::Place place_;
    detail::EpochBatches<Data> batches_;
    int64_t count_;
    bool gave_ = false;
    std::optional<Batch> batch_;
    std::optional<detail::PreparedBatches<Data>> prepared_;
  };

  /// The next epoch, which counts as begun with its first batch.
  Iterator begin() const {
    position_.check();
    return Iterator(*this);
  }
  End end() const noexcept { return {}; }

  /// A loader of the same batches that moves each one when it is made; for `loader | device`. It begins where this one
  /// is, and its loops move this one on too: `for (auto [x, y] : loader | device)` is a new epoch each time.
  auto rosin_moved(const Device& device) const {
    DataLoader<MappedData<Device, Data>> there(mapobs(device, data()), options_);
    there.position_ = position_.followed();
    return there;
  }

 private:
  template <Observations Other> friend class DataLoader;

  static int64_t count(const Data& data) {
    if constexpr (BatchData<Data> || SingleData<Data>) return numobs(data);
    else return detail::count_observations(data, "DataLoader");
  }

  Data data_;
  int64_t observations_;
  LoaderOptions options_;
  mutable detail::LoaderPosition position_;  // loops over a const loader are epochs too
};

/// Goes through a range of batches (a loader, a vector of tuples) and gives each one on a device. The copy of a batch
/// runs beside the work that was given to the device before. A batch stays valid as long as it is held. The range
/// outlives the iterator.
///
///     DataLoader loader(...);
///     for (auto [x, y] : DeviceIterator(device, loader)) ...
template <class Batches> class DeviceIterator {
 public:
  DeviceIterator(const Device& device, Batches& batches) : device_(device), batches_(&batches) {}

  class Iterator {
   public:
    explicit Iterator(Batches& batches, const Device& device)
        : device_(device), at_(batches.begin()), end_(batches.end()) {}
    Iterator(const Iterator&) = delete;
    Iterator& operator=(const Iterator&) = delete;
    auto& operator*() {
      if (!batch_) batch_.emplace(*at_ | device_);
      return *batch_;
    }
    Iterator& operator++() {
      batch_.reset();
      ++at_;
      return *this;
    }
    bool operator==(std::nullptr_t) const { return at_ == end_; }

   private:
    using Begin = decltype(std::declval<Batches&>().begin());

    Device device_;
    Begin at_;
    decltype(std::declval<Batches&>().end()) end_;
    std::optional<decltype(*std::declval<Begin&>() | std::declval<const Device&>())> batch_;
  };

  Iterator begin() const { return Iterator(*batches_, device_); }
  std::nullptr_t end() const noexcept { return nullptr; }
  int64_t size() const { return static_cast<int64_t>(batches_->size()); }

 private:
  Device device_;
  Batches* batches_;
};

/// The same on CUDA, with element types kept. Error (device): CUDA is not functional.
template <class Batches> class CuIterator : public DeviceIterator<Batches> {
 public:
  explicit CuIterator(Batches& batches) : DeviceIterator<Batches>(detail::device_of_cu().with(keep), batches) {}
};

/// As MLUtils shows a loader: its options and its first batch.
template <Observations Data> std::string to_string(const DataLoader<Data>& loader) {
  using Batch = typename DataLoader<Data>::Batch;
  if constexpr (Walkable<Batch>) {
    if (loader.size() > 0) {
      const int64_t n = numobs(loader.data());
      std::vector<int64_t> first;
      for (int64_t i = 0; i < n && i < loader.options().batchsize; ++i) first.push_back(i);
      const detail::ObservationDraws draws(*loader.options().rng, 0,
                                           0);  // printing leaves this thread's generator alone
      const Batch shown = getobs(loader.data(), first);
      const ModelView view(shown);
      return detail::loader_text(loader.options(), loader.size(), &view);
    }
  }
  return detail::loader_text(loader.options(), loader.size(), nullptr);
}
template <TextStream Stream, Observations Data> Stream& operator<<(Stream& stream, const DataLoader<Data>& loader) {
  return stream << show(loader);
}

}  // namespace rosin
