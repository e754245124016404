// What attention's engines share: blocks of a head's queries, the parts of its keys that they see, and what becomes of
// their logits. A matrix with one row for each query of a block is column-major, its columns block_queries apart, so
// that its rows fill vectors. Read first: attention.hpp. Read next: attention.cpp, attention_bfloats.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "engines/attention.hpp"
#include "engines/gather_rows.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines::attention {

inline constexpr int64_t block_queries = 64, block_keys = 64;
/// Where some queries of a block see only some of its keys, so many at a time are taken: the fewer, the less is
/// computed in vain. Whole vectors of every processor.
inline constexpr int64_t edge_queries = 16;
/// As few as a model has that writes one token after another fill no vector: vectors go along the features then.
/// Queries and results of a block are lines, one after the other.
inline constexpr int64_t few_queries = 2;

template <class T> inline constexpr T infinity = std::numeric_limits<T>::infinity();

inline int64_t whole_vectors(int64_t queries) { return (queries + edge_queries - 1) / edge_queries * edge_queries; }

/// Memory of a chunk, handed out piece by piece; without any it counts.
class Scratch {
 public:
  explicit Scratch(void* memory) : memory_(static_cast<unsigned char*>(memory)) {}
  template <class T> T* numbers(int64_t count) {
    const size_t at = used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return memory_ ? reinterpret_cast<T*>(memory_ + at) : nullptr;
  }
  template <class T> T* matrix(int64_t columns) { return numbers<T>(columns * block_queries); }
  size_t used() const { return used_; }

 private:
  unsigned char* memory_;
  size_t used_ = 0;
};

/// C [+]= A B with the rows of A and C contiguous.
template <class T> struct Product {
  const T* a;
  int64_t a_inner;
  const T* b;
  int64_t b_inner, b_column;
  T* c;
  int64_t c_column;
  int64_t rows, columns, inner;
  bool accumulate = true;
};

template <class T> void multiply(const Product<T>& p) {
  static constexpr int64_t no_offset = 0;
  TileProduct<T> tile;
  tile.a = p.a;
  tile.a_inner = p.a_inner;
  tile.b = p.b;
  tile.b_offsets = &no_offset;
  tile.b_inner = p.b_inner;
  tile.b_column = p.b_column;
  tile.c = p.c;
  tile.c_column = p.c_column;
  tile.rows = p.rows;
  tile.columns = p.columns;
  tile.inner = p.inner;
  tile.accumulate = p.accumulate;
  tile_kernels_for(p.rows * int64_t{sizeof(T)}).template of<T>().multiply(tile);
}

/// Which head of which item is computed.
struct Place {
  int64_t head, item;
};

/// Some queries of a block with some keys.
struct Part {
  int64_t first_query, queries;  // `row`: the first of them in the block's matrices
  int64_t row;
  int64_t first_key, keys;
  bool is_masked = false;  // some are left out by a mask

  int64_t rows() const { return whole_vectors(queries); }
};

