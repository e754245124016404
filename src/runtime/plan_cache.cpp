// The two-level cache of plans, its budget, and the public counters.
#include "runtime/plan_cache.hpp"

#include <atomic>

#include "base/hash.hpp"
#include "base/pool.hpp"
#include "runtime/buffer_pool.hpp"
#include "runtime/cpu_stream.hpp"
#include "runtime/device_executor.hpp"
#include "runtime/transfer.hpp"

namespace rosin {

void Key::finish() { hash = hash_words(words.data(), words.size()); }

PlanCache& PlanCache::instance() {
  static PlanCache* cache = new PlanCache;  // never destroyed: threads may still evaluate at exit
  return *cache;
}

namespace {
std::atomic<int64_t> launches_at_reset{0}, bytes_in_at_reset{0}, bytes_out_at_reset{0};

uint64_t joint_hash(const Key& structure, const Key& sizes) { return mix(structure.hash, sizes.hash); }
}  // namespace

std::shared_ptr<Plan> PlanCache::find(const Key& structure, const Key& sizes) {
  std::lock_guard guard(lock);
  const auto [first, last] = by_hash_.equal_range(joint_hash(structure, sizes));
  for (auto at = first; at != last; ++at) {
    const List::iterator plan = at->second;
    if (!((*plan)->structure_key == structure) || !((*plan)->sizes_key == sizes)) continue;
    plans_.splice(plans_.begin(), plans_, plan);
    ++counters.plan_hits;
    return *plan;
  }
  return nullptr;
}

std::shared_ptr<const lower::Structure> PlanCache::find_structure(const Key& structure) {
  std::lock_guard guard(lock);
  const auto [first, last] = structures_.equal_range(structure.hash);
  for (auto at = first; at != last; ++at) {
    if (at->second.key == structure) return at->second.structure;
  }
  return nullptr;
}

void PlanCache::insert(const std::shared_ptr<Plan>& plan) {
  std::lock_guard guard(lock);
  if (!enabled_) return;
  StructureEntry& structure = entry_of(*plan);
  List added{plan};
  by_hash_.emplace(joint_hash(plan->structure_key, plan->sizes_key), added.begin());
  // Nothing fails from here.
  plans_.splice(plans_.begin(), added);
  ++structure.plans;
  plan->cached = true;
  plan->bytes = static_cast<int64_t>(
      plan->layout->bytes() + (plan->structure_key.words.size() + plan->sizes_key.words.size()) * sizeof(uint64_t));
  bytes_ += plan->bytes;
  evict();
}

PlanCache::StructureEntry& PlanCache::entry_of(const Plan& plan) {
  const auto [first, last] = structures_.equal_range(plan.structure_key.hash);
  for (auto at = first; at != last; ++at) {
    if (at->second.structure == plan.structure) return at->second;
  }
  const auto added =
      structures_.emplace(plan.structure_key.hash, StructureEntry{plan.structure_key, plan.structure, 0});
  bytes_ += static_cast<int64_t>(plan.structure->bytes());
  return added->second;
}

std::unique_ptr<lower::Instance> PlanCache::take(Plan& plan) {
  {
    std::lock_guard guard(lock);
    if (!plan.idle.empty()) {
      std::unique_ptr<lower::Instance> instance = std::move(plan.idle.back());
      plan.idle.pop_back();
      return instance;
    }
  }
  return plan.executor->prepare(plan.layout);
}

/// The plan has run: without memory for the list the instance goes, and nothing fails.
void PlanCache::give_back(Plan& plan, std::unique_ptr<lower::Instance> instance) noexcept {
  std::lock_guard guard(lock);
  if (!plan.cached) return;
  if (plan.idle.capacity() == plan.idle.size()) {  // a new instance: it counts from now on
    try {
      plan.idle.reserve(plan.idle.size() + 1);
    } catch (const std::bad_alloc&) {
      return;
    }
    const int64_t bytes = static_cast<int64_t>(instance->bytes());
    plan.bytes += bytes;
    bytes_ += bytes;
  }
  plan.idle.push_back(std::move(instance));
  evict();
}

/// Drops the least recently used plans until the budget holds; the one used last stays.
void PlanCache::evict() {
  while (bytes_ > limit_ && plans_.size() > 1) {
    erase(std::prev(plans_.end()));
    ++counters.evicted;
  }
}

void PlanCache::erase(List::iterator plan) {
  const Key& key = (*plan)->structure_key;
  const auto [first, last] = by_hash_.equal_range(joint_hash(key, (*plan)->sizes_key));
  for (auto at = first; at != last; ++at) {
    if (at->second != plan) continue;
    by_hash_.erase(at);
    break;
  }
  const auto [begin, end] = structures_.equal_range(key.hash);
  for (auto at = begin; at != end; ++at) {
    if (at->second.structure != (*plan)->structure) continue;
    if (--at->second.plans == 0) {
      bytes_ -= static_cast<int64_t>((*plan)->structure->bytes());
      structures_.erase(at);
    }
    break;
  }
  bytes_ -= (*plan)->bytes;
  (*plan)->cached = false;
  (*plan)->idle.clear();
  plans_.erase(plan);
}

void PlanCache::clear() {
  std::lock_guard guard(lock);
  while (!plans_.empty()) erase(plans_.begin());
}

void PlanCache::set_limit(int64_t bytes) {
  std::lock_guard guard(lock);
  limit_ = bytes;
  evict();
}

void PlanCache::set_enabled(bool on) {
  {
    std::lock_guard guard(lock);
    enabled_ = on;
  }
  if (!on) clear();
}

Stats stats() {
  PlanCache& cache = PlanCache::instance();
  Stats now;
  {
    std::lock_guard guard(cache.lock);
    now = cache.counters;
    now.cache_bytes = cache.bytes();
  }
  now.launches = device_launches() - launches_at_reset.load(std::memory_order_relaxed);
  const CopiedBytes copied = copied_bytes();
  now.to_devices = copied.to_devices - bytes_in_at_reset.load(std::memory_order_relaxed);
  now.from_devices = copied.from_devices - bytes_out_at_reset.load(std::memory_order_relaxed);
  now.live_bytes = live_buffer_bytes();
  now.pooled_bytes = pooled_buffer_bytes();
  return now;
}

void reset_stats() {
  PlanCache& cache = PlanCache::instance();
  std::lock_guard guard(cache.lock);
  cache.counters = {};
  launches_at_reset.store(device_launches(), std::memory_order_relaxed);
  const CopiedBytes copied = copied_bytes();
  bytes_in_at_reset.store(copied.to_devices, std::memory_order_relaxed);
  bytes_out_at_reset.store(copied.from_devices, std::memory_order_relaxed);
}

void set_plan_cache_limit(int64_t bytes) { PlanCache::instance().set_limit(bytes); }
void set_plan_cache(bool on) { PlanCache::instance().set_enabled(on); }

void trim() {
  CpuStream::finish();
  PlanCache::instance().clear();
  trim_buffers();
}

void set_num_threads(int threads) { set_pool_threads(threads); }
int num_threads() { return pool_threads(); }

}  // namespace rosin
