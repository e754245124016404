// PlanCache: structures found by structure, layouts found by sizes; both compared in full after the hash selected them.
// Bounded by bytes, least recently used first. A layout keeps idle instances (arena and prepared calls) for the next
// run.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <rosin/stats.hpp>

#include "lower/device.hpp"

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
  lower::DeviceExecutor* executor = nullptr;
  std::shared_ptr<const lower::Structure> structure;
  std::shared_ptr<const lower::Layout> layout;
  Key structure_key, sizes_key;
  std::vector<std::unique_ptr<lower::Instance>> idle;
  int64_t bytes = 0;  // counted in the cache
  bool cached = false;
};

class PlanCache {
 public:
  static PlanCache& instance();

  /// The plan for these keys, or null; counts a hit.
  std::shared_ptr<Plan> find(const Key& structure, const Key& sizes);
  /// The structure alone, or null.
  std::shared_ptr<const lower::Structure> find_structure(const Key& structure);
  void insert(const std::shared_ptr<Plan>& plan);

  /// An idle instance of the plan, or a new one.
  std::unique_ptr<lower::Instance> take(Plan& plan);
  void give_back(Plan& plan, std::unique_ptr<lower::Instance> instance) noexcept;

  void set_limit(int64_t bytes);
  void set_enabled(bool on);
  void clear();
  int64_t bytes() const { return bytes_; }  // hold lock

  Stats counters;  // guarded by lock
  std::mutex lock;

 private:
  using List = std::list<std::shared_ptr<Plan>>;
  void evict();
  void erase(List::iterator plan);

  List plans_;  // most recently used first
  std::unordered_multimap<uint64_t, List::iterator> by_hash_;
  struct StructureEntry {
    Key key;
    std::shared_ptr<const lower::Structure> structure;
    int64_t plans = 0;
  };
  StructureEntry& entry_of(const Plan& plan);

  std::unordered_multimap<uint64_t, StructureEntry> structures_;
  int64_t limit_ = int64_t{1} << 30;
  int64_t bytes_ = 0;
  bool enabled_ = true;
};

}  // namespace rosin
