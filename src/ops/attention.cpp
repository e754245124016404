// See attention.hpp. A call and its gradient are one op each; the gradient of that is written in parts.
#include "ops/attention.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/autocast.hpp"
#include "graph/context.hpp"
#include "graph/hooks.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "ops/in_parts.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

/// Of keys: (keys, queries, heads, batch) -> (keys, features).
Array turned(const Array& x) { return permute(x, {1, 0, 2, 3}); }

/// The slopes of heads that served `count` others, from those of these.
Array gathered_from(const Array& x, int64_t count) {
  if (count == 1) return x;
  const Array apart = reshape(x, {x.size(0), x.size(1), count, x.size(2) / count, x.size(3)});
  return reshape(sum(apart, 2), {x.size(0), x.size(1), x.size(2) / count, x.size(3)});
}

/// The operands of a call, of its gradient with y, state and the slope of y before the optional ones.
struct Operands {
  const Backward& b;
  AttentionAttributes how;
  int optional;  // where these begin

  Operands(const Backward& backward, int first)
      : b(backward), how(b.attributes<AttentionAttributes>()), optional(first) {}

  int bias_at() const { return optional; }
  Array bias() const { return how.has_bias ? b.in(optional) : Array(); }
  Array mask() const { return how.has_mask ? b.in(optional + how.has_bias) : Array(); }
  /// Where the weights are drawn that are dropped.
  Rng draw() const {
    const auto number = [&](int i) {
      return static_cast<uint64_t>(scalar_value(*b.in(optional + how.has_bias + how.has_mask + i).node()).integer);
    };
    return Rng::restored(number(0), number(1));
  }
  void add_optional(std::vector<Array>& list) const {
    for (int i = optional; i < b.operands(); ++i) list.push_back(b.in(i));
  }
};

/// The numbers of a call in parts. `slope` is that of y. All with as many heads as there are of queries.
struct Parts {
  int64_t each;
  int rank;
  double scale;
  Array q, k, v, slope, weights, kept;

  Parts(const Operands& in, const Array& y_slope)
      : each(in.how.heads / in.how.kv_heads), rank(y_slope.rank()), scale(in.how.scale),
        q(split_heads("attention", in.b.in(0), in.how.heads)), k(heads_of_keys(in.b.in(1), in.how)),
        v(heads_of_keys(in.b.in(2), in.how)), slope(split_heads("attention", y_slope, in.how.heads)),
        weights(attention_weights(q, k, {scale, in.bias(), in.mask(), in.how.causal != 0})),
        kept(kept_of(in, weights.shape())) {}

  Array dropped(const Array& x) const { return kept.is_nothing() ? x : x * kept; }
  /// Of logits, from those of the weights.
  Array logit_slopes(const Array& weight_slopes) const {
    return weights * (weight_slopes - sum(weights * weight_slopes, 0));
  }
  /// Of logits, of the call itself.
  Array logit_slopes() const { return logit_slopes(dropped(matmul(turned(v), slope))); }
  Array joined(const Array& x) const { return join_heads(x, rank); }
  Array joined_keys(const Array& x) const { return join_heads(gathered_from(x, each), rank); }

 private:
  static Array heads_of_keys(const Array& x, const AttentionAttributes& how) {
    return shared_among(split_heads("attention", x, how.kv_heads), how.heads / how.kv_heads);
  }
  static Array kept_of(const Operands& in, const Shape& shape) {
    if (!in.how.is_dropped) return {};
    Rng rng = in.draw();
    return where(bernoulli(rng, in.how.kept, shape), Array(1 / in.how.kept), Array(0.0));
  }
};

