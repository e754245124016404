// See attention.hpp.
#include "metal/attention.hpp"

#include <algorithm>
#include <string>

#include "common/failure.hpp"

namespace rosin::metal {
namespace {

/// Scores are stored on no device of ours, and Apple does not say on which MPSGraph stores them: then they may take
/// this part of its memory, and no more than an array of MPSGraph has.
constexpr uint64_t part_for_scores = 8, largest_array = UINT32_MAX;
/// The mask is an array that the graph keeps.
constexpr uint64_t largest_mask = uint64_t{64} << 20;

[[noreturn]] void reject(const char* why) { throw plugin::Failure{ROSIN_INVALID, std::string("attention: ") + why}; }

void take_attributes(const rosin_call_description& call, Attention& made) {
  for (uint32_t i = 0; i < call.attribute_count; ++i) {
    const rosin_attribute& attribute = call.attributes[i];
    switch (attribute.key) {
      case ROSIN_ATTRIBUTE_SCALE: made.scale = static_cast<float>(attribute.real); break;
      case ROSIN_ATTRIBUTE_CAUSAL: made.causal = attribute.integer != 0; break;
      default: refuse("no such attention");
    }
  }
}

/// From the slowest dim.
Sizes sizes_of(const rosin_call_description& call, int at) {
  const rosin_call_array& array = call.arrays[at];
  if (array.rank != 4) reject("an array of another rank");
  return packed(array).sizes;
}

void check_sizes(const Attention& a, const Sizes& k, const Sizes& v, const Sizes& y) {
  const bool fits = k == Sizes{a.batch, a.served, a.keys, a.features} && v == Sizes{a.batch, a.served, a.keys, v[3]} &&
                    y == Sizes{a.batch, a.heads, a.queries, v[3]};
  if (!fits || a.heads % a.served != 0) reject("sizes that do not fit each other");
  if (v[3] != a.features) refuse("values have as many features as keys");
}

void check_room(const Attention& a, uint64_t memory) {
  const auto scores_of = [&](int64_t rows) { return static_cast<uint64_t>(rows) * static_cast<uint64_t>(a.keys); };
  if (scores_of(a.batch * a.heads * a.queries) > std::min(memory / part_for_scores, largest_array) / sizeof(float))
    refuse("more scores than there may be room for");
  if (a.causal && scores_of(a.shared() * a.queries) > largest_mask / sizeof(float))
    refuse("a mask of more than 64 MiB");
}

}  // namespace

bool is_attention(const rosin_call_description& call) {
  return call.kind == ROSIN_CALL_ATTENTION || call.kind == ROSIN_CALL_ATTENTION_DATA;
}

void check_attention(const rosin_call_description& call) {
  if (call.kind == ROSIN_CALL_ATTENTION_DATA) refuse("its attention has no gradient");
  if (!call.arrays) refuse("not the arrays of this call");
  for (uint32_t i = 0; i < call.array_count; ++i) {
    if (call.arrays[i].role == ROSIN_ROLE_STATE) refuse("its attention gives no sums of exponentials");
  }
  for (const int32_t role : {ROSIN_ROLE_QUERY, ROSIN_ROLE_KEY, ROSIN_ROLE_VALUE, ROSIN_ROLE_OUTPUT}) {
    if (call.arrays[place_of(call, role)].type != call.arrays[0].type) refuse("one type for all arrays");
  }
  if (call.array_count != 4) refuse("not the arrays of this call");
  data_type(call.arrays[0].type);
  Attention attributes;
  take_attributes(call, attributes);
  const rosin_epilogue& e = call.epilogue;
  if (e.bias || e.residual || e.activation || e.auxiliary || e.bias_gradient || call.accumulate || call.scaled)
    refuse("nothing goes along with attention");
  if (!call.unrounded) refuse("its attention rounds less often than single steps");
}

Attention attention_of(const rosin_call_description& call, uint64_t memory) {
  check_attention(call);
  Attention made;
  take_attributes(call, made);
  made.q = place_of(call, ROSIN_ROLE_QUERY);
  made.k = place_of(call, ROSIN_ROLE_KEY);
  made.v = place_of(call, ROSIN_ROLE_VALUE);
  made.y = place_of(call, ROSIN_ROLE_OUTPUT);
  const Sizes q = sizes_of(call, made.q), k = sizes_of(call, made.k);
  made.batch = q[0];
  made.heads = q[1];
  made.queries = q[2];
  made.features = q[3];
  made.served = k[1];
  made.keys = k[2];
  check_sizes(made, k, sizes_of(call, made.v), sizes_of(call, made.y));
  check_room(made, memory);
  return made;
}

}  // namespace rosin::metal
