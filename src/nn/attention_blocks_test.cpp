// Attention in blocks (ops/attention.hpp, engines/attention.hpp) against the same attention in parts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <rosin/approx.hpp>
#include <rosin/attention.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/layer.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "graph/hooks.hpp"
#include "ops/attention.hpp"
#include "ops/in_parts.hpp"

namespace rosin {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Sizes {
  int64_t queries, keys, features, value_features, heads = 1, kv_heads = 1, batch = 1;
};

std::string text(const Sizes& s) {
  std::string line;
  for (const int64_t n : {s.queries, s.keys, s.features, s.value_features, s.heads, s.kv_heads, s.batch})
    line += std::to_string(n) + " ";
  return line;
}

struct Sequences {
  Array q, k, v, slope;
};

Sequences sequences(const Sizes& s) {
  Rng rng(static_cast<uint64_t>(s.queries * 1000 + s.keys + s.features));
  Sequences made{randn(rng, {s.features * s.heads, s.queries, s.batch}),
                 randn(rng, {s.features * s.kv_heads, s.keys, s.batch}),
                 randn(rng, {s.value_features * s.kv_heads, s.keys, s.batch}),
                 randn(rng, {s.value_features * s.heads, s.queries, s.batch})};
  eval();
  return made;
}

/// The result and the slopes of q, k and v.
std::vector<Array> results(const Sequences& x, const AttentionOptions& options) {
  const auto weighed = [&](const Array& q, const Array& k, const Array& v) {
    const Array y = dot_product_attention(q, k, v, options).out;
    return std::pair(sum(y * cast(x.slope, y.dtype())), y);
  };
  const auto [values, grads] = withgradient(weighed, x.q, x.k, x.v);
  const auto& [dq, dk, dv] = grads;
  return {values.second, dq, dk, dv};
}

std::vector<Array> results_in_parts(const Sequences& x, const AttentionOptions& options) {
  const InParts parts;
  return results(x, options);
}

Sequences doubled(const Sequences& x) { return {cast(x.q, Float64), cast(x.k, Float64), cast(x.v, Float64), x.slope}; }

void expect_close(const std::vector<Array>& got, const std::vector<Array>& want, const std::string& what) {
  const char* const names[] = {"y", "dq", "dk", "dv"};
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].shape(), want[i].shape()) << names[i] << " " << what;
    const Array wanted = cast(want[i], Float32);
    const double largest = maximum(abs(wanted)).item();
    EXPECT_LE(maximum(abs(got[i] - wanted)).item(), 3e-6 * (1 + largest)) << names[i] << " " << what;
  }
}

AttentionOptions heads_of(const Sizes& s) {
  AttentionOptions options;
  options.heads = s.heads;
  options.kv_heads = s.kv_heads;
  return options;
}

void compare(const Sizes& s, const AttentionOptions& options) {
  const Sequences x = sequences(s);
  expect_close(results(x, options), results_in_parts(doubled(x), options), text(s));
}

TEST(AttentionBlocks, AgreeWithPartsForAllSizes) {
  for (const int64_t length : {1, 3, 17, 65, 130}) {
    for (const int64_t features : {1, 8, 24, 64, 80}) {
      const Sizes s{length, length, features, features, 2, 2, 2};
      AttentionOptions options = heads_of(s);
      compare(s, options);
      options.causal = true;
      compare(s, options);
    }
  }
  for (const Sizes& s : {Sizes{5, 130, 8, 12}, Sizes{130, 70, 8, 3}, Sizes{70, 130, 16, 16, 6, 2, 2},
                         Sizes{1, 200, 8, 8, 4, 1}, Sizes{64, 64, 32, 32}, Sizes{128, 192, 4, 4}}) {
    AttentionOptions options = heads_of(s);
    compare(s, options);
    options.causal = s.queries <= s.keys;
    compare(s, options);
  }
}

TEST(AttentionBlocks, AgreeWithPartsUnderMasksAndBiases) {
  const Sizes s{70, 90, 8, 8, 4, 2, 3};
  Rng rng(5);
  for (const Shape& shape :
       {Shape{90, 70, 4, 3}, Shape{90, 70}, Shape{90, 1, 1, 3}, Shape{1, 1, 4, 1}, Shape{90, 70, 4}}) {
    const Array bias = randn(rng, shape), keep = logical_or(bernoulli(rng, 0.5, shape), eq(randn(rng, {1}), 0.0));
    const Array seen = logical_or(keep, reshape(lt(arange(90), 1), {90, 1}));
    AttentionOptions options = heads_of(s);
    options.bias = bias;
    compare(s, options);
    options.mask = seen;
    compare(s, options);
    options.bias = {};
    options.causal = true;
    options.scale = 0.7;
    compare(s, options);
  }
}

