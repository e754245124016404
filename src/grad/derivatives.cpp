// Jacobians, Hessians and products with them, by gradient calls: see rosin/derivatives.hpp.
#include <rosin/derivatives.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/vmap.hpp>

#include "graph/context.hpp"

namespace rosin {
namespace {

void check_direction(const char* op, const Array& x, const Array& v) {
  if (v.shape() == x.shape()) return;
  throw Error(ErrorKind::shape, std::string(op) + ": the vector has the shape of x; got " + to_string(v.shape()) +
                                    " and " + to_string(x.shape()) + "; expand it");
}

/// The product of two arrays as vectors of real numbers: those of complex arrays are their parts.
Array inner(const Array& a, const Array& b) {
  return is_complex(a.dtype()) ? sum(view_as_real(a) * view_as_real(b)) : sum(a * b);
}

void require_floats(const char* op, const Array& x) {
  if (is_float(x.dtype()) || is_complex(x.dtype())) return;
  throw Error(ErrorKind::dtype, std::string(op) + ": derivatives are by floats; got " + to_string(x.dtype()) +
                                    "; convert them, for example with cast(x, Float32)");
}

void require_real(const char* op, const Array& x) {
  if (!is_complex(x.dtype())) return;
  throw Error(ErrorKind::dtype, std::string(op) + ": rows and columns are of real numbers; got " +
                                    to_string(x.dtype()) + "; take view_as_real of it, or a product: jvp, hvp");
}

/// Zeros where nothing depends on x.
Array or_zeros(const Array& g, const Array& x) { return g.is_nothing() ? zeros_like(x) : g; }

Array gradient_of(const ArrayFunction& f, const Array& x) { return or_zeros(gradient(f, x), x); }

/// Arrays like x that are 1 at one element, from `first` on, and 0 elsewhere: `count` of them along a last dim.
Array units_of(const Array& x, int64_t first, int64_t count) {
  const DeviceScope scope(*x.node());
  const Shape shape = x.shape();
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  sizes.push_back(count);
  const Array places = reshape(detail::integer_range(0, 1, x.count()), {-1, 1});
  return reshape(cast(eq(places, reshape(detail::integer_range(first, 1, count), {1, -1})), x.dtype()), sizes);
}

/// f of each array along the last dim, as columns: of all at once, or one by one where a function looks at values or
/// has a gradient of its own.
Array columns_of(const ArrayFunction& f, const Array& units) {
  try {
    return vmap(f, units);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::argument) throw;
  }
  std::vector<Array> columns;
  for (int64_t i = 0; i < units.size(-1); ++i) columns.push_back(f(select(units, -1, i)));
  return stack(columns, 1);
}

/// The vectors of `rows` elements that f gives for each element of x, as columns, from an array that is 1 there and 0
/// elsewhere: so many at once that what they are made of does not fill the memory.
Array columns_of(const ArrayFunction& f, const Array& x, int64_t rows) {
  constexpr int64_t most_elements = int64_t{1} << 24;
  const DeviceScope scope(*x.node());
  const int64_t count = x.count(), together = std::max<int64_t>(1, most_elements / std::max<int64_t>(1, count));
  std::vector<Array> blocks;
  for (int64_t first = 0; first < count; first += together) {
    blocks.push_back(columns_of(f, units_of(x, first, std::min(together, count - first))));
  }
  return blocks.empty() ? zeros({rows, 0}, x.dtype()) : blocks.size() == 1 ? blocks[0] : concat(blocks, 1);
}

}  // namespace

Tangent jvp(const ArrayFunction& f, const Array& x, const Array& v) {
  require_floats("jvp", x);
  check_direction("jvp", x, v);
  Tangent result;
  result.value = f(x);
  const auto along_v = [&](const Array& cotangent) {
    const auto weighed = [&](const Array& a) { return inner(f(a), cotangent); };
    return inner(gradient_of(weighed, x), v);
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
  require_floats("jacobian", x);
  const Array y = f(x);
  require_real("jacobian", y);
  if (y.count() > x.count() && !is_complex(x.dtype())) {
    return columns_of([&](const Array& unit) { return reshape(jvp(f, x, unit).tangent, {-1}); }, x, y.count());
  }
  const auto row = [&](const Array& unit) {
    return reshape(gradient_of([&](const Array& a) { return sum(f(a) * unit); }, x), {-1});
  };
  return transpose(columns_of(row, y, x.count()));
}

Array hessian(const ArrayFunction& f, const Array& x) {
  require_floats("hessian", x);
  require_real("hessian", x);
  const auto row = [&](const Array& unit) { return reshape(hvp(f, x, unit), {-1}); };
  return transpose(columns_of(row, x, x.count()));
}

Array diaghessian(const ArrayFunction& f, const Array& x) {
  require_floats("diaghessian", x);
  require_real("diaghessian", x);
  const auto element = [&](const Array& unit) { return reshape(sum(hvp(f, x, unit) * unit), {1}); };
  return reshape(columns_of(element, x, 1), x.shape());
}

Array hvp(const ArrayFunction& f, const Array& x, const Array& v) {
  require_floats("hvp", x);
  check_direction("hvp", x, v);
  const auto along_v = [&](const Array& a) { return inner(gradient_of(f, a), v); };
  return gradient_of(along_v, x);
}

}  // namespace rosin
