// Attention as ops: in blocks (blocked_attention), and in parts, as products and a softmax, which is what gradients of
// gradients get. The CPU computes blocks of halves in Float32, but those of BFloat16 as they are, without gradients,
// where it has matrix registers. Heads stand as (features of a head, length, heads, batch), logits as (keys, queries,
// heads, batch). Read first: rosin/attention.hpp. Read next: engines/attention.hpp and kernels/attention.cpp (the
// blocks).
#pragma once

#include <cstdint>
#include <string_view>

#include <rosin/array.hpp>

namespace rosin {

class Rng;

/// (features, length, batch) or (features, length) in heads. Errors (shape).
Array split_heads(std::string_view op, const Array& x, int64_t heads);
/// The way back, to the rank that the sequences had.
Array join_heads(const Array& x, int rank);
/// Heads that each serve `count` others, repeated for them.
Array shared_among(const Array& x, int64_t count);
/// (keys, queries) Bool: the last query sees all keys.
Array causal_mask(int64_t keys, int64_t queries);

/// What becomes of logits. Bias and mask may be nothing, else they broadcast with (keys, queries, heads, batch).
struct LogitForm {
  double scale = 1;
  Array bias, mask;
  bool causal = false;
};
/// The softmax over keys, of heads of queries and as many of keys.
Array attention_weights(const Array& queries, const Array& keys, const LogitForm& form);

/// Of sequences, not of heads.
struct BlockedAttention {
  Array q, k, v;  // (features, length, batch) or (features, length)
  int64_t heads = 1, kv_heads = 1;
  LogitForm form;
};
/// Whether blocks compute it, of operands that fit each other; `drops`: some weights.
bool is_blocked(const BlockedAttention& attention, bool drops);
/// The sequences that come of it; each weight is dropped with probability `dropped`, by numbers of `rng` (which may be
/// null where none is).
Array blocked_attention(const BlockedAttention& attention, double dropped, Rng* rng);

}  // namespace rosin
