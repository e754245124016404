// The two-level cache of plans, its budget, and the public counters.
#include "run/plan_cache.hpp"

#include <atomic>
#include <string>
#include <utility>

#include <rosin/error.hpp>

#include "base/hash.hpp"
#include "base/workers.hpp"
#include "graph/packed_forms.hpp"
#include "run/buffer_pool.hpp"
#include "run/cpu_stream.hpp"
#include "run/device_executor.hpp"
#include "run/device_graph.hpp"
#include "run/transfer.hpp"

namespace rosin {

void Key::finish() { hash = hash_words(words.data(), words.size()); }

PlanCache& PlanCache::instance() {
  static PlanCache* cache = new PlanCache;  // never destroyed: threads may still evaluate at exit
  return *cache;
}

namespace {
std::atomic<int64_t> launches_at_reset{0}, allocations_at_reset{0}, given_at_reset{0}, refused_at_reset{0},
    bytes_in_at_reset{0}, bytes_out_at_reset{0}, graph_launches_at_reset{0}, graph_updates_at_reset{0},
    loose_calls_at_reset{0};

int64_t nanoseconds_since(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - since).count();
}

int64_t bytes_of(const Key& key) { return static_cast<int64_t>(key.words.capacity() * sizeof(uint64_t)); }

/// What all plans of the structure share.
int64_t bytes_of_structure(const Plan& plan) {
  return static_cast<int64_t>(plan.compiled->structure->bytes() + plan.structure_key.words.size() * sizeof(uint64_t));
}

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

std::shared_ptr<plan::Compiled> PlanCache::find_compiled(const Key& structure) {
  std::lock_guard guard(lock);
  const auto [first, last] = structures_.equal_range(structure.hash);
  for (auto at = first; at != last; ++at) {
    if (at->second.key == structure) return at->second.compiled;
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
  plan->bytes = static_cast<int64_t>(sizeof(Plan) + plan->layout->bytes()) + bytes_of(plan->structure_key) +
                bytes_of(plan->sizes_key);
  bytes_ += plan->bytes;
  evict();
}

void PlanCache::count_plan(bool new_structure, std::chrono::steady_clock::time_point since) {
  std::lock_guard guard(lock);
  counters.structures += new_structure;
  ++counters.layouts;
  counters.planning_ns += nanoseconds_since(since);
}

void PlanCache::count_run(const Plan& plan) {
  const plan::Traffic& traffic = plan.layout->traffic;
  std::lock_guard guard(lock);
  ++counters.evaluations;
  counters.kernels += plan.kernels;
  counters.calls += plan.calls;
  counters.read_bytes += traffic.read;
  counters.written_bytes += traffic.written;
  counters.kept_bytes += traffic.kept;
}

PlanCache::StructureEntry& PlanCache::entry_of(const Plan& plan) {
  const auto [first, last] = structures_.equal_range(plan.structure_key.hash);
  for (auto at = first; at != last; ++at) {
    if (at->second.compiled == plan.compiled) return at->second;
  }
  const auto added = structures_.emplace(plan.structure_key.hash, StructureEntry{plan.structure_key, plan.compiled, 0});
  bytes_ += bytes_of_structure(plan);
  return added->second;
}

const plan::Prepared& PlanCache::prepare(Plan& plan) {
  std::lock_guard preparing(plan.preparing);
  if (plan.prepared) return *plan.prepared;
  const auto since = std::chrono::steady_clock::now();
  plan.prepared = plan.executor->prepare(*plan.compiled, plan.layout);
  plan.ready.store(plan.prepared.get(), std::memory_order_release);
  std::lock_guard guard(lock);
  counters.planning_ns += nanoseconds_since(since);
  if (!plan.cached) return *plan.prepared;
  const auto more = static_cast<int64_t>(plan.prepared->bytes());
  plan.bytes += more;
  bytes_ += more;
  evict();
  return *plan.prepared;
}

/// Keeps to the budget, whatever the plans used last take.
void PlanCache::evict() {
  while (bytes_ > limit_ && plans_.size() > always_kept) {
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
    if (at->second.compiled != (*plan)->compiled) continue;
    if (--at->second.plans == 0) {
      bytes_ -= bytes_of_structure(**plan);
      structures_.erase(at);
    }
    break;
  }
  bytes_ -= (*plan)->bytes;
  (*plan)->cached = false;
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
  const BufferUsage usage = buffer_usage();
  now.allocations = usage.made + DevicePool::made() - allocations_at_reset.load(std::memory_order_relaxed);
  now.launches = device_launches() - launches_at_reset.load(std::memory_order_relaxed);
  const GraphCounts graphs = graph_counts();
  now.graph_launches = graphs.launches - graph_launches_at_reset.load(std::memory_order_relaxed);
  now.graph_updates = graphs.updates - graph_updates_at_reset.load(std::memory_order_relaxed);
  now.loose_calls = graphs.loose_calls - loose_calls_at_reset.load(std::memory_order_relaxed);
  const LibraryCalls calls = library_calls();
  now.library_calls = calls.given - given_at_reset.load(std::memory_order_relaxed);
  now.refused_calls = calls.refused - refused_at_reset.load(std::memory_order_relaxed);
  const CopiedBytes copied = copied_bytes();
  now.to_devices = copied.to_devices - bytes_in_at_reset.load(std::memory_order_relaxed);
  now.from_devices = copied.from_devices - bytes_out_at_reset.load(std::memory_order_relaxed);
  now.live_bytes = usage.live - usage.borrowed;
  now.packed_bytes = PackedForms::instance().bytes();
  now.pooled_bytes = usage.pooled;
  return now;
}

void reset_stats() {
  PlanCache& cache = PlanCache::instance();
  std::lock_guard guard(cache.lock);
  cache.counters = {};
  allocations_at_reset.store(buffer_usage().made + DevicePool::made(), std::memory_order_relaxed);
  launches_at_reset.store(device_launches(), std::memory_order_relaxed);
  const GraphCounts graphs = graph_counts();
  graph_launches_at_reset.store(graphs.launches, std::memory_order_relaxed);
  graph_updates_at_reset.store(graphs.updates, std::memory_order_relaxed);
  loose_calls_at_reset.store(graphs.loose_calls, std::memory_order_relaxed);
  const LibraryCalls calls = library_calls();
  given_at_reset.store(calls.given, std::memory_order_relaxed);
  refused_at_reset.store(calls.refused, std::memory_order_relaxed);
  const CopiedBytes copied = copied_bytes();
  bytes_in_at_reset.store(copied.to_devices, std::memory_order_relaxed);
  bytes_out_at_reset.store(copied.from_devices, std::memory_order_relaxed);
}

void set_packed_limit(int64_t bytes) {
  if (bytes < 0) {
    throw Error(ErrorKind::argument, "set_packed_limit: the limit must not be negative; got " + std::to_string(bytes) +
                                         "; 0 packs weights in each run");
  }
  PackedForms::instance().set_limit(bytes);
}
void set_plan_cache_limit(int64_t bytes) { PlanCache::instance().set_limit(bytes); }
void set_plan_cache(bool on) { PlanCache::instance().set_enabled(on); }

void trim() {
  CpuStream::finish();
  PlanCache::instance().clear();
  trim_buffers();
}

void set_num_threads(int threads) { set_worker_threads(threads); }
int num_threads() { return worker_threads(); }

}  // namespace rosin
