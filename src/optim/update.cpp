// update: finds model, gradient and state in step, records the rules of all parameters, evaluates once, and puts
// everything back when that fails.
#include <rosin/optim.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "graph/device_facts.hpp"
#include "graph/hooks.hpp"
#include "graph/leaf.hpp"
#include "graph/run_gate.hpp"
#include "graph/transfer.hpp"
#include "graph/watch.hpp"
#include "ops/finding.hpp"
#include "optim/shares.hpp"
#include "optim/step.hpp"
#include "optim/tree.hpp"

namespace rosin {
namespace {

[[noreturn]] void refuse_model(const StateTree& tree, size_t place, const std::string& what, const std::string& has) {
  const std::string wanted = place < tree.names.size() ? tree.names[place] : "no more arrays";
  throw Error(ErrorKind::argument, "update: the " + what +
                                       " must have the fields of the model that setup was given; it has " +
                                       (has.empty() ? "no more arrays" : has) + " where the state has " + wanted +
                                       "; call state = setup(rule, model) for this model");
}

/// The path of a place of a model that may only be edited.
class PathOfPlace : public ModelEditor {
 public:
  explicit PathOfPlace(size_t place) : left_(place) {}
  void array(Array&, const ModelPath& path) override {
    if (left_-- == 0) text = path.text();
  }
  std::string text;