/// With S = scale k'q, W the softmax of S and G the slope of y = v W: the slopes of the call are dv = G W',
/// dS = W (v'G - sum(W v'G)), dq = scale k dS, dk = scale q dS'. Their own, for slopes x, z and u of dq, dk and dv:
void second_gradient(Backward& b) {
  const Operands in(b, 6);
  const Parts p(in, b.in(5));
  const auto slope_of = [&](int k, int64_t heads, const Array& like) {
    const Array& given = b.gradient_of(k);
    if (given.is_nothing()) return zeros_like(like);
    return shared_among(split_heads("attention", given, heads), in.how.heads / heads);
  };
  const Array x = slope_of(0, in.how.heads, p.q), z = slope_of(1, in.how.kv_heads, p.k),
              u = slope_of(2, in.how.kv_heads, p.v);
  const Array weight_slopes = p.dropped(matmul(turned(p.v), p.slope));
  const Array dots = sum(p.weights * weight_slopes, 0);
  const Array logit_slopes = p.weights * (weight_slopes - dots);
  const Array by_logit_slopes = (matmul(turned(p.k), x) + matmul(turned(z), p.q)) * p.scale;
  const Array total = sum(p.weights * by_logit_slopes, 0);
  const Array by_weight_slopes = p.dropped(p.weights * (by_logit_slopes - total));
  const Array by_weights =
      (weight_slopes - dots) * by_logit_slopes - weight_slopes * total + p.dropped(matmul(turned(u), p.slope));
  const Array by_logits = p.logit_slopes(by_weights);
  const Array dropped = p.dropped(p.weights);
  b.give(0, p.joined((matmul(z, logit_slopes) + matmul(p.k, by_logits)) * p.scale));
  b.give(1, p.joined_keys((matmul(x, turned(logit_slopes)) + matmul(p.q, turned(by_logits))) * p.scale));
  b.give(2, p.joined_keys(matmul(p.slope, turned(by_weight_slopes))));
  b.give(5, p.joined(matmul(p.v, by_weight_slopes) + matmul(u, dropped)));
  if (in.how.has_bias) b.give(in.bias_at(), cast(by_logits, in.bias().dtype()));
}

const Op& attention_gradient_op = *register_op({.name = "attention_gradient",
                                                .kind = Kind::attention,
                                                .operands = Op::any,
                                                .results = 3,
                                                .doc = "slopes of the queries, keys and values of attention",
                                                .type_rule = TypeRule::attribute,
                                                .attribute_words = sizeof(AttentionAttributes) / 8,
                                                .gradient = second_gradient});

std::vector<const Array*> pointers_to(const std::vector<Array>& arrays) {
  std::vector<const Array*> list;
  for (const Array& x : arrays) list.push_back(&x);
  return list;
}

/// Of the state, and of biases.
DType state_type(const Array& q) { return q.dtype() == Float64 ? Float64 : Float32; }

Shape state_shape(const Array& q, const AttentionAttributes& how) {
  return {q.size(1), how.heads, q.rank() == 3 ? q.size(2) : 1};
}

void first_gradient(Backward& b) {
  const Array& slope = b.gradient_of(0);
  if (slope.is_nothing()) return;
  const Operands in(b, 3);
  const Array q = b.in(0), k = b.in(1), v = b.in(2);
  std::vector<Array> operands = {
      q, k, v, b.out(0, q.dtype(), slope.shape()), b.out(1, state_type(q), state_shape(q, in.how)), slope};
  in.add_optional(operands);
  const ResultForm forms[] = {{q.dtype(), q.shape()}, {q.dtype(), k.shape()}, {q.dtype(), v.shape()}};
  Array results[3];
  record(attention_gradient_op, pointers_to(operands), forms, Attributes::of(in.how), results);
  for (int i = 0; i < 3; ++i) b.give(i, std::move(results[i]));
  if (in.how.has_bias && b.needs(in.bias_at())) {
    b.give(in.bias_at(), cast(Parts(in, slope).logit_slopes(), in.bias().dtype()));
  }
}

const Op& attention_op = *register_op({.name = "attention",
                                       .kind = Kind::attention,
                                       .operands = Op::any,
                                       .results = 2,
                                       .doc = "attention in blocks, and the logarithms of the sums of its exponentials",
                                       .type_rule = TypeRule::attribute,
                                       .attribute_words = sizeof(AttentionAttributes) / 8,
                                       .gradient = first_gradient});

/// Each dim is that of the logits, or 1, or missing.
bool fits_logits(const Array& x, const Shape& logits) {
  if (x.is_nothing()) return true;
  for (int d = 0; d < x.rank(); ++d) {
    if (d >= logits.rank() || (x.size(d) != 1 && x.size(d) != logits[d])) return false;
  }
  return !is_scalar(*x.node());
}

Array with_four_dims(const Array& x) {
  Array wide = x;
  while (wide.rank() < 4) wide = unsqueeze(wide, wide.rank());
  return wide;
}

int64_t batch_of(const Array& x) { return x.rank() == 3 ? x.size(2) : 1; }

Shape logit_shape(const BlockedAttention& a) { return {a.k.size(1), a.q.size(1), a.heads, batch_of(a.q)}; }

}  // namespace

Array split_heads(std::string_view op, const Array& x, int64_t heads) {
  if (x.rank() != 2 && x.rank() != 3) {
    refuse(ErrorKind::shape, op, "sequences are (features, length, batch) or (features, length)", to_string(x.shape()),
           "reshape them");
  }
  if (heads < 1 || x.size(0) % heads != 0) {
    refuse(ErrorKind::shape, op, "heads divide the features",
           std::to_string(heads) + " heads for " + to_string(x.shape()), "choose another number of heads");
  }
  return permute(reshape(x, {x.size(0) / heads, heads, x.size(1), batch_of(x)}), {0, 2, 1, 3});
}

