// Graphs, where they are offered: order, arguments, updates.
#include <algorithm>

#include "checks.hpp"

namespace rosin::conformance {
namespace {

/// x[i] = x[i] * factor + term, for 4 Int32: what comes out says in which order it was done.
Code multiplies_and_adds() {
  Code code;
  code.name = "multiplies_and_adds";
  code.group = 4;
  code.buffers = {ROSIN_INT32};
  code.parameters = {ROSIN_SCALAR_INT32, ROSIN_SCALAR_INT32};
  const Value at = code.item();
  const Value factor = code.parameter(0), term = code.parameter(1);
  const Value product = code.binary(ROSIN_MULTIPLY, code.load(0, ROSIN_SCALAR_INT32, at), factor);
  code.store(0, at, code.binary(ROSIN_ADD, product, term));
  return code;
}

class Graph {
 public:
  explicit Graph(Rig& rig) : rig_(rig) {}
  ~Graph() {
    (void)rig_.api.stream_sync(rig_.stream);
    if (graph_) rig_.api.graph_destroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// False where the device says no.
  bool create() {
    if (!rig_.api.graph_create) return false;
    const rosin_status status = rig_.api.graph_create(rig_.device, &graph_);
    if (status == ROSIN_UNSUPPORTED) return false;
    rig_.good(status, "graph_create");
    return true;
  }

  uint32_t add(rosin_graph_node node, std::vector<uint32_t> dependencies) {
    node.dependencies = dependencies.data();
    node.dependency_count = static_cast<uint32_t>(dependencies.size());
    rig_.good(rig_.api.graph_add(graph_, &node), "graph_add");
    std::fill(dependencies.begin(), dependencies.end(), UINT32_MAX);
    return count_++;
  }

  void finish() { rig_.good(rig_.api.graph_finish(graph_), "graph_finish"); }
  void update(uint32_t number, const rosin_graph_node& node) {
    rig_.good(rig_.api.graph_update(graph_, number, &node), "graph_update");
  }
  void launch() { rig_.good(rig_.api.graph_launch(rig_.stream, graph_), "graph_launch"); }
  rosin_graph* get() const { return graph_; }

 private:
  Rig& rig_;
  rosin_graph* graph_ = nullptr;
  uint32_t count_ = 0;
};

rosin_graph_node node_of(rosin_graph_node_kind kind) {
  rosin_graph_node node{};
  node.size = sizeof(node);
  node.kind = kind;
  return node;
}

rosin_graph_node copy_node(const Memory& to, const Memory& from) {
  rosin_graph_node node = node_of(ROSIN_GRAPH_COPY);
  node.to = to.at();
  node.from = from.at();
  node.bytes = 16;
  return node;
}

/// A launch with all that it points to, which may go as soon as the node has been added.
struct LaunchNode {
  LaunchNode(rosin_kernel* kernel, const Memory& memory, int32_t factor, int32_t term)
      : place(memory.at()), numbers{number(factor), number(term)} {
    launch.size = sizeof(launch);
    std::fill(std::begin(launch.groups), std::end(launch.groups), 1u);
    launch.buffers = &place;
    launch.parameters = numbers;
    node = node_of(ROSIN_GRAPH_LAUNCH);
    node.kernel = kernel;
    node.launch = &launch;
  }
  LaunchNode(const LaunchNode&) = delete;
  LaunchNode& operator=(const LaunchNode&) = delete;

