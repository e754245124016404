// Calls whose epilogues a target takes before sizes are known, and whose library then refuses them: kernels compute the
// same bits as for a target that takes none. Here also: which epilogues are asked for. Read first: kernel_testing.hpp,
// plan/gradient_epilogue.cpp.
#include <gtest/gtest.h>

#include <cstring>

#include <rosin/activation.hpp>
#include <rosin/conv.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {
namespace {

using plan::Activation;
using plan::CallDescription;
using plan::CallKind;
using plan::Epilogue;
using Arrays = std::vector<Array>;

/// A target that takes what `wanted` says of calls.
class Asked final : public KernelTarget {
 public:
  explicit Asked(std::function<bool(const CallDescription&)> wanted, bool sums_stores = false)
      : wanted_(std::move(wanted)), sums_stores_(sums_stores) {}
  bool takes(const CallDescription& call) const override { return wanted_(call); }
  bool sums_stores() const override { return sums_stores_; }

 private:
  std::function<bool(const CallDescription&)> wanted_;
  bool sums_stores_;
};

bool takes_all(const CallDescription&) { return true; }

/// The epilogues of the calls in what ran last, in order; those without one left out.
std::vector<Epilogue> epilogues_of(const InterpretedExecutor& executor) {
  std::vector<Epilogue> all;
  for (const Step& step : executor.structures.back()->steps) {
    if (step.kernel < 0 && !step.epilogue.none()) all.push_back(step.epilogue);
  }
  return all;
}

bool same_bits(const Array& a, const Array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  if (a.dtype() == Float64) {
    const auto x = a.to_vector<double>(), y = b.to_vector<double>();
    return std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
  }
  const auto x = a.to_vector<float>(), y = b.to_vector<float>();
  return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

/// The epilogues that f asks of a target that takes `wanted`; what it gives has the bits that it has without any.
template <class F, class W = bool (*)(const CallDescription&)>
std::vector<Epilogue> asked_by(F&& f, W wanted = takes_all, bool sums_stores = false) {
  const Asked target(wanted, sums_stores);
  InterpretedExecutor executor(target);
  const Arrays with = by_kernels(f, executor), without = by_kernels(f);
  EXPECT_EQ(with.size(), without.size());
  for (size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(same_bits(with[i], without[i])) << "result " << i;
  return epilogues_of(executor);
}

using Op = Array (*)(const Array&);

/// A step of two layers, with gradients by all that is trained; `act` between them.
struct TwoLayers {
  Array x, w, b, v, c;
  Op act;

  TwoLayers(int64_t in, int64_t hidden, int64_t out, int64_t batch, Op activation, DType type = Float32)
      : x(normal({in, batch}, 0, 1, type)), w(normal({hidden, in}, 0, 1, type)), b(normal({hidden}, 0, 1, type)),
        v(normal({out, hidden}, 0, 1, type)), c(normal({out}, 0, 1, type)), act(activation) {
    eval();
  }

  Arrays operator()() const {
    const auto loss = [&](const Array& w1, const Array& b1, const Array& w2, const Array& b2) {
      return sum(square(matmul(w2, act(matmul(w1, x) + b1)) + b2));
    };
    const auto [dw, db, dv, dc] = gradient(loss, w, b, v, c);
    return {dw, db, dv, dc};
  }
};

TEST(RefusedCalls, OfALayerWithReluAreAskedForBitsAndSums) {
  seed(1);
  const std::vector<Epilogue> all = asked_by(TwoLayers(5, 9, 3, 7, relu));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], (Epilogue{.bias = true, .activation = Activation::relu, .auxiliary = true}));
  EXPECT_EQ(all[1], Epilogue{.bias = true});
  EXPECT_EQ(all[2], Epilogue{.bias_gradient = true});  // the weights' gradient of the last layer, and its bias's
  EXPECT_EQ(all[3], (Epilogue{.activation = Activation::relu_gradient, .auxiliary = true, .bias_gradient = true}));
}

TEST(RefusedCalls, OfALayerWithGeluAreAskedForItsOperandAndSums) {
  seed(2);
  const std::vector<Epilogue> all = asked_by(TwoLayers(5, 9, 3, 7, gelu));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], (Epilogue{.bias = true, .activation = Activation::gelu, .auxiliary = true}));
  EXPECT_EQ(all[3], (Epilogue{.activation = Activation::gelu_gradient, .auxiliary = true, .bias_gradient = true}));
}

/// What kernels make, their walks add up; slopes behind products are these products' to sum up as before.
TEST(RefusedCalls, WhatKernelsMakeIsAddedUpByThem) {
  seed(8);
  const std::vector<Epilogue> all = asked_by(TwoLayers(5, 9, 3, 7, relu), takes_all, true);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2], (Epilogue{.activation = Activation::relu_gradient, .auxiliary = true, .bias_gradient = true}));
  const auto no_slopes = [](const CallDescription& call) { return !is_gradient(call.epilogue.activation); };
  for (const Epilogue& each : asked_by(TwoLayers(5, 9, 3, 7, gelu, BFloat16), no_slopes, true)) {
    EXPECT_FALSE(each.bias_gradient);
  }
}

TEST(RefusedCalls, HaveTheSameBitsForAllSizesAndTypes) {
  seed(3);
  constexpr int64_t sizes[][4] = {{1, 1, 1, 1}, {3, 130, 2, 5}, {4, 256, 1, 1}, {7, 8, 9, 40}, {1, 17, 4, 300}};
  for (const auto& [in, hidden, out, batch] : sizes) {
    for (const Op act : {Op(relu), Op(gelu), Op(tanh), Op(sigmoid)}) asked_by(TwoLayers(in, hidden, out, batch, act));
  }
  for (const DType type : {Float64, Float16, BFloat16}) {
    for (const Op act : {Op(relu), Op(gelu)}) asked_by(TwoLayers(5, 20, 3, 6, act, type));
  }
}

