// GradientCall: opens arguments, walks back, hands gradients and buffers out. States are kept for the next call, so
// that a steady step takes no memory from the heap.
#include <rosin/grad.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "base/of_thread.hpp"
#include "grad/custom_rules.hpp"
#include "grad/reverse_walk.hpp"
#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "model/locate.hpp"
#include "model/notes.hpp"
#include "model/ties.hpp"
#include "ops/autocast_casts.hpp"

namespace rosin {

namespace {

/// The function that is differentiated is called with these models.
class CallOfFunction final : public CallUnderWay {
 public:
  explicit CallOfFunction(const std::vector<ModelView>& models) noexcept : models_(models) {}

  void locate(Error& error) const override {
    for (const ModelView& model : models_) detail::locate(error, model);
  }
  void follow(Error::Place& layer, uint64_t& path) const override {
    for (const ModelView& model : models_) ModelCall::follow(model, layer, path);
  }

 private:
  const std::vector<ModelView>& models_;
};

}  // namespace

struct detail::GradientCall::State {
  std::vector<Array> arguments;        // a fresh one for each place, nothing where it is not trained
  std::vector<size_t> first_argument;  // of each opened model
  std::vector<NotePosition> first_note;
  std::vector<detail::ArrayPlace<Array*>> places;
  std::vector<ModelView> models;  // the opened copies
  std::optional<BufferNotes> notes;
  std::optional<CallOfFunction> call;  // from the first model on until the walk back
  ReverseWalk walk;
  uint64_t first_sequence = 0;
};

namespace {
/// Gradient calls in progress on this thread count in its context.
void begin(Context& context) {
  if (context.gradient_depth.load(std::memory_order_relaxed) == 0) context.start_gradient();
  context.gradient_depth.fetch_add(1, std::memory_order_relaxed);
}
void end(Context& context) {
  forget_casts();
  if (context.gradient_depth.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  context.release_kept();
  CustomRules::of_thread().clear();
}

template <class State> std::vector<std::unique_ptr<State>>& spare_states() {
  return of_thread<std::vector<std::unique_ptr<State>>>();
}
}  // namespace

detail::GradientCall::GradientCall() {
  auto& spare = spare_states<State>();
  if (spare.empty()) {
    state_ = new State;
  } else {
    state_ = spare.back().release();
    spare.pop_back();
  }
  state_->notes.emplace();
  begin(Context::current());
  state_->first_sequence = Context::current().sequence() + 1;
}

detail::GradientCall::~GradientCall() {
  state_->call.reset();
  state_->notes.reset();
  state_->arguments.clear();
  state_->first_argument.clear();
  state_->first_note.clear();
  state_->places.clear();
  state_->models.clear();
  state_->walk.clear();
  CustomRules::of_thread().forget_slopes(state_->first_sequence);
  spare_states<State>().emplace_back(state_);
  end(Context::current());
}

namespace {

/// A fresh argument for a place; the first one tells the steps of the model apart.
Array argument_at(const detail::ArrayPlace<Array*>& place, NotePosition& position) {
  if (position.step == 0) position.step = place.array->node()->sequence;
  Array made = argument(*place.array);
  made.node()->tied = is_tied(*place.array);
  return made;
}

}  // namespace

void detail::GradientCall::open(ModelEdit copy) {
  State& s = *state_;
  s.models.push_back(copy.view());
  if (!s.call) s.call.emplace(s.models);
  s.first_note.push_back(s.notes->adopt(copy));
  s.first_argument.push_back(s.arguments.size());
  detail::list_arrays(copy, s.places);
  const size_t first = s.arguments.size();
  for (size_t i = 0; i < s.places.size(); ++i) {
    const detail::ArrayPlace<Array*>& place = s.places[i];
    const size_t tie = static_cast<size_t>(place.first);
    Array made;
    if (tie != i) made = s.arguments[first + tie];
    else if (place.trainable) made = argument_at(place, s.first_note.back());
    if (!made.is_nothing()) *place.array = made;
    s.arguments.push_back(std::move(made));
  }
}

namespace {

void check_loss(const Array& loss) {
  if (loss.is_nothing())
    throw Error(ErrorKind::argument, "gradient: the loss is nothing; return an array of one element");
  if (loss.count() != 1) {
    throw Error(ErrorKind::shape, "gradient: the loss must have one element; got " + to_string(loss.shape()) + " " +
                                      to_string(loss.dtype()) + "; reduce it with mean or sum");
  }
  if (!is_float(loss.dtype())) {
    throw Error(ErrorKind::dtype, std::string("gradient: the loss must be a float; got ") + to_string(loss.dtype()) +
                                      "; convert it with cast(loss, Float32)");
  }
}

}  // namespace

void detail::GradientCall::locate(Error& error) const { state_->call->locate(error); }

void detail::GradientCall::close(const Array& loss) {
  State& s = *state_;
  check_loss(loss);
  s.call.reset();
  forget_casts();
  Context::current().backward_start = Context::current().sequence();
  if (s.walk.run(Context::current(), loss.node(), s.first_sequence)) return;
  for (const Array& argument : s.arguments) {
    if (argument.is_nothing() || !s.walk.reaches_leaf(argument.node()->in[0])) continue;  // what the model holds
    warn_once("captured-model",
              "gradient: the function uses the model it captured, not the one it is given, so there is no "
              "gradient; write gradient([&](const auto& m) { ... m(x) ... }, model)");
    return;
  }
  warn_once("independent-loss", "gradient: the loss does not depend on any argument, so there is no gradient");
}

void detail::GradientCall::write_gradient(size_t argument, ModelEdit result) {
  State& s = *state_;
  detail::list_arrays(result, s.places);
  for (size_t i = 0; i < s.places.size(); ++i) {
    const size_t tie = static_cast<size_t>(s.places[i].first);
    if (tie != i) {
      *s.places[i].array = *s.places[tie].array;
      continue;
    }
    const Array& node = s.arguments[s.first_argument[argument] + i];
    Array g = node.is_nothing() ? Array() : s.walk.gradient_of(node.node());
    if (!g.is_nothing() && g.node()->weak && !node.node()->weak) g = cast(g, node.dtype());
    if (!g.is_nothing() && is_tied(*s.places[i].array)) g = tied_alone(std::move(g), 2);  // the walk has the other one
    *s.places[i].array = std::move(g);
  }
}

void detail::GradientCall::write_buffers(size_t argument, ModelEdit model) {
  if (state_->notes->any()) state_->notes->write(model, state_->first_note[argument]);
}

bool in_gradient() noexcept {
  Context* context = Context::current_or_null();
  return context && context->gradient_depth.load(std::memory_order_relaxed) > 0;
}

}  // namespace rosin