 private:
  size_t left_;
};

/// The first place at which two lists of paths differ, or -1.
template <class Places> int64_t first_difference(const StateTree& tree, const Places& places) {
  const size_t count = std::min(tree.paths.size(), places.size());
  for (size_t i = 0; i < count; ++i) {
    if (tree.paths[i] != places[i].path) return static_cast<int64_t>(i);
  }
  return tree.paths.size() == places.size() ? -1 : static_cast<int64_t>(count);
}

void match(const StateTree& tree, ModelEdit model, ModelView gradient, Step& step) {
  detail::list_arrays(model, step.places, step.unsettled);
  step.keep_unsettled();
  if (const int64_t at = first_difference(tree, step.places); at >= 0) {
    PathOfPlace path(static_cast<size_t>(at));
    model.edit_with(path);
    refuse_model(tree, static_cast<size_t>(at), "model", path.text);
  }
  detail::list_arrays(gradient, step.gradients);
  if (const int64_t at = first_difference(tree, step.gradients); at >= 0) {
    refuse_model(tree, static_cast<size_t>(at), "gradient", detail::path_at(gradient, static_cast<size_t>(at)));
  }
}

[[noreturn]] void refuse_parameter(const StateTree& tree, size_t place, const std::string& rule) {
  throw Error(ErrorKind::argument,
              "update: " + tree.names[place] + " " + rule + "; call state = setup(rule, model) again");
}

std::string sizes_of(const Array& x) { return to_string(x.shape()) + " " + to_string(x.dtype()); }

/// What a step of a leaf reads stands where its parameter does.
void check_place(const StateTree& tree, const StateLeaf& leaf, const char* what, const Array& y, const Array& x,
                 const char* cure) {
  if (y.is_nothing() || is_scalar(*y.node()) || y.node()->device == x.node()->device) return;
  throw Error(ErrorKind::device, std::string("update: a parameter and its ") + what + " must be on one device; " +
                                     tree.names[leaf.place] + " is on " + device_text(x.node()->device) + ", its " +
                                     what + " on " + device_text(y.node()->device) + "; " + cure);
}

void check_parameter(const StateTree& tree, const StateLeaf& leaf, const Array& x, const Array& g) {
  if (!(x.shape() == leaf.shape) || x.dtype() != leaf.dtype) {
    refuse_parameter(tree, leaf.place,
                     "is " + sizes_of(x) + " and was " + to_string(leaf.shape) + " " + to_string(leaf.dtype) +
                         " when setup was called");
  }
  check_place(tree, leaf, "gradient", g, x, "compute it with the moved model");
  if (g.shape() == leaf.shape) return;
  throw Error(ErrorKind::shape, "update: a gradient must have the shape of its parameter; that of " +
                                    tree.names[leaf.place] + " is " + to_string(g.shape()) + ", the parameter " +
                                    to_string(x.shape()) + "; give update what gradient(f, model) returns");
}

/// Ties must be as they were at setup, and what is trained must have been there.
void check_ties(const StateTree& tree, const Step& step) {
  for (size_t i = 0; i < step.places.size(); ++i) {
    const detail::ArrayPlace<Array*>& place = step.places[i];
    const int leaf = tree.leaf_of[i];
    if (!place.trainable) continue;
    if (leaf < 0) {
      if (!step.gradients[i].array->is_nothing()) refuse_parameter(tree, i, "was not trained when setup was called");
    } else if (tree.leaves[static_cast<size_t>(leaf)].place != static_cast<size_t>(place.first)) {
      refuse_parameter(tree, i, "was tied to another place, or none, when setup was called");
    }
  }
}

/// Both have one type, so the compiler takes them in either order.
void check_order(const StateTree& tree, const Step& step) {
  for (const StateLeaf& leaf : tree.leaves) {
    const Array& g = *step.gradients[leaf.place].array;
    if (g.is_nothing() || !leaf.is_parameter(*g.node()) || same(g, *step.places[leaf.place].array)) continue;
    throw Error(ErrorKind::argument, "update: the model comes before its gradient; the gradient holds the parameter " +
                                         tree.names[leaf.place] + "; write update(state, model, gradient)");
  }
}

/// The gradient of a leaf in the model's gradient: that of its first place, and those of tied places that are other
/// arrays. Nothing where the leaf makes no step.
Array given_gradient(const StateTree& tree, size_t leaf, const Step& step) {
  const StateLeaf& own = tree.leaves[leaf];
  if (own.frozen || step.places[own.place].array->is_nothing()) return {};
  const Array& first = *step.gradients[own.place].array;
  Array sum = first;
  for (size_t i : own.tied) {
    const Array& g = *step.gradients[i].array;
    if (!g.is_nothing() && !same(g, first)) sum = sum.is_nothing() ? g : sum + g;
  }
  if (sum.is_nothing() || sum.dtype() == own.dtype) return sum;
  return cast(sum, own.dtype);
}

/// The same without the loss scale, and exchanged, once that is done.
Array gradient_of(const StateTree& tree, size_t leaf, const Step& step) {
  return step.exchanged.empty() ? given_gradient(tree, leaf, step) : step.exchanged[leaf];
}

/// The same of the running statistics that the gradient call has written. They are kept already.
void exchange_statistics(const StateTree& tree, const Step& step) {
  std::vector<detail::NamedGradient> written;
  std::vector<Array*> places;
  for (size_t i = 0; i < step.places.size(); ++i) {
    Array* const x = step.places[i].array;
    const auto holds_it = [&](Buffer* buffer) { return &buffer->stored() == x; };
    if (!step.places[i].buffer || std::none_of(step.unsettled.buffers.begin(), step.unsettled.buffers.end(), holds_it))
      continue;
    written.push_back({tree.names[i], *x});
    places.push_back(x);
  }
  tree.leader().rule->exchange_statistics(written);
  for (size_t i = 0; i < places.size(); ++i) *places[i] = std::move(written[i].gradient);
}

/// Where the state has a loss scale, gradients are what is left of them without it.
void unscale_gradients(const StateTree& tree, Step& step) {
  if (!tree.loss_scale) return;
  step.exchanged.resize(tree.leaves.size());
  for (size_t i = 0; i < tree.leaves.size(); ++i) {
    const Array g = given_gradient(tree, i, step);
    if (g.is_nothing()) continue;
    const DeviceScope scope(*g.node());
    step.exchanged[i] = tree.loss_scale.unscaled(g);
  }
}

/// Whether all gradients are finite: Bool, 0-d.
Array finite_gradients(const Step& step) {
  Array largest;
  for (const Array& g : step.exchanged) {
    if (g.is_nothing() || g.count() == 0) continue;
    const DeviceScope scope(*g.node());
    const Array here = cast(maximum(abs(g)), Float32);
    largest = largest.is_nothing() ? here : max(largest, transferred(here, largest.node()->device));
  }
  return largest.is_nothing() ? full(Shape{}, true, Bool) : is_finite(largest);
}

/// Keeps every array of a leaf's state, which stands where the parameter does.
class KeepState : public ModelEditor {
 public:
  KeepState(StateTree& tree, const StateLeaf& leaf, const Array& parameter, Step& step)
      : tree_(tree), leaf_(leaf), parameter_(parameter), step_(step) {}
  void array(Array& x, const ModelPath&) override {
    check_place(tree_, leaf_, "state", x, parameter_, "move it along: state = state | device");
    if (!x.is_nothing() && !x.node()->ready()) eval(x);
    step_.keep(&x);
    if (parameter_.node()->device != 0 && !x.is_nothing() && is_scalar(*x.node())) tree_.earlier.keep(&x);
  }

