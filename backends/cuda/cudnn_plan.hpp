// From a graph of operations to plans of cuDNN: the engines that cuDNN names for it, of which those are left out that
// change numbers more than the call allows, and plans, each built when it is first wanted and kept for later processes,
// as building takes up to a second. Read first: cudnn_graph.hpp. Read next: cudnn.hpp.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuda/cudnn_graph.hpp"

namespace rosin::cuda {

/// The ways of computing a graph, the one that cuDNN thinks fastest first, or that on tensor cores which it thinks so
/// where the graph is for these. Used from any thread.
class DnnWays {
 public:
  /// Throws ROSIN_UNSUPPORTED where cuDNN has none.
  DnnWays(const DnnTarget& target, DnnGraph graph, uint64_t workspace);

  const DnnGraph& graph() const { return graph_; }
  const std::vector<uint64_t>& bytes() const { return graph_.bytes; }
  size_t count() const { return ways_.size(); }
  /// Whether there is a plan for a way, which is built now: cuDNN may refuse, and it may need too much room.
  bool build(size_t way);
  /// The first way that has a plan. Throws ROSIN_UNSUPPORTED where none has.
  size_t first();
  /// What tells a way from others in every process with this cuDNN on this kind of device: its engine and settings.
  uint64_t mark(size_t way) const { return ways_[way].mark; }
  /// The way with this mark, if it can be built.
  std::optional<size_t> marked(uint64_t mark);
  // Of ways that were built:
  uint64_t workspace(size_t way) const { return ways_[way].workspace; }
  dnn::Descriptor plan(size_t way) const { return ways_[way].plan->get(); }

 private:
  struct Way {
    DnnDescriptor configuration;
    uint64_t mark = 0;
    bool on_tensor_cores = false;
    bool tried = false;
    std::unique_ptr<DnnDescriptor> plan;
    uint64_t workspace = 0;
  };

  void find(dnn::HeuristicMode mode);
  std::string kept_key(const Way& way) const;
  std::unique_ptr<DnnDescriptor> kept_plan(const Way& way) const;
  std::unique_ptr<DnnDescriptor> built_plan(const Way& way) const;
  bool allows(const DnnDescriptor& engine) const;

  const DnnTarget target_;
  const DnnLibrary& library_;
  DnnGraph graph_;
  uint64_t workspace_limit_;
  std::mutex building_;
  std::vector<Way> ways_;
};

}  // namespace rosin::cuda
