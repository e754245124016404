// Attention of sequences in blocks of queries and keys, in Float32 and Float64: the logits of a block stand in the
// cache, and those of all queries with all keys nowhere. Read first: attention_block.hpp, tile_kernel.hpp. Source: Dao
// et al.: FlashAttention (2022); Milakov, Gimelshein: Online normalizer calculation for softmax (2018).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rosin::engines {

/// Numbers [begin, begin + count) in [0, 1) of the draw of `key` from block `counter` on.
using NumberLoop = void (*)(void* out, int64_t begin, int64_t count, uint64_t key, uint64_t counter);

/// Feature f of head h at place t of item b is element f + h * features + t * place + b * item.
struct SequenceStrides {
  int64_t place = 0, item = 0;
};

/// Of what is added to logits, or leaves them out: element (key, query, head, item); 0 where it repeats.
struct LogitStrides {
  int64_t key = 0, query = 0, head = 0, item = 0;
};

struct AttentionSpec {
  int64_t queries = 0, keys = 0, batch = 1, heads = 1, kv_heads = 1;
  int64_t features = 1, value_features = 1;  // of a head
  SequenceStrides q, k, v, y, dy;            // of those that are read; results have no gaps
  LogitStrides bias, mask;
  double scale = 1;     // of the logits
  bool causal = false;  // the last query sees all keys, the one before it all but the last
  double kept = 1;      // the share of the weights that is not dropped; element (key, query, head, item) of the draw
  NumberLoop numbers = nullptr;
};

/// What logits, their sums and biases are kept in, for elements of a type.
template <class T> using LogitOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Null: there is none. `key` and `counter` are those of the draw; y, dy and state those of the gradient; state
/// (queries, heads, batch) has the logarithms of the sums of e^logit.
template <class T> struct AttentionBuffers {
  const T *q = nullptr, *k = nullptr, *v = nullptr;
  const LogitOf<T>* bias = nullptr;
  const unsigned char* mask = nullptr;
  uint64_t key = 0, counter = 0;
  const T *y = nullptr, *dy = nullptr;
  const LogitOf<T>* state = nullptr;
};

/// y and, unless that is null, state; or the slopes. A query that sees no key gets NaN and gives no slopes.
template <class T> struct AttentionResults {
  T* y = nullptr;
  LogitOf<T>* state = nullptr;
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

/// Work that is cut by sizes alone. `scratch` has scratch_bytes() bytes, aligned to 64, that no other chunk uses.
template <class T> class AttentionForward {
 public:
  using Element = T;
  static constexpr bool is_gradient = false;
  explicit AttentionForward(const AttentionSpec& spec);
  int64_t chunks() const { return spec_.heads * spec_.batch * parts_; }
  size_t scratch_bytes() const;
  void run(int64_t chunk, const AttentionBuffers<T>& in, const AttentionResults<T>& out, void* scratch) const;

 private:
  static constexpr int64_t wanted_chunks = 16;

  AttentionSpec spec_;
  int64_t blocks_ = 0, parts_ = 1;  // of the queries of a head, and in how many chunks
  bool copies_ = false;             // keys and values of the head
};

/// A chunk is a head of the keys in an item of the batch, with all its queries.
template <class T> class AttentionGradient {
 public:
  using Element = T;
  static constexpr bool is_gradient = true;
  explicit AttentionGradient(const AttentionSpec& spec);
  int64_t chunks() const { return spec_.kv_heads * spec_.batch; }
  size_t scratch_bytes() const;
  void run(int64_t chunk, const AttentionBuffers<T>& in, const AttentionResults<T>& out, void* scratch) const;

 private:
  AttentionSpec spec_;
  bool copies_;  // keys and values of the head
};

extern template class AttentionForward<float>;
extern template class AttentionForward<double>;
extern template class AttentionGradient<float>;
extern template class AttentionGradient<double>;

}  // namespace rosin::engines
