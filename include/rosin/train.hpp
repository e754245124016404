// Training loops by Flux's names: train, trainstep, patience, early_stopping, plateau, throttle. Read first: optim.hpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include <rosin/grad.hpp>
#include <rosin/loss_scale.hpp>
#include <rosin/optim.hpp>
#include <rosin/progress.hpp>

namespace rosin {

namespace detail {

/// For train: one step, unless the loss is not finite. Error (numeric) then, before anything changed; `item` counts
/// from 1 in the message. On a device the error comes from a later call.
ROSIN_API void train_step(State& state, ModelEdit model, ModelView gradient, const Array& loss, int64_t item);
/// For train: throws what steps on a device have not told yet.
ROSIN_API void finish_training(const Array& last_loss);
/// For train: warns that what the rule keeps is lost when train returns.
ROSIN_API void warn_of_lost_state(const State& state, const ErasedRule& rule);
/// Seconds of a clock that never runs backwards.
ROSIN_API double steady_seconds() noexcept;

}  // namespace detail

namespace reflect {

template <class T>
concept SplitInArguments = TupleLike<std::remove_cvref_t<T>>;

/// loss(model, item), or loss(model, parts of the item...) when it is a tuple.
template <class Loss, class M, class Item> auto loss_on(Loss& loss, const M& model, Item& item) {
  if constexpr (SplitInArguments<Item>) {
    return std::apply([&](auto&... part) { return loss(model, part...); }, item);
  } else {
    return loss(model, item);
  }
}

/// The same, where what is no tuple is an array.
template <class Loss, class M, class Item> auto value_on(Loss& loss, const M& model, Item& item) {
  auto value = loss_on(loss, model, item);
  if constexpr (std::is_convertible_v<decltype(value), Array>) return Array(std::move(value));
  else return value;
}

/// One step on an item: what the loss gave, and the gradient.
template <class Loss, class M, class Item>
auto step_on(Loss& loss, M& model, Item& item, State& state, int64_t number) {
  const auto scaled = [&](const M& m) {
    auto value = value_on(loss, m, item);
    Array number_alone = scaled_loss(state, loss_of(value));
    return std::pair(std::move(number_alone), std::move(value));
  };
  auto [values, gradient] = withgradient(scaled, model);
  detail::train_step(state, model, gradient, loss_of(values.second), number);
  return WithGradient<decltype(values.second), M>{std::move(values.second), std::move(gradient)};
}

}  // namespace reflect

/// What train tells after a step.
struct TrainStep {
  int64_t item;       // of this call, from 1
  const Array& loss;  // before the step
};

namespace reflect {

/// after(step, what the loss gave), or after(step).
template <class After, class Value> void tell(After& after, const TrainStep& step, const Value& value) {
  if constexpr (std::invocable<After&, const TrainStep&, const Value&>) static_cast<void>(after(step, value));
  else static_cast<void>(after(step));
}

}  // namespace reflect

/// One step of `state` on one item of data: what train makes of each. Gives what the loss gave. Error (numeric) as
/// of train on its first item: model and state stay as they were; on a device it comes from a later call. Source:
/// Flux.trainstep!.
template <class Loss, Walkable M, class Item> auto trainstep(Loss&& loss, M& model, Item&& item, State& state) {
  return reflect::step_on(loss, model, item, state, 1).value;
}
/// The same with the gradient, times the loss scale where the state has one: `value` and `gradient`.
template <class Loss, Walkable M, class Item>
auto trainstep_withgradient(Loss&& loss, M& model, Item&& item, State& state) {
  return reflect::step_on(loss, model, item, state, 1);
}

/// One step of `state` for each item of the data: loss(model, item), or loss(model, x, y, ...) for tuples, must give an
/// array of one element, or a tuple that begins with it; what follows there goes to `after`. A loss that is NaN or
/// infinite stops with Error (numeric) `train: loss is NaN on item 51; stopped before the update` (items count from 1
/// there): model and state are those after item 50. Whatever the loss throws passes through. On a device no step is
/// waited for, so that a few more items may have been asked for by then. `after(TrainStep)`, or `after(TrainStep, what
/// the loss gave)`, is called after each step, with model, state and loader as they are then: a checkpoint saved in it
/// goes on with the next item. What it returns is not looked at (so that it may be a throttle); what it throws ends the
/// training. A state with a loss scale has the losses scaled before the walk back.
template <class Loss, Walkable M, class Data, class After>
void train(Loss&& loss, M& model, Data&& data, State& state, After&& after) {
  int64_t count = 0;
  Array last;
  for (auto&& item : data) {
    last = {};  // its memory serves again
    const auto [value, grad] = reflect::step_on(loss, model, item, state, ++count);
    last = reflect::loss_of(value);
    reflect::tell(after, TrainStep{count, last}, value);
  }
  detail::finish_training(last);
}
template <class Loss, Walkable M, class Data> void train(Loss&& loss, M& model, Data&& data, State& state) {
  train(loss, model, data, state, [](const TrainStep&) {});
}

/// The same with a state of its own, which ends with the call (a warning says so where the rule keeps something).
template <class Loss, Walkable M, class Data, Rule R> void train(Loss&& loss, M& model, Data&& data, const R& rule) {
  State state = setup(rule, model);
  detail::warn_of_lost_state(state, RuleOf<R>(rule));
  train(loss, model, data, state);
}

/// Several functions as one for train to call after each step, in this order.
template <class... After> class Callbacks {
 public:
  explicit Callbacks(After... after) : list_(std::forward<After>(after)...) {}

  template <class Value> void operator()(const TrainStep& step, const Value& value) {
    std::apply([&](auto&... each) { (reflect::tell(each, step, value), ...); }, list_);
  }

 private:
  std::tuple<After...> list_;
};
/// Those that have names are referred to, others are kept: callbacks(bar, [&](const TrainStep&) { ... }).
template <class... After> Callbacks<After...> callbacks(After&&... after) {
  return Callbacks<After...>(std::forward<After>(after)...);
}

// --- Triggers: callables that say when to stop.

/// True once `predicate` was true n times in a row.
template <class Predicate> struct Patience {
  Predicate predicate;
  int64_t wait;
  int64_t count = 0;

  template <class... T> bool operator()(T&&... argument) {
    count = predicate(std::forward<T>(argument)...) ? count + 1 : 0;
    return count >= wait;
  }
};
template <class Predicate> Patience<Predicate> patience(Predicate predicate, int64_t wait) {
  return {std::move(predicate), wait};
}

/// How far a score came: best - now.
struct ScoreGain {
  double operator()(double best, double now) const noexcept { return best - now; }
};

template <class Distance = ScoreGain> struct StoppingOptions {
  Distance distance = {};
  double init_score = std::numeric_limits<double>::infinity();
  double min_dist = 0;
};

namespace detail {

/// Whether the score f(...) did not fall by min_dist below the best one.
template <class F, class Distance> struct NoGain {
  F f;
  Distance distance;
  double min_dist;
  double best;

  template <class... T> bool operator()(T&&... argument) {
    const double score = static_cast<double>(f(std::forward<T>(argument)...));
    const double gain = distance(best, score);
    if (!(gain < 0)) best = score;
    return gain < min_dist;
  }
};

}  // namespace detail

/// True once the score f(...) did not fall by min_dist below the best one for `delay` calls in a row. With
/// {.distance = [](double best, double now) { return now - best; }, .init_score = -infinity} higher is better.
template <class F, class Distance = ScoreGain>
auto early_stopping(F f, int64_t delay, StoppingOptions<Distance> options = {}) {
  using Predicate = detail::NoGain<F, Distance>;
  return patience(Predicate{std::move(f), options.distance, options.min_dist, options.init_score}, delay);
}

template <class Distance = ScoreGain> struct PlateauOptions {
  Distance distance = {};
  double init_score = std::numeric_limits<double>::infinity();
  double min_dist = 1e-6;
};

namespace detail {

/// Whether the score f(...) changed by less than min_dist since the call before.
template <class F, class Distance> struct Still {
  F f;
  Distance distance;
  double min_dist;
  double last;

  template <class... T> bool operator()(T&&... argument) {
    const double score = static_cast<double>(f(std::forward<T>(argument)...));
    const double change = distance(last, score);
    last = score;
    return (change < 0 ? -change : change) < min_dist;
  }
};

}  // namespace detail

/// True once the score f(...) changed by less than min_dist for `width` calls in a row; the first call has no score
/// before it, so with the usual init_score it counts as a change.
template <class F, class Distance = ScoreGain> auto plateau(F f, int64_t width, PlateauOptions<Distance> options = {}) {
  using Predicate = detail::Still<F, Distance>;
  return patience(Predicate{std::move(f), options.distance, options.min_dist, options.init_score}, width);
}

/// Calls f at most once in so many seconds; says whether it did. With leading = false not at the first call.
template <class F> struct Throttle {
  F f;
  double seconds;
  bool leading = true;
  double (*clock)() noexcept = detail::steady_seconds;
  double last = -std::numeric_limits<double>::infinity();

  template <class... T>
    requires std::invocable<F&, T...>
  bool operator()(T&&... argument) {
    const double now = clock();
    if (!leading && last == -std::numeric_limits<double>::infinity()) {
      last = now;
      return false;
    }
    if (now - last < seconds) return false;
    last = now;
    f(std::forward<T>(argument)...);
    return true;
  }
};
template <class F> Throttle<F> throttle(F f, double seconds, bool leading = true) {
  return {std::move(f), seconds, leading};
}

/// For train's `after`: a progress bar (progress.hpp) over the items of an epoch. It looks at the loss when it draws,
/// at most ten times a second, so that steps on a device are not waited for otherwise.
class ProgressBar {
 public:
  /// items: of each epoch, as loader.size() says; train is called once for each. `samples`: of an item, such as the
  /// batch size, for the rate that is shown. A null `out` shows nothing.
  ProgressBar(int64_t epochs, int64_t items, std::FILE* out, int64_t samples = 1)
      : items_(items), samples_(samples), progress_(epochs, items * samples, out) {}

  void operator()(const TrainStep& step) {
    if (step.item < items_ && !draw_()) return;
    const double loss = step.loss.item();
    progress_.update(epoch_, step.item * samples_, loss);
    if (step.item < items_) return;
    progress_.finish_epoch(epoch_++, loss, std::numeric_limits<double>::quiet_NaN());
  }

 private:
  struct Nothing {
    void operator()() const noexcept {}
  };
  int64_t items_, samples_;
  int64_t epoch_ = 0;
  Progress progress_;
  Throttle<Nothing> draw_{{}, 0.1};
};

}  // namespace rosin
