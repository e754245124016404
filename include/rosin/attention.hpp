// Attention: what vectors of one sequence gather from those of another. Sequences are (features, length, batch) or
// (features, length); heads lie one after another in the features. Read first: dense.hpp. Read next: transformer.hpp.
// Source: Vaswani et al. (2017); NNlib.dot_product_attention, Flux.MultiHeadAttention.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/array.hpp>
#include <rosin/dense.hpp>
#include <rosin/dropout.hpp>
#include <rosin/init.hpp>

namespace rosin {

/// What attention leaves out, and how it weighs. `bias` and `mask` are (kv length, q length, heads, batch), or what
/// broadcasts to that; true in the mask keeps, false leaves out.
struct AttentionOptions {
  int64_t heads = 1;
  int64_t kv_heads = 0;  // fewer than heads: each serves heads / kv_heads of them; 0: as many
  Array bias = {};       // added to the logits
  Array mask = {};       // Bool
  bool causal = false;   // the last query sees all, the one before it all but the last, and so on
  double scale = 0;      // of the logits; 0: 1 / sqrt(features of a head)
  Dropout drop = 0;      // of the scores
};

struct AttentionResult {
  Array out;     // (features of v, q length, batch)
  Array scores;  // (kv length, q length, heads, batch): columns sum to 1, before the dropout
};

/// v softmax(kᵀ q scale + bias). q is (features, q length, batch), k (features, kv length, batch), v (features of v,
/// kv length, batch); with fewer kv heads k and v have as many features as those take. A query that may see none of the
/// keys gives NaN; where there are no keys, results are 0. Errors (shape): heads do not divide the features; lengths,
/// features or batches differ.
ROSIN_API AttentionResult dot_product_attention(const Array& q, const Array& k, const Array& v,
                                                const AttentionOptions& options = {});
/// The scores alone.
ROSIN_API Array dot_product_attention_scores(const Array& q, const Array& k, const AttentionOptions& options = {});
/// (length, length) Bool for x (features, length, ...): key i may be seen by query j where i <= j.
ROSIN_API Array make_causal_mask(const Array& x);

/// Biases (kv length, q length, heads) that fall with the distance, by a slope for each head; for AttentionOptions.
/// Source: Press, Smith, Lewis: Train Short, Test Long (2022).
ROSIN_API Array alibi_bias(int64_t heads, int64_t q_length, int64_t kv_length);

struct RotaryOptions {
  int64_t heads = 1;
  int64_t offset = 0;  // place of the first vector
  int64_t dims = 0;    // features of each head that turn; 0: all
  double base = 10000;
  bool interleaved = false;  // pairs are neighbours (RoFormer, GPT-J), else the halves of a head (GPT-NeoX, Llama)
};
/// x (features, length, batch) whose pairs of features are turned by angles that grow with the place: pair i at place t
/// by t / base^(2 i / dims). Error (shape): heads do not divide the features; an odd number of them turns.
/// Source: Su et al.: RoFormer (2021).
ROSIN_API Array rotary_embedding(const Array& x, const RotaryOptions& options = {});

/// Features of what goes in and out of MultiHeadAttention.
struct AttentionSizes {
  int64_t q_in, k_in, v_in;
  int64_t qk, v;  // of all heads together
  int64_t out;
};

struct MultiHeadAttentionOptions {
  int64_t nheads = 8;
  bool bias = false;
  double dropout_prob = 0;
  Init init = glorot_uniform;
};

/// Keys and values of the places read so far: what a model that writes one token after another keeps for each
/// attention. Its memory grows by doubling, up to `capacity` places, so that a step costs what was read and not what
/// may come. A value: a copy branches off. See MultiHeadAttention::next.
struct KeyValueCache {
  Array keys;            // (features, places, batch)
  Array values;          // (features of v, places, batch)
  int64_t length = 0;    // places that are filled
  int64_t capacity = 0;  // places at most; 0: no limit
};

/// out_proj(attention of q_proj(q), k_proj(k), v_proj(v)). Source: Flux.MultiHeadAttention.
struct ROSIN_API MultiHeadAttention {
  int64_t nheads = 8;
  Dense q_proj, k_proj, v_proj;
  Dropout attn_drop = 0;
  Dense out_proj;
  static constexpr int rosin_fields = 6;

  MultiHeadAttention() = default;
  /// All sizes `dims`.
  explicit MultiHeadAttention(int64_t dims, const MultiHeadAttentionOptions& options = {})
      : MultiHeadAttention(dims, dims, dims, options) {}
  /// Flux's in => qkv => out.
  MultiHeadAttention(int64_t in, int64_t qkv, int64_t out, const MultiHeadAttentionOptions& options = {})
      : MultiHeadAttention(AttentionSizes{in, in, in, qkv, qkv, out}, options) {}
  /// Error (argument): nheads does not divide qk and v.
  explicit MultiHeadAttention(const AttentionSizes& sizes, const MultiHeadAttentionOptions& options = {});

  /// Of a sequence to itself: (in, length, batch) -> (out, length, batch). `how` says what is masked; heads and dropout
  /// are the layer's.
  Array operator()(const Array& x, const AttentionOptions& how = {}) const { return attend(x, x, x, how).out; }
  /// Of q to k and v: (out, q length, batch).
  Array operator()(const Array& q, const Array& k, const Array& v, const AttentionOptions& how = {}) const {
    return attend(q, k, v, how).out;
  }
  /// The scores too, as Flux's call.
  AttentionResult attend(const Array& q, const Array& k, const Array& v, const AttentionOptions& how = {}) const;

  /// An empty cache of so many places at most; 0: no limit.
  KeyValueCache cache(int64_t capacity, int64_t batch) const;
  /// The causal attention of x (in, length, batch), which follows what the cache holds, to that and to itself; puts x
  /// into the cache. Errors: argument (the capacity is exceeded), shape (another batch than the cache's); it stays as
  /// it was then.
  Array next(const Array& x, KeyValueCache& cache) const;
  std::string rosin_show() const;
};

}  // namespace rosin
