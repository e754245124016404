// Graphs of libcuda's stand-in: a launch runs the nodes in a random order that their edges allow.
#include <algorithm>
#include <cstring>
#include <random>

#include "api.hpp"
#include "cuda/types.hpp"

using namespace fake;
using rosin::cuda::Copy3D;
using rosin::cuda::KernelNode;
using rosin::cuda::MemoryType;
using rosin::cuda::MemsetNode;

namespace {

/// One node as it was added; its arguments are copied when they are given.
struct Node {
  std::vector<Node*> behind;
  std::function<void()> run;
  std::vector<uint64_t> addresses;
  const Function* function = nullptr;  // of a launch
  std::string what;                    // of a library's work, or of all nodes of a graph inside
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

/// What an instance keeps of each node: what it runs may change.
struct ReadyGraph {
  std::vector<Node*> order;  // as they were added
  std::map<Node*, Node> now;
};

std::set<Graph*> graphs;
std::set<ReadyGraph*> ready_graphs;

template <class T> T& known(std::set<T*>& all, T* one) {
  if (!all.contains(one)) throw Trouble{invalid_value, "no such graph"};
  return *one;
}

void set(Node& node, const KernelNode& given) {
  auto* function = static_cast<Function*>(given.function);
  if (node.function && node.function != function) throw Trouble{invalid_value, "an update with another kernel"};
  check_grid(*function, given.grid, given.block, given.shared_bytes);
  node.function = function;
  node.addresses.clear();
  auto values = values_of(*function, given.parameters, node.addresses);
  node.run = [function, x = given.grid[0], y = given.grid[1], z = given.grid[2], shared = given.shared_bytes,
              values = std::move(values)] {
    run_kernel(*function, {x, y, z}, values, shared);
  };
}

void set(Node& node, const Copy3D& given) {
  const Context& context = context_now();
  Machine& machine = Machine::instance();
  const size_t bytes = given.width_bytes;
  const bool to_host = given.to.type == MemoryType::host;
  if (given.height != 1 || given.depth != 1 || given.from.type != MemoryType::device) {
    throw Trouble{invalid_value, "a copy of a kind that the stand-in does not know"};
  }
  machine.check_range(context, given.from.device, bytes);
  if (to_host && !machine.is_pinned(given.to.host, bytes)) throw Trouble{invalid_value, "a copy to pageable memory"};
  if (!to_host) machine.check_range(context, given.to.device, bytes);
  void* to = to_host ? given.to.host : reinterpret_cast<void*>(given.to.device);
  node.addresses = {given.from.device};
  if (!to_host) node.addresses.push_back(given.to.device);
  node.run = [&machine, to, to_host, from = given.from.device, bytes] {
    if (to_host && !machine.is_pinned(to, bytes)) {
      throw Trouble{illegal_address, "pinned memory was freed before its copy"};
    }
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  };
}

void set(Node& node, const MemsetNode& given) {
  if (given.height != 1 || given.element_bytes != 1) throw Trouble{invalid_value, "a fill of another kind"};
  Machine::instance().check_range(context_now(), given.to, given.width);
  node.addresses = {given.to};
  node.run = [to = given.to, value = static_cast<int>(given.value), bytes = given.width] {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
  };
}

void run_all(std::vector<Node*> order, const std::map<Node*, Node>& nodes);

/// All nodes of another graph, as they are now.
void set(Node& node, const Graph& inside) {
  std::vector<Node*> order;
  std::map<Node*, Node> nodes;
  std::string what = "graph of " + std::to_string(inside.nodes.size());
  node.addresses.clear();
  for (const auto& one : inside.nodes) {
    order.push_back(one.get());
    nodes.emplace(one.get(), *one);
    what += " " + one->what;
    node.addresses.insert(node.addresses.end(), one->addresses.begin(), one->addresses.end());
  }
  if (!node.what.empty() && node.what != what) throw Trouble{other_topology, "an update with another graph"};
  node.what = what;
  node.run = [order = std::move(order), nodes = std::move(nodes)] { run_all(order, nodes); };
}

template <class Arguments>
int add(const char* name, Node** out, Graph* graph, Node* const* behind, size_t count, const Arguments* given) {
  return call(name, [&](Machine&) {
    known(graphs, graph);
    auto node = std::make_unique<Node>();
    const auto is_node = [&](const Node* one) {
      return std::any_of(graph->nodes.begin(), graph->nodes.end(), [&](const auto& each) { return each.get() == one; });
    };
    for (size_t i = 0; i < count; ++i) {
      if (!is_node(behind[i])) throw Trouble{invalid_value, "a dependency is no node of the graph"};
      node->behind.push_back(behind[i]);
    }
    set(*node, *given);
    *out = node.get();
    graph->nodes.push_back(std::move(node));
  });
}

template <class Arguments> int update(const char* name, ReadyGraph* ready, Node* node, const Arguments* given) {
  return call(name, [&](Machine&) {
    const auto found = known(ready_graphs, ready).now.find(node);
    if (found == ready->now.end()) throw Trouble{invalid_value, "no such node"};
    set(found->second, *given);
  });
}

/// Runs copies of the nodes, each after those that it stands behind.
void run_all(std::vector<Node*> order, const std::map<Node*, Node>& nodes) {
  static std::mt19937_64 random(Machine::instance().options.order);
  std::set<Node*> done;
  while (!order.empty()) {
    std::vector<size_t> free;
    for (size_t i = 0; i < order.size(); ++i) {
      const std::vector<Node*>& behind = nodes.at(order[i]).behind;
      if (std::all_of(behind.begin(), behind.end(), [&](Node* one) { return done.contains(one); })) free.push_back(i);
    }
    const size_t chosen = free[random() % free.size()];
    nodes.at(order[chosen]).run();
    done.insert(order[chosen]);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
}

}  // namespace

FAKE_CUDA_API cuGraphCreate(Graph** graph, unsigned) {
  return call("cuGraphCreate", [&](Machine&) {
    *graph = new Graph;
    ++Machine::instance().graphs;
    graphs.insert(*graph);
  });
}

FAKE_CUDA_API cuGraphDestroy(Graph* graph) {
  return call("cuGraphDestroy", [&](Machine&) {
    known(graphs, graph);
    --Machine::instance().graphs;
    graphs.erase(graph);
    delete graph;
  });
}

FAKE_CUDA_API cuGraphAddKernelNode_v2(Node** node, Graph* graph, Node* const* behind, size_t count,
                                      const KernelNode* given) {
  return add("cuGraphAddKernelNode_v2", node, graph, behind, count, given);
}

FAKE_CUDA_API cuGraphAddMemcpyNode(Node** node, Graph* graph, Node* const* behind, size_t count, const Copy3D* given,
                                   Context*) {
  return add("cuGraphAddMemcpyNode", node, graph, behind, count, given);
}

FAKE_CUDA_API cuGraphAddMemsetNode(Node** node, Graph* graph, Node* const* behind, size_t count,
                                   const MemsetNode* given, Context*) {
  return add("cuGraphAddMemsetNode", node, graph, behind, count, given);
}

FAKE_CUDA_API cuGraphInstantiateWithFlags(ReadyGraph** ready, Graph* graph, unsigned long long) {
  return call("cuGraphInstantiateWithFlags", [&](Machine&) {
    known(graphs, graph);
    auto made = std::make_unique<ReadyGraph>();
    for (const auto& node : graph->nodes) {
      made->order.push_back(node.get());
      made->now.emplace(node.get(), *node);
    }
    *ready = made.release();
    ++Machine::instance().graphs;
    ready_graphs.insert(*ready);
  });
}

FAKE_CUDA_API cuGraphExecDestroy(ReadyGraph* ready) {
  return call("cuGraphExecDestroy", [&](Machine&) {
    known(ready_graphs, ready);
    --Machine::instance().graphs;
    ready_graphs.erase(ready);
    delete ready;
  });
}

FAKE_CUDA_API cuGraphExecKernelNodeSetParams_v2(ReadyGraph* ready, Node* node, const KernelNode* given) {
  return update("cuGraphExecKernelNodeSetParams_v2", ready, node, given);
}

FAKE_CUDA_API cuGraphExecMemcpyNodeSetParams(ReadyGraph* ready, Node* node, const Copy3D* given, Context*) {
  return update("cuGraphExecMemcpyNodeSetParams", ready, node, given);
}

FAKE_CUDA_API cuGraphExecMemsetNodeSetParams(ReadyGraph* ready, Node* node, const MemsetNode* given, Context*) {
  return update("cuGraphExecMemsetNodeSetParams", ready, node, given);
}

FAKE_CUDA_API cuGraphLaunch(ReadyGraph* ready, Stream* stream) {
  return call("cuGraphLaunch", [&](Machine& machine) {
    Stream& target = stream_now(stream);
    Work work;
    for (const auto& [node, now] : known(ready_graphs, ready).now) {
      work.addresses.insert(work.addresses.end(), now.addresses.begin(), now.addresses.end());
    }
    work.what = "graph";
    work.run = [order = ready->order, nodes = ready->now] { run_all(order, nodes); };
    machine.give(target, std::move(work));
  });
}

FAKE_CUDA_API cuGraphAddChildGraphNode(Node** node, Graph* graph, Node* const* behind, size_t count, Graph* inside) {
  return add("cuGraphAddChildGraphNode", node, graph, behind, count, inside);
}

FAKE_CUDA_API cuGraphExecChildGraphNodeSetParams(ReadyGraph* ready, Node* node, Graph* inside) {
  return update("cuGraphExecChildGraphNodeSetParams", ready, node, inside);
}

FAKE_CUDA_API cuStreamBeginCapture_v2(Stream* stream, int mode) {
  return call("cuStreamBeginCapture_v2", [&](Machine&) {
    Stream& known = stream_now(stream);
    if (mode < 0 || mode > 2) throw Trouble{invalid_value, "no such mode of a capture"};
    if (known.captured) throw Trouble{not_captured, "the stream is captured already"};
    known.captured = std::make_unique<std::vector<Work>>();
    known.captured_by = std::this_thread::get_id();
  });
}

/// What was given becomes nodes, one behind the other.
FAKE_CUDA_API cuStreamEndCapture(Stream* stream, Graph** graph) {
  return call("cuStreamEndCapture", [&](Machine&) {
    Stream& known = stream_now(stream);
    if (!known.captured) throw Trouble{invalid_value, "the stream is not captured"};
    const auto given = std::move(known.captured);
    auto made = std::make_unique<Graph>();
    for (Work& work : *given) {
      auto node = std::make_unique<Node>();
      if (!made->nodes.empty()) node->behind.push_back(made->nodes.back().get());
      node->run = std::move(work.run);
      node->addresses = std::move(work.addresses);
      node->what = std::move(work.what);
      made->nodes.push_back(std::move(node));
    }
    *graph = made.release();
    ++Machine::instance().graphs;
    graphs.insert(*graph);
  });
}
