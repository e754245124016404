// BERT with the names and layouts of Hugging Face's BertModel.
// Source: Devlin, Chang, Lee, Toutanova: BERT: Pre-training of Deep Bidirectional Transformers (2018).
#pragma once

#include <rosin/rosin.hpp>

#include <limits>
#include <vector>

#include "attention.hpp"

namespace models {

struct BertOptions {
  int64_t vocabulary = 30522;
  int64_t positions = 512;
  int64_t kinds = 2;  // of tokens: first and second sentence
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t hidden = 3072;
  double dropout = 0.1;
};

struct BertEmbeddings {
  rosin::Embedding word_embeddings;
  rosin::Embedding position_embeddings;
  rosin::Embedding token_type_embeddings;
  rosin::LayerNorm LayerNorm;
  rosin::Dropout dropout{0.1};

  rosin::Array operator()(const rosin::Array& tokens, const rosin::Array& kinds) const {
    const rosin::Array places = position_embeddings(rosin::arange(tokens.size(0)) | tokens.device());
    return dropout(LayerNorm(word_embeddings(tokens) + token_type_embeddings(kinds) + places));
  }
};

struct BertSelfAttention {
  rosin::Dense query, key, value;
  int64_t heads = 1;
  rosin::Dropout dropout{0.1};

  rosin::Array operator()(const rosin::Array& x, const rosin::Array& mask) const {
    return attention(query(x), key(x), value(x), heads, mask, dropout);
  }
};

/// A product, then the sum with what went past it, normalised.
struct BertOutput {
  rosin::Dense dense;
  rosin::LayerNorm LayerNorm;
  rosin::Dropout dropout{0.1};

  rosin::Array operator()(const rosin::Array& x, const rosin::Array& past) const {
    return LayerNorm(dropout(dense(x)) + past);
  }
};

struct BertAttention {
  BertSelfAttention self;
  BertOutput output;

  rosin::Array operator()(const rosin::Array& x, const rosin::Array& mask) const { return output(self(x, mask), x); }
};

struct BertIntermediate {
  rosin::Dense dense;

  rosin::Array operator()(const rosin::Array& x) const { return rosin::gelu_erf(dense(x)); }
};

struct BertLayer {
  BertAttention attention;
  BertIntermediate intermediate;
  BertOutput output;

  rosin::Array operator()(const rosin::Array& x, const rosin::Array& mask) const {
    const rosin::Array y = attention(x, mask);
    return output(intermediate(y), y);
  }
};

struct BertEncoder {
  std::vector<BertLayer> layer;

  rosin::Array operator()(const rosin::Array& x, const rosin::Array& mask) const {
    rosin::Array y = x;
    for (const BertLayer& each : layer) y = each(y, mask);
    return y;
  }
};

/// The first token stands for the whole.
struct BertPooler {
  rosin::Dense dense;

  rosin::Array operator()(const rosin::Array& x) const { return rosin::tanh(dense(rosin::select(x, 1, 0))); }
};

struct Bert {
  BertEmbeddings embeddings;
  BertEncoder encoder;
  BertPooler pooler;

  /// Integers (tokens, batch), their kinds likewise, and `present` (tokens, batch), false where a text has ended
  /// -> (width, tokens, batch).
  rosin::Array operator()(const rosin::Array& tokens, const rosin::Array& kinds, const rosin::Array& present) const {
    const rosin::Array mask = rosin::where(present, 0.0f, std::numeric_limits<float>::lowest());
    return encoder(embeddings(tokens, kinds), rosin::reshape(mask, {tokens.size(0), 1, 1, tokens.size(1)}));
  }
  /// (width, batch) of what the call above gives.
  rosin::Array pooled(const rosin::Array& x) const { return pooler(x); }
};

inline Bert bert(const BertOptions& options = {}) {
  const int64_t width = options.width;
  const rosin::Dropout drop(options.dropout);
  const auto small = [](const rosin::Shape& shape) { return 0.02 * rosin::randn(shape); };
  const auto embedding = [&](int64_t count) { return rosin::Embedding(count, width, {.init = small}); };
  const auto dense = [&](int64_t in, int64_t out) { return rosin::Dense(in, out, {.init = small}); };
  const auto norm = [&] { return rosin::LayerNorm(width, {.eps = 1e-12}); };
  Bert model{{embedding(options.vocabulary), embedding(options.positions), embedding(options.kinds), norm(), drop},
             {},
             {dense(width, width)}};
  for (int64_t i = 0; i < options.layers; ++i) {
    const BertSelfAttention self{dense(width, width), dense(width, width), dense(width, width), options.heads, drop};
    model.encoder.layer.push_back({{self, {dense(width, width), norm(), drop}},
                                   {dense(width, options.hidden)},
                                   {dense(options.hidden, width), norm(), drop}});
  }
  return model;
}

}  // namespace models