/// What a target does not take is computed as if nobody had asked, and the rest is still a call's.
TEST(RefusedCalls, AreAskedForLess) {
  seed(4);
  const TwoLayers step(5, 9, 3, 7, relu);
  const auto without_sums = asked_by(step, [](const CallDescription& call) { return !call.epilogue.bias_gradient; });
  ASSERT_EQ(without_sums.size(), 3u);
  EXPECT_EQ(without_sums[2], (Epilogue{.activation = Activation::relu_gradient, .auxiliary = true}));
  // The sums of what no product ends in are those of the operand of another.
  const auto without_bits = asked_by(step, [](const CallDescription& call) { return !call.epilogue.auxiliary; });
  ASSERT_EQ(without_bits.size(), 4u);
  EXPECT_EQ(without_bits[0], (Epilogue{.bias = true, .activation = Activation::relu}));
  EXPECT_EQ(without_bits[2], Epilogue{.bias_gradient = true});
  EXPECT_EQ(without_bits[3], Epilogue{.bias_gradient = true});
  // Bits that nobody would read are not stored.
  const auto without_slopes =
      asked_by(step, [](const CallDescription& call) { return !is_gradient(call.epilogue.activation); });
  EXPECT_EQ(without_slopes[0], (Epilogue{.bias = true, .activation = Activation::relu}));
}

TEST(RefusedCalls, KeepWhatAUserHolds) {
  seed(5);
  const Array x = randn({4, 6}), w = randn({5, 4}), b = randn({5});
  eval();
  const auto held = [&] {
    const Array before = matmul(w, x) + b;
    return Arrays{before, gelu(before)};
  };
  const std::vector<Epilogue> all = asked_by(held);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], (Epilogue{.bias = true, .activation = Activation::gelu, .auxiliary = true}));
  const auto alone = [&] {
    const Array before = matmul(w, x);
    return Arrays{gelu(before), before};
  };
  EXPECT_EQ(asked_by(alone).at(0), (Epilogue{.activation = Activation::gelu, .auxiliary = true}));
}

TEST(RefusedCalls, SumUpRowsOfWhatTheyReadAndNothingElse) {
  seed(9);
  const Array x = randn({4, 6}), w = randn({5, 4}), y = randn({6, 4});
  eval();
  const auto sums = [&](Dims dims, bool before) {
    return asked_by([&] {
      const Array g = tanh(matmul(w, x));
      if (before) return Arrays{g, sum(g, dims), matmul(g, y)};
      const Array product = matmul(g, y);
      return Arrays{g, product, sum(g, dims)};
    });
  };
  for (const bool before : {true, false}) {
    EXPECT_EQ(sums({1}, before).back(), Epilogue{.bias_gradient = true});
    EXPECT_FALSE(sums({0}, before).back().bias_gradient);
    EXPECT_FALSE(sums({0, 1}, before).back().bias_gradient);
  }
}

TEST(RefusedCalls, OfBatchesHaveBitsButNoSums) {
  seed(6);
  const Array x = randn({4, 6, 3}), w = randn({5, 4, 3}), b = randn({5}), v = randn({2, 5, 3});
  eval();
  const auto step = [&] {
    const auto loss = [&](const Array& w1, const Array& b1) {
      return sum(square(matmul(v, relu(matmul(w1, x) + b1))));
    };
    const auto [dw, db] = gradient(loss, w, b);
    return Arrays{dw, db};
  };
  const std::vector<Epilogue> all = asked_by(step);
  EXPECT_EQ(all.front(), (Epilogue{.bias = true, .activation = Activation::relu, .auxiliary = true}));
  EXPECT_EQ(all.back(), (Epilogue{.activation = Activation::relu_gradient, .auxiliary = true}));
}

TEST(RefusedCalls, OfConvolutionsAreAskedForSums) {
  seed(7);
  const Array x = randn({7, 6, 3, 4}), w = randn({3, 3, 3, 5}), b = randn({1, 1, 5, 1});
  eval();
  const auto step = [&] {
    const auto loss = [&](const Array& w1, const Array& b1) { return sum(square(conv(x, w1) + b1)); };
    const auto [dw, db] = gradient(loss, w, b);
    return Arrays{dw, db};
  };
  const auto only_sums = [](const CallDescription& call) {
    return call.kind == CallKind::convolution_weights || !call.epilogue.bias_gradient;
  };
  const std::vector<Epilogue> all = asked_by(step, only_sums);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], Epilogue{.bias = true});
  EXPECT_EQ(all[1], Epilogue{.bias_gradient = true});
}

/// The gradient of a gradient reads the bits once more.
TEST(RefusedCalls, HaveSecondGradients) {
  seed(8);
  const Array x = randn({4, 6}), w = randn({5, 4}), b = randn({5}), v = randn({2, 5});
  eval();
  for (const Op act : {Op(relu), Op(gelu)}) {
    asked_by([&] {
      const auto slope = [&](const Array& w1) {
        const Array g = gradient([&](const Array& w2) { return sum(square(matmul(v, act(matmul(w2, x) + b)))); }, w1);
        return sum(square(g));
      };
      return Arrays{gradient(slope, w)};
    });
  }
}

}  // namespace
}  // namespace rosin::kernels
