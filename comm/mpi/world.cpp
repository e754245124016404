// See world.hpp: joining, waiting, comparing. Read next: collectives.cpp.
#include "mpi/world.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>

#include "common/combine.hpp"

namespace rosin::transport::mpi {
namespace {

constexpr double answer_seconds = 3;

/// What MPI calls to combine numbers; `index` is that of World::own_operations_.
template <class H, int index> void combine_two(void* next, void* all, int* count, H*) {
  combine_into(index % operation_count, index / operation_count, next, all, static_cast<uint64_t>(*count));
}

template <class H, int... indices> constexpr auto callbacks(std::integer_sequence<int, indices...>) {
  return std::array<typename Functions<H>::Combine, sizeof...(indices)>{combine_two<H, indices>...};
}

/// Waits between two questions: not at all for a while, then only for ranks that share this core, and at last longer
/// and longer. What takes part in copying between ranks must not sleep early: MPI copies while it is asked.
class Pause {
 public:
  void operator()(std::chrono::steady_clock::duration waited) {
    if (++turns_ < busy_turns) return;
    if (waited < awake) return std::this_thread::yield();
    std::this_thread::sleep_for(length_);
    length_ = std::min(length_ * 5 / 4, longest);
  }

 private:
  static constexpr int busy_turns = 50;
  static constexpr std::chrono::microseconds awake{300}, longest{100};

