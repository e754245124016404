// Conversions of what transformers are made of. Read first: convert.hpp.
#include <cmath>
#include <limits>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

/// (head * heads, length, batch) -> (head, length, heads, batch); arrays with heads stay.
Array with_heads(const NodeCall& call, const Array& x, int64_t heads) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3 || heads < 1 || x.size(0) % heads != 0) {
    call.refuse("heads must divide the features", to_string(x.shape()) + " by " + std::to_string(heads));
  }
  return permute(reshape(x, {x.size(0) / heads, heads, x.size(1), x.size(2)}), {0, 2, 1, 3});
}

/// Back to the dims of `like`, which had heads or not.
Array without_heads(const Array& x, const Array& like) {
  if (like.rank() == 4) return x;
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0) * x.size(2), x.size(1), x.size(3)});
}

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// What one node attends with: query (head, length, heads, batch), keys (head, places, heads of keys, batch), values.
struct Attended {
  Array query, keys, values;
};

/// A past that is given stands before what comes.
Array after_past(const NodeCall& call, size_t past, const Array& x) {
  return call.has(past) ? concat({call[past], x}, 1) : x;
}

Attended attended(const NodeCall& call) {
  if (call.has(4) != call.has(5)) call.refuse("past keys and past values go together", "one of them");
  if (call.has(4) && call.has(6)) call.refuse("lengths go with keys that hold the past", "past keys too");
  const int64_t heads = call.integer("kv_num_heads", 0);
  return {with_heads(call, call[0], call.integer("q_num_heads", 0)),
          after_past(call, 4, with_heads(call, call[1], heads)), after_past(call, 5, with_heads(call, call[2], heads))};
}

/// Each head so often that there are as many as the query has.
Array for_all_heads(const NodeCall& call, const Array& x, int64_t heads) {
  const int64_t own = x.size(2);
  if (own == heads) return x;
  if (own < 1 || heads % own != 0) {
    call.refuse("heads of the query must be a multiple of those of the keys",
                std::to_string(heads) + " and " + std::to_string(own));
  }
  return repeat(x, heads / own, 2);
}

/// How far each place of the keys lies before each place of the query, (places, length), of lengths with a last dim for
/// the batch: negative where it lies behind.
Array distance(const NodeCall& call, int64_t places, int64_t length) {
  const Array at = as(unsqueeze(arange(length), 0), Int64), key = as(unsqueeze(arange(places), 1), Int64);
  if (call.has(6)) return reshape(as(call[6], Int64) - length, {1, 1, 1, -1}) + at - key;
  return at + (call.has(4) ? call[4].size(1) : 0) - key;
}

/// Whether a query may look at a key for what attributes and lengths say; nothing: always.
Array in_sight(const NodeCall& call, int64_t places, int64_t length) {
  const int64_t left = call.integer("left_window_size", -1), right = call.integer("right_window_size", -1);
  Array seen;
  const auto narrow = [&](const Array& rule) { seen = seen.is_nothing() ? rule : seen & rule; };
  const Array before = distance(call, places, length);
  if (call.integer("is_causal", 0) != 0) narrow(before >= 0);
  if (left >= 0) narrow(before <= left);
  if (right >= 0) narrow(before >= -right);
  if (call.has(6)) narrow(as(unsqueeze(arange(places), 1), Int64) < reshape(as(call[6], Int64), {1, 1, 1, -1}));
  return seen;
}

/// What is added to the scores: 0 or the mask's number where a query looks, -Inf elsewhere; nothing where there is no
/// rule. A mask of fewer places than there are keys forbids the others.
Array bias_of(const NodeCall& call, DType type, int64_t places, int64_t length) {
  const Array seen = in_sight(call, places, length);
  if (!call.has(3)) return seen.is_nothing() ? seen : where(seen, as(0, type), as(minus_infinity, type));
  Array mask = call[3];
  if (mask.dtype() == Bool) mask = where(mask, as(0, type), as(minus_infinity, type));
  const int64_t short_of = places - mask.size(0);
  if (short_of > 0) mask = pad(mask, 0, 0, short_of, minus_infinity);
  return seen.is_nothing() ? mask : where(seen, mask, as(minus_infinity, type));
}

/// Softmax over the keys, in the type that an attribute states; zeros where a query may look at nothing.
Array weights_of(const NodeCall& call, const Array& scores, const Array& bias) {
  const int64_t stated = call.integer("softmax_precision", 0);
  const Array x = stated == 0 ? scores : as(scores, stated_type(call, stated));
  if (bias.is_nothing()) return as(softmax(x, 0), scores.dtype());
  const Array blind = maximum(bias, 0) == minus_infinity;
  return as(where(blind, as(0, x.dtype()), softmax(where(blind, as(0, x.dtype()), x), 0)), scores.dtype());
}

}  // namespace

