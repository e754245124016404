// Jacobians, Hessians and products with them, by gradient calls: see rosin/derivatives.hpp.
#include <rosin/derivatives.hpp>

#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"

namespace rosin {
namespace {

void check_direction(const char* op, const Array& x, const Array& v) {
  if (v.shape() == x.shape()) return;
  throw Error(ErrorKind::shape, std::string(op) + ": the vector has the shape of x; got " + to_string(v.shape()) +
                                    " and " + to_string(x.shape()) + "; expand it");
}

Array element(const Array& x, int64_t i) { return select(reshape(x, {-1}), 0, i); }

/// 1 at element i of an array like x, else 0.
Array unit(const Array& x, int64_t i) {
  const DeviceScope scope(*x.node());
  return cast(eq(reshape(arange(x.count()), x.shape()), i), x.dtype());
}

/// Zeros where nothing depends on x.
Array or_zeros(const Array& g, const Array& x) { return g.is_nothing() ? zeros_like(x) : g; }

Array gradient_of(const ArrayFunction& f, const Array& x) { return or_zeros(gradient(f, x), x); }

/// Vectors side by side as the columns (or rows) of a matrix; (n, 0) or (0, n) of none.
Array matrix_of(const std::vector<Array>& vectors, int64_t n, int dim, const Array& like) {
  if (!vectors.empty()) return stack(vectors, dim);
  const DeviceScope scope(*like.node());
  return zeros(dim == 0 ? Shape{0, n} : Shape{n, 0}, like.dtype());
}

}  // namespace

Tangent jvp(const ArrayFunction& f, const Array& x, const Array& v) {
  check_direction("jvp", x, v);
  Tangent result;
  result.value = f(x);
  const auto along_v = [&](const Array& cotangent) {
    const auto weighed = [&](const Array& a) { return sum(f(a) * cotangent); };
    return sum(gradient_of(weighed, x) * v);
  };
  result.tangent = gradient_of(along_v, zeros_like(result.value));
  return result;
}

namespace detail {

Array joined(const char* op, std::span<const Array> arrays) {
  std::vector<Array> vectors;
  for (const Array& x : arrays) {
    if (x.dtype() != arrays[0].dtype()) {
      throw Error(ErrorKind::dtype, std::string(op) + ": the arrays have one type; got " +
                                        to_string(arrays[0].dtype()) + " and " + to_string(x.dtype()) +
                                        "; convert one with cast");
    }
    vectors.push_back(reshape(x, {-1}));
  }
  return concat(vectors, 0);
}

std::vector<Array> parted(const Array& vector, std::span<const Array> like) {
  std::vector<Array> parts;
  int64_t first = 0;
  for (const Array& x : like) {
    parts.push_back(reshape(slice(vector, 0, first, first + x.count()), x.shape()));
    first += x.count();
  }
  return parts;
}

void check_directions(std::span<const Array> arrays, std::span<const Array> directions) {
  for (size_t i = 0; i < arrays.size(); ++i) check_direction("jvp", arrays[i], directions[i]);
}

}  // namespace detail

Array jacobian(const ArrayFunction& f, const Array& x) {
  const Array y = f(x);
  const int64_t rows = y.count(), columns = x.count();
  std::vector<Array> parts;
  if (rows <= columns) {
    for (int64_t i = 0; i < rows; ++i) {
      const auto one = [&](const Array& a) { return element(f(a), i); };
      parts.push_back(reshape(gradient_of(one, x), {-1}));
    }
    return matrix_of(parts, columns, 0, y);
  }
  for (int64_t i = 0; i < columns; ++i) parts.push_back(reshape(jvp(f, x, unit(x, i)).tangent, {-1}));
  return matrix_of(parts, rows, 1, y);
}

Array hessian(const ArrayFunction& f, const Array& x) {
  std::vector<Array> rows;
  for (int64_t i = 0; i < x.count(); ++i) rows.push_back(reshape(hvp(f, x, unit(x, i)), {-1}));
  return matrix_of(rows, x.count(), 0, x);
}

Array diaghessian(const ArrayFunction& f, const Array& x) {
  std::vector<Array> elements;
  for (int64_t i = 0; i < x.count(); ++i) elements.push_back(element(hvp(f, x, unit(x, i)), i));
  return elements.empty() ? zeros_like(x) : reshape(stack(elements, 0), x.shape());
}

Array hvp(const ArrayFunction& f, const Array& x, const Array& v) {
  check_direction("hvp", x, v);
  const auto along_v = [&](const Array& a) { return sum(gradient_of(f, a) * v); };
  return gradient_of(along_v, x);
}

}  // namespace rosin
