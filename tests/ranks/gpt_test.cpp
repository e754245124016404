// A character model of the GPT kind: ranks with a share of each batch train as one rank with all, to the same bits in
// every run.
#include <gtest/gtest.h>

#include <string_view>
#include <tuple>
#include <vector>

#include <rosin/rosin.hpp>

#include "../../examples/models/gpt2.hpp"
#include "ranks.hpp"

namespace rosin::distributed {
namespace {

constexpr std::string_view text =
    "In the beginning there was a number, and the number was with its sign; all other numbers were made of it.";
constexpr int64_t letters = 128, tokens = 12, most_pieces = 8;

using models::GPT2LMHead;

GPT2LMHead fresh_gpt() {
  seed(9);
  return f64(
      models::gpt2({.vocabulary = letters, .positions = tokens, .width = 16, .layers = 2, .heads = 4, .dropout = 0}));
}

/// Pieces of the text and what follows each of their letters.
std::tuple<Array, Array> pieces(int64_t batch) {
  std::vector<int64_t> inputs, targets;
  for (int64_t i = 0; i < 2 * batch; ++i) {
    for (int64_t k = 0; k < tokens; ++k) {
      inputs.push_back(text[static_cast<size_t>(5 * i + k)]);
      targets.push_back(text[static_cast<size_t>(5 * i + k + 1)]);
    }
  }
  const Shape shape{tokens, 2 * batch};
  return {Array(std::span<const int64_t>(inputs), shape), Array(std::span<const int64_t>(targets), shape)};
}

struct Trained {
  GPT2LMHead model = fresh_gpt();
  std::vector<Array> losses;
};

template <class R> Trained trained(const R& rule, int64_t batch, const BatchPart& part) {
  Trained run;
  State state = setup(rule, run.model);
  DataLoader loader(pieces(batch), {.batchsize = batch, .shuffle = true, .rng = Rng{3}, .part = part});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto [x, y] : loader) {
      const Array wanted = cast(onehotbatch(y, letters), Float64);
      const auto [loss, g] =
          withgradient([&](const GPT2LMHead& m) { return logitcrossentropy(m(x), wanted); }, run.model);
      update(state, run.model, g);
      run.losses.push_back(loss);
    }
  }
  return run;
}

TEST_F(Ranks, ACharacterModelTrainsAsOneWithAll) {
  const AdamW rule{.eta = 1e-2, .lambda = 1e-2};
  const int64_t batch = most_pieces / n * n;  // the same number for each rank
  const Optimizer whole_state(b, rule), shared_state(b, rule, {.shard = true});
  const Trained alone = trained(rule, batch, {}), shared = trained(whole_state, batch, batch_part(b)),
                again = trained(whole_state, batch, batch_part(b)),
                sharded = trained(shared_state, batch, batch_part(b)),
                sharded_again = trained(shared_state, batch, batch_part(b));
  for (size_t i = 0; i < alone.losses.size(); ++i) {
    EXPECT_NEAR(allreduce(b, shared.losses[i], avg).item(), alone.losses[i].item(), 1e-6) << i;
  }
  EXPECT_LT(alone.losses.back().item(), 0.9 * alone.losses.front().item());
  expect_near(shared.model, alone.model, 1e-6);
  expect_near(sharded.model, alone.model, 1e-6);
  expect_near(again.model, shared.model, 0);
  expect_near(sharded_again.model, sharded.model, 0);
  for (const NamedArray& x : rosin::state(shared.model)) EXPECT_TRUE(same_everywhere(b, x.value)) << x.name;
}

}  // namespace
}  // namespace rosin::distributed
