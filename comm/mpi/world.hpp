// Collectives over MPI. Each begins with a small allreduce that compares what the ranks call, on a communicator of its
// own: a rank that does not come or calls something else is seen there, before any memory of the caller is involved.
// All calls are non-blocking ones whose end is asked for, so that the timeout holds. Read first: functions.hpp.
#pragma once

#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "common/describe.hpp"
#include "common/ranks.hpp"
#include "common/trouble.hpp"
#include "mpi/functions.hpp"

namespace rosin::transport::mpi {

template <class H> class World final : public Ranks {
 public:
  World(const Library& library, double timeout);

  rosin_comm_place place() const override;
  void run(const rosin_comm_collective& collective) override;
  /// MPI_Abort, which tells nobody why.
  void abort(const char* why) noexcept override;
  void leave() override;
  std::string version() const override;
  rosin_comm_devices way_of_devices() const override { return ROSIN_COMM_AT_REST; }
  void require_devices(std::string_view backend) const override;

 private:
  using Clock = std::chrono::steady_clock;

  // world.cpp
  void initialize();
  void make_operations();
  void compare_versions(double timeout);
  void good(int code, const char* what) const;
  bool ends_within(H& request, double seconds);
  template <class Post> void wait(double timeout, const char* what, Post&& post);
  void compare(const rosin_comm_collective& c);
  [[noreturn]] void tell_difference(double timeout);
  [[noreturn]] void ask_around(double timeout);

  // collectives.cpp
  H type_of(const rosin_comm_collective& c) const;
  H operation_of(int32_t operation, int32_t type) const;
  bool is_reduced_as_float(const rosin_comm_collective& c) const { return combines(c.kind) && is_half(c.type); }
  bool goes_directly(const rosin_comm_collective& c, const rosin_comm_part& part) const;
  void run_parts(const rosin_comm_collective& c);
  void run_directly(const rosin_comm_collective& c, const rosin_comm_part& part);
  void check_device_parts(const rosin_comm_collective& c) const;
  void run_staged(const rosin_comm_collective& c);
  void exchange_staged(const rosin_comm_collective& c, uint64_t count, uint64_t sent, uint64_t got);
  void exchange(const rosin_comm_collective& c, const void* send, void* receive, uint64_t elements);

  // pieces.cpp
  struct Turn;
  Turn turn_of(const rosin_comm_collective& c, const rosin_comm_part& part, uint64_t at, uint64_t number) const;
  void reduce_in_pieces(const rosin_comm_collective& c, const rosin_comm_part& part);
  void scatter(Turn& turn);
  void combine_turn(const rosin_comm_collective& c, Turn& turn);
  void gather(Turn& turn);
  void post(std::vector<H>& requests, bool sends, int other, const void* bytes, uint64_t count, int tag);
  void wait_all(std::vector<H>& requests, double timeout);

  Functions<H> f_;
  Constants<H> c_;
  std::mutex calls_;  // one call of MPI at a time, also beside abort()
  H data_{}, checks_{};
  // By type and operation: of integers all, of floats the least and the greatest. MPI leaves open what it does with NaN
  // and with sums that are too large, and both libraries do other things for some types.
  std::array<H, type_count * operation_count> own_operations_{};
  int rank_ = 0, ranks_ = 1, node_rank_ = 0, node_ranks_ = 1;
  bool initialized_here_ = false;
  uint64_t number_ = 0;  // of the last collective
  Description current_{}, last_{};
  std::vector<char> given_, got_;             // what is copied together
  std::vector<char> pieces_;                  // of other ranks, for two turns
  std::vector<float> wide_given_, wide_got_;  // 16-bit floats that are reduced
  std::optional<Trouble> broken_;
};

// What other calls of MPI do is kept apart by tags.
inline constexpr int question_tag = 1, mail_tag = 2, scatter_tag = 3, gather_tag = 4;

/// Begins a call of MPI and waits until it has ended here.
template <class H> template <class Post> void World<H>::wait(double timeout, const char* what, Post&& post) {
  H request{};
  {
    const std::lock_guard lock(calls_);
    good(post(&request), what);
  }
  if (!ends_within(request, timeout)) ask_around(timeout);
}

}  // namespace rosin::transport::mpi
