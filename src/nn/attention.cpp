// Attention: see rosin/attention.hpp. Inside, x is (features of a head, length, heads, batch).
#include <rosin/attention.hpp>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/layer.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>

#include <rosin/show.hpp>

#include <cmath>

#include "graph/context.hpp"
#include "graph/op.hpp"
#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "ops/attention.hpp"
#include "ops/autocast_casts.hpp"

namespace rosin {
namespace {

/// Places of a cache that there is memory for in the beginning.
constexpr int64_t first_places = 64;

/// x (features, places, batch) with memory for so many places, of `capacity` at most where that is not 0.
Array with_room(const Array& x, int64_t length, int64_t capacity) {
  int64_t places = std::max(x.size(1), first_places);
  while (places < length) places *= 2;
  if (capacity > 0) places = std::min(places, capacity);
  return places > x.size(1) ? pad(x, 1, 0, places - x.size(1)) : x;
}

[[noreturn]] void refuse_shape(std::string_view op, const std::string& rule, const std::string& got,
                               std::string_view cure) {
  throw Error(ErrorKind::shape, std::string(op) + ": " + rule + "; got " + got + "; " + std::string(cure));
}

int64_t kv_heads_of(std::string_view op, const AttentionOptions& options) {
  const int64_t count = options.kv_heads == 0 ? options.heads : options.kv_heads;
  if (count >= 1 && options.heads >= 1 && options.heads % count == 0) return count;
  throw Error(ErrorKind::argument, std::string(op) + ": kv_heads divide the heads; got " + std::to_string(count) +
                                       " for " + std::to_string(options.heads) + "; choose a divisor");
}

void check_mask(std::string_view op, const Array& mask) {
  if (mask.is_nothing() || mask.dtype() == Bool) return;
  throw Error(ErrorKind::dtype, std::string(op) + ": a mask is Bool, true where a key may be seen; got " +
                                    to_string(mask.dtype()) + "; what is added to the logits is the bias");
}

void check_broadcast(std::string_view op, const char* name, const Array& x, const Shape& logits) {
  if (x.is_nothing()) return;
  const Shape shape = x.shape();
  bool fits = shape.rank() <= logits.rank();
  for (int d = 0; fits && d < shape.rank(); ++d) fits = shape[d] == 1 || shape[d] == logits[d];
  if (fits) return;
  refuse_shape(
      op, std::string("a ") + name + " broadcasts to (kv length, q length, heads, batch), " + to_string(logits),
      to_string(shape),
      "of (kv length, batch), keys that all queries of a sequence see, make reshape(x, {kv length, 1, 1, batch})");
}

/// Of queries with this many features.
LogitForm logit_form(const AttentionOptions& options, int64_t features) {
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(features));
  return {scale, options.bias, options.mask, options.causal};
}

/// Of heads (features, length, heads, batch): (kv length, q length, heads, batch).
Array scores_of(std::string_view op, const Array& q, const Array& k, const AttentionOptions& options) {
  check_mask(op, options.mask);
  if (k.size(0) != q.size(0) || (k.size(3) != q.size(3) && k.size(3) != 1 && q.size(3) != 1)) {
    refuse_shape(op, "queries and keys have equal features and batches",
                 to_string(q.shape()) + " and " + to_string(k.shape()) + " (features, length, heads, batch)",
                 "project one of them");
  }
  const Shape logits{k.size(1), q.size(1), q.size(2), std::max(q.size(3), k.size(3))};
  check_broadcast(op, "mask", options.mask, logits);
  check_broadcast(op, "bias", options.bias, logits);
  return attention_weights(q, k, logit_form(options, q.size(0)));
}

/// Whether weights are dropped one by one, or none is.
bool drops_singly(const Dropout& drop) {
  return !is_training(drop.mode) || drop.p == 0 || (drop.p < 1 && drop.dims.list().empty());
}

/// In an autocast scope all of it is computed as a half model's would be.
AttentionResult attention_of(std::string_view op, const Array& q, const Array& k, const Array& v,
                             const AttentionOptions& options) {
  if (is_autocast()) {
    const Array query = halved(q), key = halved(k), value = halved(v);
    const Autocast off(nothing);
    return attention_of(op, query, key, value, options);
  }
  const int64_t kv_heads = kv_heads_of(op, options), each = options.heads / kv_heads;
  const Array queries = split_heads(op, q, options.heads);
  const Array keys = shared_among(split_heads(op, k, kv_heads), each);
  const Array values = shared_among(split_heads(op, v, kv_heads), each);
  if (keys.size(1) != values.size(1)) {
    refuse_shape(op, "there is a value for each key", to_string(k.shape()) + " and " + to_string(v.shape()),
                 "give sequences of one length");
  }
  const Array scores = scores_of(op, queries, keys, options);
  const BlockedAttention blocked{q, k, v, options.heads, kv_heads, logit_form(options, queries.size(0))};
  const double dropped = is_training(options.drop.mode) ? options.drop.p : 0;
  if (drops_singly(options.drop) && is_blocked(blocked, dropped > 0)) {
    Rng* const given = options.drop.rng;
    return {blocked_attention(blocked, dropped, dropped > 0 && !given ? &default_rng() : given), scores};
  }
  return {join_heads(matmul(values, options.drop(scores)), q.rank()), scores};
}

/// (heads) slopes of ALiBi: 2^(-8 i / n), i = 1 ... n, for n heads that are a power of two; else those of the power
/// below, then every second one of the power above.
Array alibi_slopes(int64_t heads) {
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const Array i = cast(arange(heads), Float32);
  const Array exponents = where(i < power, -8.0 * (i + 1), -4.0 * (2 * (i - power) + 1));
  return exp2(exponents / power);
}

const bool named[] = {name_function(make_causal_mask, "make_causal_mask")};

int64_t features_in(const Dense& layer) { return layer.weight.size(1); }
int64_t features_out(const Dense& layer) { return layer.weight.size(0); }

}  // namespace

