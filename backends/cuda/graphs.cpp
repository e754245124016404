// Graphs under CUDA's names, with its structs of arguments. Read first: driver/driver.hpp, types.hpp.
#include "cuda.hpp"
#include "types.hpp"

namespace rosin::cuda {
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

Copy3D node_of(const CopyArguments& arguments) {
  Copy3D node;
  node.from.device = arguments.from;
  node.to.device = arguments.to;
  if (arguments.host) node.to.type = MemoryType::host;
  node.to.host = arguments.host;
  node.width_bytes = arguments.bytes;
  return node;
}

MemsetNode node_of(const FillArguments& arguments) {
  MemsetNode node;
  node.to = arguments.to;
  node.value = arguments.value;
  node.width = arguments.bytes;
  return node;
}

class CudaGraphs final : public Graphs {
 public:
  explicit CudaGraphs(const Library& library) {
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
      offered_ = offered_ && function != nullptr;
    };
    find(create_, "cuGraphCreate");
    find(destroy_, "cuGraphDestroy");
    find(add_kernel_, "cuGraphAddKernelNode_v2");
    find(add_copy_, "cuGraphAddMemcpyNode");
    find(add_fill_, "cuGraphAddMemsetNode");
    find(instantiate_, "cuGraphInstantiateWithFlags");
    find(destroy_ready_, "cuGraphExecDestroy");
    find(set_kernel_, "cuGraphExecKernelNodeSetParams_v2");
    find(set_copy_, "cuGraphExecMemcpyNodeSetParams");
    find(set_fill_, "cuGraphExecMemsetNodeSetParams");
    find(launch_, "cuGraphLaunch");
    find(add_graph_, "cuGraphAddChildGraphNode");
    find(set_graph_, "cuGraphExecChildGraphNodeSetParams");
    find(begin_capture_, "cuStreamBeginCapture_v2");
    find(end_capture_, "cuStreamEndCapture");
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
           Context context) const override {
    const Copy3D made = node_of(arguments);
    return add_copy_(node, graph, behind.data(), behind.size(), &made, context);
  }
  Code add(GraphNode* node, Graph graph, const std::vector<GraphNode>& behind, const FillArguments& arguments,
           Context context) const override {
    const MemsetNode made = node_of(arguments);
    return add_fill_(node, graph, behind.data(), behind.size(), &made, context);
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
  Code update(ReadyGraph ready, GraphNode node, const CopyArguments& arguments, Context context) const override {
    const Copy3D made = node_of(arguments);
    return set_copy_(ready, node, &made, context);
  }
  Code update(ReadyGraph ready, GraphNode node, const FillArguments& arguments, Context context) const override {
    const MemsetNode made = node_of(arguments);
    return set_fill_(ready, node, &made, context);
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
  Code (*add_copy_)(GraphNode* node, Graph graph, const GraphNode* behind, size_t count, const Copy3D* made,
                    Context context);
  Code (*add_fill_)(GraphNode* node, Graph graph, const GraphNode* behind, size_t count, const MemsetNode* made,
                    Context context);
  Code (*instantiate_)(ReadyGraph* ready, Graph graph, unsigned long long flags);
  Code (*destroy_ready_)(ReadyGraph ready);
  Code (*set_kernel_)(ReadyGraph ready, GraphNode node, const KernelNode* made);
  Code (*set_copy_)(ReadyGraph ready, GraphNode node, const Copy3D* made, Context context);
  Code (*set_fill_)(ReadyGraph ready, GraphNode node, const MemsetNode* made, Context context);
  Code (*launch_)(ReadyGraph ready, Stream stream);
  Code (*add_graph_)(GraphNode* node, Graph graph, const GraphNode* behind, size_t count, Graph inside);
  Code (*set_graph_)(ReadyGraph ready, GraphNode node, Graph inside);
  Code (*begin_capture_)(Stream stream, int mode);
  Code (*end_capture_)(Stream stream, Graph* graph);
};

}  // namespace
}  // namespace rosin::cuda

const rosin::driver::Graphs* rosin::driver::the_graphs() {
  static const cuda::CudaGraphs graphs(cuda::driver_library());
  return graphs.offered() ? &graphs : nullptr;
}