/// Blocks that a mask leaves out, or lets through, as a whole: of what came before, of neighbours, of some sequences.
TEST(AttentionBlocks, AgreeWithPartsUnderMasksOfWholeBlocks) {
  const Sizes s{150, 200, 16, 16, 2, 1, 2};
  const Array keys = reshape(arange(200), {200, 1}), queries = reshape(arange(150), {1, 150});
  const Array some = eq(reshape(arange(2), {1, 1, 1, 2}), 0);
  for (const Array& seen : {le(keys, queries + 50), logical_and(le(keys, queries + 30), gt(keys, queries - 40)),
                            lt(keys, 65), logical_or(some, eq(keys, 0))}) {
    AttentionOptions options = heads_of(s);
    options.mask = seen;
    compare(s, options);
    options.causal = true;
    compare(s, options);
  }
}

/// Halves of `x`, as far apart as parts of one product.
Sequences apart(const Sequences& x) {
  const auto half = [](const Array& sequence) {
    const Array wide = concat({cast(sequence, BFloat16), cast(sequence, BFloat16)}, 0);
    eval(wide);
    return slice(wide, 0, 0, sequence.size(0));
  };
  return {half(x.q), half(x.k), half(x.v), x.slope};
}

/// In matrix registers, where the processor has them: whole and broken panels, few queries and many.
TEST(AttentionBlocks, OfBFloatsAgreeWithPartsInFloat64) {
  for (const int64_t queries : {1, 2, 3, 17, 64, 65, 130}) {
    for (const Sizes& s :
         {Sizes{queries, 1, 8, 8, 2, 2, 2}, Sizes{queries, 16, 32, 16, 2, 2, 1}, Sizes{queries, 130, 64, 64, 4, 2, 2},
          Sizes{queries, 200, 80, 33, 2, 1, 2}, Sizes{queries, 192, 24, 48, 3, 3, 1}}) {
      const Sequences halves = apart(sequences(s));
      Rng rng(7);
      const Array bias = randn(rng, {s.keys, queries, s.heads}), keep = bernoulli(rng, 0.5, {s.keys, queries});
      for (int form = 0; form < 4; ++form) {
        AttentionOptions options = heads_of(s);
        options.causal = form == 1 && queries <= s.keys;
        if (form == 2) options.mask = logical_or(keep, reshape(lt(arange(s.keys), 1), {s.keys, 1}));
        if (form == 3) options.bias = bias;
        const Array got = dot_product_attention(halves.q, halves.k, halves.v, options).out;
        const InParts parts;
        const Sequences wide = doubled(halves);
        const Array want = dot_product_attention(wide.q, wide.k, wide.v, options).out;
        EXPECT_EQ(got.dtype(), BFloat16);
        EXPECT_LE(maximum(abs(cast(got, Float64) - want)).item(), 0.01 * (0.1 + maximum(abs(want)).item()))
            << text(s) << " form " << form;
      }
    }
  }
}

TEST(AttentionBlocks, OfBFloatsAreComputedAsTheyAreInMatrixRegisters) {
  if (!hooks.attends_bfloats()) GTEST_SKIP() << "this processor has no matrix registers: halves are cast to Float32";
  const Sequences x = sequences({70, 70, 32, 32});
  const Array q = cast(x.q, BFloat16), k = cast(x.k, BFloat16), v = cast(x.v, BFloat16);
  eval();
  const Stats before = stats();
  const Array y = dot_product_attention(q, k, v).out;
  eval(y);
  EXPECT_EQ(stats().calls - before.calls, 1);
  EXPECT_EQ(stats().kernels - before.kernels, 0) << "no cast";
}

TEST(AttentionBlocks, OfBFloatsThatSeeNothingAreNaN) {
  for (const int64_t queries : {1, 5}) {
    const Sizes s{queries, 70, 32, 32};
    const Sequences halves = apart(sequences(s));
    AttentionOptions options = heads_of(s);
    options.mask = gt(reshape(arange(queries), {1, queries}) + zeros({70, 1}), 0.5);  // the first one sees none
    const std::vector<float> got = dot_product_attention(halves.q, halves.k, halves.v, options).out.to_vector();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i < 32) << queries << " " << i;
  }
}

