// Recurrent layers whose steps are one op against the same layers step by step, in Float32; any number of threads; and
// where the op is not taken.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/autocast.hpp>
#include <rosin/grad.hpp>
#include <rosin/gradient_rules.hpp>
#include <rosin/optim.hpp>
#include <rosin/recurrent.hpp>
#include <rosin/stats.hpp>

#include "../tests/layer_testing.hpp"
#include "ops/sequence.hpp"

namespace rosin {
namespace {

/// A number that depends on each output and on the last state, each element by another factor.
Array weighed(const Array& y) {
  return sum(y * reshape(cos(arange(0.0, static_cast<double>(y.count()), 1.0, Float32) * 1.7), y.shape()));
}
Array weighed_state(const Array& state) { return weighed(state); }
Array weighed_state(const LSTMState& state) { return weighed(state.hidden) + 0.5 * weighed(state.cell); }

Array state_like(const Array& drawn, const Array*) { return drawn; }
LSTMState state_like(const Array& drawn, const LSTMState*) { return {drawn, drawn * -0.5}; }

/// All that a layer gives: outputs, then the gradients by input, weights, bias and first state.
template <class L> Arrays all_of(const L& layer, const Array& x, const Array& drawn, const SequenceOptions& options) {
  const auto loss = [&](const L& l, const Array& in, const Array& first) {
    const auto [out, state] = l(in, state_like(first, static_cast<const typename L::State*>(nullptr)), options);
    return weighed(out) + weighed_state(state);
  };
  auto [by_layer, by_x, by_first] = withgradient(loss, layer, x, drawn).gradient;
  Arrays all{layer(x, options), by_x, by_first};
  std::vector<detail::ArrayPlace<Array*>> places;
  detail::list_arrays(ModelEdit(by_layer), places);
  for (const auto& place : places) all.push_back(*place.array);
  eval();
  return all;
}

template <class L> void compare(const L& layer, const Array& x, const SequenceOptions& options) {
  const int64_t out = layer.cell.recurrent_weight.size(1);
  const Array drawn = x.rank() == 3 ? randn({out, x.size(2)}) : randn({out});
  const Arrays got = all_of(layer, x, drawn, options);
  const StepByStep steps;
  const Arrays want = all_of(layer, x, drawn, options);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (want[i].is_nothing()) continue;
    ASSERT_EQ(got[i].shape(), want[i].shape()) << i;
    // Both add up in an order of their own: of sums over all columns and steps, some ulp of the largest.
    const double largest = want[i].count() == 0 ? 0 : maximum(abs(want[i])).item();
    EXPECT_TRUE(allclose(got[i], want[i], {.rtol = 1e-5, .atol = 2e-6 * (1 + largest)}))
        << to_string(layer) << " array " << i;
  }
}

template <class L> void compare_layer(int64_t in, int64_t out, int64_t steps, int64_t batch) {
  SCOPED_TRACE(std::to_string(in) + " => " + std::to_string(out) + ", " + std::to_string(steps) + " steps, batch " +
               std::to_string(batch));
  const L layer(in, out);
  const Array x = randn({in, steps, batch});
  compare(layer, x, {});
  compare(layer, x, {.reverse = true});
  if (batch == 0) return;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch; ++i) lengths.push_back(i % (steps + 1));
  for (const bool reverse : {false, true}) compare(layer, x, {.lengths = Array(lengths, {batch}), .reverse = reverse});
}

template <class L> void compare_sizes() {
  compare_layer<L>(2, 1, 4, 1);
  compare_layer<L>(5, 3, 1, 2);
  compare_layer<L>(3, 17, 6, 13);
  compare_layer<L>(7, 33, 5, 19);
  compare_layer<L>(4, 130, 3, 9);
  compare_layer<L>(2, 3, 4, 0);
}

TEST(Sequence, GivesWhatSingleStepsGive) {
  seed(3);
  compare_sizes<RNN>();
  compare_sizes<LSTM>();
  compare_sizes<GRU>();
  compare_sizes<GRUv3>();
  compare(RNN(3, 5, relu), randn({3, 4, 2}), {});
  compare(LSTM(3, 5, RecurrentOptions{.bias = false}), randn({3, 4, 2}), {});
}

TEST(Sequence, TakesOneSequenceAndInputsOfAnyStrides) {
  seed(4);
  compare(LSTM(3, 5), randn({3, 6}), {});
  compare(GRU(3, 5), randn({3, 6}), {.reverse = true});
  const Array wide = randn({2, 12, 6});
  compare(LSTM(6, 5), permute(wide, {2, 1, 0}), {});
  compare(GRUv3(6, 5), slice(permute(wide, {2, 1, 0}), 1, 1, 12, 3), {});
}

/// Whether one call takes all steps: what is recorded step by step has a product for each.
int64_t steps_run(const std::function<void()>& work) {
  eval();
  work();
  eval();
  const int64_t before = stats().calls;
  work();
  eval();
  return stats().calls - before;
}

TEST(Sequence, IsOneCallForAllSteps) {
  const LSTM layer(4, 8);
  const Array x = randn({4, 30, 5});
  const auto work = [&] {
    Array y = layer(x);
    eval();
  };
  EXPECT_LT(steps_run(work), 8);
  const StepByStep steps;
  EXPECT_GE(steps_run(work), 30);
}

