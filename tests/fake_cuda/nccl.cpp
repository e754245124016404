// NCCL's stand-in: collectives of processes over memory that they share, as work of pretended streams. What the real
// library leaves undefined is an error. See README.md. Read first: nccl_page.hpp, library_work.hpp.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <set>

#include "common/combine.hpp"
#include "common/describe.hpp"
#include "nccl_page.hpp"
#include "stand_in.hpp"

#define FAKE_NCCL_API extern "C" __attribute__((visibility("default"))) int

using fake::cuda;
using fake::Trouble;

namespace fake_nccl {
namespace {

// ncclResult_t
enum Result { success, cuda_error, system_error, internal_error, invalid_argument, invalid_usage, remote_error };
constexpr size_t most_grouped = 2048;
constexpr uint64_t no_rank = ~uint64_t{0};

// By ncclDataType_t and ncclRedOp_t.
constexpr int types[] = {ROSIN_COMM_INT8,    ROSIN_COMM_UINT8,   ROSIN_COMM_INT32,   ROSIN_COMM_UINT32,
                         ROSIN_COMM_INT64,   ROSIN_COMM_UINT64,  ROSIN_COMM_FLOAT16, ROSIN_COMM_FLOAT32,
                         ROSIN_COMM_FLOAT64, ROSIN_COMM_BFLOAT16};
constexpr int operations[] = {ROSIN_COMM_SUM, ROSIN_COMM_PRODUCT, ROSIN_COMM_MAXIMUM, ROSIN_COMM_MINIMUM};

struct Options {
  int version = static_cast<int>(option("version", 22105));
  uint64_t lost_from = option("lost", 0);     // the group from which on another rank does not answer
  uint64_t ends = option("ends", no_rank);    // the rank that ends in that group
  uint64_t stops = option("stops", no_rank);  // the rank that stops there
  uint64_t at = option("at", 0);              // 0: while communicators are made

  static uint64_t option(const char* name, uint64_t otherwise) {
    const char* const all = std::getenv("FAKE_NCCL");
    const char* const found = all ? std::strstr(all, name) : nullptr;
    return found ? std::strtoull(found + std::strlen(name) + 1, nullptr, 10) : otherwise;
  }
};

const Options& options() {
  static const Options all;
  return all;
}

void be_lost_as_asked(int rank, uint64_t group) {
  if (options().at != group) return;
  if (options().ends == static_cast<uint64_t>(rank)) _exit(3);
  if (options().stops == static_cast<uint64_t>(rank)) raise(SIGSTOP);
}

struct Communicator {
  Page* page;
  int rank, ranks;
  const void* context;
  uint64_t groups = 0;
  std::atomic<bool> aborted{false};
  std::atomic<bool> lost{false};
};

/// One call of a group.
struct Call {
  int kind;  // rosin_comm_kind
  const char* send;
  char* receive;
  uint64_t count;
  int type, operation, other;  // `other`: root or peer

