// PlanCache: what is compiled found by structure, plans found by sizes; both compared in full after the hash selected
// them. Plans are bounded by bytes, least recently used first. Memory that they run in is not theirs: idle_arenas.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <rosin/stats.hpp>

#include "plan/device.hpp"

namespace rosin {

/// The words of a key, and their hash.
struct Key {
  std::vector<uint64_t> words;
  uint64_t hash = 0;

  void clear() { words.clear(); }
  void add(uint64_t word) { words.push_back(word); }
  void finish();
  bool operator==(const Key& other) const { return hash == other.hash && words == other.words; }
};

class OpenDevice;

/// One layout, prepared when it is first run. Shared by the cache and the runs that use it, of any number of threads.
struct Plan {
  plan::DeviceExecutor* executor = nullptr;
  OpenDevice* device = nullptr;  // of a plug-in, or null: the CPU
  std::shared_ptr<plan::Compiled> compiled;
  std::shared_ptr<const plan::Layout> layout;
  std::vector<plan::MemorySlot> slots;  // of the outputs, then of the arena
  Key structure_key, sizes_key;
  int64_t kernels = 0, calls = 0;  // of its steps
  int64_t bytes = 0;               // counted in the cache
  bool cached = false;

  std::mutex preparing;
  std::unique_ptr<const plan::Prepared> prepared;      // made under `preparing`
  std::atomic<const plan::Prepared*> ready = nullptr;  // the same, once it is made
};

class PlanCache {
 public:
  static PlanCache& instance();

  /// The plan for these keys, or null; counts a hit.
  std::shared_ptr<Plan> find(const Key& structure, const Key& sizes);
  /// What is compiled of the structure alone, or null.
  std::shared_ptr<plan::Compiled> find_compiled(const Key& structure);
  void insert(const std::shared_ptr<Plan>& plan);
  /// Counts a plan that was begun at `since`.
  void count_plan(bool new_structure, std::chrono::steady_clock::time_point since);
  void count_run(const Plan& plan);

  /// The plan, ready to run; threads that ask for one that is not prepared yet wait for the first of them.
  const plan::Prepared& prepared(Plan& plan) {
    const plan::Prepared* ready = plan.ready.load(std::memory_order_acquire);
    return ready ? *ready : prepare(plan);
  }

  void set_limit(int64_t bytes);
  static constexpr int64_t usual_limit = int64_t{256} << 20;
  void set_enabled(bool on);
  void clear();
  int64_t bytes() const { return bytes_; }  // hold lock

  Stats counters;  // guarded by lock
  std::mutex lock;

 private:
  using List = std::list<std::shared_ptr<Plan>>;
  static constexpr size_t always_kept = 2;  // plans: a program that alternates between two makes none anew
  const plan::Prepared& prepare(Plan& plan);
  void evict();
  void erase(List::iterator plan);

  List plans_;  // most recently used first
  std::unordered_multimap<uint64_t, List::iterator> by_hash_;
  struct StructureEntry {
    Key key;
    std::shared_ptr<plan::Compiled> compiled;
    int64_t plans = 0;
  };
  StructureEntry& entry_of(const Plan& plan);

  std::unordered_multimap<uint64_t, StructureEntry> structures_;
  int64_t limit_ = usual_limit;
  int64_t bytes_ = 0;
  bool enabled_ = true;
};

}  // namespace rosin
