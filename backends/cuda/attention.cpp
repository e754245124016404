// See attention.hpp.
#include "cuda/attention.hpp"

#include <algorithm>

#include "common/failure.hpp"
#include "vendor/roles.hpp"

namespace rosin::cuda {
namespace {

using vendor::place_of;

constexpr int64_t unit = 8, most_features = 256;  // elements that are read at a time; of a head

[[noreturn]] void refuse(const char* why) { throw plugin::Failure{ROSIN_UNSUPPORTED, std::string("cuDNN: ") + why}; }
[[noreturn]] void reject(const char* why) { throw plugin::Failure{ROSIN_INVALID, std::string("attention: ") + why}; }

std::vector<int32_t> roles_of(int32_t kind) {
  std::vector<int32_t> roles{ROSIN_ROLE_QUERY, ROSIN_ROLE_KEY, ROSIN_ROLE_VALUE, ROSIN_ROLE_OUTPUT};
  if (kind == ROSIN_CALL_ATTENTION_DATA) {
    roles.insert(roles.end(), {ROSIN_ROLE_STATE, ROSIN_ROLE_OUTPUT_GRADIENT, ROSIN_ROLE_QUERY_GRADIENT,
                               ROSIN_ROLE_KEY_GRADIENT, ROSIN_ROLE_VALUE_GRADIENT});
  }
  return roles;
}

void check_arrays(const rosin_call_description& call) {
  if (!call.arrays) refuse("not the arrays of attention");
  const std::vector<int32_t> needed = roles_of(call.kind);
  const bool has_state = call.kind == ROSIN_CALL_ATTENTION && place_of(call, ROSIN_ROLE_STATE) >= 0;
  const bool all = std::all_of(needed.begin(), needed.end(), [&](int32_t role) { return place_of(call, role) >= 0; });
  if (!all || call.array_count != needed.size() + (has_state ? 1 : 0)) refuse("not the arrays of attention");
  const int32_t type = call.arrays[place_of(call, ROSIN_ROLE_QUERY)].type;
  if (type != ROSIN_FLOAT16 && type != ROSIN_BFLOAT16) refuse("its attention is of Float16 and BFloat16");
  for (uint32_t i = 0; i < call.array_count; ++i) {
    const bool is_state = call.arrays[i].role == ROSIN_ROLE_STATE;
    if (call.arrays[i].type != (is_state ? int32_t{ROSIN_FLOAT32} : type)) refuse("one type for all arrays");
  }
}

void take_attributes(const rosin_call_description& call, Attention& made) {
  for (uint32_t i = 0; i < call.attribute_count; ++i) {
    const rosin_attribute& attribute = call.attributes[i];
    switch (attribute.key) {
      case ROSIN_ATTRIBUTE_SCALE: made.scale = attribute.real; break;
      case ROSIN_ATTRIBUTE_CAUSAL: made.causal = attribute.integer != 0; break;
      default: refuse("it is not asked for this kind of attention");  // whose weights it would draw otherwise
    }
  }
}

/// The dims of cuDNN are those of rosin from the last to the first.
Tensor tensor_of(const rosin_call_description& call, int32_t role) {
  Tensor made;
  made.at = place_of(call, role);
  if (made.at < 0) return made;
  const rosin_call_array& array = call.arrays[made.at];
  const bool is_state = role == ROSIN_ROLE_STATE;
  if (array.rank != (is_state ? 3 : 4)) reject("an array of another rank");
  for (int32_t d = array.rank; d-- > 0;) {
    if (array.sizes[d] < 1) refuse("attention without elements");
    if (array.strides[d] < 1 && array.sizes[d] > 1) refuse("an array that repeats, or runs backwards");
    made.sizes.push_back(array.sizes[d]);
    made.strides.push_back(std::max<int64_t>(array.strides[d], 1));
  }
  if (is_state) {
    made.sizes.push_back(1);
    made.strides.push_back(1);
    return made;
  }
  if (made.strides[3] != 1 || made.sizes[3] % unit != 0 || made.sizes[3] > most_features) {
    refuse("features of a head stand side by side, a multiple of 8 of them up to 256");
  }
  for (size_t d = 0; d < 3; ++d) {
    if (made.sizes[d] > 1 && made.strides[d] % unit != 0) refuse("heads and places are not aligned");
  }
  return made;
}

uint64_t reach_of(const Tensor& tensor, uint64_t element) {
  int64_t last = 0;
  for (size_t d = 0; d < tensor.sizes.size(); ++d) last += (tensor.sizes[d] - 1) * tensor.strides[d];
  return (static_cast<uint64_t>(last) + 1) * element;
}

void check_sizes(const Attention& a) {
  const auto same = [](const Tensor& x, const Tensor& y) { return x.at < 0 || y.at < 0 || x.sizes == y.sizes; };
  const auto is = [](const Tensor& x, std::vector<int64_t> sizes) { return x.at < 0 || x.sizes == sizes; };
  const int64_t batch = a.q.sizes[0], heads = a.q.sizes[1], queries = a.q.sizes[2];
  const int64_t served = a.k.sizes[1], keys = a.k.sizes[2];
  const bool fits = is(a.k, {batch, served, keys, a.q.sizes[3]}) && is(a.v, {batch, served, keys, a.v.sizes[3]}) &&
                    is(a.y, {batch, heads, queries, a.v.sizes[3]}) && is(a.state, {batch, heads, queries, 1}) &&
                    same(a.dy, a.y) && same(a.dq, a.q) && same(a.dk, a.k) && same(a.dv, a.v);
  if (!fits || heads % served != 0) reject("sizes that do not fit each other");
}

}  // namespace

void check_attention(const rosin_call_description& call) {
  check_arrays(call);
  Attention attributes;
  take_attributes(call, attributes);
  const rosin_epilogue& e = call.epilogue;
  if (e.bias || e.residual || e.activation || e.auxiliary || e.bias_gradient || call.accumulate || call.scaled) {
    refuse("nothing goes along with attention");
  }
  if (!call.unrounded) refuse("its attention rounds less often than single steps");
}

Attention attention_of(const rosin_call_description& call) {
  check_attention(call);
  Attention made;
  made.gradient = call.kind == ROSIN_CALL_ATTENTION_DATA;
  made.deterministic = call.deterministic != 0;
  take_attributes(call, made);
  made.q = tensor_of(call, ROSIN_ROLE_QUERY);
  made.k = tensor_of(call, ROSIN_ROLE_KEY);
  made.v = tensor_of(call, ROSIN_ROLE_VALUE);
  made.y = tensor_of(call, ROSIN_ROLE_OUTPUT);
  made.state = tensor_of(call, ROSIN_ROLE_STATE);
  made.dy = tensor_of(call, ROSIN_ROLE_OUTPUT_GRADIENT);
  made.dq = tensor_of(call, ROSIN_ROLE_QUERY_GRADIENT);
  made.dk = tensor_of(call, ROSIN_ROLE_KEY_GRADIENT);
  made.dv = tensor_of(call, ROSIN_ROLE_VALUE_GRADIENT);
  made.type = call.arrays[made.q.at].type;
  made.bytes.resize(call.array_count);
  for (const Tensor* tensor :
       {&made.q, &made.k, &made.v, &made.y, &made.state, &made.dy, &made.dq, &made.dk, &made.dv}) {
    if (tensor->at < 0) continue;
    made.bytes[static_cast<size_t>(tensor->at)] = reach_of(*tensor, tensor == &made.state ? 4 : 2);
  }
  check_sizes(made);
  return made;
}

}  // namespace rosin::cuda
