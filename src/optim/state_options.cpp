// What a State holds beside its arrays, as values: hyper-parameters of every leaf, and which are frozen.
#include <algorithm>
#include <cmath>
#include <memory>

#include <rosin/error.hpp>

#include "optim/options.hpp"
#include "optim/shares.hpp"
#include "optim/tree.hpp"

namespace rosin {
namespace {

/// Names the hyper-parameters of a rule and lists their values; element types are part of the names.
class ListOptions : public RuleVisitor {
 public:
  explicit ListOptions(StateOptions& to) : to_(to) {}
  void enter(std::string_view rule) override {
    separate();
    to_.rule.append(rule).append("(");
    first_ = true;
  }
  void leave() override {
    to_.rule += ")";
    first_ = false;
  }
  void option(const RuleOption& option) override {
    if (option.integer) add(option.name, static_cast<double>(*option.integer));
    if (option.flag) add(option.name, *option.flag ? 1 : 0);
    for (int i = 0; i < option.count; ++i) add(option.name, option.numbers[i]);
    if (!option.type) return;
    separate();
    to_.rule.append(to_string(*option.type));
  }

 private:
  void separate() {
    if (!first_) to_.rule += ", ";
    first_ = false;
  }
  void add(std::string_view name, double value) {
    separate();
    to_.rule.append(name);
    to_.values.push_back(value);
  }

  StateOptions& to_;
  bool first_ = true;
};

/// Gives a rule the values that ListOptions has listed.
class TakeOptions : public RuleVisitor {
 public:
  explicit TakeOptions(const double* values) : next_(values) {}
  void enter(std::string_view) override {}
  void leave() override {}
  void option(const RuleOption& option) override {
    if (option.integer) *option.integer = whole(*next_++, option.name);
    if (option.flag) *option.flag = whole(*next_++, option.name) != 0;
    for (int i = 0; i < option.count; ++i) option.numbers[i] = *next_++;
  }

 private:
  static int64_t whole(double value, std::string_view name) {
    constexpr double most = 9007199254740992;  // 2^53: beyond it doubles have gaps
    if (value >= -most && value <= most && value == std::floor(value)) return static_cast<int64_t>(value);
    throw Error(ErrorKind::argument, "load: " + std::string(name) + " of a rule is a whole number; got " +
                                         number_text(value) + "; the file was damaged or made by another program");
  }

  const double* next_;
};

[[noreturn]] void refuse(const std::string& rule, const std::string& what) {
  throw Error(ErrorKind::argument, "load: " + rule + "; " + what +
                                       "; make the state as it was: setup(rule, model) of the same rule and model");
}

/// Rules of leaves, one after another, get their values.
class TakeInOrder {
 public:
  explicit TakeInOrder(const StateOptions& saved) : visitor_(saved.values.data()) {}
  void operator()(detail::ErasedRule& rule) { rule.describe(visitor_); }

 private:
  TakeOptions visitor_;
};

}  // namespace

StateOptions options_of(const State& state) {
  if (!state.tree()) {
    throw Error(ErrorKind::argument,
                "checkpoint: an optimiser state must be of a model; got an empty one; make it with setup(rule, model)");
  }
  if (sharing_of(*state.tree())) {
    throw Error(ErrorKind::argument,
                "checkpoint: a file has the optimiser state of all parameters; this one has a rank's part; save "
                "distributed::gathered(state), and make distributed::sharded(state) of what was loaded");
  }
  StateOptions options;
  std::string all, last;  // rules; equal ones that follow each other once
  for (const StateLeaf& leaf : state.tree()->leaves) {
    options.rule.clear();
    options.leaves.push_back(leaf.text);
    options.frozen.push_back(leaf.frozen ? 1 : 0);
    ListOptions visitor(options);
    leaf.rule->describe(visitor);
    if (options.rule == last) continue;
    last = options.rule;
    all += (all.empty() ? "" : "; ") + last;
  }
  options.rule = all;
  return options;
}

void check_options(const State& state, const StateOptions& saved) {
  const StateOptions own = options_of(state);
  if (saved.rule != own.rule) {
    refuse("the rule must be the one that was saved", "it is " + own.rule + ", the file has " + saved.rule);
  }
  const auto [here, there] =
      std::mismatch(own.leaves.begin(), own.leaves.end(), saved.leaves.begin(), saved.leaves.end());
  if (here != own.leaves.end() || there != saved.leaves.end()) {
    refuse("the state must be of the arrays that were saved",
           "it has " + (here == own.leaves.end() ? "no more" : *here) + " where the file has " +
               (there == saved.leaves.end() ? "no more" : *there));
  }
  if (saved.values.size() != own.values.size() || saved.frozen.size() != own.frozen.size()) {
    refuse("each trained array has its hyper-parameters",
           "the file has " + std::to_string(saved.values.size()) + " in place of " + std::to_string(own.values.size()));
  }
  TakeInOrder take(saved);
  for (const StateLeaf& leaf : state.tree()->leaves) {
    const std::unique_ptr<detail::ErasedRule> copy(leaf.rule->copy());
    take(*copy);
    check_rates("load", *copy);
    copy->check();
  }
}

void set_options(State& state, const StateOptions& saved) {
  std::vector<StateLeaf>& leaves = state.tree()->leaves;
  TakeInOrder take(saved);
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].frozen = saved.frozen[i] != 0;
    take(*leaves[i].rule);
  }
}

}  // namespace rosin