TEST(Sequence, ChecksOneStateForAllSequences) {
  const GRU layer(2, 3);
  const Array x = randn({2, 4, 5}), first = randn({3});
  const auto one = layer(x, first), each = layer(x, expand(reshape(first, {3, 1}), {3, 5}));
  EXPECT_TRUE(allclose(one.out, each.out));
  const auto by_first = [&](const Array& state) { return weighed(layer(x, state).out); };
  const Array got = gradient(by_first, first), column = gradient(by_first, reshape(first, {3, 1}));
  EXPECT_EQ(got.shape(), (Shape{3}));
  EXPECT_EQ(column.shape(), (Shape{3, 1}));
  EXPECT_TRUE(allclose(got, reshape(column, {3})));
}

TEST(Sequence, HasGradientsByAnyPart) {
  const LSTM layer(2, 3);
  const Array x = randn({2, 4, 5});
  const auto by = [&](auto part) {
    const auto loss = [&](const LSTM& l) { return weighed(part(l(x, l.cell.initial_state()))); };
    const Array got = gradient(loss, layer).cell.recurrent_weight;
    const StepByStep steps;
    EXPECT_TRUE(allclose(got, gradient(loss, layer).cell.recurrent_weight, {.rtol = 1e-4, .atol = 1e-5}));
  };
  by([](const auto& result) { return result.out; });
  by([](const auto& result) { return result.state.hidden; });
  by([](const auto& result) { return result.state.cell; });
  by([](const auto& result) { return slice(result.out, 1, 1, 3); });
  const auto by_input = gradient([&](const Array& in) { return weighed(layer(in)); }, x);
  EXPECT_EQ(by_input.shape(), x.shape());
}

/// d/dx of the squared norm of d loss / d weights: a gradient of a gradient.
template <class L> void check_second(const L& layer, const Array& x) {
  const auto norm = [&](const auto& l, const Array& in) {
    const auto loss = [&](const auto& m) { return sum(square(m(in))); };
    const auto g = gradient(loss, l);
    return sum(square(g.cell.recurrent_weight)) + sum(square(g.cell.input_weight));
  };
  const auto wide = f64(layer);
  const Array in = cast(x, Float64);
  eval();
  const Array exact = gradient([&](const Array& a) { return norm(wide, a); }, in);
  layer_testing::compare_differences(in, exact, to_string(layer), [&](const Array& a) { return norm(wide, a).item(); });
  const Array got = gradient([&](const Array& a) { return norm(layer, a); }, x);
  EXPECT_TRUE(allclose(cast(got, Float64), exact, {.rtol = 1e-3, .atol = 1e-4})) << to_string(layer);
}

TEST(Sequence, HasGradientsOfGradients) {
  seed(5);
  const Array x = randn({2, 3, 2});
  check_second(RNN(2, 3), x);
  check_second(LSTM(2, 3), x);
  check_second(GRU(2, 3), x);
  check_second(GRUv3(2, 3), x);
}

TEST(Sequence, WorksInCheckpoints) {
  const LSTM layer(2, 3);
  const Array x = randn({2, 4, 5});
  const auto plain = gradient([&](const LSTM& l) { return weighed(l(x)); }, layer);
  const auto again =
      gradient([&](const LSTM& l) { return weighed(checkpoint([&](const Array& in) { return l(in); })(x)); }, layer);
  EXPECT_TRUE(allclose(plain.cell.recurrent_weight, again.cell.recurrent_weight));
}

template <class L> std::vector<float> trained(int threads) {
  set_num_threads(threads);
  Rng rng(11);
  seed(11);
  L layer(20, 37);
  auto state = setup(Descent{.eta = 0.1}, layer);
  for (int i = 0; i < 3; ++i) {
    const Array x = normal(rng, {20, 9, 45}, 0, 1);
    const auto g = gradient([&](const L& l) { return mean(square(l(x))); }, layer);
    update(state, layer, g);
  }
  const std::vector<float> weights = layer.cell.recurrent_weight.to_vector();
  set_num_threads(0);
  return weights;
}

template <class L> void check_threads() {
  const std::vector<float> one = trained<L>(1);
  for (const int threads : {2, 3, 7}) {
    const std::vector<float> many = trained<L>(threads);
    ASSERT_EQ(one.size(), many.size());
    EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0) << threads;
  }
}

TEST(Sequence, GivesTheSameBitsForAnyNumberOfThreads) {
  check_threads<RNN>();
  check_threads<LSTM>();
  check_threads<GRU>();
  check_threads<GRUv3>();
}

TEST(Sequence, StepsBeyondTheLengthAreNotRead) {
  const GRUv3 layer(2, 3);
  const Array x = randn({2, 4, 2}), lengths({2, 4}, {2});
  const Array none = reshape(Array({0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 0.0f, 0.0f}, {8}), {1, 4, 2});
  const Array broken = where(none > 0, x / 0.0, x);
  const auto loss = [&](const GRUv3& l, const Array& in) { return weighed(l(in, {.lengths = lengths})); };
  const auto [clean, by_clean] = withgradient(loss, layer, x).gradient;
  const Array got = gradient([&](const GRUv3& l) { return loss(l, broken); }, layer).cell.recurrent_weight;
  EXPECT_TRUE(allclose(got, clean.cell.recurrent_weight));
}

}  // namespace
}  // namespace rosin
