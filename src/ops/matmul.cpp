// matmul: shapes and the gradient; lower and the devices know it as Contraction::matmul.
#include <rosin/matmul.hpp>

#include <algorithm>

#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "ops/autocast_casts.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

void matmul_gradient(Backward& b);

const Op& matmul_op = *register_op({.name = "matmul",
                                    .kind = Kind::contraction,
                                    .operands = 2,
                                    .doc = "matrix product over the first two dims, batches over the rest",
                                    .type_rule = TypeRule::attribute,
                                    .contraction = Contraction::matmul,
                                    .attribute_words = 1,
                                    .gradient = matmul_gradient});

[[noreturn]] void refuse_sizes(const Shape& a, const Shape& b) {
  const bool transposed_fits = b.rank() >= 2 && a[1] == b[1];
  const bool left_fits = a[0] == b[0];
  refuse(ErrorKind::shape, "matmul", "inner sizes must agree",
         to_string(a) + " x " + to_string(b) + ", that is " + std::to_string(a[1]) + " and " + std::to_string(b[0]),
         transposed_fits ? "did you mean matmul(a, transpose(b))?"
         : left_fits     ? "did you mean matmul(transpose(a), b)?"
                         : "a is (m, k), b is (k, n)");
}

Shape product_shape(const Shape& a, const Shape& b) {
  if (a[1] != b[0]) refuse_sizes(a, b);
  int64_t sizes[Shape::max_rank] = {a[0], b[1]};
  const int rank = std::max(a.rank(), b.rank());
  for (int d = 2; d < rank; ++d) {
    const int64_t x = d < a.rank() ? a[d] : 1, y = d < b.rank() ? b[d] : 1;
    if (x != y && x != 1 && y != 1) {
      refuse(ErrorKind::shape, "matmul", "batch dims must be equal or 1", to_string(a) + " x " + to_string(b),
             "the dims after the first two are batches");
    }
    sizes[d] = x == 1 ? y : x;
  }
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank)));
}

/// The shape with its first two dims exchanged where `transposed`.
Shape read_as(const Shape& shape, bool transposed) {
  if (!transposed) return shape;
  int64_t sizes[Shape::max_rank];
  std::copy(shape.begin(), shape.end(), sizes);
  std::swap(sizes[0], sizes[1]);
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(shape.rank())));
}

/// Both have rank 2 or more.
Array product(const Array& a, const Array& b, DType type, bool a_transposed = false, bool b_transposed = false) {
  const Array* in[] = {&a, &b};
  const Shape shape = product_shape(read_as(a.shape(), a_transposed), read_as(b.shape(), b_transposed));
  return record(matmul_op, in, type, shape, Attributes::of(MatmulAttributes{{a_transposed, b_transposed}}));
}

/// Of C = A B: dA = dC B', dB = A' dC, each transposed where the operand is.
void matmul_gradient(Backward& b) {
  const auto [ta, tb] = b.attributes<MatmulAttributes>().transposed;
  const Array& dc = b.gradient;
  const DType type = dc.dtype();
  if (b.needs(0)) b.give(0, ta ? product(b.in(1), dc, type, tb, true) : product(dc, b.in(1), type, false, !tb));
  if (b.needs(1)) b.give(1, tb ? product(dc, b.in(0), type, true, ta) : product(b.in(0), dc, type, !ta, false));
}

/// One matrix times many columns: the batches of b are more columns.
Array with_columns_joined(const Array& a, const Array& b, DType type) {
  const Shape shape = b.shape();
  int64_t columns = 1;
  for (int d = 1; d < shape.rank(); ++d) columns *= shape[d];
  const Array joined = reshape(b, {shape[0], columns});
  return reshape(product(a, joined, type), with_size(shape, 0, a.size(0)));
}

/// By four products of real and imaginary parts, two where one operand is real.
Array complex_product(const Array& a, const Array& b) {
  const bool wide = a.dtype() == ComplexF64 || b.dtype() == ComplexF64;
  const auto parts_of = [&](const Array& x) { return is_complex(x.dtype()) ? x : cast(x, wide ? Float64 : Float32); };
  const Array x = parts_of(a), y = parts_of(b);
  if (!is_complex(x.dtype())) return complex(matmul(x, real(y)), matmul(x, imag(y)));
  if (!is_complex(y.dtype())) return complex(matmul(real(x), y), matmul(imag(x), y));
  return complex(matmul(real(x), real(y)) - matmul(imag(x), imag(y)),
                 matmul(real(x), imag(y)) + matmul(imag(x), real(y)));
}

}  // namespace

Array matmul(const Array& a, const Array& b) {
  require(matmul_op, a);
  require(matmul_op, b);
  if (a.rank() == 0 || b.rank() == 0) {
    refuse(ErrorKind::shape, "matmul", "operands have one dim or more",
           to_string(a.shape()) + " x " + to_string(b.shape()), "for products with numbers write a * b");
  }
  if (halves(a) || halves(b)) return matmul(halved(a), halved(b));
  const Array* both[] = {&a, &b};
  const DType common = common_type(matmul_op, both), type = sum_type(common);
  if (is_complex(common)) return complex_product(a, b);
  if (a.dtype() != type || b.dtype() != type) return matmul(cast(a, type), cast(b, type));
  if (a.rank() == 1) {
    const Array row = matmul(reshape(a, {1, a.size(0)}), b);
    return row.rank() == 1 ? reshape(row, Shape{}) : reshape(row, with_dims(row.shape(), 0, 1, {}));
  }
  if (b.rank() == 1) {
    const Array column = product(a, reshape(b, {b.size(0), 1}), type);
    return reshape(column, with_dims(column.shape(), 1, 1, {}));
  }
  if (a.rank() == 2 && b.rank() > 2 && a.size(1) == b.size(0)) return with_columns_joined(a, b, type);
  return product(a, b, type);
}

}  // namespace rosin
