// Which runs an evaluation takes. Nodes of other threads come first, from a list of what is waited for: threads may
// hand pending arrays to each other in any way. What cannot be computed is found and set aside, so that the rest can
// be.
#include <algorithm>
#include <exception>
#include <string>

#include <rosin/error.hpp>

#include "graph/leaf.hpp"
#include "graph/recording_site.hpp"
#include "graph/run_gate.hpp"
#include "run/evaluate.hpp"
#include "run/index_flags.hpp"

namespace rosin {
namespace {

using Nodes = std::vector<Array>;

/// Adds groups of one thread each.
void push_groups(std::vector<Nodes>& waiting, Nodes missing) {
  const size_t first = waiting.size();
  for (Array& x : missing) {
    const auto is_of_its_thread = [&](const Nodes& group) {
      return group.front().node()->recorder == x.node()->recorder;
    };
    const auto from = waiting.begin() + static_cast<std::ptrdiff_t>(first);
    const auto group = std::find_if(from, waiting.end(), is_of_its_thread);
    if (group != waiting.end()) group->push_back(std::move(x));
    else waiting.push_back({std::move(x)});
  }
}

/// What other threads' nodes need may be this thread's again, and so on: each group needs older nodes only, so this
/// ends, and no lock is held from one run to the next.
[[gnu::noinline]] void complete_others(Context& here, Nodes missing) {
  std::vector<Nodes> waiting;
  push_groups(waiting, std::move(missing));
  while (!waiting.empty()) {
    const Nodes& group = waiting.back();
    Nodes found;
    if (run_once({.context = *group.front().node()->recorder, .alone = group}, here, found)) waiting.pop_back();
    else push_groups(waiting, std::move(found));
  }
}

/// Runs until all that is wanted has its value.
void complete(const Wanted& wanted, Context& here) {
  Nodes missing;
  while (!run_once(wanted, here, missing)) complete_others(here, std::exchange(missing, {}));
}

void complete_alone(const Array& x, Context& here) {
  complete({.context = *x.node()->recorder, .alone = {&x, 1}}, here);
}

Array handle_on(Node* node) {
  add_count(node, one_user);
  return Array::adopt(node);
}

/// Nodes of this thread in one state that a handle holds, oldest first.
Nodes held_nodes(Context& here, NodeState state) {
  const std::lock_guard lock(here.evaluating);
  Nodes held;
  for (Node* node = here.first(); node != here.end(); node = node->next) {
    if (node->users() == 0 || node->state.load(std::memory_order_relaxed) != state) continue;
    if (!is_look_at_file(*node)) held.push_back(handle_on(node));
  }
  return held;
}

/// Only nodes of this thread.
void set_aside(Context& here, Node* node, NodeState state) {
  const std::lock_guard lock(here.evaluating);
  if (node->ready()) return;
  node->state.store(state, std::memory_order_relaxed);
  here.has_failed = here.has_failed || state == NodeState::failed;
}

/// The error of the exception in flight, which came up for a node that the caller did not ask for.
[[noreturn]] void throw_for(const Node& node) {
  try {
    throw;
  } catch (const Error& error) {
    throw with_more(error, "; this came up for an array that a handle holds, a result of " +
                               std::string(op_name(node)) + ", " + to_string(node.shape()) + " " +
                               to_string(node.dtype) +
                               "; it is left out from now on; ROSIN_EAGER=1 throws where it is recorded");
  }
}

/// Computes what is pending, in halves, until a node is left that cannot be; null when all have their values now (what
/// took too much memory together). Throws nothing; the error is in flight nowhere any more.
struct Culprit {
  Array node;
  std::exception_ptr error;
};
Culprit find_culprit(Context& here) {
  const Nodes held = held_nodes(here, NodeState::pending);
  size_t width = (held.size() + 1) / 2;
  for (size_t first = 0; first < held.size();) {
    width = std::min(width, held.size() - first);
    try {
      complete({.context = here, .alone = std::span(held).subspan(first, width)}, here);
      first += width;
    } catch (const Error&) {
      if (width == 1) return {held[first], std::current_exception()};
      width = (width + 1) / 2;
    }
  }
  return {};
}

/// What reads have set aside is thrown at the next boundary, once.
void throw_failed(Context& here) {
  here.has_failed = false;
  const Nodes failed = held_nodes(here, NodeState::failed);
  for (const Array& x : failed) {
    if (x.node()->left) continue;
    try {
      complete_alone(x, here);
    } catch (const Error&) {
      here.has_failed = true;  // there may be more
      set_aside(here, x.node(), NodeState::reported);
      throw_for(*x.node());
    }
  }
}

/// A read of one array does without what cannot be computed, unless that is the array.
void compute_target(Context& here, Node* target) {
  const Array x = handle_on(target);
  try {
    complete_alone(x, here);
  } catch (const Error&) {
    set_aside(here, target, NodeState::reported);
    throw;
  }
}

/// Everything together could not be computed. What a thread that has ended left here is nobody's error but its
/// reader's.
[[gnu::cold]] void compute_apart(Context& here, Node* target) {
  if (target) compute_target(here, target);
  for (;;) {
    const Culprit culprit = find_culprit(here);
    if (culprit.node.is_nothing()) return;
    Node& node = *culprit.node.node();
    const bool is_thrown = !target && !node.left;
    set_aside(here, &node, is_thrown || node.left ? NodeState::reported : NodeState::failed);
    if (target) return;
    if (!is_thrown) continue;
    try {
      std::rethrow_exception(culprit.error);
    } catch (...) {
      throw_for(node);
    }
  }
}

/// What is pending here; the target is of this thread.
void evaluate_own(Context& here, Node* target, Moment moment) {
  if (target && target->is_set_aside()) return compute_target(here, target);
  if (!target && here.has_failed) throw_failed(here);
  try {
    const bool behind = moment == Moment::step_end, last = moment == Moment::last_use;
    complete({.context = here, .target = target, .may_be_behind = behind, .last_use = last}, here);
  } catch (const EarlierCheckFailed&) {
    throw;  // nothing has been run
  } catch (const Error&) {
    const RunGate* const gate = RunGate::of_thread();
    if (gate && !gate->is_open()) throw;
    here.set_bound();
    compute_apart(here, target);
  }
  here.set_bound();
}

}  // namespace

void evaluate(Context& here, Node* target, Moment moment) {
  if (target && target->recorder && target->recorder != &here) complete_alone(handle_on(target), here);
  else evaluate_own(here, target, moment);
  if (here.check_reads) here.check_reads();
}

}  // namespace rosin
