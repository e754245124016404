// The tree inside a State: one leaf for each parameter, found by its place in the walk over the model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rosin/optim.hpp>
#include <rosin/shape.hpp>

#include "graph/node.hpp"
#include "optim/earlier_numbers.hpp"
#include "optim/loss_scale.hpp"

namespace rosin {

/// One step of a path that outlives the walk: a name, or an index.
struct PathStep {
  std::string name;
  int64_t index = -1;
};

struct StateLeaf {
  std::vector<PathStep> path;
  std::string text;                          // the path as in files
  std::unique_ptr<detail::ErasedRule> rule;  // with what it keeps
  bool frozen = false;
  detail::Owner owner;       // who keeps the state and makes the steps for all
  size_t place = 0;          // of the parameter, in the walk over the model
  std::vector<size_t> tied;  // other places of the same parameter
  Shape shape;
  DType dtype = Float32;
  uint8_t device = 0;  // at setup
  // The parameter's node as setup or the last update left it; both are never those of another node again.
  const Context* recorder = nullptr;
  uint64_t sequence = 0;

  void remember(const Node& parameter) noexcept {
    recorder = parameter.recorder;
    sequence = parameter.sequence;
  }
  bool is_parameter(const Node& node) const noexcept { return node.recorder == recorder && node.sequence == sequence; }
};

/// What is printed, in the order of the walk.
struct TreeItem {
  enum class What : uint8_t { open, close, leaf, empty } what;
  std::string name;  // of the field; empty for elements
  int leaf = -1;
};

/// What the last step's checks say on a device, see Step::select_by_checks: known by a number from step to step.
struct CheckTexts {
  struct Said {
    const char* rule;
    int leaf;
    bool operator==(const Said&) const = default;
  };
  std::vector<Said> of;  // each check
  int64_t number = -1;   // ops/finding.hpp
};

struct StateTree {
  /// The leaf whose rule speaks for all where one looks at all gradients together: the first that has setup's rule.
  const StateLeaf& leader() const { return leaves[first]; }

  size_t first = 0;                // among the leaves
  std::vector<uint64_t> paths;     // ModelPath::hash of each place of the model
  std::vector<std::string> names;  // the same as text, for messages
  std::vector<int> leaf_of;        // the leaf of each place, or -1
  std::vector<StateLeaf> leaves;
  std::vector<TreeItem> items;
  EarlierNumbers earlier;
  CheckTexts check_texts;
  StateLossScale loss_scale;
  bool took_memory = true;  // the last step that was made with other processes, as far as is known
};

}  // namespace rosin
