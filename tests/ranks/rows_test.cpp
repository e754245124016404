// The distributed example of the source documents, as each of several ranks runs it: rows 46 and 48 of their table,
// which tests/seeds has as one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <rosin/rosin.hpp>

#include "ranks.hpp"

namespace rosin::distributed {
namespace {

/// Another one on each rank, as random numbers give it, made the root's.
Chain model_of_all(const Backend& b) {
  seed(static_cast<uint64_t>(20 + local_rank(b)));
  return synchronize(b, FluxDistributedModel(Chain(Dense(1, 256, tanh), Dense(256, 1))));
}

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + by.size())) {
    text.replace(at, old.size(), by);
  }
  return text;
}

TEST_F(Ranks, Row46TheStateTreeMirrorsTheModelOnEveryRank) {
  const Chain model = model_of_all(b);
  const State state = setup(Optimizer(b, Adam{0.001}), model);
  const std::string text = to_string(state), rule = "Adam(0.001, (0.9, 0.999), 1.0e-8)";
  const std::string shown = "Leaf(Optimizer(" + kind_of(b) + ", " + rule + ")", leaf = shown + ", ",
                    tall = "Float32[0.0; 0.0; … ; 0.0; 0.0;;], ";
  EXPECT_TRUE(text.starts_with("(layers = ((weight = " + leaf + "(" + tall + tall + "(0.9, 0.999))), bias = " + leaf))
      << text;
  EXPECT_TRUE(text.ends_with(", bias = " + leaf + "(Float32[0.0], Float32[0.0], (0.9, 0.999))), σ = ())),)")) << text;
  EXPECT_EQ(text, replaced(to_string(setup(Adam{0.001}, model)), "Leaf(" + rule, shown));
  EXPECT_EQ(to_string(synchronize(b, state)), text);
  check_synchronized(b, state);
}

/// The losses of a hundred epochs, as the example prints them, on this rank's data.
struct Epochs {
  Chain model;
  std::vector<double> losses;
  std::string printed;
};

template <class R> Epochs epochs(const R& rule, Chain model, const Array& x, const Array& y) {
  Epochs run{std::move(model), {}, {}};
  State st_opt = setup(rule, run.model);
  for (int epoch = 1; epoch <= 100; ++epoch) {
    const auto [l, grad] = withgradient([&](const Chain& m) { return mean(square(m(x) - y)); }, run.model);
    run.losses.push_back(l.item());
    run.printed +=
        "Epoch " + std::to_string(epoch) + ": Loss " + number_text(static_cast<float>(run.losses.back())) + "\n";
    auto [next_state, next_model] = updated(st_opt, run.model, grad);
    st_opt = std::move(next_state);
    run.model = std::move(next_model);
  }
  return run;
}

Array as_array(const std::vector<double>& x) { return {std::span<const double>(x), {std::ssize(x)}}; }

TEST_F(Ranks, Row48AHundredEpochsLowerTheLossAlikeOnAllRanks) {
  Rng rng(1);
  const Array x = rand(rng, {1, 16}), y = pow(x, 3);
  const Chain model = model_of_all(b);
  const Epochs alone = epochs(Adam{0.001}, model, x, y), equal = epochs(Optimizer(b, Adam{0.001}), model, x, y);
  EXPECT_EQ(std::count(equal.printed.begin(), equal.printed.end(), '\n'), 100);
  EXPECT_TRUE(equal.printed.starts_with("Epoch 1: Loss ")) << equal.printed;
  EXPECT_NE(equal.printed.find("\nEpoch 100: Loss 0."), std::string::npos) << equal.printed;
  EXPECT_TRUE(std::isfinite(equal.losses.back()));
  EXPECT_LT(equal.losses.back(), equal.losses.front());
  EXPECT_TRUE(same_everywhere(b, as_array(equal.losses)));
  check_synchronized(b, equal.model);

  const auto [own_x, own_y] = DataContainer(b, std::tuple{x, y});
  const Epochs shared = epochs(Optimizer(b, Adam{0.001}), model, own_x, own_y);
  const std::vector<double> average = values(allreduce(b, as_array(shared.losses), avg));
  for (size_t i = 0; i < 100; ++i) EXPECT_NEAR(average[i], alone.losses[i], 1e-4 * alone.losses[0]) << i;
  EXPECT_LT(average.back(), average.front());
  check_synchronized(b, shared.model);
}

}  // namespace
}  // namespace rosin::distributed
