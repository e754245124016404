// ReverseWalk: from a loss back to the arguments of a gradient call, over nodes recorded since the call began.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/context.hpp"
#include "graph/op.hpp"

namespace rosin {

class ReverseWalk {
 public:
  /// Records the gradients of `loss` (one element) by the argument nodes; `first` is the lowest sequence number among
  /// them. Returns whether the loss reaches any argument.
  bool run(Context& context, Node* loss, uint64_t first);
  /// The gradient of an argument node, or nothing.
  Array gradient_of(const Node* argument) const;
  /// Whether the loss depends on a leaf (a captured array), of those the walk came across.
  bool reaches_leaf(const Node* leaf) const;
  void clear();

 private:
  struct Step {
    Node* node;
    int32_t in[Node::max_operands];  // positions among the steps, -1 for constants
    bool reaches;                    // depends on an argument
    Array again;                     // checkpoint regions: the node recorded again
    Array gradient;
  };

  void collect(Context& context, Node* loss, uint64_t first);
  void back(Step& step);
  void record_region_again(uint32_t region);
  static Array fitted(Array gradient, const Node& node, const Node& operand);

  std::vector<Step> steps_;  // in recording order
  std::vector<Node*> found_;
  std::vector<const Node*> leaves_;
};

}  // namespace rosin