  uint64_t bytes() const { return count * rosin::transport::bytes_of(types[type]); }
};

std::set<Communicator*>& communicators() {
  static auto& all = *new std::set<Communicator*>;
  return all;
}

std::string& last_error() {
  static auto& text = *new std::string;
  return text;
}

int result_of(int code) {
  switch (code) {
    case fake::success: return success;
    case fake::invalid_value:
    case fake::invalid_handle: return invalid_argument;
    case fake::invalid_context:
    case fake::not_captured: return invalid_usage;
    case fake::operating_system: return system_error;
    default: return cuda_error;
  }
}

int call(const char* name, const std::function<void()>& f) {
  std::string said;
  const int code = cuda().call(name, f, &said);
  if (code != fake::success) {
    last_error() = said;
    fake::note(std::string("error in ") + name + ": " + said);
  }
  return result_of(code);
}

Communicator& known(void* one) {
  auto* const found = static_cast<Communicator*>(one);
  if (!communicators().contains(found)) throw Trouble{fake::invalid_value, "a communicator that is not there"};
  return *found;
}

// What a call reads and writes, in multiples of its bytes.
uint64_t sent(const Call& c, const Communicator& comm) {
  if (c.kind == ROSIN_COMM_BROADCAST) return comm.rank == c.other ? 1 : 0;
  if (c.kind == ROSIN_COMM_RECEIVE) return 0;
  return c.kind == ROSIN_COMM_REDUCE_SCATTER ? static_cast<uint64_t>(comm.ranks) : 1;
}

uint64_t received(const Call& c, const Communicator& comm) {
  if (c.kind == ROSIN_COMM_REDUCE) return comm.rank == c.other ? 1 : 0;
  if (c.kind == ROSIN_COMM_SEND) return 0;
  return c.kind == ROSIN_COMM_ALLGATHER ? static_cast<uint64_t>(comm.ranks) : 1;
}

/// Bytes of a rank's area that a call takes, which are the same on all ranks.
uint64_t room(const Call& c, const Communicator& comm) {
  return c.bytes() * (c.kind == ROSIN_COMM_REDUCE_SCATTER ? static_cast<uint64_t>(comm.ranks) : 1);
}

void check(const Call& c, const Communicator& comm) {
  if (comm.context != cuda().thread_context()) throw Trouble{fake::invalid_context, "another device is current"};
  if (comm.aborted) throw Trouble{fake::invalid_context, "the communicator was aborted"};
  if (c.type < 0 || c.type >= static_cast<int>(std::size(types))) throw Trouble{fake::invalid_value, "no such type"};
  if (c.operation < 0 || c.operation >= static_cast<int>(std::size(operations))) {
    throw Trouble{fake::invalid_value, "no such operation"};
  }
  if (c.other < 0 || c.other >= comm.ranks) throw Trouble{fake::invalid_value, "no such rank"};
  if (c.count == 0) return;
  const auto address = [](const char* memory) { return reinterpret_cast<uint64_t>(memory); };
  if (sent(c, comm) != 0) cuda().check_memory(address(c.send), sent(c, comm) * c.bytes());
  if (received(c, comm) != 0) cuda().check_memory(address(c.receive), received(c, comm) * c.bytes());
}

/// Collectives that were given together: what the rank gives lies in its area until all have taken theirs.
class Group {
 public:
  Group(Communicator& comm, std::vector<Call> calls) : comm_(comm), calls_(std::move(calls)), number_(++comm.groups) {
    uint64_t bytes = 0;
    for (const Call& c : calls_) bytes += room(c, comm);
    if (bytes > area_bytes) throw Trouble{fake::not_supported, "the stand-in has no room for so much"};
    be_lost_as_asked(comm.rank, number_);
  }

  bool ready() {
    if (comm_.aborted) return true;
    if (options().lost_from != 0 && number_ >= options().lost_from) {
      comm_.lost = true;
      return false;
    }
    if (!is_given_) give();
    return is_given_ && all([&](const Member& member) { return member.given >= number_; });
  }

  void run() {
    if (comm_.aborted) return;
    if (!all([&](const Member& member) { return member.hash == hash(); })) {
      throw Trouble{fake::launch_failed, "ranks give different collectives to one communicator"};
    }
    uint64_t at = 0;
    for (const Call& c : calls_) {
      finish(c, at);
      at += room(c, comm_);
    }
    mine().taken = number_;
  }

 private:
  Member& mine() { return comm_.page->members[comm_.rank]; }
  template <class Holds> bool all(Holds holds) {
    return std::all_of(comm_.page->members, comm_.page->members + comm_.ranks, holds);
  }

  uint64_t hash() const {
    uint64_t hash = calls_.size();
    for (const Call& c : calls_) {
      for (const int word : {c.kind, c.type, c.operation, c.other}) hash = hash * 1000003 + static_cast<uint64_t>(word);
      hash = hash * 1000003 + c.count;
    }
    return hash;
  }

  void give() {
    if (!all([&](const Member& member) { return member.taken + 1 >= number_; })) return;
    char* to = comm_.page->area(comm_.rank);
    for (const Call& c : calls_) {
      std::memcpy(to, c.send, sent(c, comm_) * c.bytes());
      to += room(c, comm_);
    }
    mine().hash = hash();
    mine().given = number_;
    is_given_ = true;
  }

