// Attention that cuDNN computes, on the pretended GPUs of tests/fake_cuda: which is taken, and what comes out, beside
// the CPU. Read first: attention_call_testing.hpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <rosin/attention.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/optim.hpp>

#include "attention_call_testing.hpp"
#include "cuda_testing.hpp"

namespace rosin {
namespace {

constexpr const char *newest = "devices=1,cudnn=92800", *older = "devices=1,cudnn=91900";

/// Calls of the library; the result is that of Float32 on the CPU, up to the digits of the type.
int64_t calls(const Form& f, const Arrays& wide, DType type, double close) {
  Arrays there;
  for (const Array& x : wide) there.push_back(cast(x, type) | cuda());
  eval();
  const Stats before = stats();
  const Array got = f(there);
  eval(got);
  const Stats after = stats();
  Arrays here;
  for (const Array& x : wide) here.push_back(cast(cast(x, type), Float32));
  EXPECT_TRUE(allclose(cast(got | Device(), Float32), f(here), {.rtol = close, .atol = close}));
  EXPECT_EQ(after.refused_calls, before.refused_calls);
  return after.library_calls - before.library_calls;
}

Arrays sequences(int64_t queries, int64_t keys, int64_t batch = 2) {
  return {randn({32, queries, batch}), randn({32, keys, batch}), randn({32, keys, batch})};
}

TEST(DISABLED_Inside, CudaAttends) {
  seed(4);
  for (const auto& [type, close] : {std::pair(Float16, 4e-3), std::pair(BFloat16, 3e-2)}) {
    AttentionOptions causal = heads(4);
    causal.causal = true;
    EXPECT_EQ(calls(attention(heads(4)), sequences(9, 13), type, close), 1);
    EXPECT_EQ(calls(attention(causal), sequences(11, 11), type, close), 1);
    EXPECT_EQ(calls(attention(heads(2)), {randn({32, 7}), randn({32, 7}), randn({32, 7})}, type, close), 1);
    // Heads of keys that serve several of queries, other features of values, another scale.
    AttentionOptions grouped = heads(4, 2);
    grouped.scale = 0.5;
    EXPECT_EQ(calls(attention(grouped), {randn({32, 9, 2}), randn({16, 9, 2}), randn({32, 9, 2})}, type, close), 1);
    // Three sequences that stand in one array.
    const Form sliced = [](const Arrays& a) {
      const Array& all = a[0];
      return dot_product_attention(slice(all, 0, 0, 32), slice(all, 0, 32, 64), slice(all, 0, 64, 96), heads(4)).out;
    };
    EXPECT_EQ(calls(sliced, {randn({96, 8, 2})}, type, close), 1);
    EXPECT_EQ(calls(slopes(attention(heads(4))), sequences(9, 13), type, 12 * close), 2);
    EXPECT_EQ(calls(slopes(attention(causal)), sequences(11, 11), type, 12 * close), 2);
    EXPECT_EQ(
        calls(slopes(attention(grouped)), {randn({32, 9, 2}), randn({16, 9, 2}), randn({32, 9, 2})}, type, 12 * close),
        2);
  }
}

TEST(CudaAttention, IsThatOfTheCpu) {
  const Products products;
  expect_success(on_pretended_gpu("CudaAttends", newest, products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_EQ(products.count("attention gradient"), 2 * 3 + 1);    // and the trial
  EXPECT_EQ(products.count("attention with state"), 2 * 3 + 1);  // nobody wants it without a gradient
  EXPECT_GE(products.count("causal"), 2 * 3);
  EXPECT_EQ(products.count("engine 20"), 0);
  EXPECT_EQ(products.count("engine 21"), 0);  // not deterministic
}

/// Before 9.21 it is told the steps.
TEST(CudaAttention, IsThatOfTheCpuInSteps) {
  const Products products;
  expect_success(on_pretended_gpu("CudaAttends", older, products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_EQ(products.count("steps of attention gradient"), 2 * 3 + 1);  // and the trial
  EXPECT_GE(products.count("steps of attention engine 22"), 2 * 8 + 1);
  EXPECT_EQ(products.count("engine 21"), 0);  // not deterministic
}

TEST(DISABLED_Inside, CudaAttendsByItself) {
  seed(5);
  const Arrays x = sequences(9, 9);
  AttentionOptions biased = heads(4), masked = heads(4), dropping = heads(4), late = heads(4);
  biased.bias = randn({9, 9});
  masked.mask = randn({9, 1}) > -1;
  late.causal = true;
  const auto none = [&](const Form& f, const Arrays& a) { EXPECT_EQ(calls(f, a, BFloat16, 4e-2), 0); };
  const Form with_bias = [=](const Arrays& a) {
    AttentionOptions options = biased;
    options.bias = biased.bias | device_of(a[0]);
    return attention(options)(a);
  };
  const Form with_mask = [=](const Arrays& a) {
    AttentionOptions options = masked;
    options.mask = masked.mask | device_of(a[0]);
    return attention(options)(a);
  };
  none(with_bias, x);
  none(with_mask, x);
  none([=](const Arrays& a) { return with(MathMode::exact, [&] { return attention(heads(4))(a); }); }, x);
  EXPECT_EQ(calls(attention(heads(4)), x, Float32, 1e-5), 0);
  // More keys than queries: the first query sees some of them.
  const Arrays more = sequences(5, 9);
  const Stats before = stats();
  const Array got = attention(late)(
      {cast(more[0], BFloat16) | cuda(), cast(more[1], BFloat16) | cuda(), cast(more[2], BFloat16) | cuda()});
  eval(got);
  EXPECT_EQ(stats().library_calls, before.library_calls);
  EXPECT_TRUE(allclose(cast(got | Device(), Float32), attention(late)(more), {.rtol = 4e-2, .atol = 4e-2}));
}

TEST(CudaAttention, IsAKernelWhereCudnnHasNone) {
  const Products products;
  expect_success(on_pretended_gpu("CudaAttendsByItself", newest, products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_EQ(products.count("attention"), 2);  // the trial
}

struct Block {
  MultiHeadAttention attention{32, {.nheads = 4}};
  Dense out{32, 3};
  Array operator()(const Array& x) const { return out(select(attention(x, {.causal = true}), 1, -1)); }
};

std::vector<float> trained(const Device& device, int steps) {
  seed(3);
  Block model = bf16(Block{}) | device;
  State state = setup(Descent(1e-2), model);
  std::vector<float> all;
  for (int i = 0; i < steps; ++i) {
    const Array x = bf16(randn({32, 8, 4})) | device, y = cast(randn({3, 4}) > 0, Float32) | device;
    const auto [loss, g] =
        withgradient([&](const Block& m) { return logitcrossentropy(cast(m(x), Float32), y); }, model);
    update(state, model, g);
    all.push_back(loss.item<float>());
  }
  return all;
}

TEST(DISABLED_Inside, CudaTrainsAttention) {
  const std::vector<float> here = trained(Device(), 5), there = trained(cuda(), 5);
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 3e-2) << i;
  EXPECT_GT(stats().graph_launches, 0);
  trim();
  synchronize(cuda());
}

TEST(CudaAttention, TrainsAModelWhicheverVersionIsThere) {
  for (const char* version : {"cudnn=92800", "cudnn=92000", "cudnn=91400", "cudnn=90500", "cudnn=80907"}) {
    const Products products;
    expect_success(on_pretended_gpu("CudaTrainsAttention", version, products.variable()));
    EXPECT_EQ(products.count("error"), 0);
    const bool taken = std::string(version) >= "cudnn=91600";  // before, of 128 keys alone
    EXPECT_EQ(products.count("attention gradient") > 1, taken) << version;
  }
}

/// A second process takes the plans of the first: for convolutions and attention alike.
TEST(CudaAttention, TakesThePlansOfEarlierProcesses) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rosin-plans-" + std::to_string(getpid()));
  const std::string more = "ROSIN_CACHE_DIR='" + folder.string() + "'";
  for (const bool first : {true, false}) {
    const Products products;
    expect_success(on_pretended_gpu("CudaTrainsAttention", newest, products.variable() + more));
    EXPECT_EQ(products.count("error"), 0);
    EXPECT_EQ(products.count("a plan is built") > 0, first);
    EXPECT_EQ(products.count("a plan from its text") > 0, !first);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rosin
