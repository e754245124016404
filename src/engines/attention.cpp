// See attention.hpp; of Float32 and Float64.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/attention_head.hpp"
#include "engines/cuts.hpp"

namespace rosin::engines {

namespace {

using namespace attention;

/// As attention_body.hpp does it, without vectors.
bool fold_doubles(const LogitBlock<double>& b) {
  bool higher = false;
  for (int64_t row = 0; row < b.rows; ++row) {
    double* s = b.logits + row;
    double highest = b.highest[row];
    for (int64_t key = 0; key < b.keys; ++key) highest = s[key * b.pitch] <= highest ? highest : s[key * b.pitch];
    const double base = std::max(highest, std::numeric_limits<double>::lowest());
    b.factors[row] = std::exp(b.highest[row] - base);
    b.sums[row] *= b.factors[row];
    for (int64_t key = 0; key < b.keys; ++key) b.sums[row] += s[key * b.pitch] = std::exp(s[key * b.pitch] - base);
    b.highest[row] = highest;
    higher |= b.factors[row] != 1;
  }
  return higher;
}

void weigh_doubles(const SlopeBlock<double>& b) {
  for (int64_t key = 0; key < b.keys; ++key) {
    for (int64_t row = 0; row < b.rows; ++row) {
      const int64_t at = row + key * b.pitch;
      const double weight = std::exp(b.logits[at] - b.state[row]), kept = b.kept ? b.kept[at] : 1;
      b.slopes[at] = weight * (b.slopes[at] * kept - b.dots[row]);
      b.logits[at] = weight * kept;
    }
  }
}

template <class T> const AttentionKernels<T>& attention_kernels() {
  static constexpr AttentionKernels<double> of_doubles{fold_doubles, weigh_doubles};
  if constexpr (std::is_same_v<T, double>) return of_doubles;
  else return tile_kernels().attention;
}

/// One block of queries, and the keys and values of its head where they are copied.
template <class T> struct ForwardMemory {
  T *keys, *values, *queries, *logits, *kept, *y, *highest, *sums, *factors;
  float* numbers;

  ForwardMemory(const AttentionSpec& spec, bool copies, Scratch& scratch)
      : keys(copies ? scratch.numbers<T>(spec.keys * spec.features) : nullptr),
        values(copies ? scratch.numbers<T>(spec.keys * spec.value_features) : nullptr),
        queries(scratch.matrix<T>(spec.features)), logits(scratch.matrix<T>(block_keys)),
        kept(spec.kept < 1 ? scratch.matrix<T>(block_keys) : nullptr), y(scratch.matrix<T>(spec.value_features)),
        highest(scratch.matrix<T>(1)), sums(scratch.matrix<T>(1)), factors(scratch.matrix<T>(1)),
        numbers(spec.kept < 1 ? scratch.numbers<float>(block_keys) : nullptr) {}
};

template <class T> void scale_lines(const T* factors, int64_t lines, int64_t length, T* y) {
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t i = 0; i < length; ++i) *y++ *= factors[line];
  }
}

/// y += the weights of a part times the values of its keys.
template <class T>
void add_part(const AttentionSpec& spec, const Head<T>& head, const Part& part, const ForwardMemory<T>& m) {
  head.logits(part, m.queries, m.logits);
  T* weights = m.logits + part.row;
  if (attention_kernels<T>().fold({weights, block_queries, part.rows(), part.keys, m.highest + part.row,
                                   m.sums + part.row, m.factors + part.row})) {
    scale_rows(m.factors + part.row, part.rows(), spec.value_features, m.y + part.row);
  }
  if (m.kept) {
    head.draw_kept(part, m.numbers, m.kept);
    for (int64_t key = 0; key < part.keys; ++key) {
      const T* kept = m.kept + part.row + key * block_queries;
      for (int64_t row = 0; row < part.queries; ++row) weights[row + key * block_queries] *= kept[row];
    }
  }
  multiply<T>({.a = weights,
               .a_inner = block_queries,
               .b = head.value(part.first_key),
               .b_inner = head.value_step(),
               .b_column = 1,
               .c = m.y + part.row,
               .c_column = block_queries,
               .rows = part.rows(),
               .columns = spec.value_features,
               .inner = part.keys});
}

