// ReverseWalk: from a loss back to the arguments of a gradient call, over nodes recorded since the call began.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grad/joined_cuts.hpp"
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
    size_t first;  // of its operands in places_
    size_t count;
    bool reaches;  // depends on an argument
    int32_t cuts;  // gradients by slices of it, that wait
    Array again;   // checkpoint regions: the node recorded again
    Array gradient;
  };

  void collect(Context& context, Node* loss, uint64_t first);
  void list_operands(const Context& context, uint32_t stamp);
  /// Where the operands of a step that are arrays stand among the steps, -1 for constants.
  std::span<const int32_t> operands(const Step& step) const { return {places_.data() + step.first, step.count}; }
  bool reaches(int32_t place) const { return place >= 0 && steps_[static_cast<size_t>(place)].reaches; }
  void back(Step& step);
  bool ask(Step& step);
  void hand_over(Step& part);
  bool defer_cut(const Step& step);
  void add_cuts(Step& step);
  void find_results(const Step& step);
  void record_region_again(uint32_t region);
  static Array fitted(Array gradient, const Node& node, const Node& operand);

  std::vector<Step> steps_;  // in recording order
  std::vector<int32_t> places_;
  std::vector<char> needs_;   // of the step that is asked
  std::vector<Array> given_;  // by its rule
  /// What the walk has of the gradient by one of several results, until their op is asked.
  struct Slope {
    int32_t step;
    int32_t number;
    Array gradient;
  };
  std::vector<Slope> slopes_of_parts_;
  JoinedCuts cuts_;
  std::vector<Array> results_, slopes_;  // of the step that is asked, where it has several
  std::vector<Node*> again_;             // operands of a node that is recorded again
  std::vector<Node*> found_;
  std::vector<const Node*> leaves_;
};

}  // namespace rosin