 private:
  StateTree& tree_;
  const StateLeaf& leaf_;
  const Array& parameter_;
  Step& step_;
};

/// A rule sees complex arrays as their parts.
template <class F> Array in_parts(const Array& x, const Array& g, F f) {
  if (!is_complex(x.dtype())) return f(x, g);
  const Array parts = f(view_as_real(x), view_as_real(g));
  return parts.is_nothing() ? parts : view_as_complex(parts);
}

void begin_rule(size_t leaf, Step& step) {
  step.leaf = static_cast<int>(leaf);
  step.begin_rule();
}

/// What a leaf's rule hands on, of its gradient; nothing where it rests. What the rule keeps is kept.
Array begun(StateTree& tree, size_t index, const Array& g, Step& step) {
  StateLeaf& leaf = tree.leaves[index];
  const Array& x = *step.places[leaf.place].array;
  check_parameter(tree, leaf, x, g);
  if (!x.node()->ready()) eval(x);
  KeepState keep(tree, leaf, x, step);
  leaf.rule->visit_state(keep, {});
  begin_rule(index, step);
  const DeviceScope scope(*x.node());
  return in_parts(x, g, [&](const Array& its_x, const Array& its_g) { return leaf.rule->begin(its_x, its_g); });
}

/// Whether an array of the state or model, to which `handles` lead, is overwritten where it is: nobody else holds it.
/// (What is pending and reads it is over by then.)
bool is_overwritten(const Array& x, uint32_t handles) {
  if (x.is_nothing() || is_scalar(*x.node())) return true;
  const Node& node = *x.node();
  return node.users() == handles && node.buffer && !is_lent(*node.buffer) &&
         node.buffer->owners.load(std::memory_order_acquire) == 1;
}

/// Whether that holds for what a leaf's step changes. The state has been kept once.
bool is_overwritten(StateLeaf& leaf, const Step& step) {
  class Look : public ModelEditor {
   public:
    void array(Array& x, const ModelPath&) override { all_are = all_are && is_overwritten(x, 2); }
    bool all_are = true;
  };
  const Array& x = *step.places[leaf.place].array;
  uint32_t handles = 1;
  for (const size_t i : leaf.tied) handles += step.places[i].array != &x;
  Look look;
  leaf.rule->visit_state(look, {});
  return look.all_are && is_overwritten(x, handles);
}

/// Lets a rule that wants it replace what the rules of all leaves have begun with, together; not where all of them
/// rest.
void exchange_gradients(StateTree& tree, Step& step) {
  if (tree.leaves.empty() || !tree.leader().rule->exchanges()) return;
  std::vector<size_t> sent;
  std::vector<detail::NamedGradient> gradients;
  bool rests = false;
  for (size_t i = 0; i < tree.leaves.size(); ++i) {
    const Array g = gradient_of(tree, i, step);
    const Array d = g.is_nothing() ? g : begun(tree, i, g, step);
    rests = rests || d.is_nothing() != g.is_nothing();
    if (d.is_nothing()) continue;
    sent.push_back(i);
    gradients.push_back({tree.names[tree.leaves[i].place], d, tree.leaves[i].owner});
  }
  begin_rule(tree.leaves.size(), step);
  const bool overwrites = !Context::current().in_gradient();
  step.needs_no_memory = overwrites && !tree.took_memory && std::all_of(sent.begin(), sent.end(), [&](size_t i) {
                           return is_overwritten(tree.leaves[i], step);
                         });
  if (!rests || !sent.empty()) tree.leader().rule->exchange(gradients);
  step.exchanged.assign(tree.leaves.size(), Array());
  for (size_t i = 0; i < sent.size(); ++i) step.exchanged[sent[i]] = std::move(gradients[i].gradient);
  step.is_exchanged = true;
  exchange_statistics(tree, step);
  step.exchanged_leaves = std::move(sent);
}

/// The parameter's new value, at all its places.
void put(const StateLeaf& leaf, Array next, Step& step) {
  Array& x = *step.places[leaf.place].array;
  next.node()->tied = x.node()->tied;
  step.keep(&x);
  for (size_t i : leaf.tied) {
    if (step.places[i].array == &x) continue;  // one object behind shared pointers
    step.keep(step.places[i].array);
    *step.places[i].array = next;
  }
  x = std::move(next);
}

void record_leaf(StateTree& tree, size_t index, Step& step) {
  StateLeaf& leaf = tree.leaves[index];
  const Array g = gradient_of(tree, index, step);
  const Array d = step.is_exchanged || g.is_nothing() ? g : begun(tree, index, g, step);
  if (d.is_nothing()) return;
  if (step.is_exchanged) begin_rule(index, step);
  const Array& x = *step.places[leaf.place].array;
  const DeviceScope scope(*x.node());
  const auto finish = [&](const Array& its_x, const Array& its_d) { return leaf.rule->finish(its_x, its_d); };
  Array next = in_parts(own_part(leaf, x), d, finish);
  if (next.is_nothing()) return;
  if (is_divided(leaf)) step.divided_leaves.push_back(index);
  put(leaf, is_divided(leaf) ? with_part(leaf, x, next) : std::move(next), step);
}

/// What a check says whose value is not finite: `value`, at a leaf of the state, or of all (as many as there are), or,
/// without one, as the loss.
std::string refusal_text(const StateTree& tree, const char* rule, int leaf, const std::string& value,
                         const std::string& item) {
  if (leaf < 0) return "train: loss is " + value + " on item " + item + "; stopped before the update";
  const auto at = static_cast<size_t>(leaf);
  const std::string where = at < tree.leaves.size() ? " at " + tree.names[tree.leaves[at].place] : "";
  return std::string(rule) + "; it is " + value + where +
         "; lower the learning rate or look for such values in the data";
}

/// The number of the texts of the step's checks, see Step::select_by_checks.
int64_t texts_of_checks(StateTree& tree, const Step& step) {
  CheckTexts& texts = tree.check_texts;
  const auto says = [](const Step::Check& check, const CheckTexts::Said& said) {
    return check.text == said.rule && check.leaf == said.leaf;
  };
  if (texts.number >= 0 && std::equal(step.checks.begin(), step.checks.end(), texts.of.begin(), texts.of.end(), says)) {
    return texts.number;
  }
  texts.of.clear();
  for (const Step::Check& check : step.checks) texts.of.push_back({check.text, check.leaf});
  std::vector<std::string> all;
  for (const CheckTexts::Said& said : texts.of) {
    if (said.leaf >= 0) all.push_back(refusal_text(tree, said.rule, said.leaf, "{}", "{}"));
  }
  all.push_back(refusal_text(tree, nullptr, -1, "{}", "{}"));
  return texts.number = finding_texts(all);
}

constexpr const char* finite_gradient = "update: a gradient must be finite";

/// Every element of the gradients must be finite, or the step is undone; also of those that a rule only collects. Where
/// ops are watched for NaN, none may come out of the check: it is done at once.
void check_gradients(const StateTree& tree, Step& step) {
  for (size_t i = 0; i < tree.leaves.size(); ++i) {
    Array g = gradient_of(tree, i, step);
    if (g.is_nothing() && !is_elsewhere(tree.leaves[i])) g = given_gradient(tree, i, step);
    if (g.is_nothing() || g.count() == 0) continue;
    const DeviceScope scope(*g.node());
    if (looks_for_nan()) {
      if (all(is_finite(g)).item<bool>()) continue;
      throw Error(ErrorKind::numeric, refusal_text(tree, finite_gradient, static_cast<int>(i), "not", {}));
    }
    step.checks.push_back({maximum(abs(g)), finite_gradient, static_cast<int>(i)});
  }
}

void remember_parameters(StateTree& tree, const Step& step) {
  for (StateLeaf& leaf : tree.leaves) {
    const Array& x = *step.places[leaf.place].array;
    if (!x.is_nothing()) leaf.remember(*x.node());
  }
}

/// Memory of a device that the step changes; null where there is none.
const Memory* memory_there(const StateTree& tree, const Step& step) {
  for (const StateLeaf& leaf : tree.leaves) {
    if (leaf.frozen || step.gradients[leaf.place].array->is_nothing()) continue;
    const Array& x = *step.places[leaf.place].array;
    if (!x.is_nothing()) return x.node()->device != 0 && x.node()->ready() ? x.node()->buffer : nullptr;
  }
  return nullptr;
}

/// The step in progress has failed: everything is as before it, and before those that are known to be given up now.
/// `there`: see memory_there; null also where the step has not come so far.
void undo(StateTree& tree, Step& step, bool evaluated, const Memory* there) {
  step.undo(evaluated);
  tree.earlier.drop();
  if (there) tree.earlier.settle(*there);
}

void record(StateTree& tree, const CheckedLoss* loss, bool check, Step& step) {
  if (check) check_gradients(tree, step);
  if (loss) step.checks.push_back({loss->value, nullptr, -1, loss->item});
  for (size_t leaf = 0; leaf < tree.leaves.size(); ++leaf) record_leaf(tree, leaf, step);
  step.exchanged.clear();  // what is held would come out of the evaluation, into memory of its own
}

void refuse_failed(const StateTree& tree, const Step::Check* failed) {
  if (!failed) return;
  throw Error(ErrorKind::numeric, refusal_text(tree, failed->text, failed->leaf, number_text(failed->value.item()),
                                               std::to_string(failed->item)));
}

/// Makes the steps of this process's own leaves.
void make_own_steps(StateTree& tree, const CheckedLoss* loss, bool check, Step& step) {
  record(tree, loss, check, step);
  eval();
  refuse_failed(tree, step.failed());
}

/// Whether the gradients of all processes are finite, where the state has a loss scale, which learns of it.
bool proceeds_everywhere(StateTree& tree, const Step& step, detail::Sharing& sharing) {
  if (!tree.loss_scale) return true;
  const bool finite = agreed(sharing, [&] { return finite_gradients(step).item<bool>(); });
  tree.loss_scale.arrays = tree.loss_scale.next(full(Shape{}, finite, Bool));
  return finite;
}

/// Gets what other processes have made of parameters: of whole ones, and of the rest of those that are divided, which
/// stay where they are on all processes or on none.
void take_over(StateTree& tree, Step& step, detail::Sharing& sharing) {
  std::vector<const StateLeaf*> leaves;
  for (const size_t i : step.exchanged_leaves) {
    if (!is_divided(tree.leaves[i])) leaves.push_back(&tree.leaves[i]);
  }
  for (const size_t i : step.divided_leaves) leaves.push_back(&tree.leaves[i]);
  std::vector<detail::OwnedArray> values;
  values.reserve(leaves.size());
  for (const StateLeaf* leaf : leaves) values.push_back({leaf->owner, *step.places[leaf->place].array});
  sharing.spread("update", values);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!same(values[i].value, *step.places[leaves[i]->place].array)) put(*leaves[i], std::move(values[i].value), step);
  }
}

