// See recurrent.hpp.
#include "cuda/recurrent.hpp"

#include <initializer_list>
#include <limits>
#include <vector>

#include "common/failure.hpp"
#include "vendor/roles.hpp"

namespace rosin::cuda {
namespace {

using vendor::place_of;

[[noreturn]] void refuse(const char* why) { throw plugin::Failure{ROSIN_UNSUPPORTED, std::string("cuDNN: ") + why}; }
[[noreturn]] void reject(const char* why) { throw plugin::Failure{ROSIN_INVALID, std::string("recurrent: ") + why}; }

int32_t cell_of(const rosin_call_description& call) {
  int32_t cell = ROSIN_CELL_TANH;
  for (uint32_t i = 0; i < call.attribute_count; ++i) {
    if (call.attributes[i].key != ROSIN_ATTRIBUTE_CELL) refuse("it knows no such attribute of a recurrent layer");
    if (call.attributes[i].integer < ROSIN_CELL_TANH || call.attributes[i].integer > ROSIN_CELL_GRU) {
      refuse("it has no such cell");
    }
    cell = static_cast<int32_t>(call.attributes[i].integer);
  }
  return cell;
}

/// Whether such a call may have an array of this role.
bool is_role_of(const rosin_call_description& call, int32_t role, bool with_cell) {
  switch (role) {
    case ROSIN_ROLE_INPUT:
    case ROSIN_ROLE_WEIGHTS:
    case ROSIN_ROLE_FIRST_STATE:
    case ROSIN_ROLE_OUTPUT:
    case ROSIN_ROLE_RESERVE: return true;
    case ROSIN_ROLE_FIRST_CELL: return with_cell;
    case ROSIN_ROLE_LAST_STATE: return call.kind == ROSIN_CALL_RECURRENT;
    case ROSIN_ROLE_LAST_CELL: return with_cell && call.kind == ROSIN_CALL_RECURRENT;
    case ROSIN_ROLE_OUTPUT_GRADIENT:
    case ROSIN_ROLE_LAST_STATE_GRADIENT:
    case ROSIN_ROLE_INPUT_GRADIENT:
    case ROSIN_ROLE_WEIGHTS_GRADIENT:
    case ROSIN_ROLE_FIRST_STATE_GRADIENT: return call.kind == ROSIN_CALL_RECURRENT_DATA;
    case ROSIN_ROLE_LAST_CELL_GRADIENT:
    case ROSIN_ROLE_FIRST_CELL_GRADIENT: return with_cell && call.kind == ROSIN_CALL_RECURRENT_DATA;
    default: return false;
  }
}

void check_roles(const rosin_call_description& call, bool with_cell) {
  for (uint32_t i = 0; i < call.array_count; ++i) {
    const int32_t role = call.arrays[i].role;
    if (!is_role_of(call, role, with_cell) || place_of(call, role) != static_cast<int>(i)) {
      refuse("not the arrays of a recurrent layer");
    }
  }
  std::vector<int32_t> needed{ROSIN_ROLE_INPUT, ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_FIRST_STATE};
  if (with_cell) needed.push_back(ROSIN_ROLE_FIRST_CELL);
  if (call.kind == ROSIN_CALL_RECURRENT_DATA) needed.insert(needed.end(), {ROSIN_ROLE_OUTPUT, ROSIN_ROLE_RESERVE});
  for (const int32_t role : needed) {
    if (place_of(call, role) < 0) refuse("not the arrays of a recurrent layer");
  }
}

const rosin_call_array& array(const rosin_call_description& call, int32_t role) {
  return call.arrays[place_of(call, role)];
}

/// Contiguous and of these sizes, in all arrays of the role.
void check_sizes(const rosin_call_description& call, int32_t role, std::initializer_list<int64_t> sizes) {
  const int place = place_of(call, role);
  if (place < 0) return;
  const rosin_call_array& a = call.arrays[place];
  if (a.rank != static_cast<int32_t>(sizes.size())) reject("an array of another rank");
  int64_t stride = 1;
  int d = 0;
  for (const int64_t size : sizes) {
    if (a.sizes[d] != size) reject("sizes that do not fit each other");
    if (size != 1 && a.strides[d] != stride) refuse("arrays of a recurrent layer are contiguous");
    stride *= size;
    ++d;
  }
}

void check_all_sizes(const rosin_call_description& call, const Recurrent& layer) {
  for (const int32_t role : {ROSIN_ROLE_INPUT, ROSIN_ROLE_INPUT_GRADIENT}) {
    check_sizes(call, role, {layer.features, layer.steps, layer.batch});
  }
  for (const int32_t role : {ROSIN_ROLE_OUTPUT, ROSIN_ROLE_OUTPUT_GRADIENT}) {
    check_sizes(call, role, {layer.out, layer.steps, layer.batch});
  }
  for (const int32_t role : {ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_WEIGHTS_GRADIENT}) {
    check_sizes(call, role, {layer.parameters()});
  }
  for (const int32_t role : {ROSIN_ROLE_FIRST_STATE, ROSIN_ROLE_FIRST_CELL, ROSIN_ROLE_LAST_STATE, ROSIN_ROLE_LAST_CELL,
                             ROSIN_ROLE_FIRST_STATE_GRADIENT, ROSIN_ROLE_FIRST_CELL_GRADIENT,
                             ROSIN_ROLE_LAST_STATE_GRADIENT, ROSIN_ROLE_LAST_CELL_GRADIENT}) {
    check_sizes(call, role, {layer.out, layer.batch});
  }
}

}  // namespace

void check_recurrent(const rosin_call_description& call) {
  if (!call.arrays) refuse("not the arrays of a recurrent layer");
  check_roles(call, cell_of(call) == ROSIN_CELL_LSTM);
  const int32_t type = array(call, ROSIN_ROLE_INPUT).type;
  const bool is_float =
      type == ROSIN_FLOAT32 || type == ROSIN_FLOAT64 || type == ROSIN_FLOAT16 || type == ROSIN_BFLOAT16;
  if (!is_float) refuse("recurrent layers are of floats");
  for (uint32_t i = 0; i < call.array_count; ++i) {
    if (call.arrays[i].type != (call.arrays[i].role == ROSIN_ROLE_RESERVE ? int32_t{ROSIN_UINT8} : type)) {
      refuse("one type for all arrays of a recurrent layer");
    }
  }
  const rosin_epilogue& e = call.epilogue;
  if (e.bias || e.residual || e.activation || e.auxiliary || e.bias_gradient || call.accumulate || call.scaled) {
    refuse("nothing goes along with a recurrent layer");
  }
  if (call.compute != ROSIN_COMPUTE_EXACT && call.compute != ROSIN_COMPUTE_TF32) {
    refuse("recurrent layers are computed in Float32 or TF32");
  }
}

Recurrent recurrent_of(const rosin_call_description& call) {
  check_recurrent(call);
  const rosin_call_array &x = array(call, ROSIN_ROLE_INPUT), &state = array(call, ROSIN_ROLE_FIRST_STATE);
  Recurrent layer;
  layer.gradient = call.kind == ROSIN_CALL_RECURRENT_DATA;
  layer.cell = cell_of(call);
  layer.type = x.type;
  layer.compute = call.compute;
  if (x.rank != 3 || state.rank != 2) reject("an array of another rank");
  layer.features = x.sizes[0];
  layer.steps = x.sizes[1];
  layer.batch = x.sizes[2];
  layer.out = state.sizes[0];
  for (const int64_t size : {layer.features, layer.steps, layer.batch, layer.out}) {
    if (size < 1) refuse("a recurrent layer without elements");
    if (size > std::numeric_limits<int32_t>::max()) refuse("a dim of more than 2^31 - 1 elements");
  }
  check_all_sizes(call, layer);
  return layer;
}

}  // namespace rosin::cuda
