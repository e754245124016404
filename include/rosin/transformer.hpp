// What transformers are made of beside attention: gated units and whole layers. Sequences are (features, length,
// batch). Read first: attention.hpp, normalise_layers.hpp.
#pragma once

#include <cstdint>

#include <rosin/activation.hpp>
#include <rosin/activation_value.hpp>
#include <rosin/array.hpp>
#include <rosin/attention.hpp>
#include <rosin/dense.hpp>
#include <rosin/dropout.hpp>
#include <rosin/normalise_layers.hpp>

namespace rosin {

/// a * act(b), a and b being the halves of x along `dim`: GLU with sigmoid, SwiGLU with swish, GEGLU with gelu.
/// Error (shape): an odd size. Source: NNlib.glu; Dauphin et al. (2017); Shazeer: GLU Variants (2020).
ROSIN_API Array glu(const Array& x, int dim = 0, const Activation& act = UnaryFunction{sigmoid});

/// `norm_first`: each part normalises its input (GPT-2, ViT); else what comes of it, added to the input (the paper).
struct TransformerOptions {
  Activation act = UnaryFunction{relu};
  double dropout = 0.1;
  bool norm_first = false;
  bool bias = true;
  double eps = 1e-5;
};

/// Attention of a sequence to itself, then two dense layers for each vector, both added to what came in.
/// Source: torch.nn.TransformerEncoderLayer; Vaswani et al. (2017).
struct ROSIN_API TransformerEncoderLayer {
  MultiHeadAttention self_attn;
  Dense linear1, linear2;
  LayerNorm norm1, norm2;
  Dropout dropout = 0.1;
  bool norm_first = false;
  static constexpr int rosin_fields = 7;

  TransformerEncoderLayer() = default;
  /// `hidden`: features between the dense layers.
  TransformerEncoderLayer(int64_t features, int64_t heads, int64_t hidden, const TransformerOptions& options = {});

  /// (features, length, batch) -> the same. `how` as of MultiHeadAttention: {.causal = true} for a language model.
  Array operator()(const Array& x, const AttentionOptions& how = {}) const;
  /// The causal layer for x that follows the places in the cache, which is one of `self_attn`: see
  /// MultiHeadAttention::next.
  Array next(const Array& x, KeyValueCache& cache) const;
};

/// The same, with attention to a second sequence in between. Source: torch.nn.TransformerDecoderLayer.
struct ROSIN_API TransformerDecoderLayer {
  MultiHeadAttention self_attn, multihead_attn;
  Dense linear1, linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout = 0.1;
  bool norm_first = false;
  static constexpr int rosin_fields = 9;

  TransformerDecoderLayer() = default;
  TransformerDecoderLayer(int64_t features, int64_t heads, int64_t hidden, const TransformerOptions& options = {});

  /// x (features, length, batch), memory (features, length of memory, batch) -> (features, length, batch). Attention to
  /// x itself is causal unless `how` says otherwise; `of_memory` is about the attention to memory.
  Array operator()(const Array& x, const Array& memory, const AttentionOptions& how = {.causal = true},
                   const AttentionOptions& of_memory = {}) const;
  /// The same for x that follows the places in the cache of `self_attn`.
  Array next(const Array& x, const Array& memory, KeyValueCache& cache, const AttentionOptions& of_memory = {}) const;
};

}  // namespace rosin
