// See matmul.hpp.
#include "vendor/matmul.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "common/failure.hpp"
#include "vendor/roles.hpp"

namespace rosin::vendor {
namespace {

constexpr int most_dims = 8;
constexpr int64_t most_parts = 64;
constexpr uint64_t block_alignment = 64;  // of the places that rosin gives

[[noreturn]] void refuse(const char* why) { throw plugin::Failure{ROSIN_UNSUPPORTED, std::string("matmul: ") + why}; }

enum Operand { left, right, residual, auxiliary, result, operands };

/// A dim, and how far each operand goes along it.
struct Dim {
  int64_t size = 1;
  std::array<int64_t, operands> strides{};
};

/// The dims of a product: rows, what is summed over, columns, batches.
struct Dims {
  int64_t rows = 1, inner = 1, columns = 1;
  // Along rows and columns as each operand is stored: (m, k), (k, n), then (m, n).
  std::array<std::array<int64_t, 2>, operands> strides{};
  std::vector<Dim> batches;
};

const rosin_call_array* array_of(const rosin_call_description& call, int at) {
  return at < 0 ? nullptr : &call.arrays[at];
}

/// How far an operand goes along a dim of the result's batches.
int64_t stride_along(const rosin_call_array& array, int dim) {
  return dim >= array.rank || array.sizes[dim] == 1 ? 0 : array.strides[dim];
}

/// Adjacent dims that all operands walk as one become one.
void merge(std::vector<Dim>& dims) {
  std::vector<Dim> merged;
  for (const Dim& dim : dims) {
    if (dim.size == 1) continue;
    const auto continues = [&](const Dim& before) {
      for (int i = 0; i < operands; ++i) {
        if (dim.strides[i] != before.strides[i] * before.size) return false;
      }
      return true;
    };
    if (!merged.empty() && continues(merged.back())) merged.back().size *= dim.size;
    else merged.push_back(dim);
  }
  dims = std::move(merged);
}

/// One matrix times many: the batch is more columns, where the columns of all lie evenly.
void fold_into_columns(Dims& dims) {
  if (dims.batches.empty() || dims.batches.front().strides[left] != 0) return;
  const Dim& batch = dims.batches.front();
  for (const Operand each : {right, residual, auxiliary, result}) {
    if (dims.columns > 1 && batch.strides[each] != dims.strides[each][1] * dims.columns) return;
  }
  if (dims.columns == 1) {
    for (const Operand each : {right, residual, auxiliary, result}) dims.strides[each][1] = batch.strides[each];
  }
  dims.columns *= batch.size;
  dims.batches.erase(dims.batches.begin());
}

StoredMatrix stored(int64_t rows, int64_t columns, const std::array<int64_t, 2>& strides) {
  if ((rows == 1 || strides[0] == 1) && (columns == 1 || strides[1] >= rows)) {
    return {rows, columns, columns == 1 ? rows : strides[1], 0, false};
  }
  if ((columns == 1 || strides[1] == 1) && (rows == 1 || strides[0] >= columns)) {
    return {columns, rows, rows == 1 ? columns : strides[0], 0, true};
  }
  refuse("a matrix whose rows and columns both have gaps");
}

/// All combinations of the batches that are left, as parts of their own.
std::vector<Product::Part> parts_of(const std::vector<Dim>& dims) {
  std::vector<Product::Part> parts{{}};
  for (const Dim& dim : dims) {
    if (static_cast<int64_t>(parts.size()) > most_parts / dim.size) refuse("batches that lie in too many pieces");
    const std::vector<Product::Part> before = std::move(parts);
    parts.clear();
    for (int64_t i = 0; i < dim.size; ++i) {
      for (const Product::Part& part : before) {
        parts.push_back({part.left + i * dim.strides[left], part.right + i * dim.strides[right],
                         part.residual + i * dim.strides[residual], part.result + i * dim.strides[result]});
      }
    }
  }
  return parts;
}

/// The bytes up to the end of the last element.
uint64_t reach(const rosin_call_array& array) {
  int64_t last = 0;
  for (int d = 0; d < array.rank; ++d) {
    if (array.sizes[d] < 1) refuse("a size below 1");
    if (array.sizes[d] > 1 && array.strides[d] < 0) refuse("a stride below 0");
    last += (array.sizes[d] - 1) * array.strides[d];
  }
  return (static_cast<uint64_t>(last) + 1) * element_bytes(array.type);
}

Dims dims_of(const std::array<const rosin_call_array*, operands>& arrays) {
  const rosin_call_array& made = *arrays[result];
  Dims dims;
  dims.rows = made.sizes[0];
  dims.columns = made.sizes[1];
  dims.inner = arrays[left]->sizes[1];
  for (int i = 0; i < operands; ++i) dims.strides[i] = {arrays[i]->strides[0], arrays[i]->strides[1]};
  for (int d = 2; d < made.rank; ++d) {
    Dim& dim = dims.batches.emplace_back();
    dim.size = made.sizes[d];
    for (int i = 0; i < operands; ++i) dim.strides[i] = stride_along(*arrays[i], d);
  }
  merge(dims.batches);
  fold_into_columns(dims);
  return dims;
}

void check_sizes(const std::array<const rosin_call_array*, operands>& arrays) {
  for (const rosin_call_array* array : arrays) {
    if (array->rank < 2 || array->rank > most_dims) refuse("a matrix has 2 to 8 dims");
  }
  // (An auxiliary's rows may be bytes.)
  const int64_t *a = arrays[left]->sizes, *b = arrays[right]->sizes, *c = arrays[result]->sizes;
  const bool fits_residual = std::equal(c, c + 2, arrays[residual]->sizes);
  if (a[0] != c[0] || a[1] != b[0] || b[1] != c[1] || !fits_residual || arrays[auxiliary]->sizes[1] != c[1]) {
    throw plugin::Failure{ROSIN_INVALID, "matmul: the sizes of its matrices do not fit"};
  }
  for (const rosin_call_array* array : arrays) {
    for (int d = 2; d < array->rank; ++d) {
      const bool fits =
          array->sizes[d] == 1 || (d < arrays[result]->rank && array->sizes[d] == arrays[result]->sizes[d]);
      if (!fits) throw plugin::Failure{ROSIN_INVALID, "matmul: the sizes of its batches do not fit"};
    }
  }
}

/// Of every place that a part begins at.
uint64_t alignment_of(const Product& product) {
  uint64_t all = block_alignment / element_bytes(product.type);
  for (const Product::Part& part : product.parts) {
    for (const int64_t offset : {part.left, part.right, part.residual, part.result}) {
      all = std::gcd(all, static_cast<uint64_t>(offset));
    }
  }
  return all * element_bytes(product.type);
}

/// The longest dim of the batches becomes the one that the library knows.
void take_batches(Product& product, std::vector<Dim> batches) {
  const auto longest = std::max_element(batches.begin(), batches.end(),
                                        [](const Dim& one, const Dim& other) { return one.size < other.size; });
  if (longest != batches.end()) {
    product.batch = longest->size;
    product.left.batch_stride = longest->strides[left];
    product.right.batch_stride = longest->strides[right];
    product.residual.batch_stride = longest->strides[residual];
    product.auxiliary.batch_stride = longest->strides[auxiliary];
    product.result.batch_stride = longest->strides[result];
    batches.erase(longest);
  }
  product.parts = parts_of(batches);
}

bool is_gradient(int32_t activation) {
  return activation == ROSIN_ACTIVATION_RELU_GRADIENT || activation == ROSIN_ACTIVATION_GELU_GRADIENT;
}
bool is_gelu(int32_t activation) {
  return activation == ROSIN_ACTIVATION_GELU || activation == ROSIN_ACTIVATION_GELU_GRADIENT;
}

/// One type for all, but for the bits of relu.
void check_arrays(const rosin_call_description& call) {
  const rosin_epilogue& epilogue = call.epilogue;
  const auto one = [](int32_t flag) { return flag ? 1u : 0u; };
  const uint32_t wanted =
      3u + one(epilogue.bias) + one(epilogue.residual) + one(epilogue.auxiliary) + one(epilogue.bias_gradient);
  if (!call.arrays || call.array_count != wanted) refuse("not the arrays of a matmul");
  const int32_t type = call.arrays[0].type;
  if (type == ROSIN_UINT8) refuse("floats are multiplied");
  for (uint32_t i = 0; i < call.array_count; ++i) {
    element_bytes(call.arrays[i].type);
    const bool bits = call.arrays[i].role == ROSIN_ROLE_AUXILIARY && !is_gelu(epilogue.activation);
    if (call.arrays[i].type != (bits ? static_cast<int32_t>(ROSIN_UINT8) : type)) refuse("one type for all matrices");
  }
}

/// What an epilogue of the library computes without rounding in between is taken where that may be.
void check_epilogue(const rosin_call_description& call) {
  const rosin_epilogue& epilogue = call.epilogue;
  const int32_t activation = epilogue.activation, type = call.arrays[0].type;
  const bool relu = activation == ROSIN_ACTIVATION_RELU || activation == ROSIN_ACTIVATION_RELU_GRADIENT;
  if (activation != ROSIN_ACTIVATION_NONE && !relu && !is_gelu(activation)) refuse("no such activation");
  if (epilogue.auxiliary ? activation == ROSIN_ACTIVATION_NONE : is_gradient(activation)) {
    refuse("an auxiliary goes with its activation");
  }
  if (epilogue.bias && (epilogue.bias_gradient || is_gradient(activation))) refuse("a bias or its gradient");
  if (epilogue.bias_gradient && activation != ROSIN_ACTIVATION_NONE && !is_gradient(activation)) {
    refuse("sums of what is no gradient");
  }
  const bool plain = !epilogue.bias && !epilogue.bias_gradient && activation == ROSIN_ACTIVATION_NONE;
  if (type == ROSIN_FLOAT64 && !plain) refuse("Float64 has no epilogues");
  if (call.unrounded) return;
  const bool narrow = type == ROSIN_FLOAT16 || type == ROSIN_BFLOAT16;
  const bool several = epilogue.bias && epilogue.residual;  // which it adds in the other order
  const bool rounds =
      call.scaled || epilogue.bias || epilogue.residual || (epilogue.bias_gradient && is_gradient(activation));
  if (several || is_gelu(activation) || (narrow && rounds))
    refuse("its library rounds once where rosin rounds at each step");
}

/// The auxiliary of one product: columns of 128 bits, or of 8 elements.
StoredMatrix auxiliary_of(const Dims& dims, const rosin_call_array& array, bool bits) {
  const int64_t unit = bits ? 8 : 1, wanted = bits ? 128 : 8;
  if (array.sizes[0] > 1 && array.strides[0] != 1) refuse("an auxiliary that is not stored by columns");
  StoredMatrix matrix{dims.rows, dims.columns, dims.strides[auxiliary][1] * unit, 0, false};
  if (dims.columns == 1) matrix.leading = (array.sizes[0] * unit + wanted - 1) / wanted * wanted;
  if (matrix.leading % wanted != 0 || matrix.leading < dims.rows || array.sizes[0] * unit < dims.rows) {
    refuse("an auxiliary whose columns are too short");
  }
  return matrix;
}

/// What the library is told of the arrays.
void take_matrices(Product& product, const rosin_call_description& call) {
  std::array<const rosin_call_array*, operands> arrays{
      array_of(call, product.left_at), array_of(call, product.right_at), array_of(call, product.residual_at),
      array_of(call, product.auxiliary_at), array_of(call, product.result_at)};
  if (!arrays[left] || !arrays[right] || !arrays[result]) refuse("not the arrays of a matmul");
  for (const Operand each : {residual, auxiliary}) {
    if (!arrays[each]) arrays[each] = arrays[result];
  }
  check_sizes(arrays);
  const Dims dims = dims_of(arrays);
  product.left = stored(dims.rows, dims.inner, dims.strides[left]);
  product.right = stored(dims.inner, dims.columns, dims.strides[right]);
  product.residual = stored(dims.rows, dims.columns, dims.strides[residual]);
  product.result = stored(dims.rows, dims.columns, dims.strides[result]);
  if (product.result.transposed || product.residual.transposed) refuse("a result that is stored by rows");
  const bool bits = !is_gelu(product.epilogue.activation);
  if (product.auxiliary_at >= 0) product.auxiliary = auxiliary_of(dims, *arrays[auxiliary], bits);
  take_batches(product, dims.batches);
  product.auxiliary.batch_stride *= bits ? 8 : 1;
  if (product.auxiliary_at >= 0 && product.parts.size() > 1) refuse("an auxiliary in pieces");
  if (product.auxiliary_at >= 0 && product.auxiliary.batch_stride % (bits ? 128 : 8) != 0) {
    refuse("an auxiliary whose batches lie unevenly");
  }
  const bool single = arrays[result]->rank == 2 || (product.batch == 1 && product.parts.size() == 1);
  if (product.epilogue.bias_gradient && !single) refuse("sums of several batches");
  product.alignment = alignment_of(product);
}

}  // namespace

uint64_t element_bytes(int32_t type) {
  switch (type) {
    case ROSIN_UINT8: return 1;
    case ROSIN_FLOAT16:
    case ROSIN_BFLOAT16: return 2;
    case ROSIN_FLOAT32: return 4;
    case ROSIN_FLOAT64: return 8;
    default: refuse("no elements of this type");
  }
}

void check_matmul(const rosin_call_description& call) {
  if (call.attribute_count != 0) refuse("matmul has no attributes");
  if (call.compute < ROSIN_COMPUTE_EXACT || call.compute > ROSIN_COMPUTE_BFLOAT16) refuse("no such way to compute");
  if (call.accumulate && call.epilogue.residual) refuse("one array is added to a product");
  check_arrays(call);
  check_epilogue(call);
}

Product product_of(const rosin_call_description& call) {
  check_matmul(call);
  Product product;
  product.type = call.arrays[0].type;
  product.compute = call.compute;
  product.deterministic = call.deterministic != 0;
  product.epilogue = call.epilogue;
  product.accumulate = call.accumulate != 0;
  product.scaled = call.scaled != 0;
  product.left_at = place_of(call, ROSIN_ROLE_LEFT);
  product.right_at = place_of(call, ROSIN_ROLE_RIGHT);
  product.vector_at = place_of(call, call.epilogue.bias ? ROSIN_ROLE_BIAS : ROSIN_ROLE_BIAS_GRADIENT);
  product.residual_at = place_of(call, ROSIN_ROLE_RESIDUAL);
  product.auxiliary_at = place_of(call, ROSIN_ROLE_AUXILIARY);
  product.result_at = place_of(call, ROSIN_ROLE_OUTPUT);
  for (uint32_t i = 0; i < call.array_count; ++i) product.bytes.push_back(reach(call.arrays[i]));
  take_matrices(product, call);
  return product;
}

}  // namespace rosin::vendor