  int turns_ = 0;
  std::chrono::microseconds length_{10};
};

}  // namespace

template <class H>
World<H>::World(const Library& library, double timeout) : f_(functions_of<H>(library)), c_(constants_of<H>(library)) {
  initialize();
  good(f_.comm_dup(c_.world, &data_), "MPI_Comm_dup");
  good(f_.comm_dup(c_.world, &checks_), "MPI_Comm_dup");
  for (const H each : {data_, checks_}) good(f_.comm_set_errhandler(each, c_.errors_return), "MPI_Comm_set_errhandler");
  good(f_.comm_rank(data_, &rank_), "MPI_Comm_rank");
  good(f_.comm_size(data_, &ranks_), "MPI_Comm_size");
  H node{};
  good(f_.comm_split_type(data_, c_.shared, rank_, c_.info_null, &node), "MPI_Comm_split_type");
  good(f_.comm_rank(node, &node_rank_), "MPI_Comm_rank");
  good(f_.comm_size(node, &node_ranks_), "MPI_Comm_size");
  good(f_.comm_free(&node), "MPI_Comm_free");
  make_operations();
  compare_versions(timeout);
}

template <class H> void World<H>::initialize() {
  int begun = 0, over = 0, level = 0;
  f_.initialized(&begun);
  f_.finalized(&over);
  if (over != 0) throw Trouble{ROSIN_COMM_INVALID, "MPI has been finalized by the program"};
  initialized_here_ = begun == 0;
  good(begun == 0 ? f_.init_thread(nullptr, nullptr, thread_serialized, &level) : f_.query_thread(&level),
       "MPI_Init_thread");
  if (level >= thread_serialized) return;
  throw Trouble{ROSIN_COMM_UNSUPPORTED,
                "MPI was initialised without support of threads; call MPI_Init_thread with "
                "MPI_THREAD_SERIALIZED or more before, or leave it to the library"};
}

template <class H> void World<H>::make_operations() {
  constexpr auto all = callbacks<H>(std::make_integer_sequence<int, type_count * operation_count>());
  for (int index = 0; index < type_count * operation_count; ++index) {
    const int type = index / operation_count, operation = index % operation_count;
    const bool is_float = type == ROSIN_COMM_FLOAT32 || type == ROSIN_COMM_FLOAT64;
    const bool is_mpis = is_float && (operation == ROSIN_COMM_SUM || operation == ROSIN_COMM_PRODUCT);
    if (!is_combined(type) || is_half(type) || is_mpis) continue;
    const auto at = static_cast<size_t>(index);
    good(f_.op_create(all[at], 1, &own_operations_[at]), "MPI_Op_create");
  }
}

/// A job whose ranks have other versions of this library would fail later, where it is harder to understand.
template <class H> void World<H>::compare_versions(double timeout) {
  rosin_comm_collective joining{};
  joining.size = sizeof joining;
  joining.kind = ROSIN_COMM_BARRIER;
  joining.name = "join, version " ROSIN_VERSION;
  joining.timeout = timeout;
  current_ = describe(joining, 0);
  for (const char* letter = joining.name; *letter; ++letter) {
    current_.hash = current_.hash * 31 + static_cast<unsigned char>(*letter);
  }
  compare(joining);
}

template <class H> std::string World<H>::version() const {
  std::vector<char> text(most_text);
  int length = 0;
  if (f_.library_version(text.data(), &length) != success) return ROSIN_VERSION;
  std::string all(text.data(), strnlen(text.data(), text.size()));
  if (all.starts_with("MPICH Version:")) {  // it goes on about how it was built, line by line
    all = all.substr(0, all.find('\n'));
    all = "MPICH " + all.substr(std::min(all.size(), all.find_first_not_of(": \t", std::strlen("MPICH Version:"))));
  }
  return ROSIN_VERSION " (" + all.substr(0, all.find_first_of(",\n")) + ")";
}

template <class H> rosin_comm_place World<H>::place() const {
  return {sizeof(rosin_comm_place), rank_, ranks_, node_rank_, node_ranks_};
}

template <class H> void World<H>::abort(const char*) noexcept {
  const std::lock_guard lock(calls_);
  f_.abort(c_.world, 1);
}

template <class H> void World<H>::leave() {
  if (broken_) return;  // others are gone or wait: MPI_Finalize would wait with them
  f_.comm_free(&data_);
  f_.comm_free(&checks_);
  int over = 0;
  f_.finalized(&over);
  if (initialized_here_ && over == 0) f_.finalize();
}

template <class H> void World<H>::good(int code, const char* what) const {
  if (code == success) return;
  std::vector<char> text(most_text);
  int length = 0;
  f_.error_string(code, text.data(), &length);
  throw Trouble{ROSIN_COMM_FAILED, std::string(what) + ": " + text.data()};
}

template <class H> bool World<H>::ends_within(H& request, double seconds) {
  const auto begin = Clock::now();
  Pause pause;
  for (;;) {
    int done = 0;
    {
      const std::lock_guard lock(calls_);
      good(f_.test(&request, &done, c_.ignore_status), "MPI_Test");
    }
    if (done != 0) return true;
    const Clock::duration waited = Clock::now() - begin;
    if (seconds > 0 && std::chrono::duration<double>(waited).count() > seconds) return false;
    pause(waited);
  }
}

/// Whether all ranks call the same: the greatest of all hashes and the greatest complement are those of each.
template <class H> void World<H>::compare(const rosin_comm_collective& c) {
  const std::array<uint64_t, 2> mine = {current_.hash, ~current_.hash};
  std::array<uint64_t, 2> greatest = mine;
  const H largest = operation_of(ROSIN_COMM_MAXIMUM, ROSIN_COMM_UINT64);
  wait(c.timeout, "MPI_Iallreduce", [&](H* request) {
    return f_.allreduce(c_.in_place, greatest.data(), 2, c_.types[ROSIN_COMM_UINT64], largest, checks_, request);
  });
  if (greatest != mine || greatest[0] != ~greatest[1]) tell_difference(c.timeout);
}

/// All ranks have learnt that not all are at the same collective; they tell each other at which.
template <class H> void World<H>::tell_difference(double timeout) {
  std::vector<Description> all(static_cast<size_t>(ranks_));
  wait(timeout, "MPI_Iallgather", [&](H* request) {
    return f_.allgather(&current_, sizeof current_, c_.byte, all.data(), sizeof current_, c_.byte, checks_, request);
  });
  for (int other = 1; other < ranks_; ++other) {
    const Description& its = all[static_cast<size_t>(other)];
    if (its.hash == all[0].hash) continue;
    throw Trouble{ROSIN_COMM_MISMATCH, difference_text(0, all[0], other, its)};
  }
  throw Trouble{ROSIN_COMM_FAILED, "MPI gave ranks different results of one reduction"};
}

/// The timeout is over. Those who wait as well say so; the others are named.
template <class H> void World<H>::ask_around(double timeout) {
  std::vector<Description> answers(static_cast<size_t>(ranks_));
  std::vector<H> asked(answers.size()), heard(answers.size());
  const int bytes = sizeof current_;
  for (size_t other = 0; other < answers.size(); ++other) {
    if (static_cast<int>(other) == rank_) continue;
    const std::lock_guard lock(calls_);
    const int its = static_cast<int>(other);
    good(f_.receive(&answers[other], bytes, c_.byte, its, question_tag, checks_, &heard[other]), "MPI_Irecv");
    good(f_.send(&current_, bytes, c_.byte, its, question_tag, checks_, &asked[other]), "MPI_Isend");
  }
  const auto begin = Clock::now();
  std::string missing, different;
  for (size_t other = 0; other < answers.size(); ++other) {
    const int its = static_cast<int>(other);
    if (its == rank_) continue;
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (!ends_within(heard[other], std::max(0.01, answer_seconds - waited.count()))) {
      missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(its);
    } else if (different.empty() && answers[other].hash != current_.hash) {
      different = difference_text(rank_, current_, its, answers[other]);
    }
  }
  // Those that wait for one that is missing may be a collective apart.
  if (missing.empty() && !different.empty()) throw Trouble{ROSIN_COMM_MISMATCH, different};
  const std::string last = last_.number == 0 ? "no collective" : text_of(last_);
  throw Trouble{ROSIN_COMM_TIMEOUT, (missing.empty() ? "the ranks" : missing) + " did not come within " +
                                        seconds_text(timeout) + "; the last that all reached is " + last + "; rank " +
                                        std::to_string(rank_) + " waits in " + text_of(current_)};
}

template <class H> void World<H>::require_devices(std::string_view backend) const {
  int (*const query)() = backend == "CUDA" ? f_.query_cuda : backend == "AMDGPU" ? f_.query_rocm : nullptr;
  if (query && query() == 1) return;
  throw Trouble{ROSIN_COMM_UNSUPPORTED, version() + " does not take memory of " + std::string(backend) + " devices (" +
                                            (query ? "it says so" : "it cannot be asked") + ")"};
}

template <class H> void World<H>::run(const rosin_comm_collective& c) {
  if (broken_) throw *broken_;
  if (c.memory == ROSIN_COMM_DEVICE) check_device_parts(c);
  const bool between_two = c.kind == ROSIN_COMM_SEND || c.kind == ROSIN_COMM_RECEIVE;
  try {
    current_ = describe(c, between_two ? number_ : ++number_);
    if (!between_two) compare(c);
    run_parts(c);
    if (!between_two) last_ = current_;
  } catch (Trouble& trouble) {
    broken_ = trouble;
    throw;
  }
}

template class World<void*>;
template class World<int>;

}  // namespace rosin::transport::mpi
