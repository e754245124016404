// What each step makes anew from the program and sizes (ranges, tables of layers, values in braces) is sent to a device
// once, and is what the program says. Read first: graph/sent_constants.hpp.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <rosin/chain.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/fft.hpp>
#include <rosin/grad.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/pool_layers.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rules.hpp>
#include <rosin/upsample.hpp>

#include "null_counts.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

using Values = std::vector<double>;

TEST(SentConstants, AreWhatTheProgramSays) {
  const Device where = some_device();
  const Array x = ones({8}) | where;
  for (int round = 0; round < 2; ++round) {  // more of them than are remembered
    for (int k = 0; k < 40; ++k) {
      Values wanted;
      for (int i = 0; i < 8; ++i) wanted.push_back(1 + k + i);
      EXPECT_EQ((x + arange(k, k + 8)).to_vector<double>(), wanted);
      EXPECT_EQ((x + (cast(arange(k, k + 8), Float32) | where)).to_vector<double>(), wanted);
      const auto d = static_cast<float>(k);
      EXPECT_EQ((x + Array({d, d + 1, d + 2, d + 3, d + 4, d + 5, d + 6, d + 7}, {8})).to_vector<double>(), wanted);
    }
  }
}

TEST(SentConstants, OfOtherTypesAreOthers) {
  const Device where = some_device();
  const Array zeros = Array({0, 0}, {2}), wide = cast(Array({0, 0, 0, 0}, {4}), Float32);
  eval();
  EXPECT_EQ((zeros | where).dtype(), Int32);
  EXPECT_EQ((wide | where).dtype(), Float32);
  EXPECT_EQ((Array({0.f, 0.f}, {2}) | where).dtype(), Float32);
  EXPECT_EQ((Array({0, 0}, {1, 2}) | where).shape(), (Shape{1, 2}));
}

TEST(SentConstants, NeverTakeAResult) {
  const Device where = some_device();
  for (int i = 0; i < 3; ++i) {
    Array numbers = arange(6) | where;
    numbers = numbers * 2 + 1;
    EXPECT_EQ(numbers.to_vector<double>(), (Values{1, 3, 5, 7, 9, 11}));
  }
}

template <class M, class Loss> void expect_nothing_sent(const char* what, const M& start, const Loss& loss) {
  SCOPED_TRACE(what);
  M model = start | get_device("null", 0);
  State state = setup(Adam{}, model);
  const auto step = [&] { update(state, model, gradient(loss, model)); };
  for (int i = 0; i < 5; ++i) step();
  const uint64_t sent = null_count("copy_in");
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(null_count("copy_in"), sent);
}

TEST(SentConstants, SteadyStepsSendNothing) {
  if (!functional("null")) GTEST_SKIP() << why_not("null");
  const Device where = get_device("null", 0);
  const Array image = randn({12, 12, 3, 2}) | where, x = randn({6, 4}) | where;
  const Array labels = Array(std::vector<int32_t>(4, 1), {4}) | where;
  const auto of_image = [&](const auto& m) { return mean(square(m(image))); };
  expect_nothing_sent("labels", Chain(Dense(6, 5)), [&](const auto& m) { return labelcrossentropy(m(x), labels); });
  expect_nothing_sent("range", Chain(Dense(6, 5)), [&](const auto& m) {
    return sum(m(x) * reshape(arange(4), {1, 4}));
  });
  expect_nothing_sent("bilinear", Chain(Conv({3, 3}, 3, 4), Upsample(2, UpsampleMode::bilinear)), of_image);
  expect_nothing_sent("adaptive", Chain(Conv({3, 3}, 3, 4), AdaptiveMeanPool({3, 4})), of_image);
  expect_nothing_sent("padded", Chain(Conv({3, 3}, 3, 4), MeanPool({3, 3}, {.pad = 1, .stride = 2})), of_image);
}

}  // namespace
}  // namespace rosin