/// One query, as of a model that writes one token after another, or two; also behind whole blocks of 64.
TEST(AttentionBlocks, OfFewQueriesAgreeWithParts) {
  for (const int64_t queries : {1, 2, 3, 65, 66}) {
    for (const Sizes& s : {Sizes{queries, 1, 5, 3}, Sizes{queries, 64, 17, 16, 2, 2, 2}, Sizes{queries, 65, 1, 1, 2, 1},
                           Sizes{queries, 200, 64, 64, 6, 2, 2}, Sizes{queries, 131, 80, 24, 2, 2, 3}}) {
      Rng rng(6);
      const Array bias = randn(rng, {s.keys, queries, s.heads}), keep = bernoulli(rng, 0.5, {s.keys, 1, 1, s.batch});
      const Array seen = logical_or(keep, reshape(lt(arange(s.keys), 1), {s.keys, 1}));
      for (const bool causal : {false, true}) {
        AttentionOptions options = heads_of(s);
        options.causal = causal && s.queries <= s.keys;
        compare(s, options);
        options.mask = seen;
        compare(s, options);
        options.bias = bias;
        options.scale = 0.2;
        compare(s, options);
        const Sequences x = doubled(sequences(s));
        options.bias = cast(bias, Float64);
        const Array whole = results(x, options)[0], parts = results_in_parts(x, options)[0];
        EXPECT_TRUE(allclose(whole, parts, {.rtol = 1e-12, .atol = 1e-13})) << text(s);
      }
    }
  }
}

TEST(AttentionBlocks, OfAQueryThatSeesNothingAreNaNBesideOneThatDoes) {
  const Sizes s{2, 70, 8, 8};
  const Sequences x = sequences(s);
  AttentionOptions options = heads_of(s);
  options.mask = expand(reshape(Array({1, 0}, {2}) > 0, {1, 2}), {70, 2});
  const Array y = dot_product_attention(x.q, x.k, x.v, options).out;
  EXPECT_TRUE(all(is_finite(y(slice(), 0, slice()))).item<bool>());
  EXPECT_TRUE(all(is_nan(y(slice(), 1, slice()))).item<bool>());
}

TEST(AttentionBlocks, GiveTheSlopesOfABias) {
  const Sizes s{20, 70, 8, 8, 2, 2, 3};
  const Sequences x = sequences(s), wide = doubled(x);
  const Array bias = randn({70, 20, 2, 1});
  const auto slope = [&](const Sequences& in, const Array& added) {
    return gradient(
        [&](const Array& b) {
          AttentionOptions options = heads_of(s);
          options.bias = b;
          options.causal = true;
          return sum(dot_product_attention(in.q, in.k, in.v, options).out * cast(x.slope, in.q.dtype()));
        },
        added);
  };
  const Array got = slope(x, bias);
  const InParts parts;
  expect_close({got}, {slope(wide, cast(bias, Float64))}, "bias");
}

/// Sequences that are parts of a larger array, and one whose features are far apart, are read where they stand.
TEST(AttentionBlocks, ReadViews) {
  const Sizes s{33, 33, 8, 8, 2, 2, 2};
  const Array all = randn({48, 33, 2}), turned = randn({33, 16, 2});
  const AttentionOptions options{.heads = 2, .causal = true};
  Sequences x{slice(all, 0, 0, 16), slice(all, 0, 16, 32), slice(all, 0, 32, 48), sequences(s).slope};
  expect_close(results(x, options), results_in_parts(doubled(x), options), "slices");
  x.k = permute(turned, {1, 0, 2});
  expect_close(results(x, options), results_in_parts(doubled(x), options), "turned");
  const Array flat = slice(x.q, 2, 0, 1), one = reshape(flat, {16, 33});
  EXPECT_EQ(dot_product_attention(one, one, one, options).out.shape(), (Shape{16, 33}));
}

TEST(AttentionBlocks, DropWhatPartsDrop) {
  const Sizes s{70, 67, 8, 8, 2, 1, 2};
  const Sequences x = sequences(s);
  Rng first(11), second(11);
  AttentionOptions options = heads_of(s);
  options.drop = Dropout(0.3, {.active = LayerMode::train, .rng = &first});
  const std::vector<Array> got = results(x, options);
  options.drop.rng = &second;
  const InParts parts;
  expect_close(got, results(x, options), "dropped");
  EXPECT_EQ(first.counter(), second.counter());
}

