// See matmul.hpp.
#include "matmul.hpp"

namespace rosin::reference {
namespace {

/// The place from which `matrix` of sizes (rows, columns, batch) is read, if all of it lies in the block.
char* checked(const rosin_device& device, const rosin_matrix& matrix, int64_t rows, int64_t columns, int64_t batch,
              rosin_place place) {
  const int64_t sizes[3] = {rows, columns, batch};
  int64_t last = 0;
  for (int d = 0; d < 3; ++d) {
    need(matrix.strides[d] >= 0, "call: a stride below 0");
    last += (sizes[d] - 1) * matrix.strides[d];
  }
  const uint64_t element = matrix.type == ROSIN_FLOAT64 ? 8 : 4;
  need(place.offset % offset_unit == 0, "call: an offset that is not aligned");
  return bytes_at(device, place, (static_cast<uint64_t>(last) + 1) * element);
}

template <class T> void multiply(const rosin_call_description& what, const MatmulBytes& at) {
  const auto* a = reinterpret_cast<const T*>(at.a);
  const auto* b = reinterpret_cast<const T*>(at.b);
  auto* result = reinterpret_cast<T*>(at.result);
  const int64_t *sa = what.a.strides, *sb = what.b.strides, *sr = what.result.strides;
  for (int64_t q = 0; q < what.batch; ++q) {
    for (int64_t j = 0; j < what.n; ++j) {
      for (int64_t i = 0; i < what.m; ++i) {
        T sum = 0;
        for (int64_t l = 0; l < what.k; ++l) {
          sum += a[i * sa[0] + l * sa[1] + q * sa[2]] * b[l * sb[0] + j * sb[1] + q * sb[2]];
        }
        result[i * sr[0] + j * sr[1] + q * sr[2]] = sum;
      }
    }
  }
}

}  // namespace

void check_matmul(const rosin_device& device, const rosin_call_description& what) {
  if (!device.options.vendor) throw Failure(ROSIN_UNSUPPORTED, "call: vendor calls are off (vendor=1 offers them)");
  if (what.kind != ROSIN_CALL_MATMUL) throw Failure(ROSIN_UNSUPPORTED, "call: no such call");
  const bool known = what.a.type == ROSIN_FLOAT32 || (what.a.type == ROSIN_FLOAT64 && device.options.float64);
  if (!known || what.b.type != what.a.type || what.result.type != what.a.type) {
    throw Failure(ROSIN_UNSUPPORTED, "call: matmul of one float type only");
  }
  need(what.m > 0 && what.n > 0 && what.k > 0 && what.batch > 0, "call: a size below 1");
}

MatmulBytes matmul_bytes(const rosin_call& call, const rosin_place* buffers) {
  const rosin_call_description& what = call.what;
  MatmulBytes at;
  at.a = checked(*call.device, what.a, what.m, what.k, what.batch, buffers[0]);
  at.b = checked(*call.device, what.b, what.k, what.n, what.batch, buffers[1]);
  at.result = checked(*call.device, what.result, what.m, what.n, what.batch, buffers[2]);
  return at;
}

void matmul(const rosin_call_description& what, const MatmulBytes& at) {
  if (what.a.type == ROSIN_FLOAT32) multiply<float>(what, at);
  else multiply<double>(what, at);
}

}  // namespace rosin::reference
