// The weights of a convnet after some steps have the same bits however its values are looked at on the way: not at all,
// by handles and prints inside the model, or with every op evaluated at its call. Read first: run_itself.hpp.
#include <bit>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <rosin/rosin.hpp>

#include "run_itself.hpp"

namespace rosin {
namespace {

struct Net {
  Conv first{{3, 3}, 2, 6, relu};
  BatchNorm norm{6};
  Conv second{{3, 3}, 6, 9, tanh};
  Dense out{9, 4};

  /// `look` sees each value on the way.
  template <class Look> Array run(const Array& x, Look&& look) const {
    const Array edges = look(maxpool(look(norm(look(first(x)))), 2));
    const Array parts = look(second(look(meanpool(edges, {2, 1}))));
    return out(look(flatten(look(global_meanpool(parts)))));
  }
};

/// All trained numbers after three steps, as bits.
template <class Look> std::vector<uint32_t> trained(Look&& look) {
  seed(5);
  Net net;
  const Array x = rand({21, 16, 2, 5}), y = rand({4, 5});
  eval();
  State state = setup(Adam{.eta = 1e-2}, net);
  for (int step = 0; step < 3; ++step) {
    const auto loss = [&](const Net& n) { return logitcrossentropy(n.run(x, look), y) + mean(square(n.first.weight)); };
    auto [value, slope] = withgradient(loss, net);
    update(state, net, slope);
  }
  std::vector<uint32_t> bits;
  for (const Array& weights : {net.first.weight, net.first.bias, net.second.weight, net.second.bias, net.out.weight}) {
    for (const float element : weights.to_vector()) bits.push_back(std::bit_cast<uint32_t>(element));
  }
  return bits;
}

Array unseen(const Array& x) { return x; }

std::string text_of(const std::vector<uint32_t>& bits) {
  std::ostringstream text;
  text << "bits" << std::hex;
  for (const uint32_t word : bits) text << ' ' << word;
  return text.str() + "\n";
}

TEST(DISABLED_Inside, AConvnetIsTrained) { std::cout << text_of(trained(unseen)) << std::flush; }

TEST(ConvnetBits, HandlesOnValuesChangeNone) {
  std::vector<Array> held;
  EXPECT_EQ(trained([&](const Array& x) { return held.push_back(x), x; }), trained(unseen));
}

TEST(ConvnetBits, EvaluationAndPrintingOnTheWayChangeNone) {
  const std::vector<uint32_t> expected = trained(unseen);
  for (int which = 0; which < 7; ++which) {
    int seen = 0;
    std::ostringstream said;
    const auto look = [&](const Array& x) {
      if (seen++ % 7 == which) said << x;
      return x;
    };
    EXPECT_EQ(trained(look), expected) << "the value number " << which << " is printed";
    EXPECT_FALSE(said.str().empty());
  }
}

TEST(ConvnetBits, EvaluationOfEachOpAtItsCallChangesNone) {
  const Outcome eager = run_itself("AConvnetIsTrained", "ROSIN_EAGER=1");
  expect_success(eager);
  EXPECT_NE(eager.text.find(text_of(trained(unseen))), std::string::npos);
}

}  // namespace
}  // namespace rosin
