// Graphs under HIP's names, with its structs of arguments. Read first: driver/driver.hpp, types.hpp.
#include "amdgpu/hip.hpp"
#include "amdgpu/types.hpp"

namespace rosin::amdgpu {
namespace {

using namespace driver;

KernelNode node_of(const LaunchArguments& arguments) {
  KernelNode node;
  node.function = arguments.function;
  for (int d = 0; d < 3; ++d) node.grid[d] = arguments.groups[d];
  node.block[0] = arguments.items;
  node.block[1] = node.block[2] = 1;
  node.shared_bytes = arguments.large_shared;
  node.parameters = arguments.parameters;
  return node;
}

MemsetNode node_of(const FillArguments& arguments) {
  MemsetNode node;
  node.to = arguments.to;
  node.value = arguments.value;
  node.width = arguments.bytes;
  return node;
}

/// A copy in one dim.
struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  CopyKind kind;

  explicit Copy(const CopyArguments& arguments)
      : to(arguments.host ? arguments.host : reinterpret_cast<void*>(arguments.to)),
        from(reinterpret_cast<const void*>(arguments.from)), bytes(arguments.bytes),
        kind(arguments.host ? CopyKind::device_to_host : CopyKind::device_to_device) {}
};

class HipGraphs final : public Graphs {
 public:
  explicit HipGraphs(const Library& library) {
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
      offered_ = offered_ && function != nullptr;
    };
    find(create_, "hipGraphCreate");
    find(destroy_, "hipGraphDestroy");
    find(add_kernel_, "hipGraphAddKernelNode");
    find(add_copy_, "hipGraphAddMemcpyNode1D");
    find(add_fill_, "hipGraphAddMemsetNode");
    find(instantiate_, "hipGraphInstantiateWithFlags");
    find(destroy_ready_, "hipGraphExecDestroy");
    find(set_kernel_, "hipGraphExecKernelNodeSetParams");
    find(set_copy_, "hipGraphExecMemcpyNodeSetParams1D");
    find(set_fill_, "hipGraphExecMemsetNodeSetParams");
    find(launch_, "hipGraphLaunch");
    find(add_graph_, "hipGraphAddChildGraphNode");
    find(set_graph_, "hipGraphExecChildGraphNodeSetParams");
    find(begin_capture_, "hipStreamBeginCapture");
    find(end_capture_, "hipStreamEndCapture");
  }
  bool offered() const { return offered_; }

  Code create(Graph* graph) const override { return create_(graph, 0); }
  void destroy(Graph graph) const override { destroy_(graph); }
  Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind,
           const LaunchArguments& arguments) const override {
    const KernelNode made = node_of(arguments);
    return add_kernel_(node, graph, behind.data(), behind.size(), &made);
  }
  Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind, const CopyArguments& arguments,
           Context) const override {
    const Copy copy(arguments);
    return add_copy_(node, graph, behind.data(), behind.size(), copy.to, copy.from, copy.bytes, copy.kind);
  }
  Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind, const FillArguments& arguments,
           Context) const override {
    const MemsetNode made = node_of(arguments);
    return add_fill_(node, graph, behind.data(), behind.size(), &made);
  }
  Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind, Graph inside) const override {
    return add_graph_(node, graph, behind.data(), behind.size(), inside);
  }
  Code finish(ReadyGraph* ready, Graph graph) const override { return instantiate_(ready, graph, 0); }
  void destroy(ReadyGraph ready) const override { destroy_ready_(ready); }
  Code update(ReadyGraph ready, GraphNode node, const LaunchArguments& arguments) const override {
    const KernelNode made = node_of(arguments);
    return set_kernel_(ready, node, &made);
  }
  Code update(ReadyGraph ready, GraphNode node, const CopyArguments& arguments, Context) const override {
    const Copy copy(arguments);
    return set_copy_(ready, node, copy.to, copy.from, copy.bytes, copy.kind);
  }
  Code update(ReadyGraph ready, GraphNode node, const FillArguments& arguments, Context) const override {
    const MemsetNode made = node_of(arguments);
    return set_fill_(ready, node, &made);
  }
  Code update(ReadyGraph ready, GraphNode node, Graph inside) const override { return set_graph_(ready, node, inside); }
  Code launch(ReadyGraph ready, Stream stream) const override { return launch_(ready, stream); }
  Code begin_capture(Stream stream) const override { return begin_capture_(stream, relaxed_capture); }
  Code end_capture(Stream stream, Graph* graph) const override { return end_capture_(stream, graph); }

 private:
  bool offered_ = true;
  Code (*create_)(Graph* graph, unsigned flags);
  Code (*destroy_)(Graph graph);
  Code (*add_kernel_)(GraphNode* node, Graph graph, const GraphNode* behind, size_t count, const KernelNode* made);
  Code (*add_copy_)(GraphNode* node, Graph graph, const GraphNode* behind, size_t count, void* to, const void* from,
                    size_t bytes, CopyKind kind);
  Code (*add_fill_)(GraphNode* node, Graph graph, const GraphNode* behind, size_t count, const MemsetNode* made);
  Code (*instantiate_)(ReadyGraph* ready, Graph graph, unsigned long long flags);
  Code (*destroy_ready_)(ReadyGraph ready);
  Code (*set_kernel_)(ReadyGraph ready, GraphNode node, const KernelNode* made);
  Code (*set_copy_)(ReadyGraph ready, GraphNode node, void* to, const void* from, size_t bytes, CopyKind kind);
  Code (*set_fill_)(ReadyGraph ready, GraphNode node, const MemsetNode* made);
  Code (*launch_)(ReadyGraph ready, Stream stream);
  Code (*add_graph_)(GraphNode* node, Graph graph, const GraphNode* behind, size_t count, Graph inside);
  Code (*set_graph_)(ReadyGraph ready, GraphNode node, Graph inside);
  Code (*begin_capture_)(Stream stream, int mode);
  Code (*end_capture_)(Stream stream, Graph* graph);
};

}  // namespace
}  // namespace rosin::amdgpu

const rosin::driver::Graphs* rosin::driver::the_graphs() {
  static const amdgpu::HipGraphs graphs(amdgpu::hip_library());
  return graphs.offered() ? &graphs : nullptr;
}
