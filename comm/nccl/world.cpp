// See world.hpp.
#include "nccl/world.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace rosin::transport::nccl {
namespace {

// By rosin_comm_type: as what elements are combined.
constexpr std::array<int, ROSIN_COMM_COMPLEX64 + 1> combined = {no_type,  uint8,   int8,    no_type, no_type,
                                                                int32,    uint32,  int64,   uint64,  float16,
                                                                bfloat16, float32, float64, no_type, no_type};

int operation_of(int32_t operation) {
  switch (operation) {
    case ROSIN_COMM_PRODUCT: return product;
    case ROSIN_COMM_MINIMUM: return minimum;
    case ROSIN_COMM_MAXIMUM: return maximum;
    default: return sum;
  }
}

bool is_between_two(int32_t kind) { return kind == ROSIN_COMM_SEND || kind == ROSIN_COMM_RECEIVE; }

/// What a rank tells the others before a collective on a device.
struct Call {
  Description description;
  int32_t needs_communicator;
  int32_t padding;
};

/// What ranks tell each other when they make a communicator.
struct Introduction {
  UniqueId id;                   // of rank 0
  std::array<char, 32> library;  // "NCCL 2.21.5"
};

/// A communicator that a thread of its own makes: NCCL waits for all ranks, without an end where one is lost.
class Joining {
 public:
  /// `make` gives the result of the call, and the communicator.
  template <class Make> static std::shared_ptr<Joining> begin(Make make) {
    const auto one = std::make_shared<Joining>();
    std::thread([one, make = std::move(make)] {
      Comm comm = nullptr;
      const int result = make(&comm);
      const std::lock_guard lock(one->lock_);
      one->comm_ = comm;
      one->result_ = result;
      one->ended_.notify_all();
    }).detach();
    return one;
  }
  /// Nothing while it goes on.
  std::optional<int> result_within(std::chrono::milliseconds time) {
    std::unique_lock lock(lock_);
    ended_.wait_for(lock, time, [&] { return result_.has_value(); });
    return result_;
  }
  Comm comm() const { return comm_; }

 private:
  std::mutex lock_;
  std::condition_variable ended_;
  std::optional<int> result_;
  Comm comm_ = nullptr;
};

}  // namespace

/// The context of a stream as that of the calling thread, by which NCCL knows the device.
class World::Current {
 public:
  Current(const Driver& driver, Stream stream) : driver_(driver) {
    if (driver_.stream_context(stream, &context_) != 0 || driver_.push(context_) != 0) {
      throw Trouble{ROSIN_COMM_INVALID, "the stream is of no device of this kind, or its device has failed"};
    }
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    Context same = nullptr;
    driver_.pop(&same);
  }
  Context context() const { return context_; }

 private:
  const Driver& driver_;
  Context context_ = nullptr;
};

World::World(double timeout) : library_(open_libraries()), carrier_(timeout) {}

std::string World::version() const {
  return std::string(ROSIN_VERSION " (") + library_.name + " " + version_text(library_.version) + ", with " +
         carrier_.name() + ")";
}

void World::run(const rosin_comm_collective& c) {
  throw_if_broken();
  try {
    if (c.memory == ROSIN_COMM_HOST) carrier_.run(c);
    else run_on_device(c);
  } catch (const Trouble& trouble) {
    if (trouble.status == ROSIN_COMM_UNSUPPORTED || trouble.status == ROSIN_COMM_INVALID) throw;
    break_with(trouble);
  }
}

void World::run_on_device(const rosin_comm_collective& c) {
  if (combines(c.kind) && combined[static_cast<size_t>(c.type)] == no_type) {
    throw Trouble{ROSIN_COMM_UNSUPPORTED, "NCCL does not combine elements of this type"};
  }
  const Current current(library_.driver, c.stream);
  const bool needs_communicator = comm_.load() == nullptr || context_ != current.context();
  if (is_between_two(c.kind)) {
    if (needs_communicator) throw Trouble{ROSIN_COMM_UNSUPPORTED, "NCCL sends messages after a collective of all"};
  } else if (c.follows != 0 && !needs_communicator) {
    ++number_;
  } else if (compare(c, needs_communicator)) {
    context_ = current.context();
    make_communicator(c.timeout);
  }
  give(c);
}

