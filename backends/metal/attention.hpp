// From the description of attention to what MPSGraph is told: tensors of (batch, heads, length, features). Nothing of
// Metal is called here. Read first: rosin/backend_calls.h (attention), graph_arrays.hpp. Read next: graph.hpp.
#pragma once

#include <cstdint>

#include "metal/graph_arrays.hpp"

namespace rosin::metal {

/// MPSGraph has as many heads of queries as of keys. Where a head of keys serves several of queries, these become one
/// of more queries: each query is weighed by itself, and heads that share keys stand one after another.
struct Attention {
  int q = 0, k = 0, v = 0, y = 0;  // among the arrays of the call
  int64_t batch = 1, heads = 1, served = 1, queries = 1, keys = 1, features = 1;
  bool causal = false;
  float scale = 1;

  int64_t shared() const { return heads / served; }
  Sizes query_sizes() const { return {batch, served, shared() * queries, features}; }
  Sizes mask_sizes() const { return {1, 1, shared() * queries, keys}; }
};

/// Attention or its gradient.
bool is_attention(const rosin_call_description& call);

/// Throws ROSIN_UNSUPPORTED unless MPSGraph may compute calls like this one, whatever the sizes.
void check_attention(const rosin_call_description& call);

/// The attention of a call with sizes, on a device with so much memory. Throws ROSIN_UNSUPPORTED where MPSGraph does
/// not take it, ROSIN_INVALID where sizes do not fit.
Attention attention_of(const rosin_call_description& call, uint64_t memory);

}  // namespace rosin::metal