Array join_heads(const Array& x, int rank) {
  const Array columns = permute(x, {0, 2, 1, 3});
  const int64_t features = x.size(0) * x.size(2);
  return rank == 2 ? reshape(columns, {features, x.size(1)}) : reshape(columns, {features, x.size(1), x.size(3)});
}

Array shared_among(const Array& x, int64_t count) {
  if (count == 1) return x;
  const Array wide = expand(reshape(x, {x.size(0), x.size(1), 1, x.size(2), x.size(3)}),
                            {x.size(0), x.size(1), count, x.size(2), x.size(3)});
  return reshape(wide, {x.size(0), x.size(1), count * x.size(2), x.size(3)});
}

Array causal_mask(int64_t keys, int64_t queries) {
  return le(reshape(arange(keys), {keys, 1}), reshape(arange(queries), {1, queries}) + (keys - queries));
}

Array attention_weights(const Array& queries, const Array& keys, const LogitForm& form) {
  const DeviceScope scope(*queries.node());
  Array logits = matmul(permute(keys, {1, 0, 2, 3}), queries * form.scale);
  if (!form.bias.is_nothing()) logits = logits + cast(form.bias, logits.dtype());
  const double never = -std::numeric_limits<double>::infinity();
  if (!form.mask.is_nothing()) logits = where(form.mask, logits, never);
  if (form.causal) logits = where(causal_mask(logits.size(0), logits.size(1)), logits, never);
  return softmax(logits, 0);
}

bool is_blocked(const BlockedAttention& a, bool drops) {
  if (InParts::now() == InParts::all || (drops && InParts::now() == InParts::dropping)) return false;
  const auto computed = [&](const Array& x) {
    return is_float(x.dtype()) && x.dtype() == a.q.dtype() && x.node()->device == a.q.node()->device &&
           !is_scalar(*x.node());
  };
  const Shape logits = logit_shape(a);
  const bool bias = a.form.bias.is_nothing() || is_float(a.form.bias.dtype());
  return !is_autocast() && computed(a.q) && computed(a.k) && computed(a.v) && bias && batch_of(a.q) == batch_of(a.k) &&
         batch_of(a.q) == batch_of(a.v) && fits_logits(a.form.bias, logits) && fits_logits(a.form.mask, logits) &&
         logits.count() > 0 && a.q.size(0) > 0 && a.v.size(0) > 0;
}

/// Halves that the CPU takes as they are.
bool stays_half(const BlockedAttention& a, double dropped) {
  return a.q.dtype() == BFloat16 && dropped == 0 && !Context::current().in_gradient() && hooks.attends_bfloats();
}

Array blocked_attention(const BlockedAttention& a, double dropped, Rng* rng) {
  if (a.q.node()->device == 0 && size_of(a.q.dtype()) == 2 && !stays_half(a, dropped)) {
    const BlockedAttention wide{
        cast(a.q, Float32), cast(a.k, Float32), cast(a.v, Float32), a.heads, a.kv_heads, a.form};
    return cast(blocked_attention(wide, dropped, rng), a.q.dtype());
  }
  AttentionAttributes how{.heads = static_cast<int32_t>(a.heads),
                          .kv_heads = static_cast<int32_t>(a.kv_heads),
                          .causal = a.form.causal,
                          .has_bias = !a.form.bias.is_nothing(),
                          .has_mask = !a.form.mask.is_nothing(),
                          .is_dropped = dropped > 0,
                          .scale = a.form.scale,
                          .kept = 1 - dropped};
  std::vector<Array> operands = {a.q, a.k, a.v};
  if (how.has_bias) operands.push_back(with_four_dims(cast(a.form.bias, state_type(a.q))));
  if (how.has_mask) operands.push_back(with_four_dims(a.form.mask));
  if (how.is_dropped) {
    const uint64_t blocks = (static_cast<uint64_t>(logit_shape(a).count()) + 3) / 4;
    for (const uint64_t number : {rng->key(), rng->take(blocks)}) {
      operands.push_back(scalar_argument(static_cast<int64_t>(number)));
    }
  }
  const Shape result = with_size(a.q.shape(), 0, a.v.size(0) / a.kv_heads * a.heads);
  const ResultForm forms[] = {{a.q.dtype(), result}, {state_type(a.q), state_shape(a.q, how)}};
  Array results[2];
  record(attention_op, pointers_to(operands), forms, Attributes::of(how), results);
  return std::move(results[0]);
}

}  // namespace rosin