  void finish(const Call& c, uint64_t at) {
    if (received(c, comm_) == 0 || c.count == 0) return;
    const auto own = static_cast<uint64_t>(comm_.rank) * c.bytes();
    std::vector<const void*> sources;
    for (int rank = 0; rank < comm_.ranks; ++rank) {
      sources.push_back(comm_.page->area(rank) + at + (c.kind == ROSIN_COMM_REDUCE_SCATTER ? own : 0));
    }
    if (c.kind == ROSIN_COMM_BROADCAST) {
      std::memcpy(c.receive, sources[static_cast<size_t>(c.other)], c.bytes());
    } else if (c.kind == ROSIN_COMM_ALLGATHER) {
      for (size_t rank = 0; rank < sources.size(); ++rank) {
        std::memcpy(c.receive + rank * c.bytes(), sources[rank], c.bytes());
      }
    } else {
      rosin::transport::combine_all(operations[c.operation], types[c.type], sources, c.bytes(), c.receive);
    }
  }

  Communicator& comm_;
  const std::vector<Call> calls_;
  const uint64_t number_;
  bool is_given_ = false;
};

void give_message(Communicator& comm, const Call& c, void* stream) {
  const bool sends = c.kind == ROSIN_COMM_SEND;
  const int from = sends ? comm.rank : c.other, to = sends ? c.other : comm.rank;
  if (c.bytes() > pipe_bytes) throw Trouble{fake::not_supported, "the stand-in has no room for so much"};
  Pipe& pipe = comm.page->pipes[from][to];
  char* const message = comm.page->message(from, to);
  fake::Work work;
  work.what = "nccl message";
  work.ready = [&comm, &pipe, sends] { return comm.aborted || (pipe.posted == pipe.taken) == sends; };
  work.run = [&comm, &pipe, c, sends, message] {
    if (comm.aborted) return;
    if (!sends && pipe.bytes != c.bytes()) throw Trouble{fake::launch_failed, "a message of another size"};
    std::memcpy(sends ? message : c.receive, sends ? c.send : message, c.bytes());
    if (sends) pipe.bytes = c.bytes();
    ++(sends ? pipe.posted : pipe.taken);
  };
  cuda().give(stream, std::move(work));
}

/// What a thread has called since ncclGroupStart.
struct Pending {
  int depth = 0;
  Communicator* comm = nullptr;
  void* stream = nullptr;
  std::vector<Call> calls;
};
thread_local Pending pending;

void give_pending() {
  Pending now = std::move(pending);
  pending = {};
  if (now.calls.empty()) return;
  if (now.calls.size() > most_grouped) throw Trouble{fake::not_captured, "a group of more than 2048 calls"};
  std::vector<Call> together;
  for (const Call& c : now.calls) {
    if (c.kind == ROSIN_COMM_SEND || c.kind == ROSIN_COMM_RECEIVE) give_message(*now.comm, c, now.stream);
    else together.push_back(c);
  }
  if (together.empty()) return;
  const auto group = std::make_shared<Group>(*now.comm, std::move(together));
  fake::Work work;
  work.what = "nccl group";
  work.ready = [group] { return group->ready(); };
  work.run = [group] { group->run(); };
  cuda().give(now.stream, std::move(work));
}

int add(const char* name, const Call& c, void* comm, void* stream) {
  return call(name, [&] {
    Communicator& of = known(comm);
    check(c, of);
    if (pending.comm && (pending.comm != &of || pending.stream != stream)) {
      throw Trouble{fake::not_supported, "the stand-in takes groups of one communicator and one stream"};
    }
    pending.comm = &of;
    pending.stream = stream;
    pending.calls.push_back(c);
    if (pending.depth == 0) give_pending();
  });
}

}  // namespace
}  // namespace fake_nccl

using namespace fake_nccl;

FAKE_NCCL_API ncclGetVersion(int* version) {
  *version = options().version;
  return success;
}

