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

/// How a DataLoader makes batches.
struct LoaderOptions {
  int64_t batchsize = 1;
  bool shuffle = false;         // a new order in every epoch
  bool partial = true;          // the last batch may have fewer observations than the others; false: it is left out
  int64_t num_workers = 0;      // threads that prepare batches ahead; results and order are the same with any number
  std::optional<Rng> rng = {};  // where the orders come from; default: this thread's generator
};

/// Where the time of a loader's loops goes, since the loader was made.
struct LoaderStats {
  int64_t batches = 0;        // given to loops
  double waited_seconds = 0;  // in which a loop stood still for a batch that was not ready
};

// --- For the template below.

/// Seconds of a clock that only moves forward.
ROSIN_API double seconds_now() noexcept;

/// The options that are used for n observations. Error (argument): a batch size below 1, a negative number of workers.
ROSIN_API LoaderOptions checked_options(LoaderOptions options, int64_t n);
/// Observations in the order of one epoch; it depends on the generator and the epoch alone.
ROSIN_API std::vector<int64_t> epoch_order(const LoaderOptions& options, int64_t n, uint64_t epoch);
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

/// Threads that call make(context, batch) for batches 0, 1, ..., at most `ahead` of the one that is waited for.
class ROSIN_API BatchWorkers {
 public:
  BatchWorkers(int64_t batches, int64_t threads, int64_t ahead, void (*make)(void* context, int64_t batch),
               void* context);
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
    const auto size = static_cast<size_t>(options.batchsize), begin = static_cast<size_t>(batch) * size;
    const std::span<const int64_t> rest = std::span<const int64_t>(order).subspan(begin);
    const std::span<const int64_t> at = rest.first(rest.size() < size ? rest.size() : size);
    if constexpr (BatchData<Data> || SingleData<Data>) {
      const ObservationDraws draws(*options.rng, epoch, static_cast<int64_t>(begin));
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

  PreparedBatches(const EpochBatches<Data>& batches, int64_t count)
      : batches_(batches), slots_(static_cast<size_t>(2 * batches.options.num_workers)),
        workers_(count, batches.options.num_workers, 2 * batches.options.num_workers, make, this) {}

  const Batch& at(int64_t batch) {
    workers_.wait(batch);
    return *slots_[static_cast<size_t>(batch) % slots_.size()];
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

// ---

/// Batches of data, again and again: each `for` over a loader is one epoch, with a new order when `shuffle` is set. A
/// batch has the structure of the data, with arrays (..., batchsize) of their own, which stay valid as long as they are
/// held. Orders depend on the generator and the epoch alone. The loader outlives its loops.
///
///     DataLoader loader(std::tuple{X, Y}, {.batchsize = 64, .shuffle = true});
///     for (auto [x, y] : loader) ...
///
/// Errors: shape (numbers of observations differ), argument (batchsize below 1).
template <Observations Data> class DataLoader {
 public:
  using Batch = typename EpochBatches<Data>::Batch;

  explicit DataLoader(Data data, LoaderOptions options = {}) : data_(std::move(data)), observations_(count(data_)) {
    options_ = checked_options(options, observations_);
  }

  /// The number of batches of an epoch.
  int64_t size() const noexcept {
    const int64_t full = observations_ / options_.batchsize;
    return full + (options_.partial && observations_ % options_.batchsize != 0 ? 1 : 0);
  }
  const Data& data() const noexcept { return data_; }
  const LoaderOptions& options() const noexcept { return options_; }
  LoaderStats stats() const noexcept { return stats_; }

  struct End {};
  /// The batches of one epoch in order; neither copied nor moved.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = int64_t;

    Iterator(DataLoader& loader, uint64_t epoch)
        : stats_(loader.stats_),
          batches_{loader.data_, loader.options_, epoch, epoch_order(loader.options_, loader.observations_, epoch)},
          count_(loader.size()) {
      if (loader.options_.num_workers > 0) prepared_.emplace(batches_, count_);
    }
    Iterator(const Iterator&) = delete;
    Iterator& operator=(const Iterator&) = delete;

    Batch operator*() {
      const double begin = seconds_now();
      Batch batch = prepared_ ? prepared_->at(position_) : batches_.make(position_);
      stats_.waited_seconds += seconds_now() - begin;
      ++stats_.batches;
      return batch;
    }
    Iterator& operator++() {
      ++position_;
      return *this;
    }
    bool operator==(End) const noexcept { return position_ >= count_; }

   private:
    LoaderStats& stats_;
    EpochBatches<Data> batches_;
    int64_t count_;
    int64_t position_ = 0;
    std::optional<PreparedBatches<Data>> prepared_;
  };

  /// Begins the next epoch.
  Iterator begin() { return Iterator(*this, epoch_++); }
  End end() const noexcept { return {}; }

  /// A loader of the same batches that moves each one when it is made; for `loader | device`.
  auto rosin_moved(const Device& device) const {
    return DataLoader<MappedData<Device, Data>>(mapobs(device, data_), options_);
  }

 private:
  static int64_t count(const Data& data) {
    if constexpr (BatchData<Data> || SingleData<Data>) return numobs(data);
    else return count_observations(data, "DataLoader");
  }

  Data data_;
  int64_t observations_;
  LoaderOptions options_;
  LoaderStats stats_;
  uint64_t epoch_ = 0;
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
    auto operator*() { return *at_ | device_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(std::nullptr_t) const { return at_ == end_; }

   private:
    Device device_;
    decltype(std::declval<Batches&>().begin()) at_;
    decltype(std::declval<Batches&>().end()) end_;
  };

  Iterator begin() { return Iterator(*batches_, device_); }
  std::nullptr_t end() const noexcept { return nullptr; }
  int64_t size() const { return static_cast<int64_t>(batches_->size()); }

 private:
  Device device_;
  Batches* batches_;
};

/// The same on CUDA, with element types kept. Error (device): CUDA is not functional.
template <class Batches> class CuIterator : public DeviceIterator<Batches> {
 public:
  explicit CuIterator(Batches& batches) : DeviceIterator<Batches>(device_of_cu().with(keep), batches) {}
};

/// As MLUtils shows a loader: its options and its first batch.
template <Observations Data> std::string to_string(const DataLoader<Data>& loader) {
  using Batch = typename DataLoader<Data>::Batch;
  if constexpr (Walkable<Batch>) {
    if (loader.size() > 0) {
      const int64_t n = numobs(loader.data());
      std::vector<int64_t> first;
      for (int64_t i = 0; i < n && i < loader.options().batchsize; ++i) first.push_back(i);
      const Batch shown = getobs(loader.data(), first);
      const ModelView view(shown);
      return loader_text(loader.options(), loader.size(), &view);
    }
  }
  return loader_text(loader.options(), loader.size(), nullptr);
}
template <TextStream Stream, Observations Data> Stream& operator<<(Stream& stream, const DataLoader<Data>& loader) {
  return stream << show(loader);
}

}  // namespace rosin
