// See graph_arrays.hpp.
#include "metal/graph_arrays.hpp"

#include <algorithm>

#include "common/failure.hpp"

namespace rosin::metal {
namespace {

/// The dims of an array, the slowest first; those of one element, which lie anywhere, where the others stay in order.
std::vector<int> slowest_first(const rosin_call_array& array) {
  std::vector<int> dims, usual;
  for (int d = array.rank - 1; d >= 0; --d) {
    usual.push_back(d);
    if (array.sizes[d] != 1) dims.push_back(d);
  }
  const auto slower = [&](int a, int b) { return array.strides[a] > array.strides[b]; };
  if (std::is_sorted(dims.begin(), dims.end(), slower)) return usual;
  std::stable_sort(dims.begin(), dims.end(), slower);
  for (const int d : usual) {
    if (array.sizes[d] == 1) dims.push_back(d);
  }
  return dims;
}

}  // namespace

void refuse(const char* why) { throw plugin::Failure{ROSIN_UNSUPPORTED, std::string("MPSGraph: ") + why}; }

uint32_t data_type(int32_t type) {
  switch (type) {
    case ROSIN_FLOAT32: return data_float32;
    case ROSIN_FLOAT16: return data_float16;
    case ROSIN_BFLOAT16: return data_bfloat16;
    default: refuse("no elements of this type");
  }
}

Packed packed(const rosin_call_array& array) {
  if (array.rank < 1 || array.rank > 8) refuse("an array has 1 to 8 dims");
  const std::vector<int> dims = slowest_first(array);
  Packed made;
  made.type = data_type(array.type);
  int64_t count = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const int64_t size = array.sizes[dims[i]];
    if (size < 1) refuse("a size below 1");
    if (size > 1 && array.strides[dims[i]] != count) refuse("an array with gaps");
    count *= size;
  }
  if (count > INT32_MAX) refuse("more elements than an Int32 counts");
  made.bytes = static_cast<uint64_t>(count) * (array.type == ROSIN_FLOAT32 ? 4 : 2);
  made.turn.resize(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto from_last = static_cast<size_t>(array.rank - 1 - dims[i]);
    made.memory.push_back(array.sizes[dims[i]]);
    made.sizes.push_back(array.sizes[array.rank - 1 - static_cast<int>(i)]);
    made.turn[from_last] = static_cast<int64_t>(i);
    made.turn_back.push_back(static_cast<int64_t>(from_last));
  }
  return made;
}

int place_of(const rosin_call_description& call, int32_t role) {
  for (uint32_t i = 0; i < call.array_count; ++i) {
    if (call.arrays[i].role == role) return static_cast<int>(i);
  }
  refuse("not the arrays of this call");
}

}  // namespace rosin::metal