extern "C" __attribute__((visibility("default"))) const char* ncclGetErrorString(int result) {
  constexpr const char* texts[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error"};
  return result >= 0 && result < static_cast<int>(std::size(texts)) ? texts[result] : "unknown result code";
}

extern "C" __attribute__((visibility("default"))) const char* ncclGetLastError(void*) { return last_error().c_str(); }

FAKE_NCCL_API ncclGetUniqueId(UniqueId* id) {
  return call("ncclGetUniqueId", [&] { *id = make_page(); });
}

/// Waits for the other ranks for ever, as the real one does.
FAKE_NCCL_API ncclCommInitRank(void** comm, int ranks, UniqueId id, int rank) {
  Communicator* made = nullptr;
  const int begun = call("ncclCommInitRank", [&] {
    if (ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) {
      throw Trouble{fake::invalid_value, "no such rank"};
    }
    made = new Communicator{&open_page(id), rank, ranks, cuda().thread_context()};
    communicators().insert(made);
  });
  if (begun != success) return begun;
  be_lost_as_asked(rank, 0);
  wait_for_all(*made->page, ranks);  // without the lock of the API
  *comm = made;
  return success;
}

FAKE_NCCL_API ncclCommDestroy(void* comm) {
  return call("ncclCommDestroy", [&] {
    Communicator& one = known(comm);
    communicators().erase(&one);
    one.aborted = true;  // work that waits in a stream finds nobody; it keeps the object and its page
  });
}

/// Any thread may, while another one waits with the lock of the API.
FAKE_NCCL_API ncclCommAbort(void* comm) {
  static_cast<Communicator*>(comm)->aborted = true;
  return success;
}

FAKE_NCCL_API ncclCommGetAsyncError(void* comm, int* result) {
  const bool lost = static_cast<Communicator*>(comm)->lost;
  if (lost) last_error() = "rank 1 does not answer";
  *result = lost ? remote_error : success;
  return success;
}

FAKE_NCCL_API ncclGroupStart() {
  ++pending.depth;
  return success;
}

FAKE_NCCL_API ncclGroupEnd() {
  return call("ncclGroupEnd", [] {
    if (pending.depth == 0) throw Trouble{fake::not_captured, "no group was started"};
    if (--pending.depth == 0) give_pending();
  });
}

FAKE_NCCL_API ncclAllReduce(const char* send, char* receive, size_t count, int type, int operation, void* comm,
                            void* stream) {
  return add("ncclAllReduce", {ROSIN_COMM_ALLREDUCE, send, receive, count, type, operation, 0}, comm, stream);
}

FAKE_NCCL_API ncclReduce(const char* send, char* receive, size_t count, int type, int operation, int root, void* comm,
                         void* stream) {
  return add("ncclReduce", {ROSIN_COMM_REDUCE, send, receive, count, type, operation, root}, comm, stream);
}

FAKE_NCCL_API ncclBroadcast(const char* send, char* receive, size_t count, int type, int root, void* comm,
                            void* stream) {
  return add("ncclBroadcast", {ROSIN_COMM_BROADCAST, send, receive, count, type, 0, root}, comm, stream);
}

FAKE_NCCL_API ncclAllGather(const char* send, char* receive, size_t count, int type, void* comm, void* stream) {
  return add("ncclAllGather", {ROSIN_COMM_ALLGATHER, send, receive, count, type, 0, 0}, comm, stream);
}

FAKE_NCCL_API ncclReduceScatter(const char* send, char* receive, size_t count, int type, int operation, void* comm,
                                void* stream) {
  return add("ncclReduceScatter", {ROSIN_COMM_REDUCE_SCATTER, send, receive, count, type, operation, 0}, comm, stream);
}

FAKE_NCCL_API ncclSend(const char* send, size_t count, int type, int peer, void* comm, void* stream) {
  return add("ncclSend", {ROSIN_COMM_SEND, send, nullptr, count, type, 0, peer}, comm, stream);
}

FAKE_NCCL_API ncclRecv(char* receive, size_t count, int type, int peer, void* comm, void* stream) {
  return add("ncclRecv", {ROSIN_COMM_RECEIVE, nullptr, receive, count, type, 0, peer}, comm, stream);
}
