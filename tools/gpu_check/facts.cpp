// What a machine gives at best, asked below the library: through the functions of the plug-in that it has loaded.
#include <dlfcn.h>

#include <rosin/backend.h>
#include <rosin/diagnostics.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include "facts.hpp"

namespace gpu_check {
namespace {

using rosin::BackendReport;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The table of the plug-in file that is in use; what an older one lacks is null.
rosin_backend table_of(const BackendReport& report) {
  void* library = dlopen(report.tried.back().path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto open =
      library ? reinterpret_cast<rosin_backend_open_function>(dlsym(library, "rosin_backend_open")) : nullptr;
  const rosin_backend* given = open ? open(ROSIN_BACKEND_ABI) : nullptr;
  if (!given) throw std::runtime_error("facts: " + report.tried.back().path + " opens no more");
  rosin_backend all{};
  __builtin_memcpy(&all, given, std::min(given->size, sizeof all));
  return all;
}

/// A device, a stream of it, and memory, for as long as this lives.
class Bench {
 public:
  Bench(const rosin_backend& table, int id, uint64_t bytes) : table_(table), bytes_(bytes) {
    check(table_.open(id, &device_));
    check(table_.stream_create(device_, &stream_));
    for (rosin_memory*& memory : memory_) check(table_.alloc(device_, bytes, &memory));
  }
  ~Bench() {
    for (rosin_memory* memory : memory_) {
      if (memory) table_.release(device_, memory);
    }
    if (stream_) table_.stream_destroy(stream_);
    if (device_) table_.close(device_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  /// Bytes read and written in a second by copies within the device, the best of five.
  double copy_rate() {
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      const double start = now();
      check(table_.copy(stream_, {memory_[0], 0}, {memory_[1], 0}, bytes_));
      check(table_.stream_sync(stream_));
      best = std::max(best, 2 * static_cast<double>(bytes_) / (now() - start));
    }
    return best;
  }

  /// Times of a graph of `nodes` small fills, one behind the other, in seconds; none where there are no graphs.
  GraphTimes graph_times(uint32_t nodes) {
    if (!table_.graph_create || !table_.graph_launch) return {};
    rosin_graph* graph = nullptr;
    if (table_.graph_create(device_, &graph) != ROSIN_OK) return {};
    const std::unique_ptr<rosin_graph, void (*)(rosin_graph*)> owner(graph, table_.graph_destroy);
    for (uint32_t i = 0; i < nodes; ++i) check(table_.graph_add(graph, &filled(i, 0)));
    check(table_.graph_finish(graph));
    GraphTimes times;
    run(graph);  // the first launch makes room
    double start = now();
    for (uint32_t i = 0; i < nodes; ++i) check(table_.graph_update(graph, i, &filled(i, 1)));
    times.update = (now() - start) / nodes;
    constexpr int launches = 20;
    start = now();
    for (int i = 0; i < launches; ++i) {
      const double begin = now();
      check(table_.graph_launch(stream_, graph));
      times.launch += (now() - begin) / launches;
      check(table_.stream_sync(stream_));
    }
    times.node = (now() - start) / launches / nodes;
    return times;
  }

 private:
  void run(rosin_graph* graph) {
    check(table_.graph_launch(stream_, graph));
    check(table_.stream_sync(stream_));
  }
  void check(rosin_status status) const {
    if (status != ROSIN_OK) throw std::runtime_error(std::string("facts: ") + table_.error_text());
  }
  /// A node behind the one before it.
  const rosin_graph_node& filled(uint32_t number, uint8_t value) {
    before_ = number - 1;
    node_ = {};
    node_.size = sizeof node_;
    node_.kind = ROSIN_GRAPH_FILL;
    node_.dependency_count = number > 0;
    node_.dependencies = &before_;
    node_.to = {memory_[0], 0};
    node_.bytes = 256;
    node_.value = value;
    return node_;
  }

  const rosin_backend& table_;
  uint64_t bytes_;
  rosin_device* device_ = nullptr;
  rosin_stream* stream_ = nullptr;
  rosin_memory* memory_[2] = {};
  rosin_graph_node node_{};
  uint32_t before_ = 0;
};

}  // namespace

Facts facts_of(const BackendReport& report, int id, uint64_t copied_bytes) {
  const rosin_backend table = table_of(report);
  Bench bench(table, id, copied_bytes);
  return {bench.copy_rate(), bench.graph_times(200)};
}

}  // namespace gpu_check