/// The same for few queries, all of a block, and none dropped: queries and y are lines.
template <class T>
void add_part_of_few(const AttentionSpec& spec, const Head<T>& head, const Part& part, const ForwardMemory<T>& m) {
  head.logits_of_few(part, m.queries, m.logits);
  if (attention_kernels<T>().fold({m.logits, block_queries, part.rows(), part.keys, m.highest, m.sums, m.factors})) {
    scale_lines(m.factors, part.queries, spec.value_features, m.y);
  }
  multiply<T>({.a = head.value(part.first_key),
               .a_inner = head.value_step(),
               .b = m.logits,
               .b_inner = block_queries,
               .b_column = 1,
               .c = m.y,
               .c_column = spec.value_features,
               .rows = spec.value_features,
               .columns = part.queries,
               .inner = part.keys});
}

template <class T>
void attend_few(const AttentionSpec& spec, const Head<T>& head, int64_t first, int64_t queries, T* y, int64_t step,
                const ForwardMemory<T>& m) {
  head.copy_queries(first, queries, m.queries);
  head.each_part(first, queries, [&](const Part& part) { add_part_of_few(spec, head, part, m); });
  for (int64_t row = 0; row < queries; ++row) m.factors[row] = T{1} / m.sums[row];
  scale_lines(m.factors, queries, spec.value_features, m.y);
  for (int64_t row = 0; row < queries; ++row) {
    std::copy_n(m.y + row * spec.value_features, spec.value_features, y + row * step);
  }
}

template <class T>
void attend_many(const AttentionSpec& spec, const Head<T>& head, int64_t first, int64_t queries, T* y, int64_t step,
                 const ForwardMemory<T>& m) {
  head.gather_queries(first, queries, m.queries);
  head.each_part(first, queries, [&](const Part& part) { add_part(spec, head, part, m); });
  for (int64_t row = 0; row < queries; ++row) m.factors[row] = T{1} / m.sums[row];
  scale_rows(m.factors, queries, spec.value_features, m.y);
  gather_rows(m.y, block_queries, y, step, spec.value_features, queries);
}

template <class T>
void attend(const AttentionSpec& spec, const Head<T>& head, const AttentionResults<T>& out, const Place& place,
            int64_t first, const ForwardMemory<T>& m) {
  const int64_t queries = std::min(block_queries, spec.queries - first);
  std::fill_n(m.y, spec.value_features * block_queries, T{0});
  std::fill_n(m.sums, block_queries, T{0});
  std::fill_n(m.highest, block_queries, -infinity<T>);
  const int64_t step = spec.heads * spec.value_features, line = first + spec.queries * place.item;
  T* const y = out.y + place.head * spec.value_features + line * step;
  const bool few = queries <= few_queries && spec.kept == 1;
  (few ? attend_few<T> : attend_many<T>)(spec, head, first, queries, y, step, m);
  if (!out.state) return;
  T* state = out.state + first + spec.queries * (place.head + spec.heads * place.item);
  for (int64_t row = 0; row < queries; ++row) state[row] = m.highest[row] + std::log(m.sums[row]);
}

/// Keys of one head of several are far apart: copied, they are read from the second cache by each block of queries.
bool copies_keys(const AttentionSpec& spec, int64_t blocks) {
  return blocks > 1 && (spec.k.place > spec.features || spec.v.place > spec.value_features);
}

template <class T> struct GradientMemory {
  T *keys, *values, *queries, *slopes, *logits, *logit_slopes, *kept, *state, *dots;
  float* numbers;

  GradientMemory(const AttentionSpec& spec, bool copies, Scratch& scratch)
      : keys(copies ? scratch.numbers<T>(spec.keys * spec.features) : nullptr),
        values(copies ? scratch.numbers<T>(spec.keys * spec.value_features) : nullptr),
        queries(scratch.matrix<T>(spec.features)), slopes(scratch.matrix<T>(spec.value_features)),
        logits(scratch.matrix<T>(block_keys)), logit_slopes(scratch.matrix<T>(block_keys)),
        kept(spec.kept < 1 ? scratch.matrix<T>(block_keys) : nullptr), state(scratch.matrix<T>(1)),
        dots(scratch.matrix<T>(1)), numbers(spec.kept < 1 ? scratch.numbers<float>(block_keys) : nullptr) {}
};

