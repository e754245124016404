// Graphs: nodes with the driver's handles, and what each does. A vendor call is a node with a graph inside: what it
// gives to a stream that is captured.
#include <memory>

#include "driver/driver.hpp"

struct rosin_graph {
  struct Node {
    rosin::driver::GraphNode node = nullptr;
    int32_t kind = ROSIN_GRAPH_LAUNCH;
  };

  rosin_device* device = nullptr;
  rosin::driver::Graph graph = nullptr;
  rosin::driver::ReadyGraph ready = nullptr;
  rosin::driver::Stream captured = nullptr;  // made for the first call
  std::vector<Node> nodes;
};

namespace rosin::driver {
namespace {

constexpr unsigned beside_the_default_stream = 1;

const Graphs& graphs() {
  if (const Graphs* offered = the_graphs()) return *offered;
  throw Failure{ROSIN_UNSUPPORTED, "the driver is too old for graphs"};
}

CopyArguments copy_of(const rosin_graph_node& node) {
  CopyArguments copy;
  copy.bytes = node.bytes;
  copy.from = address_of(node.from, node.bytes);
  if (node.kind == ROSIN_GRAPH_COPY) copy.to = address_of(node.to, node.bytes);
  else copy.host = node.host;
  return copy;
}

FillArguments fill_of(const rosin_graph_node& node) {
  return {address_of(node.to, node.bytes), node.bytes, node.value};
}

/// What a call does, as a graph.
class Captured {
 public:
  Captured(rosin_graph& graph, const rosin_graph_node& node) {
    const Driver& driver = the_driver();
    if (!graph.captured) {
      driver.check(driver.functions.stream_create(&graph.captured, beside_the_default_stream), "creation of a stream");
    }
    driver.check(graphs().begin_capture(graph.captured), "capture of a call");
    try {
      node.call->run(graph.captured, node.buffers, node.workspace, node.numbers);
    } catch (...) {
      graphs().end_capture(graph.captured, &graph_);
      if (graph_) graphs().destroy(graph_);
      throw;
    }
    driver.check(graphs().end_capture(graph.captured, &graph_), "capture of a call");
  }
  ~Captured() { graphs().destroy(graph_); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  Graph graph() const { return graph_; }

 private:
  Graph graph_ = nullptr;
};

/// Calls f with the arguments of the node's kind.
template <class F> Code with_arguments(rosin_graph& graph, const rosin_graph_node& node, F&& f) {
  switch (node.kind) {
    case ROSIN_GRAPH_LAUNCH: {
      LaunchPlaces places;
      return f(places.fill(*node.kernel, *node.launch));
    }
    case ROSIN_GRAPH_COPY:
    case ROSIN_GRAPH_COPY_OUT: return f(copy_of(node));
    case ROSIN_GRAPH_FILL: return f(fill_of(node));
    case ROSIN_GRAPH_CALL: return f(Captured(graph, node).graph());
    default: throw Failure{ROSIN_UNSUPPORTED, "graphs do not take nodes of this kind"};
  }
}

template <class Arguments>
constexpr bool needs_context = std::is_same_v<Arguments, CopyArguments> || std::is_same_v<Arguments, FillArguments>;

}  // namespace

rosin_status graph_create(rosin_device* device, rosin_graph** out) {
  return guarded([&] {
    auto graph = std::make_unique<rosin_graph>();
    graph->device = device;
    const Current current(*device);
    the_driver().check(graphs().create(&graph->graph), "creation of a graph");
    *out = graph.release();
  });
}

rosin_status graph_add(rosin_graph* graph, const rosin_graph_node* node) {
  return guarded([&] {
    if (graph->ready) throw Failure{ROSIN_INVALID, "a finished graph gets no more nodes"};
    std::vector<GraphNode> behind;
    for (uint32_t i = 0; i < node->dependency_count; ++i) {
      if (node->dependencies[i] >= graph->nodes.size()) throw Failure{ROSIN_INVALID, "a dependency is no node yet"};
      behind.push_back(graph->nodes[node->dependencies[i]].node);
    }
    graph->nodes.reserve(graph->nodes.size() + 1);
    const Current current(*graph->device);
    rosin_graph::Node made{nullptr, node->kind};
    const Code code = with_arguments(*graph, *node, [&]<class A>(const A& arguments) {
      if constexpr (!needs_context<A>) return graphs().add(&made.node, graph->graph, behind, arguments);
      else return graphs().add(&made.node, graph->graph, behind, arguments, graph->device->context);
    });
    the_driver().check(code, "node of a graph");
    graph->nodes.push_back(made);
  });
}

rosin_status graph_finish(rosin_graph* graph) {
  return guarded([&] {
    const Current current(*graph->device);
    the_driver().check(graphs().finish(&graph->ready, graph->graph), "end of a graph");
  });
}

rosin_status graph_update(rosin_graph* graph, uint32_t number, const rosin_graph_node* node) {
  return guarded([&] {
    if (!graph->ready || number >= graph->nodes.size() || graph->nodes[number].kind != node->kind) {
      throw Failure{ROSIN_INVALID, "an update names a node of a finished graph, and its kind"};
    }
    const Current current(*graph->device);
    const GraphNode known = graph->nodes[number].node;
    const Code code = with_arguments(*graph, *node, [&]<class A>(const A& arguments) {
      if constexpr (!needs_context<A>) return graphs().update(graph->ready, known, arguments);
      else return graphs().update(graph->ready, known, arguments, graph->device->context);
    });
    the_driver().check(code, "update of a graph");
  });
}

rosin_status graph_launch(rosin_stream* stream, rosin_graph* graph) {
  return guarded([&] {
    if (!graph->ready) throw Failure{ROSIN_INVALID, "a graph is finished before it is launched"};
    const Current current(*stream->device);
    the_driver().check(graphs().launch(graph->ready, stream->stream), "launch of a graph");
  });
}

void graph_destroy(rosin_graph* graph) {
  if (!graph) return;
  guarded([&] {
    const Current current(*graph->device);
    if (graph->ready) graphs().destroy(graph->ready);
    if (graph->graph) graphs().destroy(graph->graph);
    if (graph->captured) the_driver().functions.stream_destroy(graph->captured);
  });
  delete graph;
}

}  // namespace rosin::driver
