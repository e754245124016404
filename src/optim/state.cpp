// State: made from a walk over the model, copied, and walked itself.
#include <rosin/optim.hpp>

#include <algorithm>

#include <rosin/log.hpp>

#include "graph/context.hpp"
#include "optim/options.hpp"
#include "optim/shares.hpp"
#include "optim/tree.hpp"

namespace rosin {

namespace {

/// The name of a leaf of the model in print: Flux's for the activation of a layer.
std::string shown_name(const ModelPart& part, const ModelPath& path) {
  return part.type == "Activation" && path.name() == "act" ? "σ" : std::string(path.name());
}

void append_steps(std::vector<PathStep>& steps, const ModelPath& path) {
  if (path.is_root()) return;
  append_steps(steps, *path.parent());
  steps.push_back({std::string(path.name()), path.index()});
}

/// Fills a tree from the walk over a model; `places` is the list of the same walk.
class TreeMaker : public ModelVisitor {
 public:
  TreeMaker(StateTree& tree, const detail::ErasedRule& rule, ModelView model) : tree_(tree), rule_(rule) {
    detail::list_arrays(model, places_);
    tree_.leaf_of.assign(places_.size(), -1);
    model.visit_with(*this);
    while (!open_.empty()) close_last();
    assign_owners(tree_);
    for (StateLeaf& leaf : tree_.leaves) {
      if (!is_elsewhere(leaf)) begin(leaf, own_part(leaf, *places_[leaf.place].array));
      check_parts(leaf);
    }
  }

  bool enter(const ModelPart&, const ModelPath& path) override {
    step_to(path);
    open(path);
    return true;
  }
  void leave(const ModelPart&, const ModelPath& path) override {
    while (open_.back() != path.hash()) close_last();
    close_last();
  }
  void leaf(const ModelPart& part, const ModelPath& path) override {
    step_to(path);
    tree_.items.push_back({TreeItem::What::empty, shown_name(part, path)});
  }

  void array(const Array& x, const ModelPath& path) override {
    step_to(path);
    const size_t place = tree_.paths.size();
    const size_t first = static_cast<size_t>(places_[place].first);
    tree_.paths.push_back(path.hash());
    tree_.names.push_back(path.is_root() ? "the model" : path.text());
    if (places_[place].trainable) {
      if (first == place) add_leaf(x, path);
      else if (const int leaf = tree_.leaf_of[first]; leaf >= 0) share_leaf(place, leaf);
    }
    const int leaf = tree_.leaf_of[place];
    tree_.items.push_back({leaf < 0 ? TreeItem::What::empty : TreeItem::What::leaf, std::string(path.name()), leaf});
  }

 private:
  /// Opens what the path leads through, also steps that are no part of their own (the `layers` of a chain).
  void step_to(const ModelPath& path) {
    if (!path.is_root()) keep_open(*path.parent());
  }
  void keep_open(const ModelPath& path) {
    if (std::find(open_.begin(), open_.end(), path.hash()) != open_.end()) {
      while (open_.back() != path.hash()) close_last();
    } else {
      step_to(path);
      open(path);
    }
  }
  void open(const ModelPath& path) {
    tree_.items.push_back({TreeItem::What::open, std::string(path.name())});
    open_.push_back(path.hash());
  }
  void close_last() {
    tree_.items.push_back({TreeItem::What::close, {}});
    open_.pop_back();
  }

  void add_leaf(const Array& x, const ModelPath& path) {
    const size_t place = tree_.paths.size() - 1;
    tree_.leaf_of[place] = static_cast<int>(tree_.leaves.size());
    StateLeaf& leaf = tree_.leaves.emplace_back();
    append_steps(leaf.path, path);
    leaf.text = path.file_text();
    leaf.rule.reset(rule_.copy());
    leaf.place = place;
    leaf.shape = x.shape();
    leaf.dtype = x.dtype();
    leaf.device = x.node()->device;
    leaf.remember(*x.node());
  }

  void share_leaf(size_t place, int leaf) {
    tree_.leaf_of[place] = leaf;
    tree_.leaves[static_cast<size_t>(leaf)].tied.push_back(place);
  }

  StateTree& tree_;
  const detail::ErasedRule& rule_;
  std::vector<detail::ArrayPlace<const Array*>> places_;
  std::vector<uint64_t> open_;  // paths
};

/// Walks over what a rule keeps, at the path of its parameter.
template <class Visitor, class Rule>
void visit_leaf(Rule& rule, Visitor& visitor, const std::vector<PathStep>& steps, size_t step, const ModelPath& path) {
  if (step == steps.size()) return rule.visit_state(visitor, path.fixed());
  const PathStep& next = steps[step];
  visit_leaf(rule, visitor, steps, step + 1, next.index < 0 ? path.field(next.name) : path.item(next.index));
}

StateTree* copied(const StateTree* tree) {
  if (!tree) return nullptr;
  auto copy = std::make_unique<StateTree>();
  copy->paths = tree->paths;
  copy->names = tree->names;
  copy->leaf_of = tree->leaf_of;
  copy->first = tree->first;
  copy->items = tree->items;
  copy->loss_scale = tree->loss_scale;
  for (const StateLeaf& leaf : tree->leaves) {
    StateLeaf& own = copy->leaves.emplace_back();
    own.path = leaf.path;
    own.text = leaf.text;
    own.rule.reset(leaf.rule->copy());
    own.frozen = leaf.frozen;
    own.owner = leaf.owner;
    own.place = leaf.place;
    own.tied = leaf.tied;
    own.shape = leaf.shape;
    own.dtype = leaf.dtype;
    own.device = leaf.device;
    own.recorder = leaf.recorder;
    own.sequence = leaf.sequence;
  }
  return copy.release();
}

}  // namespace

State::State(const detail::ErasedRule& rule, ModelView model) {
  const std::unique_ptr<detail::ErasedRule> checked(rule.copy());
  check_rates("setup", *checked);
  checked->check();
  auto tree = std::make_unique<StateTree>();
  TreeMaker(*tree, rule, model);
  if (tree->leaves.empty()) warn_once("no-parameters", "setup: found no trainable parameters in this model");
  eval();
  tree_ = tree.release();
}

State::State(const State& other) : tree_(copied(other.tree_)) {}
State::~State() { delete tree_; }

void State::rosin_visit(ModelEditor& editor, const ModelPath& path) {
  if (!tree_) return;
  for (StateLeaf& leaf : tree_->leaves) visit_leaf(*leaf.rule, editor, leaf.path, 0, path);
  if (tree_->loss_scale) visit(tree_->loss_scale.arrays, editor, path.field("loss_scale").fixed());
}

void State::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const {
  if (!tree_) return;
  for (const StateLeaf& leaf : tree_->leaves) visit_leaf(std::as_const(*leaf.rule), visitor, leaf.path, 0, path);
  if (tree_->loss_scale) visit(std::as_const(tree_->loss_scale.arrays), visitor, path.field("loss_scale").fixed());
}

}  // namespace rosin