/// Whether one of the ranks needs a communicator: then all make one.
bool World::compare(const rosin_comm_collective& c, bool needs_communicator) {
  const Call mine{describe(c, ++number_), needs_communicator ? 1 : 0, 0};
  std::vector<Call> all(static_cast<size_t>(place().ranks));
  carrier_.gather(&mine, all.data(), sizeof mine, c.name, c.timeout);
  for (size_t other = 1; other < all.size(); ++other) {
    if (all[other].description.hash == all[0].description.hash) continue;
    throw Trouble{ROSIN_COMM_MISMATCH,
                  difference_text(0, all[0].description, static_cast<int>(other), all[other].description)};
  }
  return std::any_of(all.begin(), all.end(), [](const Call& call) { return call.needs_communicator != 0; });
}

void World::make_communicator(double timeout) {
  drop_communicator(library_.nccl.comm_destroy);
  Introduction mine{};
  put_text(mine.library, std::string(library_.name) + " " + version_text(library_.version));
  if (place().rank == 0) good(library_.nccl.get_unique_id(&mine.id), "ncclGetUniqueId");
  std::vector<Introduction> all(static_cast<size_t>(place().ranks));
  carrier_.gather(&mine, all.data(), sizeof mine, "communicator of NCCL", timeout);
  for (size_t other = 1; other < all.size(); ++other) {
    if (all[other].library == all[0].library) continue;
    throw Trouble{ROSIN_COMM_MISMATCH, "ranks have different versions of NCCL or RCCL: rank 0 has " +
                                           get_text(all[0].library) + ", rank " + std::to_string(other) + " has " +
                                           get_text(all[other].library)};
  }
  comm_ = joined_communicator(all[0].id, timeout);
}

Comm World::joined_communicator(const UniqueId& id, double timeout) {
  constexpr std::chrono::milliseconds slice{5};
  const auto begin = std::chrono::steady_clock::now();
  const auto joining =
      Joining::begin([f = library_.nccl, driver = library_.driver, at = place(), id, context = context_](Comm* comm) {
        if (driver.push(context) != 0) return invalid_usage;
        const int result = f.comm_init_rank(comm, at.ranks, id, at.rank);
        Context same = nullptr;
        driver.pop(&same);
        return result;
      });
  for (;;) {
    if (const std::optional<int> result = joining->result_within(slice)) {
      good(*result, "ncclCommInitRank");
      return joining->comm();
    }
    carrier_.check();
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (timeout > 0 && waited.count() > timeout) give_up("ncclCommInitRank took longer than " + seconds_text(timeout));
  }
}

/// Ranks that are there answer over the carrier still: of those that do not, one is named.
void World::give_up(const std::string& text) {
  constexpr double patience = 2;  // seconds: all are told within five of the timeout
  std::vector<char> all(static_cast<size_t>(place().ranks));
  const char here = 1;
  try {
    carrier_.gather(&here, all.data(), sizeof here, text.c_str(), patience);
  } catch (const Trouble& trouble) {
    throw Trouble{trouble.status, text + ": " + trouble.text};
  }
  throw Trouble{ROSIN_COMM_TIMEOUT, text + ", though every rank is there"};
}

/// Several parts are a group, of which NCCL makes one launch.
void World::give(const rosin_comm_collective& c) {
  const Comm comm = comm_;
  std::span<const rosin_comm_part> parts(c.parts, c.part_count);
  while (!parts.empty()) {
    const auto now = parts.first(std::min<size_t>(parts.size(), most_grouped));
    parts = parts.subspan(now.size());
    good(library_.nccl.group_start(), "ncclGroupStart");
    int result = success;
    for (const rosin_comm_part& part : now) {
      if (part.count != 0 && result == success) result = give_part(c, part, comm);
    }
    const int ended = library_.nccl.group_end();
    good(result != success ? result : ended, "the calls of NCCL");
  }
}

