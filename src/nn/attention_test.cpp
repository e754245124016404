// Attention and transformer layers against PyTorch and NumPy (tests/oracles/attention.txt), and Flux's own tests.
#include <rosin/attention.hpp>

#include <gtest/gtest.h>

#include <rosin/approx.hpp>
#include <rosin/chain.hpp>
#include <rosin/compose.hpp>
#include <rosin/index.hpp>
#include <rosin/stats.hpp>
#include <rosin/transformer.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::OracleCase;
using Inputs = std::vector<Array>;

int64_t whole(const OracleCase& entry, const char* key, int64_t otherwise = 0) {
  return entry.has(key) ? entry.integers(key)[0] : otherwise;
}

UnaryFunction activation_of(const OracleCase& entry, UnaryFunction otherwise) {
  if (!entry.has("act")) return otherwise;
  const std::string& name = entry.attributes.at("act");
  return name == "swish" ? UnaryFunction{swish} : name == "gelu_erf" ? UnaryFunction{gelu_erf} : UnaryFunction{relu};
}

Inputs attention(const OracleCase& entry, const Inputs& in) {
  AttentionOptions options;
  options.heads = whole(entry, "heads");
  options.kv_heads = whole(entry, "kv_heads");
  options.causal = entry.has("causal");
  if (in.size() > 3) options.mask = in[3];
  const auto [out, scores] = dot_product_attention(in[0], in[1], in[2], options);
  return {out, scores};
}

/// Inputs after q, k and v: a bias, where the case has that, and a mask.
Inputs blocks(const OracleCase& entry, const Inputs& in) {
  AttentionOptions options;
  options.heads = whole(entry, "heads");
  options.kv_heads = whole(entry, "kv_heads");
  options.causal = entry.has("causal");
  const size_t masks = entry.has("bias") ? 4 : 3;
  if (entry.has("bias")) options.bias = in[3];
  if (in.size() > masks) options.mask = in[masks];
  return {dot_product_attention(in[0], in[1], in[2], options).out};
}

Inputs rotary(const OracleCase& entry, const Inputs& in) {
  return {rotary_embedding(in[0], {.heads = whole(entry, "heads"),
                                   .offset = whole(entry, "offset"),
                                   .interleaved = whole(entry, "interleaved") != 0})};
}

Inputs alibi(const OracleCase& entry, const Inputs&) {
  return {alibi_bias(whole(entry, "heads"), whole(entry, "queries"), whole(entry, "keys"))};
}

Inputs rmsnorm(const OracleCase& entry, const Inputs& in) {
  RMSNorm layer(in[0].size(0), {.eps = entry.number("eps", 1e-6)});
  layer.scale = in[1];
  return {layer(in[0])};
}

Inputs gated(const OracleCase& entry, const Inputs& in) {
  return {glu(in[0], oracles::dim_of(entry), activation_of(entry, sigmoid))};
}

/// Takes the arrays of the case from `at` on, in the order of the fields.
void take(MultiHeadAttention& layer, const Inputs& in, size_t& at) {
  for (Dense* part : {&layer.q_proj, &layer.k_proj, &layer.v_proj, &layer.out_proj}) {
    part->weight = in[at++];
    part->bias = in[at++];
  }
}
void take(Dense& layer, const Inputs& in, size_t& at) {
  layer.weight = in[at++];
  layer.bias = in[at++];
}
void take(LayerNorm& layer, const Inputs& in, size_t& at) {
  layer.scale = in[at++];
  layer.bias = in[at++];
}
template <class Layer> Layer layer_of(const OracleCase& entry) {
  return Layer(4, whole(entry, "heads"), 6,
               {.act = activation_of(entry, relu), .dropout = 0, .norm_first = whole(entry, "norm_first") != 0});
}

Inputs encoder(const OracleCase& entry, const Inputs& in) {
  auto layer = layer_of<TransformerEncoderLayer>(entry);
  size_t at = 1;
  take(layer.self_attn, in, at);
  for (Dense* part : {&layer.linear1, &layer.linear2}) take(*part, in, at);
  for (LayerNorm* part : {&layer.norm1, &layer.norm2}) take(*part, in, at);
  return {layer(in[0])};
}

