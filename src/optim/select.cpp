// freeze, thaw, adjust: leaves found by a pattern of their paths.
#include <rosin/optim.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <rosin/error.hpp>

#include "base/nearest.hpp"
#include "optim/options.hpp"
#include "optim/shares.hpp"
#include "optim/tree.hpp"

namespace rosin {
namespace {

/// "layers[0].weight" as in files: "layers.0.weight".
std::string as_in_files(std::string_view pattern) {
  std::string text;
  for (char c : pattern) {
    if (c == '[' && !text.empty()) text += '.';
    else if (c != '[' && c != ']') text += c;
  }
  return text;
}

/// `*` stands for any letters, none too. What comes between two stars stands at the first place that it can: no other
/// one would leave more of the text.
bool matches(std::string_view text, std::string_view pattern) {
  const size_t first = pattern.find('*');
  if (first == std::string_view::npos) return text == pattern;
  const size_t last = pattern.rfind('*');
  const std::string_view head = pattern.substr(0, first), tail = pattern.substr(last + 1);
  if (text.size() < head.size() + tail.size() || !text.starts_with(head) || !text.ends_with(tail)) return false;
  text = text.substr(first, text.size() - head.size() - tail.size());
  for (size_t at = first + 1; at <= last;) {
    const size_t star = pattern.find('*', at);
    const std::string_view part = pattern.substr(at, star - at);
    const size_t found = text.find(part);
    if (found == std::string_view::npos) return false;
    text = text.substr(found + part.size());
    at = star + 1;
  }
  return true;
}

/// Whether the pattern is the path, or that of a part around it.
bool selects(const std::string& pattern, std::string_view path) {
  if (pattern.empty() || matches(path, pattern)) return true;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    if (matches(path.substr(0, dot), pattern)) return true;
  }
  return false;
}

[[noreturn]] void refuse_pattern(const std::string& op, const StateTree& tree, std::string_view pattern) {
  std::vector<std::string_view> names;
  for (const StateLeaf& leaf : tree.leaves) {
    const std::string_view path = leaf.text;
    names.push_back(path);
    for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
      names.push_back(path.substr(0, dot));
    }
  }
  std::string plain = as_in_files(pattern);
  while (!plain.empty() && (plain.back() == '*' || plain.back() == '.')) plain.pop_back();
  const std::string_view nearest = nearest_name(plain, names);
  std::string text = op + ": no parameter of the model matches \"" + std::string(pattern) + "\"; ";
  if (!nearest.empty()) text += "the nearest path is " + std::string(nearest);
  else if (!tree.leaves.empty()) text += "its first one is " + tree.leaves.front().text;
  else text += "it has none";
  throw Error(ErrorKind::argument, text);
}

std::vector<StateLeaf*> select(const char* op, const State& state, std::string_view pattern) {
  if (!state.tree()) {
    throw Error(ErrorKind::argument, std::string(op) + ": the state is empty; make it with state = setup(rule, model)");
  }
  const std::string wanted = as_in_files(pattern);
  std::vector<StateLeaf*> found;
  for (StateLeaf& leaf : state.tree()->leaves) {
    if (selects(wanted, leaf.text)) found.push_back(&leaf);
  }
  if (found.empty() && !pattern.empty()) refuse_pattern(op, *state.tree(), pattern);
  return found;
}

bool changes_something(const Adjustment& change) {
  for (double value : {change.eta, change.rho, change.beta[0], change.beta[1], change.epsilon, change.lambda,
                       change.delta, change.omega}) {
    if (!std::isnan(value)) return true;
  }
  return false;
}

}  // namespace

PathRule::PathRule(std::string_view pattern, const detail::ErasedRule& rule, int)
    : pattern_(pattern), rule_(rule.copy()) {}
PathRule::~PathRule() { delete rule_; }

namespace {

[[noreturn]] void refuse_rules(const std::string& what, const char* cure) {
  throw Error(ErrorKind::argument, "setup: " + what + "; " + cure);
}

/// The first leaf that keeps setup's rule, where rules that look at all gradients need one.
size_t first_without_rule(const StateTree& tree, const std::vector<const PathRule*>& taken) {
  const auto kept = std::find(taken.begin(), taken.end(), nullptr);
  if (kept != taken.end()) return static_cast<size_t>(kept - taken.begin());
  if (tree.leader().rule->exchanges()) {
    refuse_rules("a rule that looks at all gradients together must keep a parameter; all have other rules",
                 "leave one of the patterns out");
  }
  return 0;
}

}  // namespace

void detail::use_rules(State& state, ModelView model, std::span<const PathRule> rules) {
  if (rules.empty()) return;
  StateTree& tree = *state.tree();
  if (sharing_of(tree)) {
    refuse_rules("processes that share a state out have one rule for all parameters; got " +
                     std::to_string(rules.size()) + " more",
                 "give distributed::Optimizer without .shard");
  }
  std::vector<const PathRule*> taken(tree.leaves.size());
  for (const PathRule& rule : rules) {
    const std::unique_ptr<ErasedRule> checked(rule.rule().copy());
    check_rates("setup", *checked);
    checked->check();
    for (const StateLeaf* leaf : select("setup", state, rule.pattern())) {
      taken[static_cast<size_t>(leaf - tree.leaves.data())] = &rule;
    }
  }
  tree.first = tree.leaves.empty() ? 0 : first_without_rule(tree, taken);
  std::vector<ArrayPlace<const Array*>> places;
  list_arrays(model, places);
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) continue;
    tree.leaves[i].rule.reset(taken[i]->rule().copy());
    begin(tree.leaves[i], *places[tree.leaves[i].place].array);
  }
  eval();
}

void freeze(State& state, std::string_view pattern) {
  for (StateLeaf* leaf : select("freeze", state, pattern)) leaf->frozen = true;
}

void thaw(State& state, std::string_view pattern) {
  for (StateLeaf* leaf : select("thaw", state, pattern)) leaf->frozen = false;
}

void adjust(State& state, const Adjustment& change, std::string_view pattern) {
  if (!changes_something(change)) {
    throw Error(ErrorKind::argument,
                "adjust: something must change; every value is NaN; write adjust(state, {.eta = 1e-4})");
  }
  std::vector<std::unique_ptr<detail::ErasedRule>> rules;
  const std::vector<StateLeaf*> leaves = select("adjust", state, pattern);
  for (const StateLeaf* leaf : leaves) {
    rules.emplace_back(leaf->rule->copy());
    change_options(*rules.back(), change);
    check_rates("adjust", *rules.back());
  }
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i]->rule = std::move(rules[i]);
}

void adjust(State& state, double eta, std::string_view pattern) {
  if (std::isnan(eta)) {
    throw Error(ErrorKind::argument, "adjust: the learning rate cannot be NaN; give a number, such as 0.001");
  }
  Adjustment change;
  change.eta = eta;
  adjust(state, change, pattern);
}

State adjusted(const State& state, const Adjustment& change, std::string_view pattern) {
  State copy = state;
  adjust(copy, change, pattern);
  return copy;
}

State adjusted(const State& state, double eta, std::string_view pattern) {
  State copy = state;
  adjust(copy, eta, pattern);
  return copy;
}

}  // namespace rosin
