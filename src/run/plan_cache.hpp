// PlanCache: structures found by structure, layouts found by sizes; both compared in full after the hash selected them.
// A layout keeps idle instances (arena and prepared calls) for the next run. All is bounded by bytes, least recently
// used first: arenas, which are soon had again, then plans.
#pragma once

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

/// One layout with its instances. Shared by the cache and the runs that use it.
struct Plan {
  plan::DeviceExecutor* executor = nullptr;
  std::shared_ptr<const plan::Structure> structure;
  std::shared_ptr<const plan::Layout> layout;
  Key structure_key, sizes_key;
  std::vector<std::unique_ptr<plan::Instance>> idle;
  int64_t bytes = 0;  // counted in the cache
  bool cached = false;
};

class PlanCache {
 public:
  static PlanCache& instance();

  /// The plan for these keys, or null; counts a hit.
  std::shared_ptr<Plan> find(const Key& structure, const Key& sizes);
  /// The structure alone, or null.
  std::shared_ptr<const plan::Structure> find_structure(const Key& structure);
  void insert(const std::shared_ptr<Plan>& plan);

  /// An idle instance of the plan, or a new one; with its arena.
  std::unique_ptr<plan::Instance> take(Plan& plan);
  void give_back(Plan& plan, std::unique_ptr<plan::Instance> instance) noexcept;

  /// Gives the arenas of all idle instances back to their pools.
  void strip() noexcept;
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
  void evict();
  void strip(Plan& plan) noexcept;
  void erase(List::iterator plan);

  List plans_;  // most recently used first
  std::unordered_multimap<uint64_t, List::iterator> by_hash_;
  struct StructureEntry {
    Key key;
    std::shared_ptr<const plan::Structure> structure;
    int64_t plans = 0;
  };
  StructureEntry& entry_of(const Plan& plan);

  std::unordered_multimap<uint64_t, StructureEntry> structures_;
  int64_t limit_ = usual_limit;
  int64_t bytes_ = 0;
  bool enabled_ = true;
};

}  // namespace rosin