/// Makes this process's steps and takes over those of the others. Nothing that was kept is overwritten: until all have
/// come here without an error, the step can be undone.
void share_steps(StateTree& tree, const CheckedLoss* loss, bool check, Step& step, detail::Sharing& sharing) {
  if (!proceeds_everywhere(tree, step, sharing)) return step.undo(false);
  agreed(sharing, [&] {
    make_own_steps(tree, loss, check && !tree.loss_scale, step);
    return true;
  });
  take_over(tree, step, sharing);
}

/// Where other processes make the step too, begins it when all have the memory for it: what one has not is thrown on
/// all of them, and made by none. They are not asked where none needs more than little memory.
class BeginTogether final : private RunGate {
 public:
  explicit BeginTogether(Step& step) : step_(step) {}

  void begin(const Error* failed) {
    if (std::exchange(is_begun_, true)) return;
    if (step_.is_agreed_on) step_.companions->agree_to_begin(failed);
    is_open_ = true;
  }
  /// The step has failed here. (What all find in the same gradients they find alike.)
  void fail(const Error& error) {
    if (step_.is_agreed_on) begin(&error);
    const bool is_made_by_others = is_open_ || !step_.is_agreed_on;
    if (is_made_by_others && error.kind() == ErrorKind::memory) step_.companions->fall_out(error.what());
  }
  bool took_memory() const { return bytes_ > little; }