/// Slopes of the queries of one head, added to those of its keys and values.
template <class T> class HeadGradient {
 public:
  HeadGradient(const AttentionSpec& spec, const AttentionBuffers<T>& in, const AttentionResults<T>& out,
               const Place& place, const GradientMemory<T>& memory)
      : spec_(spec), head_(spec, in, place), m_(memory), q_step_(spec.heads * spec.features),
        k_step_(spec.kv_heads * spec.features), v_step_(spec.kv_heads * spec.value_features) {
    const int64_t kv_head = place.head / (spec.heads / spec.kv_heads);
    y_ = in.y + place.head * spec.value_features + place.item * spec.y.item;
    dy_ = in.dy + place.head * spec.value_features + place.item * spec.dy.item;
    state_ = in.state + spec.queries * (place.head + spec.heads * place.item);
    dq_ = out.dq + place.head * spec.features + place.item * spec.queries * q_step_;
    dk_ = out.dk + kv_head * spec.features + place.item * spec.keys * k_step_;
    dv_ = out.dv + kv_head * spec.value_features + place.item * spec.keys * v_step_;
    if (m_.keys) head_.gather_keys(m_.keys, m_.values);
  }

  void run_block(int64_t first) const {
    const int64_t queries = std::min(block_queries, spec_.queries - first);
    head_.gather_queries(first, queries, m_.queries);
    Head<T>::gather_vectors(dy_ + first * spec_.dy.place, spec_.dy.place, queries, spec_.value_features, m_.slopes);
    find_dots(first, queries);
    for (int64_t i = 0; i < queries; ++i) std::fill_n(dq_ + (first + i) * q_step_, spec_.features, T{0});
    head_.each_part(first, queries, [&](const Part& part) { add_part(part); });
    for (int64_t i = 0; i < queries; ++i) {
      T* dq = dq_ + (first + i) * q_step_;
      for (int64_t f = 0; f < spec_.features; ++f) dq[f] *= static_cast<T>(spec_.scale);
    }
  }

 private:
  /// Of each query: the sum of y times its slope, which is that of the weights times theirs.
  void find_dots(int64_t first, int64_t queries) const {
    std::fill_n(m_.dots, block_queries, T{0});
    std::fill_n(m_.state, block_queries, infinity<T>);
    for (int64_t row = 0; row < queries; ++row) {
      const T* y = y_ + (first + row) * spec_.y.place;
      const T* dy = dy_ + (first + row) * spec_.dy.place;
      if (state_[first + row] == -infinity<T>) continue;  // sees nothing: weights of 0
      T sums[8] = {};
      int64_t f = 0;
      for (; f + 8 <= spec_.value_features; f += 8) {
        for (int64_t lane = 0; lane < 8; ++lane) sums[lane] += y[f + lane] * dy[f + lane];
      }
      for (; f < spec_.value_features; ++f) sums[0] += y[f] * dy[f];
      m_.dots[row] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
      m_.state[row] = state_[first + row];
    }
  }

  void add_part(const Part& part) const {
    head_.logits(part, m_.queries, m_.logits);
    T *weights = m_.logits + part.row, *slopes = m_.logit_slopes + part.row;
    multiply<T>({.a = m_.slopes + part.row,
                 .a_inner = block_queries,
                 .b = head_.value(part.first_key),
                 .b_inner = 1,
                 .b_column = head_.value_step(),
                 .c = slopes,
                 .c_column = block_queries,
                 .rows = part.rows(),
                 .columns = part.keys,
                 .inner = spec_.value_features,
                 .accumulate = false});
    if (m_.kept) head_.draw_kept(part, m_.numbers, m_.kept);
    attention_kernels<T>().weigh({.logits = weights,
                                  .slopes = slopes,
                                  .kept = m_.kept ? m_.kept + part.row : nullptr,
                                  .state = m_.state + part.row,
                                  .dots = m_.dots + part.row,
                                  .pitch = block_queries,
                                  .rows = part.rows(),
                                  .keys = part.keys});
    multiply(by_key(part, dy_ + part.first_query * spec_.dy.place, spec_.dy.place, weights, dv_, v_step_,
                    spec_.value_features));
    multiply(by_key(part, head_.query(part.first_query), spec_.q.place, slopes, dk_, k_step_, spec_.features));
    multiply<T>({.a = head_.key(part.first_key),
                 .a_inner = head_.key_step(),
                 .b = slopes,
                 .b_inner = block_queries,
                 .b_column = 1,
                 .c = dq_ + part.first_query * q_step_,
                 .c_column = q_step_,
                 .rows = spec_.features,
                 .columns = part.queries,
                 .inner = part.keys});
  }

  /// out (features, keys) += vectors of the queries times what each has for each key.
  static Product<T> by_key(const Part& part, const T* vectors, int64_t place, const T* matrix, T* out, int64_t step,
                           int64_t features) {
    return {.a = vectors,
            .a_inner = place,
            .b = matrix,
            .b_inner = 1,
            .b_column = block_queries,
            .c = out + part.first_key * step,
            .c_column = step,
            .rows = features,
            .columns = part.keys,
            .inner = part.queries};
  }

  const AttentionSpec& spec_;
  Head<T> head_;
  const GradientMemory<T>& m_;
  int64_t q_step_, k_step_, v_step_;  // of places of results
  const T *y_, *dy_, *state_;
  T *dq_, *dk_, *dv_;
};

