// See matmul.hpp.
#include "matmul.hpp"

namespace rosin::reference {
namespace {

constexpr int most_dims = 8;

/// The place from which an array is read, if all of it lies in the block.
char* checked(const rosin_device& device, const rosin_call_array& array, rosin_place place) {
  int64_t last = 0;
  for (int d = 0; d < array.rank; ++d) {
    need(array.strides[d] >= 0, "call: a stride below 0");
    last += (array.sizes[d] - 1) * array.strides[d];
  }
  const uint64_t element = array.type == ROSIN_FLOAT64 ? 8 : 4;
  need(place.offset % offset_unit == 0, "call: an offset that is not aligned");
  return bytes_at(device, place, (static_cast<uint64_t>(last) + 1) * element);
}

[[noreturn]] void refuse(const char* why) { throw Failure(ROSIN_UNSUPPORTED, why); }

/// Of matrix number `matrix` of the result's batch, in an operand that may repeat: the place of its first element.
int64_t first_of(const rosin_call_array& array, const rosin_call_array& result, int64_t matrix) {
  int64_t at = 0;
  for (int d = 2; d < result.rank; ++d) {
    const int64_t i = matrix % result.sizes[d];
    matrix /= result.sizes[d];
    if (d < array.rank && array.sizes[d] != 1) at += i * array.strides[d];
  }
  return at;
}

template <class T> T finished(const Matmul& what, T value, const T* bias, int64_t row) {
  if (what.epilogue.bias) value += bias[row];
  return what.epilogue.activation == ROSIN_ACTIVATION_RELU && value < T(0) ? T(0) : value;
}

template <class T> void multiply(const Matmul& what, const MatmulBytes& at) {
  const int64_t *sa = what.a.strides, *sb = what.b.strides, *sr = what.result.strides;
  int64_t batch = 1;
  for (int d = 2; d < what.result.rank; ++d) batch *= what.result.sizes[d];
  for (int64_t q = 0; q < batch; ++q) {
    const T* a = reinterpret_cast<const T*>(at.a) + first_of(what.a, what.result, q);
    const T* b = reinterpret_cast<const T*>(at.b) + first_of(what.b, what.result, q);
    T* result = reinterpret_cast<T*>(at.result) + first_of(what.result, what.result, q);
    for (int64_t j = 0; j < what.result.sizes[1]; ++j) {
      for (int64_t i = 0; i < what.result.sizes[0]; ++i) {
        T sum = 0;
        for (int64_t l = 0; l < what.a.sizes[1]; ++l) sum += a[i * sa[0] + l * sa[1]] * b[l * sb[0] + j * sb[1]];
        result[i * sr[0] + j * sr[1]] = finished(what, sum, reinterpret_cast<const T*>(at.bias), i);
      }
    }
  }
}

}  // namespace

Matmul checked_matmul(const rosin_device& device, const rosin_call_description& what) {
  if (!device.options.vendor) refuse("call: vendor calls are off (vendor=1 offers them)");
  if (what.kind != ROSIN_CALL_MATMUL || what.accumulate || what.compute != ROSIN_COMPUTE_EXACT) {
    refuse("call: no such call");
  }
  const rosin_epilogue& epilogue = what.epilogue;
  const bool activates = epilogue.activation == ROSIN_ACTIVATION_NONE || epilogue.activation == ROSIN_ACTIVATION_RELU;
  if (!activates || epilogue.residual || epilogue.auxiliary || epilogue.bias_gradient) {
    refuse("call: matmul has bias and relu as epilogues, no others");
  }
  need(what.arrays != nullptr && what.array_count == (epilogue.bias ? 4u : 3u), "call: not the arrays of a matmul");
  const rosin_call_array* arrays = what.arrays;
  const int32_t type = arrays[0].type;
  for (uint32_t i = 0; i < what.array_count; ++i) {
    const bool known = type == ROSIN_FLOAT32 || (type == ROSIN_FLOAT64 && device.options.float64);
    if (!known || arrays[i].type != type) refuse("call: matmul of one float type only");
    need(arrays[i].rank >= 0 && arrays[i].rank <= most_dims, "call: an array has 0 to 8 dims");
  }
  return {arrays[0], arrays[1], arrays[what.array_count - 1], epilogue};
}

void check_sizes(const rosin_device& device, const Matmul& what) {
  for (const rosin_call_array* array : {&what.a, &what.b, &what.result}) {
    need(array->rank >= 2, "call: a matrix has two dims");
    for (int d = 0; d < array->rank; ++d) need(array->sizes[d] > 0, "call: a size below 1");
  }
  if (device.options.vendor_rows >= 0 && what.result.sizes[0] > device.options.vendor_rows) {
    refuse("call: too many rows, as vendor_rows=N says");
  }
}

MatmulBytes matmul_bytes(const rosin_call& call, const rosin_place* buffers) {
  const Matmul& what = call.what;
  MatmulBytes at;
  at.a = checked(*call.device, what.a, buffers[0]);
  at.b = checked(*call.device, what.b, buffers[1]);
  const bool bias = what.epilogue.bias != 0;
  if (bias) {
    const uint64_t element = what.a.type == ROSIN_FLOAT64 ? 8 : 4;
    at.bias = bytes_at(*call.device, buffers[2], static_cast<uint64_t>(what.result.sizes[0]) * element);
  }
  at.result = checked(*call.device, what.result, buffers[bias ? 3 : 2]);
  return at;
}

void matmul(const Matmul& what, const MatmulBytes& at) {
  if (what.a.type == ROSIN_FLOAT32) multiply<float>(what, at);
  else multiply<double>(what, at);
}

}  // namespace rosin::reference