/// What all passes do with the logits of a head.
template <class T> class Head {
 public:
  using Logit = LogitOf<T>;

  Head(const AttentionSpec& spec, const AttentionBuffers<T>& in, const Place& place)
      : spec_(spec), in_(in), place_(place), kv_head_(place.head / (spec.heads / spec.kv_heads)),
        q_(in.q + place.head * spec.features + place.item * spec.q.item),
        k_(in.k + kv_head_ * spec.features + place.item * spec.k.item),
        v_(in.v + kv_head_ * spec.value_features + place.item * spec.v.item), key_step_(spec.k.place),
        value_step_(spec.v.place) {}

  const T* query(int64_t i) const { return q_ + i * spec_.q.place; }
  const T* key(int64_t i) const { return k_ + i * key_step_; }
  const T* value(int64_t i) const { return v_ + i * value_step_; }
  int64_t key_step() const { return key_step_; }
  int64_t value_step() const { return value_step_; }

  /// Keys and values are copied, the ones behind the others, and read there.
  void gather_keys(T* keys, T* values) {
    k_ = gathered(k_, std::exchange(key_step_, spec_.features), spec_.features, keys);
    v_ = gathered(v_, std::exchange(value_step_, spec_.value_features), spec_.value_features, values);
  }

  /// The keys that the query may see, of those that have not been left out by a mask.
  int64_t seen_by(int64_t query) const {
    if (!spec_.causal) return spec_.keys;
    return std::clamp<int64_t>(query + 1 + spec_.keys - spec_.queries, 0, spec_.keys);
  }

  /// Calls f(part) for the block's queries with all keys that any of them may see, but parts that a mask leaves out.
  template <class F> void each_part(int64_t first_query, int64_t queries, F&& visit) const {
    const auto f = [&](Part part) {
      if (in_.mask && is_all(false, part)) return;
      part.is_masked = in_.mask && !is_all(true, part);
      visit(part);
    };
    const int64_t seen_by_last = seen_by(first_query + queries - 1), seen_by_first = seen_by(first_query);
    for (int64_t key = 0; key < seen_by_last; key += block_keys) {
      const int64_t keys = std::min(block_keys, seen_by_last - key);
      if (key + keys <= seen_by_first) {
        f(Part{first_query, queries, 0, key, keys});
        continue;
      }
      for (int64_t row = 0; row < queries; row += edge_queries) {
        const int64_t count = std::min(edge_queries, queries - row);
        const int64_t seen = std::min(seen_by(first_query + row + count - 1) - key, keys);
        if (seen > 0) f(Part{first_query + row, count, row, key, seen});
      }
    }
  }

  /// (queries, features), times the scale; rows that fill up vectors are 0.
  void gather_queries(int64_t first, int64_t count, T* out) const {
    gather_vectors(query(first), spec_.q.place, count, spec_.features, out);
    for (int64_t i = 0; i < spec_.features * block_queries; ++i) out[i] *= static_cast<T>(spec_.scale);
  }

  static void gather_vectors(const T* from, int64_t place, int64_t count, int64_t features, T* out) {
    const int64_t rows = whole_vectors(count);
    for (int64_t f = 0; count < rows && f < features; ++f) {
      std::fill(out + f * block_queries + count, out + f * block_queries + rows, T{0});
    }
    gather_rows(from, place, out, block_queries, count, features);
  }

  /// The same as lines.
  void copy_queries(int64_t first, int64_t count, T* out) const {
    for (int64_t i = 0; i < count; ++i) {
      const T* const from = query(first + i);
      for (int64_t f = 0; f < spec_.features; ++f) *out++ = from[f] * static_cast<T>(spec_.scale);
    }
  }

  /// Of gathered queries with keys, without those that a query may not see.
  void logits(const Part& part, const T* queries, T* out) const {
    multiply<T>({.a = queries + part.row,
                 .a_inner = block_queries,
                 .b = key(part.first_key),
                 .b_inner = 1,
                 .b_column = key_step_,
                 .c = out + part.row,
                 .c_column = block_queries,
                 .rows = part.rows(),
                 .columns = part.keys,
                 .inner = spec_.features,
                 .accumulate = false});
    finish_logits(part, out + part.row);
  }

  /// Of lines of queries, which are all of the part; 0 in what fills up a vector.
  void logits_of_few(const Part& part, const T* lines, T* out) const {
    for (int64_t key = 0; key < part.keys; ++key) std::fill_n(out + key * block_queries, edge_queries, T{0});
    DotProduct<T> dots;
    dots.a = lines;
    dots.a_row = spec_.features;
    dots.b = key(part.first_key);
    dots.b_column = key_step_;
    dots.c = out;
    dots.c_column = block_queries;
    dots.rows = part.queries;
    dots.columns = part.keys;
    dots.steps = spec_.features;
    tile_kernels().template of<T>().dots(dots);
    finish_logits(part, out);
  }

  /// 0 for weights that are dropped, else what the others are multiplied by.
  void draw_kept(const Part& part, float* numbers, T* out) const {
    const auto factor = static_cast<T>(1.0 / spec_.kept);
    const auto share = static_cast<float>(spec_.kept);
    for (int64_t row = 0; row < part.queries; ++row) {
      const int64_t line = part.first_query + row + spec_.queries * (place_.head + spec_.heads * place_.item);
      spec_.numbers(numbers, part.first_key + line * spec_.keys, part.keys, in_.key, in_.counter);
      T* kept = out + part.row + row;
      for (int64_t k = 0; k < part.keys; ++k) kept[k * block_queries] = numbers[k] < share ? factor : T{0};
    }
  }

  /// Bias, and -Inf for what a query may not see; `s` is the logit of the part's first query and key.
  void finish_logits(const Part& part, Logit* s) const {
    if (in_.bias) add_bias(part, s);
    if (part.is_masked) leave_out(part, s);
    for (int64_t row = 0; row < part.queries; ++row) {
      const int64_t seen = std::max<int64_t>(seen_by(part.first_query + row) - part.first_key, 0);
      for (int64_t key = seen; key < part.keys; ++key) s[row + key * block_queries] = -infinity<Logit>;
    }
  }

 private:
  const T* gathered(const T* from, int64_t step, int64_t features, T* to) const {
    for (int64_t key = 0; key < spec_.keys; ++key) std::copy_n(from + key * step, features, to + key * features);
    return to;
  }

  int64_t at(const LogitStrides& strides, const Part& part) const {
    return part.first_key * strides.key + part.first_query * strides.query + place_.head * strides.head +
           place_.item * strides.item;
  }

  void add_bias(const Part& part, Logit* s) const {
    const Logit* bias = in_.bias + at(spec_.bias, part);
    for (int64_t key = 0; key < part.keys; ++key, s += block_queries, bias += spec_.bias.key) {
      for (int64_t row = 0; row < part.queries; ++row) s[row] += bias[row * spec_.bias.query];
    }
  }

  /// Whether the mask has that for each query with each key of the part.
  bool is_all(bool seen, const Part& part) const {
    const auto counts = [](int64_t stride, int64_t all) { return stride == 0 ? 1 : all; };  // of those that differ
    const int64_t keys = counts(spec_.mask.key, part.keys), queries = counts(spec_.mask.query, part.queries);
    const unsigned char* mask = in_.mask + at(spec_.mask, part);
    for (int64_t row = 0; row < queries; ++row, mask += spec_.mask.query) {
      if (spec_.mask.key <= 1) {
        if (std::memchr(mask, !seen, static_cast<size_t>(keys)) != nullptr) return false;
        continue;
      }
      for (int64_t key = 0; key < keys; ++key) {
        if ((mask[key * spec_.mask.key] != 0) != seen) return false;
      }
    }
    return true;
  }

  void leave_out(const Part& part, Logit* s) const {
    const unsigned char* mask = in_.mask + at(spec_.mask, part);
    for (int64_t key = 0; key < part.keys; ++key, s += block_queries, mask += spec_.mask.key) {
      for (int64_t row = 0; row < part.queries; ++row)
        s[row] = mask[row * spec_.mask.query] ? s[row] : -infinity<Logit>;
    }
  }

  const AttentionSpec& spec_;
  const AttentionBuffers<T>& in_;
  Place place_;
  int64_t kv_head_;
  const T *q_, *k_, *v_;
  int64_t key_step_, value_step_;  // from one key to the next
};

template <class T> void scale_rows(const T* factors, int64_t rows, int64_t columns, T* y) {
  for (int64_t column = 0; column < columns; ++column, y += block_queries) {
    for (int64_t row = 0; row < rows; ++row) y[row] *= factors[row];
  }
}

}  // namespace rosin::engines::attention