 private:
  static constexpr size_t little = size_t{1} << 16;  // flags, sums, numbers

  void memory_is_there(size_t bytes) override {
    bytes_ += bytes;
    begin(nullptr);
  }

  Step& step_;
  size_t bytes_ = 0;
  bool is_begun_ = false;
};

/// The same of a step that has exchanged gradients.
template <class F> bool made_together(StateTree& tree, Step& step, F make) {
  if (!step.companions) return make();
  tree.took_memory = true;
  BeginTogether together(step);
  try {
    const bool waits = make();
    together.begin(nullptr);
    tree.took_memory = together.took_memory();
    return waits;
  } catch (...) {
    together.fail(*error_in([] { throw; }));
    throw;
  }
}

/// Records the rules of all leaves and evaluates them; whether it waits for that.
bool make_step(StateTree& tree, const CheckedLoss* loss, bool check, Step& step) {
  const Array ok = tree.loss_scale ? finite_gradients(step) : Array();
  record(tree, loss, check && ok.is_nothing(), step);
  if (!ok.is_nothing()) {
    step.skip_unless(ok);
    tree.loss_scale.arrays = tree.loss_scale.next(ok);
  }
  const bool waits = !step.checks.empty() && (check || !step.is_checked_by_device());
  if (step.checks.empty() && !ok.is_nothing()) step.select_by_scale();
  if (waits) step.select_by_checks();
  else if (!step.checks.empty()) step.select_by_device(texts_of_checks(tree, step));
  step.guard();
  if (waits) eval();
  else hooks.evaluate(Context::current(), nullptr, Moment::step_end);
  if (!ok.is_nothing() && ok.node()->device == 0 && !ok.item<bool>()) step.put_back_numbers();
  return waits;
}