Inputs decoder(const OracleCase& entry, const Inputs& in) {
  auto layer = layer_of<TransformerDecoderLayer>(entry);
  size_t at = 2;
  for (MultiHeadAttention* part : {&layer.self_attn, &layer.multihead_attn}) take(*part, in, at);
  for (Dense* part : {&layer.linear1, &layer.linear2}) take(*part, in, at);
  for (LayerNorm* part : {&layer.norm1, &layer.norm2, &layer.norm3}) take(*part, in, at);
  return {layer(in[0], in[1])};
}

TEST(Attention, AgreesWithPyTorch) {
  oracles::run_oracles("attention.txt", {{"attention", attention},
                                         {"blocks", blocks},
                                         {"rotary", rotary},
                                         {"alibi", alibi},
                                         {"rmsnorm", rmsnorm},
                                         {"glu", gated},
                                         {"encoder", encoder},
                                         {"decoder", decoder}});
}

/// Source: Flux's test/layers/attention.jl.
TEST(MultiHeadAttention, HasTheSizesOfFlux) {
  const MultiHeadAttention layer(64, {.nheads = 8});
  const Array q = randn({64, 10, 32}), k = randn({64, 20, 32}), v = randn({64, 20, 32});
  const auto [y, scores] = layer.attend(q, k, v);
  EXPECT_EQ(y.shape(), (Shape{64, 10, 32}));
  EXPECT_EQ(scores.shape(), (Shape{20, 10, 8, 32}));
  EXPECT_TRUE(allclose(sum(scores, 0), ones({1, 10, 8, 32})));
  EXPECT_EQ(MultiHeadAttention(64, 1024, 1024, {.nheads = 8})(q).shape(), (Shape{1024, 10, 32}));
  const MultiHeadAttention uneven(AttentionSizes{4, 64, 6, 16, 24, 5}, {.nheads = 4});
  EXPECT_EQ(uneven(randn({4, 3, 2}), randn({64, 7, 2}), randn({6, 7, 2})).shape(), (Shape{5, 3, 2}));
  EXPECT_EQ(layer(randn({64, 10})).shape(), (Shape{64, 10})) << "one sequence";
  EXPECT_EQ(parameter_count(layer), 4 * 64 * 64);
}

TEST(MultiHeadAttention, PrintsAsInFlux) {
  EXPECT_EQ(MultiHeadAttention(64).rosin_show(), "MultiHeadAttention(64; nheads=8)");
  EXPECT_EQ(MultiHeadAttention({3, 4, 5, 6, 7, 8}, {.nheads = 1}).rosin_show(),
            "MultiHeadAttention((3, 4, 5) => (6, 7) => 8; nheads=1)");
  EXPECT_EQ(MultiHeadAttention({3, 3, 3, 6, 7, 8}, {.nheads = 1}).rosin_show(),
            "MultiHeadAttention(3 => (6, 7) => 8; nheads=1)");
  EXPECT_EQ(MultiHeadAttention(3, 6, 8, {.nheads = 1}).rosin_show(), "MultiHeadAttention(3 => 6 => 8; nheads=1)");
  EXPECT_EQ(MultiHeadAttention(8, {.bias = true, .dropout_prob = 0.5}).rosin_show(),
            "MultiHeadAttention(8; nheads=8, bias=true, dropout_prob=0.5)");
  EXPECT_EQ(to_string(Chain(MultiHeadAttention(8), Dense(8, 2))),
            "Chain(\n"
            "  MultiHeadAttention(8; nheads=8),      # 256 parameters\n"
            "  Dense(8 => 2),                        # 18 parameters\n"
            ")                   # Total: 6 arrays, 274 parameters, 1.070 KiB.");
  EXPECT_EQ(RMSNorm(8).rosin_show(), "RMSNorm(8)");
}

