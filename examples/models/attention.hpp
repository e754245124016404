// What the transformers share: heads, and attention between them. Tokens stand as (features, tokens, batch).
#pragma once

#include <rosin/rosin.hpp>

#include <cmath>

namespace models {

/// weight * x + bias: weight is (out, in), x (in, tokens, batch); nothing: no bias. It is added in the type of the
/// product, which autocast may have made a half.
inline rosin::Array project(const rosin::Array& weight, const rosin::Array& bias, const rosin::Array& x) {
  const rosin::Array wide = rosin::reshape(x, {x.size(0), x.size(1) * x.size(2)});
  rosin::Array y = rosin::matmul(weight, wide);
  if (!bias.is_nothing()) y = y + rosin::cast(bias, y.dtype());
  return rosin::reshape(y, {weight.size(0), x.size(1), x.size(2)});
}

/// (features, tokens, batch) -> (features / heads, tokens, heads, batch).
inline rosin::Array split_heads(const rosin::Array& x, int64_t heads) {
  const rosin::Array parts = rosin::reshape(x, {x.size(0) / heads, heads, x.size(1), x.size(2)});
  return rosin::permute(parts, {0, 2, 1, 3});
}

/// The way back.
inline rosin::Array join_heads(const rosin::Array& x) {
  const rosin::Array parts = rosin::permute(x, {0, 2, 1, 3});
  return rosin::reshape(parts, {x.size(0) * x.size(2), x.size(1), x.size(3)});
}

/// softmax(k' q / sqrt(size)) on v. q, k and v are (features, tokens, batch); `mask` is added to the scores
/// (keys, queries, heads, batch), with which it broadcasts; nothing: none. Source: Vaswani et al. (2017).
inline rosin::Array attention(const rosin::Array& q, const rosin::Array& k, const rosin::Array& v, int64_t heads,
                              const rosin::Array& mask, const rosin::Dropout& drop) {
  const double size = static_cast<double>(q.size(0) / heads);
  const rosin::Array keys = rosin::transpose(split_heads(k, heads));
  rosin::Array scores = rosin::matmul(keys, split_heads(q, heads)) / std::sqrt(size);
  if (!mask.is_nothing()) scores = scores + rosin::cast(mask, scores.dtype());
  return join_heads(rosin::matmul(split_heads(v, heads), drop(rosin::softmax(scores, 0))));
}

}  // namespace models