int World::give_part(const rosin_comm_collective& c, const rosin_comm_part& part, Comm comm) {
  const Functions& f = library_.nccl;
  const bool is_root = c.root == place().rank, reduces = combines(c.kind);
  const int type = reduces ? combined[static_cast<size_t>(c.type)] : static_cast<int>(uint8);
  const uint64_t count = reduces ? part.count : part.count * bytes_of(c.type);
  const int operation = operation_of(c.operation);
  switch (c.kind) {
    case ROSIN_COMM_BROADCAST: {  // NCCL would write the root's, too
      void* const memory = is_root ? const_cast<void*>(part.send) : part.receive;
      return f.broadcast(memory, memory, count, type, c.root, comm, c.stream);
    }
    case ROSIN_COMM_ALLREDUCE: return f.all_reduce(part.send, part.receive, count, type, operation, comm, c.stream);
    case ROSIN_COMM_REDUCE: return f.reduce(part.send, part.receive, count, type, operation, c.root, comm, c.stream);
    case ROSIN_COMM_ALLGATHER: return f.all_gather(part.send, part.receive, count, type, comm, c.stream);
    case ROSIN_COMM_REDUCE_SCATTER:
      return f.reduce_scatter(part.send, part.receive, count, type, operation, comm, c.stream);
    case ROSIN_COMM_SEND: return f.send(part.send, count, type, c.root, comm, c.stream);
    default: return f.receive(part.receive, count, type, c.root, comm, c.stream);
  }
}

/// What a rank says of its failure is older than what NCCL sees of it, so it goes first.
void World::good(int result, const char* what) {
  if (result == success) return;
  carrier_.check();
  const char* const more = library_.nccl.get_last_error ? library_.nccl.get_last_error(comm_) : nullptr;
  std::string text = std::string(what) + ": " + library_.nccl.get_error_string(result);
  if (more && *more) text.append(" (").append(more).append(")");
  throw Trouble{result == remote_error ? ROSIN_COMM_LOST : ROSIN_COMM_FAILED, text};
}

void World::break_with(const Trouble& trouble) {
  {
    const std::lock_guard lock(breaking_);
    if (!broken_) broken_ = trouble;
  }
  drop_communicator(library_.nccl.comm_abort);
  throw_if_broken();
  throw trouble;
}

void World::throw_if_broken() {
  const std::lock_guard lock(breaking_);
  if (broken_) throw *broken_;
}

void World::drop_communicator(int (*how)(Comm)) noexcept {
  if (const Comm comm = comm_.exchange(nullptr)) how(comm);
}

void World::abort(const char* why) noexcept {
  {
    const std::lock_guard lock(breaking_);
    if (!broken_) broken_ = Trouble{ROSIN_COMM_ABORTED, std::string("aborted: ") + (why ? why : "no reason was given")};
  }
  carrier_.abort(why);
  drop_communicator(library_.nccl.comm_abort);
}

void World::check() {
  throw_if_broken();
  try {
    carrier_.check();
    const Comm comm = comm_;
    int result = success;
    if (comm) good(library_.nccl.comm_get_async_error(comm, &result), "ncclCommGetAsyncError");
    if (result != in_progress) good(result, "a collective of NCCL");
  } catch (const Trouble& trouble) {
    break_with(trouble);
  }
}

void World::require_devices(std::string_view backend) const {
  if (backend == library_.backend) return;
  if ((backend != "CUDA" && backend != "AMDGPU") || comm_.load()) {
    throw Trouble{ROSIN_COMM_UNSUPPORTED,
                  std::string(library_.name) + " takes memory of " + library_.backend + " devices alone"};
  }
  library_ = open_libraries(backend);
}

void World::leave() noexcept {
  drop_communicator(library_.nccl.comm_destroy);
  carrier_.leave();
}

}  // namespace rosin::transport::nccl