TEST(MultiHeadAttention, WritesOneTokenAfterAnotherAsAllAtOnce) {
  const MultiHeadAttention layer(16, {.nheads = 4, .bias = true});
  const Array x = randn({16, 9, 3});
  const Array whole = layer(x, {.causal = true});
  KeyValueCache cache = layer.cache(12, 3);
  Array steps = layer.next(slice(x, 1, 0, 3), cache);
  int64_t structures = 0;
  for (int64_t t = 3; t < 9; ++t) {
    const Array y = layer.next(slice(x, 1, t, t + 1), cache);
    eval();
    steps = concat({steps, y}, 1);
    if (t == 4) structures = stats().structures;
  }
  EXPECT_EQ(cache.length, 9);
  EXPECT_TRUE(allclose(steps, whole, {.rtol = 1e-4, .atol = 1e-5}));
  EXPECT_LE(stats().structures - structures, 2) << "steps of one length are one plan";
  EXPECT_EQ(error_of([&] {
              layer.next(randn({16, 4, 3}), cache);
            }),
            "MultiHeadAttention::next: x is (features, length, batch) and fits into the cache; got (16, 4, 3) after 9 "
            "of 12 places; make a cache with a larger capacity");
  EXPECT_EQ(cache.length, 9);
}

TEST(MultiHeadAttention, MemoryOfACacheGrowsWithWhatItHolds) {
  const MultiHeadAttention layer(16, {.nheads = 4, .bias = true});
  const Array x = randn({16, 150, 2});
  const Array whole = layer(x, {.causal = true});
  KeyValueCache cache = layer.cache(1000, 2);
  EXPECT_EQ(cache.keys.shape(), Shape({16, 64, 2}));
  std::vector<Array> steps{layer.next(slice(x, 1, 0, 60), cache)};
  for (int64_t t = 60; t < 70; ++t) steps.push_back(layer.next(slice(x, 1, t, t + 1), cache));
  EXPECT_EQ(cache.keys.shape(), Shape({16, 128, 2}));
  const KeyValueCache branch = cache;
  steps.push_back(layer.next(slice(x, 1, 70, 149), cache));
  steps.push_back(layer.next(slice(x, 1, 149, 150), cache));
  EXPECT_EQ(cache.values.shape(), Shape({16, 256, 2}));
  EXPECT_TRUE(allclose(concat(steps, 1), whole, {.rtol = 1e-4, .atol = 1e-5}));
  KeyValueCache again = branch;
  EXPECT_TRUE(allclose(layer.next(slice(x, 1, 70, 72), again), slice(whole, 1, 70, 72), {.rtol = 1e-4, .atol = 1e-5}));
  EXPECT_EQ(error_of([&] {
              layer.next(randn({16, 1, 3}), again);
            }),
            "MultiHeadAttention::next: x has as many sequences as the cache; got 3 and 2; make a cache for them with "
            "cache(capacity, batch)");
  EXPECT_EQ(again.length, 72);
  KeyValueCache small = layer.cache(100, 2);
  layer.next(slice(x, 1, 0, 100), small);
  EXPECT_EQ(small.keys.shape(), Shape({16, 100, 2})) << "no more than the capacity";
  EXPECT_THROW(layer.next(slice(x, 1, 0, 1), small), Error);
  KeyValueCache endless = layer.cache(0, 2), none;
  EXPECT_TRUE(allclose(layer.next(x, endless), whole, {.rtol = 1e-4, .atol = 1e-5}));
  EXPECT_EQ(endless.keys.shape(), Shape({16, 256, 2})) << "a capacity of 0 is no limit";
  EXPECT_THROW(layer.next(x, none), Error);
}

TEST(Transformer, LayersGoOnFromACache) {
  const TransformerEncoderLayer encoder(8, 2, 12, {.norm_first = true});
  const TransformerDecoderLayer decoder(8, 2, 12);
  const Array x = randn({8, 5, 3}), memory = randn({8, 4, 3});
  KeyValueCache of_encoder = encoder.self_attn.cache(5, 3), of_decoder = decoder.self_attn.cache(5, 3);
  Arrays encoded, decoded;
  for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 5}}) {
    const Array part = slice(x, 1, begin, end);
    encoded.push_back(encoder.next(part, of_encoder));
    decoded.push_back(decoder.next(part, memory, of_decoder));
  }
  EXPECT_TRUE(allclose(concat(encoded, 1), encoder(x, {.causal = true}), {.rtol = 1e-4, .atol = 1e-5}));
  EXPECT_TRUE(allclose(concat(decoded, 1), decoder(x, memory), {.rtol = 1e-4, .atol = 1e-5}));
}