/// `there` becomes what memory_there says before the step. Whether the step was waited for, so that its checks can be
/// read: not where a device looks at them, unless `check` asks for that.
bool run(StateTree& tree, ModelEdit model, ModelView gradient, const CheckedLoss* loss, bool check, Step& step,
         const Memory*& there) {
  match(tree, model, gradient, step);
  there = memory_there(tree, step);
  if (there) tree.earlier.settle(*there);
  check_order(tree, step);
  check_ties(tree, step);
  unscale_gradients(tree, step);
  try {
    exchange_gradients(tree, step);
  } catch (...) {
    if (step.companions) BeginTogether(step).fail(*error_in([] { throw; }));
    throw;
  }
  if (detail::Sharing* const sharing = sharing_of(tree)) {
    share_steps(tree, loss, check, step, *sharing);
    return false;
  }
  return made_together(tree, step, [&] { return make_step(tree, loss, check, step); });
}

}  // namespace

void take_step(State& state, ModelEdit model, ModelView gradient, const CheckedLoss* loss, UpdateOptions options) {
  if (!state.tree()) {
    throw Error(ErrorKind::argument, "update: the state is empty; make it with state = setup(rule, model)");
  }
  Step& step = Step::of_thread();
  step.active = true;
  const Step::Check* failed = nullptr;
  const Memory* there = nullptr;
  const LossScaleArrays scale = state.tree()->loss_scale.arrays;
  try {
    const bool waited = run(*state.tree(), model, gradient, loss, options.check || looks_for_nan(), step, there);
    failed = waited ? step.failed() : nullptr;
    refuse_failed(*state.tree(), failed);
  } catch (...) {
    state.tree()->loss_scale.arrays = scale;
    undo(*state.tree(), step, failed != nullptr, there);
    step.finish();
    throw;
  }
  remember_parameters(*state.tree(), step);
  if (const Memory* changed = there ? memory_there(*state.tree(), step) : nullptr) {
    state.tree()->earlier.confirm(*changed);
  }
  step.finish();
}

void update(State& state, ModelEdit model, ModelView gradient, UpdateOptions options) {
  take_step(state, model, gradient, nullptr, options);
}

void require_finite(const Array& value, const char* text) {
  Step& step = Step::of_thread();
  if (step.active) {
    step.checks.push_back({value, text, step.leaf});
  } else if (const double now = value.item(); !std::isfinite(now)) {
    throw Error(ErrorKind::numeric, std::string(text) + "; it is " + number_text(now));
  }
}

}  // namespace rosin
