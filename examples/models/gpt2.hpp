// GPT-2 with the names and layouts of Hugging Face's GPT2LMHeadModel.
// Source: Radford et al.: Language Models are Unsupervised Multitask Learners (2019).
#pragma once

#include <rosin/rosin.hpp>

#include <vector>

#include "attention.hpp"

namespace models {

struct GPT2Options {
  int64_t vocabulary = 50257;
  int64_t positions = 1024;
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  double dropout = 0.1;
};

/// A product whose weight stands as (in, out): transformers' Conv1D.
struct Conv1D {
  rosin::Array weight;
  rosin::Array bias;

  Conv1D() = default;
  Conv1D(int64_t in, int64_t out) : weight(0.02 * rosin::randn({in, out})), bias(rosin::zeros({out})) {}
  static constexpr int rosin_fields = 2;

  /// (in, tokens, batch) -> (out, tokens, batch).
  rosin::Array operator()(const rosin::Array& x) const { return project(rosin::transpose(weight), bias, x); }
};

struct GPT2Attention {
  Conv1D c_attn;  // queries, keys and values at once
  Conv1D c_proj;
  int64_t heads = 1;
  rosin::Dropout attn_dropout{0.1};
  rosin::Dropout resid_dropout{0.1};

  /// Every token sees itself and those before it.
  rosin::Array operator()(const rosin::Array& x) const {
    const std::vector<rosin::Array> parts = rosin::chunk(c_attn(x), 3, 0);
    const rosin::AttentionOptions how{.heads = heads, .causal = true, .drop = attn_dropout};
    return resid_dropout(c_proj(rosin::dot_product_attention(parts[0], parts[1], parts[2], how).out));
  }
};

struct GPT2MLP {
  Conv1D c_fc;
  Conv1D c_proj;
  rosin::Dropout dropout{0.1};

  rosin::Array operator()(const rosin::Array& x) const { return dropout(c_proj(rosin::gelu(c_fc(x)))); }
};

struct GPT2Block {
  rosin::LayerNorm ln_1;
  GPT2Attention attn;
  rosin::LayerNorm ln_2;
  GPT2MLP mlp;

  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array y = x + attn(ln_1(x));
    return y + mlp(ln_2(y));
  }
};

/// Without the head: GPT2Model, whose files have no "transformer." before their names.
struct GPT2 {
  rosin::Embedding wte;  // of tokens
  rosin::Embedding wpe;  // of places
  rosin::Dropout drop{0.1};
  std::vector<GPT2Block> h;
  rosin::LayerNorm ln_f;

  /// Integers (tokens, batch) -> (width, tokens, batch).
  rosin::Array operator()(const rosin::Array& tokens) const {
    rosin::Array x = drop(wte(tokens) + wpe(rosin::arange(tokens.size(0)) | tokens.device()));
    for (const GPT2Block& block : h) x = block(x);
    return ln_f(x);
  }
};

/// The weights of the tokens are those of the head too.
struct GPT2LMHead {
  GPT2 transformer;

  /// Integers (tokens, batch) -> (vocabulary, tokens, batch), logits of what follows each token.
  rosin::Array operator()(const rosin::Array& tokens) const {
    return project(rosin::transpose(transformer.wte.weight), {}, transformer(tokens));
  }
};

inline GPT2LMHead gpt2(const GPT2Options& options = {}) {
  const int64_t width = options.width;
  const rosin::Dropout drop(options.dropout);
  const auto small = [](const rosin::Shape& shape) { return 0.02 * rosin::randn(shape); };
  GPT2 model{rosin::Embedding(options.vocabulary, width, {.init = small}),
             rosin::Embedding(options.positions, width, {.init = small}),
             drop,
             {},
             rosin::LayerNorm(width)};
  for (int64_t i = 0; i < options.layers; ++i) {
    model.h.push_back({rosin::LayerNorm(width),
                       {Conv1D(width, 3 * width), Conv1D(width, width), options.heads, drop, drop},
                       rosin::LayerNorm(width),
                       {Conv1D(width, 4 * width), Conv1D(4 * width, width), drop}});
  }
  return {model};
}

}  // namespace models
