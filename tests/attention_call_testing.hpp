// What tests of attention that a vendor's library computes share: forms of it. Read first: library_call_testing.hpp.
#pragma once

#include <functional>

#include <rosin/attention.hpp>

#include "library_call_testing.hpp"

namespace rosin {

using Form = std::function<Array(const Arrays&)>;

/// `served`: heads of keys; 0: as many.
inline AttentionOptions heads(int64_t count, int64_t served = 0, bool causal = false) {
  AttentionOptions options;
  options.heads = count;
  options.kv_heads = served == 0 ? count : served;
  options.causal = causal;
  return options;
}

inline Form attention(AttentionOptions options) {
  return [=](const Arrays& a) { return dot_product_attention(a[0], a[1], a[2], options).out; };
}

/// The slopes by q, k and v of a sum of squares.
inline Form slopes(const Form& f) {
  return [=](const Arrays& a) {
    const auto [dq, dk, dv] = gradient(
        [&](const Array& q, const Array& k, const Array& v) {
          return sum(square(cast(f({q, k, v}), Float32)));
        },
        a[0], a[1], a[2]);
    return concat({reshape(dq, {-1}), reshape(dk, {-1}), reshape(dv, {-1})}, 0);
  };
}

}  // namespace rosin
