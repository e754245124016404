// Arrays made from nothing; see rosin/create.hpp. Constant ones are recorded as a broadcast number, ranges are leaves.
#include <rosin/create.hpp>

#include <limits>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/integers.hpp"
#include "graph/leaf.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

/// A constant leaf of values, which are written where they stay.
template <class T, class Value> Array leaf_of(int64_t count, Value value) {
  Array made = fresh_leaf(dtype_of<T>, Shape{count});
  T* values = static_cast<T*>(made.node()->data());
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(value(i));
  return constant(made);
}

/// A leaf of values computed in double and rounded once to `type`.
template <class Value> Array filled(int64_t count, DType type, Value value) {
  const Array exact = leaf_of<double>(count, value);
  return in_scope(type == Float64 ? exact : cast(exact, type));
}

// What `make` makes, where the options say.
template <class Make> Array placed(const ArrayOptions& options, Make make) {
  if (!options.has_device()) return make();
  const DeviceScope scope(static_cast<uint8_t>(options.position()));
  return make();
}

}  // namespace

Array full(const Shape& shape, const Array& value) { return full(shape, value, value.dtype()); }

Array full(const Shape& shape, const Array& value, DType type) {
  if (value.is_nothing() || value.rank() != 0) {
    refuse(ErrorKind::argument, "full", "the value must be a number or 0-d",
           value.is_nothing() ? "nothing" : "shape " + to_string(value.shape()), "use expand for arrays");
  }
  require_held("full", type, value);
  return expand(cast(value, type), shape);
}

Array full(const Shape& shape, const Array& value, const ArrayOptions& options) {
  return placed(options,
                [&] { return full(shape, value, options.type_or(value.is_nothing() ? Float32 : value.dtype())); });
}

Array zeros(const Shape& shape, const ArrayOptions& options) {
  return placed(options, [&] { return zeros(shape, options.type_or(Float32)); });
}
Array ones(const Shape& shape, const ArrayOptions& options) {
  return placed(options, [&] { return ones(shape, options.type_or(Float32)); });
}
Array zeros(const Shape& shape, DType type) { return full(shape, 0, type); }
Array ones(const Shape& shape, DType type) { return full(shape, 1, type); }

Array zeros_like(const Array& x) { return full_like(x, 0); }
Array ones_like(const Array& x) { return full_like(x, 1); }

Array full_like(const Array& x, const Array& value) {
  const Shape shape = x.shape();
  const DeviceScope scope(*x.node());
  return full(shape, value, x.dtype());
}

Array integer_range(int64_t start, int64_t step, int64_t count) {
  const int64_t last = start + (count > 0 ? count - 1 : 0) * step;
  const auto fits = [](int64_t value) {
    return value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
  };
  const auto value = [=](int64_t i) { return start + i * step; };
  return in_scope(fits(start) && fits(last) ? leaf_of<int32_t>(count, value) : leaf_of<int64_t>(count, value));
}

Array integer_range_between(int64_t start, int64_t stop, int64_t step) {
  if (step == 0) refuse(ErrorKind::argument, "arange", "the step cannot be 0", "0", "use full for equal numbers");
  const int64_t span = step > 0 ? stop - start : start - stop;
  const int64_t stride = step > 0 ? step : -step;
  return integer_range(start, step, span > 0 ? (span + stride - 1) / stride : 0);
}

Array integer_range_between(int64_t start, int64_t stop, int64_t step, const ArrayOptions& options) {
  return placed(options, [&] {
    const Array range = integer_range_between(start, stop, step);
    return cast(range, options.type_or(range.dtype()));
  });
}

Array arange(double start, double stop, double step, const ArrayOptions& options) {
  return placed(options, [&] { return arange(start, stop, step, options.type_or(Float32)); });
}

Array linspace(double start, double stop, int64_t count, const ArrayOptions& options) {
  return placed(options, [&] { return linspace(start, stop, count, options.type_or(Float32)); });
}

Array arange(double start, double stop, double step, DType type) {
  const double steps = (stop - start) / step;
  if (!(steps < 9e15)) {
    refuse(ErrorKind::argument, "arange", "the range must be finite and the step not 0",
           "start " + std::to_string(start) + ", stop " + std::to_string(stop) + ", step " + std::to_string(step),
           "use linspace for a number of points");
  }
  int64_t count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  if (static_cast<double>(count) < steps) ++count;
  return filled(count, type, [=](int64_t i) { return start + static_cast<double>(i) * step; });
}

Array linspace(double start, double stop, int64_t count, DType type) {
  if (count < 0) {
    refuse(ErrorKind::argument, "linspace", "the count cannot be negative", std::to_string(count), "use 0 for nothing");
  }
  const double last = static_cast<double>(count - 1);
  return filled(count, type, [=](int64_t i) {
    const double at = static_cast<double>(i);
    return count == 1 ? start : start * ((last - at) / last) + stop * (at / last);
  });
}

Array eye(int64_t n, DType type) { return eye(n, n, type); }

Array eye(int64_t rows, int64_t columns, DType type) {
  return cast(eq(arange(rows), reshape(arange(columns), {1, columns})), type);
}

Array eye(int64_t n, const ArrayOptions& options) { return eye(n, n, options); }

Array eye(int64_t rows, int64_t columns, const ArrayOptions& options) {
  return placed(options, [&] { return eye(rows, columns, options.type_or(Float32)); });
}

}  // namespace rosin