AttentionResult dot_product_attention(const Array& q, const Array& k, const Array& v, const AttentionOptions& options) {
  return attention_of("dot_product_attention", q, k, v, options);
}

Array dot_product_attention_scores(const Array& q, const Array& k, const AttentionOptions& options) {
  constexpr std::string_view op = "dot_product_attention_scores";
  const int64_t kv_heads = kv_heads_of(op, options);
  const Array keys = shared_among(split_heads(op, k, kv_heads), options.heads / kv_heads);
  return scores_of(op, split_heads(op, q, options.heads), keys, options);
}

Array make_causal_mask(const Array& x) {
  if (x.rank() < 2)
    refuse_shape("make_causal_mask", "x is (features, length, ...)", to_string(x.shape()), "reshape it");
  return causal_mask(x.size(1), x.size(1));
}

Array alibi_bias(int64_t heads, int64_t q_length, int64_t kv_length) {
  if (heads < 1) {
    throw Error(ErrorKind::argument, "alibi_bias: there is a head; got " + std::to_string(heads) + "; give 1 or more");
  }
  const Array keys = reshape(arange(kv_length), {kv_length, 1, 1});
  const Array queries = reshape(arange(q_length), {1, q_length, 1}) + (kv_length - q_length);
  return cast(min(keys - queries, 0), Float32) * reshape(alibi_slopes(heads), {1, 1, heads});
}

Array rotary_embedding(const Array& x, const RotaryOptions& options) {
  constexpr std::string_view op = "rotary_embedding";
  const Array heads = split_heads(op, x, options.heads);
  const int64_t all = heads.size(0), length = heads.size(1), turning = options.dims > 0 ? options.dims : all;
  if (turning > all || turning % 2 != 0) {
    refuse_shape(op, "an even number of a head's features turns, at most all",
                 std::to_string(turning) + " of " + std::to_string(all), "state dims");
  }
  const int64_t pairs = turning / 2;
  const Array speeds = exp(cast(arange(pairs), Float32) * (-std::log(options.base) / static_cast<double>(pairs)));
  const Array places = cast(arange(options.offset, options.offset + length), Float32);
  const Array angles = reshape(speeds, {pairs, 1}) * reshape(places, {1, length});
  const Array cosine = unsqueeze(cast(cos(angles), x.dtype()), 2), sine = unsqueeze(cast(sin(angles), x.dtype()), 2);
  const Array part = slice(heads, 0, 0, turning);
  const Array a = options.interleaved ? slice(part, 0, 0, to_end, 2) : slice(part, 0, 0, pairs);
  const Array b = options.interleaved ? slice(part, 0, 1, to_end, 2) : slice(part, 0, pairs, turning);
  const Array left = a * cosine - b * sine, right = a * sine + b * cosine;
  Array y = options.interleaved ? reshape(stack({left, right}, 0), part.shape()) : concat({left, right}, 0);
  if (turning < all) y = concat({y, slice(heads, 0, turning, all)}, 0);
  return join_heads(y, x.rank());
}

