// See world.hpp.
#include "nccl/world.hpp"

#include <algorithm>
#include <array>
#include <span>
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
  UniqueId id;  // of rank 0
  int32_t version;
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
  Introduction mine{{}, library_.version};
  if (place().rank == 0) good(library_.nccl.get_unique_id(&mine.id), "ncclGetUniqueId");
  std::vector<Introduction> all(static_cast<size_t>(place().ranks));
  carrier_.gather(&mine, all.data(), sizeof mine, "communicator of NCCL", timeout);
  for (size_t other = 1; other < all.size(); ++other) {
    if (all[other].version == all[0].version) continue;
    throw Trouble{ROSIN_COMM_MISMATCH, "ranks have different versions of NCCL: rank 0 has " +
                                           version_text(all[0].version) + ", rank " + std::to_string(other) + " has " +
                                           version_text(all[other].version)};
  }
  Comm comm = nullptr;
  good(library_.nccl.comm_init_rank(&comm, place().ranks, all[0].id, place().rank), "ncclCommInitRank");
  comm_ = comm;
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

void World::good(int result, const char* what) {
  if (result == success) return;
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
