// Kernels behind convolutions whose images stand in CWHN, as libraries of devices wish them: the domain of a kernel
// then walks through the channels first, and what it adds up, keeps and stores must not change with that. Read first:
// kernel_testing.hpp.
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/resample.hpp>

#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {
namespace {

/// A device whose library wishes images in CWHN, and computes nothing in the end.
class ImageTarget final : public KernelTarget {
 public:
  bool pools = true;  // whether it is asked for pools as well

  plan::Order order(const plan::CallDescription& call, size_t i) const override {
    const plan::CallRole role = call.arrays[i].role;
    const bool weights = role == plan::CallRole::weights || role == plan::CallRole::weights_gradient;
    const bool pool = call.kind == plan::CallKind::pooling || call.kind == plan::CallKind::pooling_data;
    if (call.kind == plan::CallKind::matmul || weights || (pool && !pools)) return KernelTarget::order(call, i);
    return plan::Order::channels_first;
  }
};

struct Images {
  Array x, w, bias;
  Array made() const { return conv(x, w) + reshape(bias, {1, 1, -1, 1}); }
};

Images images() {
  seed(4);
  Images all{randn({7, 6, 2, 3}), randn({2, 3, 2, 5}), randn({5})};
  eval();
  return all;
}

using Make = std::function<Array(const Images&)>;

void expect_same(const Make& make) {
  const Images all = images();
  const Array here = make(all);
  eval();
  for (const bool pools : {true, false}) {
    ImageTarget target;
    target.pools = pools;
    InterpretedExecutor executor(target);
    const Array there = by_kernels([&] { return make(all); }, executor);
    ASSERT_EQ(there.shape(), here.shape());
    EXPECT_TRUE(allclose(there, here, {.rtol = 1e-5, .atol = 1e-5})) << pools;
  }
}

TEST(ChannelsFirst, SumsKeepTheDimsThatTheyKeep) {
  for (const std::vector<int>& dims :
       std::vector<std::vector<int>>{{0}, {1}, {2}, {3}, {0, 1}, {0, 3}, {2, 3}, {0, 1, 3}, {0, 1, 2}, {0, 1, 2, 3}}) {
    SCOPED_TRACE(testing::PrintToString(dims));
    expect_same([&](const Images& i) { return sum(square(i.made()), Dims(std::span<const int>(dims))); });
  }
}

TEST(ChannelsFirst, RowsAreThoseOfTheirDim) {
  for (const int dim : {0, 2, 3}) {
    SCOPED_TRACE(dim);
    expect_same([&](const Images& i) { return softmax(i.made(), dim); });
  }
}

TEST(ChannelsFirst, ValuesGoOnInAnyOrder) {
  expect_same([](const Images& i) { return relu(i.made()); });
  expect_same([](const Images& i) { return reshape(relu(i.made()), {-1, 3}); });
  expect_same([](const Images& i) { return maxpool(relu(i.made()), 2); });
  expect_same([](const Images& i) { return meanpool(relu(i.made()), 2, 1, 2); });
  expect_same([](const Images& i) { return maxpool(flip(relu(i.made()), 0), 3, 1, 1); });
  expect_same([](const Images& i) { return conv(relu(i.made()), ones({2, 2, 5, 4})); });
}

TEST(ChannelsFirst, PoolsReadAndWriteImagesAsTheyAre) {
  const Images all = images();
  ImageTarget target;
  target.pools = false;
  InterpretedExecutor executor(target);
  by_kernels([&] { return conv(meanpool(maxpool(relu(all.made()), 2), 2), ones({1, 1, 5, 4})); }, executor);
  int pools = 0;
  for (const Value& value : executor.structures.back()->graph.values) {
    if (!value.op || value.op->kind != Kind::window) continue;
    ++pools;
    EXPECT_EQ(value.channels_first, value.op->window == Window::maximum);  // the other one leaves images of 1 x 1
  }
  EXPECT_EQ(pools, 2);
}

TEST(ChannelsFirst, ResizedImagesStayAsTheyAre) {
  const InterpolateOptions options{.size = {9, 4}};
  expect_same([&](const Images& i) { return interpolate(relu(i.made()), options); });
  expect_same([&](const Images& i) { return conv(interpolate(i.made(), options), ones({2, 2, 5, 4})); });
  const Images all = images();
  const ImageTarget target;
  InterpretedExecutor executor(target);
  by_kernels([&] { return conv(interpolate(relu(all.made()), options), ones({1, 1, 5, 4})); }, executor);
  int resized = 0;
  for (const Value& value : executor.structures.back()->graph.values) {
    if (!value.op || value.op->name != "weighed_sums") continue;
    ++resized;
    EXPECT_TRUE(value.channels_first);
  }
  EXPECT_EQ(resized, 1);
}

// Also where the gradient of the pool reads its result.
TEST(ChannelsFirst, PoolsWhoseImagesAreFlattenedWriteThemInLogicalOrder) {
  const Images all = images();
  ImageTarget target;
  target.pools = false;
  InterpretedExecutor executor(target);
  const auto loss = [&](const Array& w) {
    return sum(square(matmul(ones({1, 30}), reshape(maxpool(relu(conv(all.x, w)), 2), {-1, 3}))));
  };
  const Array here = gradient(loss, all.w);
  eval();
  const Array there = by_kernels([&] { return gradient(loss, all.w); }, executor);
  EXPECT_TRUE(allclose(there, here, {.rtol = 1e-4, .atol = 1e-3}))
      << maximum(abs(there - here)).item() << " of " << maximum(abs(here)).item();
  const plan::Structure& structure = *executor.structures.back();
  for (const Value& value : structure.graph.values) {
    const bool pools = value.op && value.op->kind == Kind::window && value.op->window == Window::maximum;
    EXPECT_FALSE(pools && value.channels_first);
  }
  for (const int32_t copy : structure.contiguous) EXPECT_LT(copy, 0);
}

/// Of a loss by the images, the weights or the bias.
Make gradient_by(Array Images::*what) {
  return [what](const Images& all) {
    const auto loss = [&](const Array& by) {
      Images now = all;
      now.*what = by;
      return sum(square(maxpool(relu(now.made()), 2)));
    };
    return gradient(loss, all.*what);
  };
}

TEST(ChannelsFirst, GradientsAreThose) {
  for (Array Images::*const what : {&Images::x, &Images::w, &Images::bias}) expect_same(gradient_by(what));
}

}  // namespace
}  // namespace rosin::kernels