/// Vectors of one head at all places of an item.
template <class T, class F> void each_vector(T* first, int64_t step, int64_t places, int64_t features, F&& f) {
  for (int64_t t = 0; t < places; ++t) {
    for (int64_t i = 0; i < features; ++i) f(first[t * step + i]);
  }
}

}  // namespace

template <class T>
AttentionForward<T>::AttentionForward(const AttentionSpec& spec)
    : spec_(spec), blocks_((spec.queries + block_queries - 1) / block_queries) {
  const int64_t heads = std::max<int64_t>(spec.heads * spec.batch, 1);
  parts_ = std::clamp<int64_t>(wanted_chunks / heads, 1, blocks_);
  copies_ = copies_keys(spec, blocks_ / parts_);
}

template <class T> size_t AttentionForward<T>::scratch_bytes() const {
  Scratch count(nullptr);
  ForwardMemory<T>(spec_, copies_, count);
  return count.used();
}

template <class T>
void AttentionForward<T>::run(int64_t chunk, const AttentionBuffers<T>& in, const AttentionResults<T>& out,
                              void* scratch) const {
  Scratch memory(scratch);
  const ForwardMemory<T> pieces(spec_, copies_, memory);
  const int64_t part = chunk % parts_, head = chunk / parts_;
  const Place place{head % spec_.heads, head / spec_.heads};
  Head<T> of_head(spec_, in, place);
  if (copies_) of_head.gather_keys(pieces.keys, pieces.values);
  for (int64_t block = part_begin(blocks_, parts_, part); block < part_begin(blocks_, parts_, part + 1); ++block)
    attend(spec_, of_head, out, place, block * block_queries, pieces);
}

template <class T>
AttentionGradient<T>::AttentionGradient(const AttentionSpec& spec)
    : spec_(spec), copies_(copies_keys(spec, (spec.queries + block_queries - 1) / block_queries)) {}

template <class T> size_t AttentionGradient<T>::scratch_bytes() const {
  Scratch count(nullptr);
  GradientMemory<T>(spec_, copies_, count);
  return count.used();
}

template <class T>
void AttentionGradient<T>::run(int64_t chunk, const AttentionBuffers<T>& in, const AttentionResults<T>& out,
                               void* scratch) const {
  const AttentionSpec& s = spec_;
  Scratch memory(scratch);
  const GradientMemory<T> pieces(s, copies_, memory);
  const int64_t kv_head = chunk % s.kv_heads, item = chunk / s.kv_heads, each = s.heads / s.kv_heads;
  const int64_t k_step = s.kv_heads * s.features, v_step = s.kv_heads * s.value_features;
  T* dk = out.dk + kv_head * s.features + item * s.keys * k_step;
  T* dv = out.dv + kv_head * s.value_features + item * s.keys * v_step;
  each_vector(dk, k_step, s.keys, s.features, [](T& x) { x = 0; });
  each_vector(dv, v_step, s.keys, s.value_features, [](T& x) { x = 0; });
  for (int64_t head = kv_head * each; head < (kv_head + 1) * each; ++head) {
    const HeadGradient<T> gradient(s, in, out, {head, item}, pieces);
    for (int64_t first = 0; first < s.queries; first += block_queries) gradient.run_block(first);
  }
  each_vector(dk, k_step, s.keys, s.features, [&](T& x) { x *= static_cast<T>(s.scale); });
}

template class AttentionForward<float>;
template class AttentionForward<double>;
template class AttentionGradient<float>;
template class AttentionGradient<double>;

}  // namespace rosin::engines