MultiHeadAttention::MultiHeadAttention(const AttentionSizes& sizes, const MultiHeadAttentionOptions& options)
    : nheads(options.nheads), attn_drop(options.dropout_prob) {
  for (const auto& [name, count] : {std::pair{"qk_dim", sizes.qk}, {"v_dim", sizes.v}}) {
    if (nheads >= 1 && count % nheads == 0) continue;
    throw Error(ErrorKind::argument, std::string("MultiHeadAttention: ") + name +
                                         " should be divisible by nheads; got " + std::to_string(count) + " and " +
                                         std::to_string(nheads) + "; choose another number of heads");
  }
  const DenseOptions dense{.bias = options.bias, .init = options.init};
  q_proj = Dense(sizes.q_in, sizes.qk, dense);
  k_proj = Dense(sizes.k_in, sizes.qk, dense);
  v_proj = Dense(sizes.v_in, sizes.v, dense);
  out_proj = Dense(sizes.v, sizes.out, dense);
}

AttentionResult MultiHeadAttention::attend(const Array& q, const Array& k, const Array& v,
                                           const AttentionOptions& how) const {
  return located(*this, [&] {
    AttentionOptions options = how;
    options.heads = nheads;
    options.kv_heads = 0;
    options.drop = attn_drop;
    AttentionResult result = attention_of("MultiHeadAttention", q_proj(q), k_proj(k), v_proj(v), options);
    result.out = out_proj(result.out);
    return result;
  });
}

KeyValueCache MultiHeadAttention::cache(int64_t capacity, int64_t batch) const {
  const DeviceScope scope(*q_proj.weight.node());
  const DType type = q_proj.weight.dtype();
  const int64_t places = capacity > 0 ? std::min(capacity, first_places) : first_places;
  return {zeros({features_out(k_proj), places, batch}, type), zeros({features_out(v_proj), places, batch}, type), 0,
          capacity};
}

Array MultiHeadAttention::next(const Array& x, KeyValueCache& cache) const {
  return located(*this, [&] {
    const int64_t capacity = cache.capacity, added = x.rank() == 3 ? x.size(1) : 0, length = cache.length + added;
    if (x.rank() != 3 || cache.keys.is_nothing() || (capacity > 0 && length > capacity)) {
      throw Error(ErrorKind::argument,
                  "MultiHeadAttention::next: x is (features, length, batch) and fits into the cache; got " +
                      to_string(x.shape()) + " after " + std::to_string(cache.length) + " of " +
                      std::to_string(capacity) + " places; make a cache with a larger capacity");
    }
    if (x.size(2) != cache.keys.size(2)) {
      refuse_shape("MultiHeadAttention::next", "x has as many sequences as the cache",
                   std::to_string(x.size(2)) + " and " + std::to_string(cache.keys.size(2)),
                   "make a cache for them with cache(capacity, batch)");
    }
    // The place is a value, not part of what is recorded, so that steps of one length are one plan until memory grows.
    const Array places = arange(added) + Array(cache.length);
    const Array keys = scatter(with_room(cache.keys, length, capacity), places, k_proj(x), 1);
    const Array values = scatter(with_room(cache.values, length, capacity), places, v_proj(x), 1);
    const int64_t read = keys.size(1);
    const AttentionOptions options{.heads = nheads,
                                   .mask = le(reshape(arange(read), {read, 1}), reshape(places, {1, added}))};
    const Array y = out_proj(attention_of("MultiHeadAttention", q_proj(x), keys, values, options).out);
    cache.keys = keys;
    cache.values = values;
    cache.length = length;
    return y;
  });
}

std::string MultiHeadAttention::rosin_show() const {
  if (q_proj.weight.is_nothing()) return "MultiHeadAttention()";
  const auto text = [](int64_t n) { return std::to_string(n); };
  const int64_t q_in = features_in(q_proj), k_in = features_in(k_proj), v_in = features_in(v_proj);
  const int64_t qk = features_out(q_proj), v = features_out(v_proj), out = features_out(out_proj);
  const bool one_in = q_in == k_in && k_in == v_in;
  std::string sizes = one_in ? text(q_in) : "(" + text(q_in) + ", " + text(k_in) + ", " + text(v_in) + ")";
  if (!one_in || qk != v || v != out || q_in != qk) {
    sizes += " => " + (one_in && qk == v ? text(qk) : "(" + text(qk) + ", " + text(v) + ")") + " => " + text(out);
  }
  std::string line = "MultiHeadAttention(" + sizes + "; nheads=" + text(nheads);
  if (!q_proj.bias.is_nothing()) line += ", bias=true";
  if (attn_drop.p != 0) line += ", dropout_prob=" + number_text(attn_drop.p);
  return line + ")";
}

}  // namespace rosin