TEST(AttentionBlocks, GiveTheSameBitsForAnyNumberOfThreads) {
  const Sizes s{100, 140, 24, 16, 4, 2, 3};
  const Sequences x = sequences(s);
  AttentionOptions options = heads_of(s);
  options.causal = true;
  const int before = num_threads();
  std::vector<std::vector<float>> wanted;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<std::vector<float>> got;
    for (const Array& y : results(x, options)) got.push_back(y.to_vector<float>());
    if (wanted.empty()) wanted = got;
    EXPECT_TRUE(got == wanted) << threads << " threads";
  }
  set_num_threads(before);
}

/// Its mask leaves out all keys: the result is NaN there, and nothing comes back from it.
TEST(AttentionBlocks, GiveNaNToAQueryThatSeesNothing) {
  const Sizes s{6, 5, 4, 4};
  const Sequences x = sequences(s);
  AttentionOptions options;
  options.causal = true;  // the first query sees no key
  const auto seen = [&](const Array& q, const Array& k, const Array& v) {
    return sum(slice(dot_product_attention(q, k, v, options).out, 1, 1, 6));
  };
  const auto [dq, dk, dv] = gradient(seen, x.q, x.k, x.v);
  const std::vector<float> y = dot_product_attention(x.q, x.k, x.v, options).out.to_vector<float>();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i] != y[i], i < 4) << i;
  for (const Array& slope : {dq, dk, dv}) EXPECT_TRUE(all(is_finite(slope)).item<bool>());
  options.causal = false;
  options.mask = lt(arange(1), 0);
  EXPECT_TRUE(all(is_nan(dot_product_attention(x.q, x.k, x.v, options).out)).item<bool>());
  Array poisoned = x.q * where(eq(arange(4), 2), nan, 1.0);
  EXPECT_TRUE(all(is_nan(dot_product_attention(poisoned, x.k, x.v).out)).item<bool>()) << "NaN stays";
}

TEST(AttentionBlocks, HaveGradientsOfGradients) {
  const Sizes s{9, 11, 4, 6, 4, 2, 2};
  const Sequences x = sequences(s), wide = doubled(x);
  Rng rng(3);
  const Array bias = randn(rng, {11, 9, 4});
  const auto slopes = [&](const Sequences& in, bool drops) {
    const Array added = cast(bias, in.q.dtype());
    const auto steepness = [&](const Array& q, const Array& k, const Array& v, const Array& b) {
      const auto value = [&](const Array& a, const Array& c, const Array& d) {
        Rng own(7);
        AttentionOptions options = heads_of(s);
        options.bias = b;
        options.causal = true;
        if (drops) options.drop = Dropout(0.25, {.active = LayerMode::train, .rng = &own});
        return sum(square(dot_product_attention(a, c, d, options).out) * cast(x.slope, a.dtype()));
      };
      const auto [dq, dk, dv] = gradient(value, q, k, v);
      return sum(square(dq)) + sum(dk * dk * dk) + sum(square(dv));
    };
    const auto [dq, dk, dv, db] = gradient(steepness, in.q, in.k, in.v, added);
    return std::vector<Array>{dq, dk, dv, db};
  };
  for (const bool drops : {false, true}) {
    const std::vector<Array> got = slopes(x, drops);
    const InParts parts;
    const std::vector<Array> want = slopes(wide, drops);
    for (size_t i = 0; i < got.size(); ++i) {
      const double largest = maximum(abs(want[i])).item();
      EXPECT_LE(maximum(abs(cast(got[i], Float64) - want[i])).item(), 1e-4 * (1 + largest)) << i << drops;
    }
  }
}

/// Neither forward nor back: what a step takes is a small part of all logits.
TEST(AttentionBlocks, KeepNoLogits) {
  const Sizes s{2048, 2048, 8, 8, 4, 4};
  const Sequences x = sequences(s);
  AttentionOptions options = heads_of(s);
  options.causal = true;
  trim();
  const Stats before = stats();
  for (const Array& y : results(x, options)) eval(y);
  const Stats after = stats();
  const int64_t taken = after.live_bytes + after.pooled_bytes - before.live_bytes - before.pooled_bytes;
  EXPECT_LT(taken, 2048 * 2048 * 4 * 4 / 8);
  EXPECT_LT(after.written_bytes - before.written_bytes, 2048 * 2048 * 4 * 4 / 8);
}

}  // namespace
}  // namespace rosin