TEST(Attention, MasksAsNNlib) {
  const Array x = randn({4, 3, 2});
  EXPECT_EQ(make_causal_mask(x).to_vector(), (std::vector<float>{1, 0, 0, 1, 1, 0, 1, 1, 1}));
  const Array scores = dot_product_attention_scores(x, x, {.heads = 2, .mask = make_causal_mask(x)});
  EXPECT_TRUE(allclose(scores, dot_product_attention_scores(x, x, {.heads = 2, .causal = true})));
  EXPECT_EQ(select(scores, 1, 0).to_vector()[0], 1) << "the first query sees itself alone";
  const Array none = dot_product_attention_scores(x, x, {.mask = zeros({3, 3}, Bool)});
  EXPECT_TRUE(all(is_nan(none)).item<bool>()) << "as in NNlib, who may see nothing has no distribution";
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Array x = randn({6, 3, 2});
  EXPECT_EQ(error_of([&] { dot_product_attention(x, x, x, {.heads = 4}); }),
            "dot_product_attention: heads divide the features; got 4 heads for (6, 3, 2); choose another number of "
            "heads");
  EXPECT_EQ(error_of([&] {
              dot_product_attention(x, x, randn({6, 4, 2}));
            }),
            "dot_product_attention: there is a value for each key; got (6, 3, 2) and (6, 4, 2); give sequences of one "
            "length");
  EXPECT_EQ(error_of([&] {
              dot_product_attention(x, x, x, {.mask = ones({3, 3})});
            }),
            "dot_product_attention: a mask is Bool, true where a key may be seen; got Float32; what is added to the "
            "logits is the bias");
  EXPECT_EQ(
      error_of([&] {
        dot_product_attention(x, x, x, {.mask = ones({3, 2}, Bool)});
      }),
      "dot_product_attention: a mask broadcasts to (kv length, q length, heads, batch), (3, 3, 1, 2); got (3, 2); "
      "of (kv length, batch), keys that all queries of a sequence see, make reshape(x, {kv length, 1, 1, batch})");
  EXPECT_EQ(error_of([&] {
              dot_product_attention(x, x, x, {.bias = ones({3, 3, 1, 4})});
            }),
            "dot_product_attention: a bias broadcasts to (kv length, q length, heads, batch), (3, 3, 1, 2); got (3, 3, "
            "1, 4); of (kv length, batch), keys that all queries of a sequence see, make reshape(x, {kv length, 1, 1, "
            "batch})");
  EXPECT_EQ(error_of([&] {
              dot_product_attention(x, randn({4, 3, 2}), x);
            }),
            "dot_product_attention: queries and keys have equal features and batches; got (6, 3, 1, 2) and (4, 3, 1, "
            "2) (features, length, heads, batch); project one of them");
  EXPECT_EQ(error_of([&] { MultiHeadAttention(6, {.nheads = 4}); }),
            "MultiHeadAttention: qk_dim should be divisible by nheads; got 6 and 4; choose another number of heads");
  EXPECT_EQ(error_of([&] { glu(x, 1); }), "glu: the dim has an even size; got (6, 3, 2) and dim 1; choose another dim");
  EXPECT_EQ(error_of([&] { RMSNorm(5)(x); }),
            "layer RMSNorm(5) expects first sizes (5), but got 6×3×2 Array{Float32}; arrays are (features..., batch)");
}

TEST(Transformer, DropsInTrainingAndNotOutsideAndTakesHalves) {
  const TransformerEncoderLayer layer(8, 2, 16, {.dropout = 0.5});
  const Array x = randn({8, 5, 2});
  EXPECT_TRUE(allclose(layer(x), layer(x)));
  Array first, second;
  gradient([&](const TransformerEncoderLayer& l) { return sum(first = l(x)); }, layer);
  gradient([&](const TransformerEncoderLayer& l) { return sum(second = l(x)); }, layer);
  EXPECT_FALSE(allclose(first, second));
  EXPECT_EQ(f16(layer)(cast(x, Float16)).dtype(), Float16);
  const RMSNorm norm(8);
  EXPECT_TRUE(allclose(cast(f16(norm)(cast(300.0 * x, Float16)), Float32), norm(x), {.rtol = 1e-2, .atol = 1e-2}))
      << "squares beyond Float16";
}

}  // namespace
}  // namespace rosin