  rosin_place place;
  rosin_number numbers[2];
  rosin_launch launch{};
  rosin_graph_node node{};
};

using Numbers = std::vector<int32_t>;

void a_graph_runs_when_it_is_launched_and_in_order(Rig& rig) {
  Graph graph(rig);
  if (!graph.create()) return;
  const Code code = multiplies_and_adds();
  const Module module(rig, {&code, 1});
  const Memory memory(rig, 16), copied(rig, 16);
  rig.write<int32_t>(memory.at(), Numbers{1, 2, 3, 4});
  rosin_kernel* kernel = module.kernel("multiplies_and_adds");
  const auto add = [&](int32_t factor, int32_t term, std::vector<uint32_t> dependencies) {
    return graph.add(LaunchNode(kernel, memory, factor, term).node, std::move(dependencies));
  };
  const uint32_t first = add(2, 0, {}), second = add(1, 3, {first}), third = add(5, 0, {second});
  graph.add(copy_node(copied, memory), {first, third});
  graph.finish();
  expect(rig.read<int32_t>(memory.at(), 4) == Numbers{1, 2, 3, 4}, "making a graph ran it");
  graph.launch();
  expect(rig.read<int32_t>(copied.at(), 4) == Numbers{25, 35, 45, 55}, "a run of a graph is wrong");
  graph.launch();
  graph.launch();  // each starts from what the one before left
  expect(rig.read<int32_t>(copied.at(), 4) == Numbers{2665, 3665, 4665, 5665}, "three runs of a graph are wrong");
}

void an_update_is_for_launches_after_it(Rig& rig) {
  Graph graph(rig);
  if (!graph.create()) return;
  const Code code = multiplies_and_adds();
  const Module module(rig, {&code, 1});
  const Memory one(rig, 16), other(rig, 16), copied(rig, 16);
  rig.write<int32_t>(one.at(), Numbers{0, 0, 0, 0});
  rig.write<int32_t>(other.at(), Numbers{100, 100, 100, 100});
  rosin_kernel* kernel = module.kernel("multiplies_and_adds");
  const uint32_t launch = graph.add(LaunchNode(kernel, one, 1, 1).node, {});
  const uint32_t copy = graph.add(copy_node(copied, one), {launch});
  graph.finish();
  for (int32_t i = 0; i < 20; ++i) {
    graph.launch();
    graph.update(launch, LaunchNode(kernel, one, 1, i).node);
  }
  expect(rig.read<int32_t>(copied.at(), 4) == Numbers(4, 1 + 18 * 19 / 2), "an update changed launches before it");
  graph.update(launch, LaunchNode(kernel, other, 2, 7).node);
  graph.update(copy, copy_node(copied, other));
  graph.launch();
  expect(rig.read<int32_t>(copied.at(), 4) == Numbers(4, 207), "a graph with other memory is wrong");
  expect(rig.read<int32_t>(one.at(), 4) == Numbers(4, 1 + 18 * 19 / 2), "a graph wrote where it had written before");
}

void a_graph_fills_and_copies_out(Rig& rig) {
  Graph graph(rig);
  if (!graph.create()) return;
  const Memory memory(rig, 16);
  void* pinned = nullptr;
  rig.good(rig.api.alloc_pinned(rig.device, 16, &pinned), "alloc_pinned");
  std::fill_n(static_cast<int32_t*>(pinned), 4, 7);
  rosin_graph_node fill = node_of(ROSIN_GRAPH_FILL), out = node_of(ROSIN_GRAPH_COPY_OUT);
  fill.to = out.from = memory.at();
  fill.bytes = out.bytes = 16;
  fill.value = 1;
  out.host = pinned;
  const uint32_t filled = graph.add(fill, {});
  graph.add(out, {filled});
  graph.finish();
  const auto came = [&] {
    graph.launch();
    rig.sync();
    const auto* from = static_cast<const int32_t*>(pinned);
    return Numbers(from, from + 4);
  };
  const Numbers first = came();
  fill.value = 0;
  fill.bytes = 8;
  graph.update(filled, fill);
  const Numbers second = came();
  rig.api.release_pinned(rig.device, pinned);
  expect(first == Numbers(4, 0x01010101), "a fill or a copy out of a graph is wrong");
  expect(second == Numbers{0, 0, 0x01010101, 0x01010101}, "an updated fill is wrong");
}

void a_graph_may_be_destroyed_before_it_is_finished(Rig& rig) {
  for (int i = 0; i < 2; ++i) {
    Graph graph(rig);
    if (!graph.create()) return;
    const Memory memory(rig, 16), copied(rig, 16);
    if (i > 0) graph.add(copy_node(copied, memory), {});
  }
}

constexpr Check checks[] = {
    {"a graph runs when it is launched, and in order", a_graph_runs_when_it_is_launched_and_in_order},
    {"an update is for launches after it", an_update_is_for_launches_after_it},
    {"a graph fills and copies out", a_graph_fills_and_copies_out},
    {"a graph may be destroyed before it is finished", a_graph_may_be_destroyed_before_it_is_finished},
};

}  // namespace

const Part graphs_part = {"graphs", checks};

}  // namespace rosin::conformance
