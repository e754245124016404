// Loss scales: see rosin/loss_scale.hpp.
#include "optim/loss_scale.hpp"

#include <cmath>
#include <string>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/show.hpp>

#include "graph/context.hpp"
#include "graph/transfer.hpp"
#include "optim/tree.hpp"

namespace rosin {
namespace {

void check(const LossScaleOptions& options) {
  const auto refuse = [](const char* rule, double got, const char* cure) {
    throw Error(ErrorKind::argument,
                std::string("setup: LossScale: ") + rule + "; got " + number_text(got) + "; " + cure);
  };
  const auto is_good = [](double x, double least) { return std::isfinite(x) && x >= least; };
  if (!(options.init > 0) || !std::isfinite(options.init)) {
    refuse("init, the first scale, must be positive", options.init, "the default is 65536");
  }
  if (!is_good(options.growth, 1)) refuse("growth must be at least 1", options.growth, "the default is 2");
  if (!(options.backoff > 0 && options.backoff <= 1)) {
    refuse("backoff must be in (0, 1]", options.backoff, "the default is 0.5");
  }
  if (options.interval < 1) {
    refuse("interval must be a step at least", static_cast<double>(options.interval), "the default is 2000");
  }
}

}  // namespace

void detail::add_loss_scale(State& state, const LossScaleOptions& options, bool keeps_wide) {
  check(options);
  StateTree& tree = *state.tree();
  tree.loss_scale.options = options;
  tree.loss_scale.keeps_wide = keeps_wide;
  LossScaleArrays& arrays = tree.loss_scale.arrays;
  const DeviceScope scope(tree.leaves.empty() ? uint8_t{0} : tree.leaves.front().device);
  arrays = {full(Shape{}, options.init, Float32), full(Shape{}, 0, Int32), full(Shape{}, 0, Int32)};
  eval();
}

Array StateLossScale::unscaled(const Array& g) const {
  const Array wide = g.dtype() == Float16 || g.dtype() == BFloat16 ? cast(g, Float32) : g;
  const Array divisor = cast(transferred(arrays.scale, g.node()->device), part_type(wide.dtype()));
  const Array result = wide / divisor;
  return keeps_wide || result.dtype() == g.dtype() ? result : cast(result, g.dtype());
}

LossScaleArrays StateLossScale::next(const Array& ok) const {
  const Array holds = transferred(ok, arrays.scale.node()->device), good = arrays.good + 1;
  const Array grows = ge(good, options.interval), grown = arrays.scale * options.growth;
  const Array kept = where(logical_and(grows, is_finite(grown)), grown, arrays.scale);
  return {where(holds, kept, arrays.scale * options.backoff), where(logical_and(holds, logical_not(grows)), good, 0),
          arrays.skipped + cast(logical_not(holds), Int32)};
}

Array scaled_loss(const State& state, const Array& loss) {
  const StateTree* const tree = state.tree();
  if (!tree || !tree->loss_scale || loss.is_nothing()) return loss;
  const bool is_half = loss.dtype() == Float16 || loss.dtype() == BFloat16;
  const Array wide = is_half ? cast(loss, Float32) : loss;
  return wide * cast(transferred(tree->loss_scale.arrays.scale, loss.node()->device), wide.dtype());
}

LossScaleStatus loss_scale(const State& state) {
  const StateTree* const tree = state.tree();
  if (!tree || !tree->loss_scale) {
    throw Error(ErrorKind::argument,
                "loss_scale: the state must have one; got a state without; write setup(LossScale{rule}, model)");
  }
  const LossScaleArrays& arrays = tree->loss_scale.arrays;
  return {arrays.scale.item<double>(), arrays.good.item<int64_t>(), arrays.skipped.item<int64_t>()};
}

}  // namespace rosin
