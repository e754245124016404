// See graph.hpp.
#include "graph.hpp"

#include <cstring>
#include <queue>

#include "work.hpp"

using rosin::reference::Failure;
using rosin::reference::need;
using rosin::reference::Work;

namespace rosin::reference {
namespace {

Work copy_out_work(const rosin_device& device, const rosin_graph_node& node) {
  const char* source = bytes_at(device, node.from, node.bytes);
  need(is_pinned(node.host, node.bytes), "graph: a copy to memory that is not pinned");
  return [=, to = node.host, bytes = node.bytes] { std::memcpy(to, source, bytes); };
}

}  // namespace
}  // namespace rosin::reference

std::shared_ptr<const Work> rosin_graph::work_of(const rosin_graph_node& node) const {
  using namespace rosin::reference;
  const auto made = [&]() -> Work {
    switch (node.kind) {
      case ROSIN_GRAPH_LAUNCH: return launch_work(device, *node.kernel, node.launch);
      case ROSIN_GRAPH_CALL: return call_work(device, *node.call, node.buffers, node.workspace, node.numbers);
      case ROSIN_GRAPH_COPY: return copy_work(device, node.to, node.from, node.bytes);
      case ROSIN_GRAPH_COPY_OUT: return copy_out_work(device, node);
      case ROSIN_GRAPH_FILL: return fill_work(device, node.to, node.bytes, node.value);
      default: throw Failure(ROSIN_UNSUPPORTED, "graph: nodes of kind " + std::to_string(node.kind));
    }
  };
  return std::make_shared<const Work>(made());
}

void rosin_graph::add(const rosin_graph_node& node) {
  need(!finished_, "graph_add: the graph is finished");
  Node added{node, {}, work_of(node)};
  for (uint32_t i = 0; i < node.dependency_count; ++i) {
    need(node.dependencies[i] < nodes_.size(), "graph_add: a dependency that was not added before");
    if (!device.forgets_edge()) added.dependencies.push_back(node.dependencies[i]);
  }
  nodes_.push_back(std::move(added));
}

/// Of the nodes that may run, the one added last comes first.
void rosin_graph::finish() {
  need(!finished_, "graph_finish: the graph is finished");
  std::vector<size_t> left(nodes_.size(), 0);
  std::vector<std::vector<size_t>> behind(nodes_.size());
  std::priority_queue<size_t> ready;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    left[i] = nodes_[i].dependencies.size();
    for (const uint32_t before : nodes_[i].dependencies) behind[before].push_back(i);
    if (left[i] == 0) ready.push(i);
  }
  for (; !ready.empty();) {
    const size_t next = ready.top();
    ready.pop();
    order_.push_back(next);
    for (const size_t i : behind[next]) {
      if (--left[i] == 0) ready.push(i);
    }
  }
  finished_ = true;
}

void rosin_graph::update(uint32_t number, const rosin_graph_node& node) {
  need(finished_, "graph_update: the graph is not finished");
  need(number < nodes_.size(), "graph_update: no such node");
  Node& old = nodes_[number];
  need(old.is.kind == node.kind && old.is.kernel == node.kernel && old.is.call == node.call,
       "graph_update: another kind, kernel or call");
  old.work = work_of(node);
}

void rosin_graph::launch(rosin_stream& stream) const {
  need(finished_, "graph_launch: the graph is not finished");
  need(&device == &stream.device, "graph_launch: the stream is of another device");
  for (const size_t i : order_) {
    stream.give([work = nodes_[i].work] { (*work)(); });
  }
}
