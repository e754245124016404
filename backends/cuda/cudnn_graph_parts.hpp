// What graphs are put together from: arrays, numbers, operations. Each part lives as long as the graph. Read first:
// cudnn_graph.hpp.
#pragma once

#include <utility>
#include <vector>

#include "cuda/cudnn_graph.hpp"

namespace rosin::cuda {

class GraphParts {
 public:
  explicit GraphParts(const DnnTarget& target) : library_(*target.library), handle_(target.handle) {}

  DnnDescriptor& add(dnn::Kind kind) { return made_.parts.emplace_back(library_, kind); }

  /// An array of the call.
  dnn::Descriptor array(int64_t id, dnn::Type type, const Tensor& from);
  /// What is stored nowhere.
  dnn::Descriptor inner(int64_t id, dnn::Type type, const Tensor& form);
  /// Float32 that stands in the room of a run.
  dnn::Descriptor room(int64_t id, const Tensor& form);
  /// A number that each run brings along.
  dnn::Descriptor number(int64_t id, float value);
  dnn::Descriptor graph(const char* what, const std::vector<dnn::Descriptor>& operations);

  /// The graph is the part that was made last.
  DnnGraph take() && { return std::move(made_); }

 private:
  const DnnLibrary& library_;
  dnn::Handle handle_;
  DnnGraph made_;
};

/// Attention made of its steps, for cuDNN before 9.21, which finds the attention in them.
DnnGraph steps_of(const DnnTarget& target, const Attention& attention);

}  // namespace rosin::cuda
