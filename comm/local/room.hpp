// The processes that share a page: how they meet, what each learns when another does not come. Read first: page.hpp.
// Read next: collectives.cpp, common.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/parts.hpp"
#include "common/ranks.hpp"
#include "common/trouble.hpp"
#include "local/page.hpp"

namespace rosin::transport::local {

/// Part of this process in the page. Collectives are called by one thread at a time, abort() by any.
class Room final : public Ranks {
 public:
  /// Takes the place that the environment names and waits for all ranks; without those variables it is alone. Throws
  /// Trouble.
  explicit Room(double timeout);
  ~Room() override { leave(); }

  rosin_comm_place place() const override { return {sizeof(rosin_comm_place), rank_, ranks_, rank_, ranks_}; }
  void run(const rosin_comm_collective& collective) override;
  void* common(uint64_t bytes, double timeout) override;
  std::span<const char> memory_in_common() const override { return common_; }
  void abort(const char* why) noexcept override;
  /// Others that still wait for this rank learn that it has left.
  void leave() noexcept override;
  /// Throws where ranks wait in vain for each other: one has failed, or has not left in good order.
  void check() override;

 private:
  struct Wait;

  // room.cpp: the page, meetings, waits
  void open_page();
  void take_slot();
  void compare_versions();
  Slot& slot(int other) const { return slot_of(*page_, other); }
  char* area(int other, uint64_t round) const { return areas_of(*page_, other) + (round & 1) * area_bytes; }
  char* mail(int other) const { return areas_of(*page_, other) + 2 * area_bytes; }
  template <class Done> void wait(std::atomic<uint32_t>& word, const Wait& for_what, Done&& done);
  void look_around(const Wait& for_what);
  void meet(double timeout);
  void wake(std::atomic<uint32_t>& word);
  std::string why_gone(int other) const;
  std::string last_of(int other) const;
  [[noreturn]] void give_up(const Wait& for_what);
  void throw_told_failure() const;
  void tell_failure(int status, const std::string& text) noexcept;
  void watch(int32_t process, int at);

  // common.cpp
  void give_common(uint64_t bytes, double timeout);
  bool map_common(uint64_t bytes);
  void unmap_common() noexcept;

  // collectives.cpp
  void begin(const rosin_comm_collective& collective);
  void compare();
  void run_together(const rosin_comm_collective& collective);
  void first_meeting(double timeout);
  uint64_t begin_of(int rank, uint64_t bytes) const;
  void reduce(const rosin_comm_collective& collective);
  void reduce_in_common(const rosin_comm_collective& collective);
  void reduce_scatter(const rosin_comm_collective& collective);
  void broadcast(const rosin_comm_collective& collective);
  void allgather(const rosin_comm_collective& collective);
  void send(const rosin_comm_collective& collective);
  void receive(const rosin_comm_collective& collective);

  int rank_ = 0, ranks_ = 1;
  Header* page_ = nullptr;  // null: alone
  int file_ = -1;           // that holds the page; the environment's
  std::span<char> common_;  // memory in common, behind the page
  bool spins_ = false;      // whether each rank has a core to itself
  uint64_t meetings_ = 0;   // that this rank has come to
  uint64_t number_ = 0;     // of the last collective
  uint64_t rounds_ = 0;     // of data, of all collectives: the last bit says which area is used
  bool compared_ = false;   // whether the description of the current collective has been compared
  Description current_{};
  std::vector<int> watched_;  // pidfds of the ranks, and of the launcher at the end; -1: none
  std::optional<Trouble> broken_;
};

}  // namespace rosin::transport::local