/// softmax(K' Q) V by heads, with the sides as the file's dims in reverse put them. Source: ONNX, Attention.
Arrays attention(const NodeCall& call) {
  const auto [query, keys, values] = attended(call);
  const double root = std::sqrt(call.real("scale", 1 / std::sqrt(static_cast<double>(query.size(0)))));
  const double cap = call.real("softcap", 0);
  const int64_t heads = query.size(2), mode = call.integer("qk_matmul_output_mode", 0);
  const Array all_keys = for_all_heads(call, keys, heads);
  const Array raw = matmul(permute(all_keys, {1, 0, 2, 3}) * root, query * root);  // (places, length, heads, batch)
  const Array capped = cap > 0 ? tanh(raw / cap) * cap : raw;
  const Array bias = bias_of(call, query.dtype(), keys.size(1), query.size(1));
  const Array scores = bias.is_nothing() ? capped : capped + bias;
  const Array weights = weights_of(call, scores, bias);
  const Array stages[] = {raw, capped, scores, weights};
  if (mode < 0 || mode > 3) call.refuse("qk_matmul_output_mode must be 0 to 3", std::to_string(mode));
  const Array y = matmul(for_all_heads(call, values, heads), weights);
  return {without_heads(y, call[0]), keys, values, stages[mode]};
}

/// Attention whose scores and weights go through functions that the node holds.
Arrays flex_attention(const NodeCall& call) {
  const Array& query = call[0];
  if (query.rank() != 4) call.refuse("queries must have four axes", to_string(query.shape()));
  const int64_t stated = call.integer("softmax_precision", 0), heads = query.size(2);
  const DType type = stated != 0 ? stated_type(call, stated) : query.dtype() == Float64 ? Float64 : Float32;
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(query.size(0))));
  const auto changed = [&](std::string_view by, const Array& x) {
    return call.find(by) ? call.run(by, std::span(&x, 1))[0] : x;
  };
  const Array keys = for_all_heads(call, call[1], heads), values = for_all_heads(call, call[2], heads);
  const Array scores = matmul(permute(as(keys, type), {1, 0, 2, 3}), as(query, type)) * scale;
  const Array weights = changed("prob_mod", softmax(changed("score_mod", scores), 0));
  return {as(matmul(as(values, type), weights), query.dtype())};
}

/// States (values, keys, heads, batch) that fade, are corrected and read step by step; queries, keys and values come as
/// (head * heads, length, batch). In Float32, as the format says. Source: ONNX, LinearAttention.
Arrays linear_attention(const NodeCall& call) {
  const int64_t heads = call.integer("q_num_heads", 0), own = call.integer("kv_num_heads", 0);
  const std::string rule = call.text("update_rule", "gated_delta");
  const bool fades = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if (!fades && !corrects && rule != "linear") call.refuse("the update rule must be known", rule);
  const auto split = [&](size_t input, int64_t parts) { return as(with_heads(call, call[input], parts), Float32); };
  const Array query = split(0, heads), keys = split(1, own), values = split(2, own);
  const Array fading = fades ? exp(split(4, own)) : Array();
  const Array rates = corrects ? split(5, call[5].size(0)) : Array();
  const double stated = call.real("scale", 0), scale = stated != 0 ? stated : 1 / std::sqrt(double(query.size(0)));
  Array state = call.has(3) ? as(call[3], Float32) : zeros({values.size(0), keys.size(0), own, query.size(3)}, Float32);
  Arrays read;
  for (int64_t t = 0; t < query.size(1); ++t) {
    const auto at = [&](const Array& x) { return unsqueeze(select(x, 1, t), 0); };  // (1, head, heads, batch)
    const Array key = at(keys);
    Array value = slice(values, 1, t, t + 1);
    if (fades) state = state * at(fading);
    if (corrects) value = (value - sum(state * key, 1)) * at(rates);
    state = state + key * value;
    read.push_back(sum(for_all_heads(call, state, heads) * at(query), 1) * scale);
  }
  if (read.empty()) call.refuse("there must be a step", to_string(call[0].shape()));
  return {as(without_heads(concat(read, 1), call[0]), call[0].dtype()),
          as(state, call.has(3) ? call[3].dtype() : call[0].dtype())};
}

/// Half of each vector's pairs turned by an angle that depends on the place. x is (features, length, batch) or
/// (head, length, heads, batch); the tables are (angles, places), or (angles, length, batch).
Arrays rotary_embedding(const NodeCall& call) {
  const Array x = with_heads(call, call[0], call.integer("num_heads", 0));
  const int64_t all = x.size(0), stated = call.integer("rotary_embedding_dim", 0), turned = stated > 0 ? stated : all;
  const auto table = [&](size_t input) {
    const Array rows = call.has(3) ? gather(call[input], call[3], 1) : call[input];
    return unsqueeze(slice(rows, 0, 0, turned / 2), 2);  // (angles, length, 1, batch)
  };
  const Array cosine = table(1), sine = table(2), part = slice(x, 0, 0, turned);
  const bool interleaved = call.integer("interleaved", 0) != 0;
  const Array a = interleaved ? slice(part, 0, 0, to_end, 2) : slice(part, 0, 0, turned / 2);
  const Array b = interleaved ? slice(part, 0, 1, to_end, 2) : slice(part, 0, turned / 2, turned);
  const Array left = cosine * a - sine * b, right = sine * a + cosine * b;
  Array y = interleaved ? reshape(stack({left, right}, 0), part.shape()) : concat({left, right}, 0);
  if (turned < all) y = concat({y, slice(x, 0, turned, all)}, 0);
  return {without_heads(y, call[0])};
}

}  // namespace rosin::onnx
