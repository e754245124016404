// Arrays made from nothing; see rosin/create.hpp. Constant ones are recorded as a broadcast number, ranges are leaves.
#include <rosin/create.hpp>

#include <cmath>
#include <cstdio>
#include <limits>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "base/sizes.hpp"
#include "graph/context.hpp"
#include "graph/integers.hpp"
#include "graph/leaf.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

/// A leaf of values computed in double and rounded once to `type`. Of Float32 devices without Float64 take it too.
template <class Value> Array filled(int64_t count, DType type, Value value) {
  const auto rounded = [&](int64_t i) { return static_cast<float>(value(i)); };
  if (type == Float32) return in_scope(constant(leaf_of<float>(Shape{count}, rounded)));
  const Array exact = constant(leaf_of<double>(Shape{count}, value));
  return table(type == Float64 ? exact : cast(exact, type));
}

__extension__ using Wide = __int128;  // of two numbers of 64 bits, the product

std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// `span` > 0 in steps of `step`, rounded up; of any two numbers of 64 bits.
uint64_t steps_in(uint64_t span, int64_t step) {
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  return (span - 1) / stride + 1;
}

// What `make` makes, where the options say.
template <class Make> Array placed(const ArrayOptions& options, Make make) {
  if (!options.has_device()) return make();
  const DeviceScope scope(static_cast<uint8_t>(options.position()));
  return make();
}

const bool named[] = {name_function(zeros_like, "zeros_like"), name_function(ones_like, "ones_like")};

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

Array detail::integer_range(int64_t start, int64_t step, int64_t count) {
  using Limits = std::numeric_limits<int64_t>;
  const Wide last = start + Wide{count > 0 ? count - 1 : 0} * step;
  if (count < 0 || last < Limits::min() || last > Limits::max()) {
    refuse(ErrorKind::argument, "arange", "its numbers must be integers of 64 bits",
           std::to_string(count) + " numbers from " + std::to_string(start) + " in steps of " + std::to_string(step),
           "use a smaller count");
  }
  const auto fits = [](Wide value) {
    return value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
  };
  const auto value = [=](int64_t i) { return static_cast<int64_t>(start + Wide{i} * step); };
  if (!fits(start) || !fits(last)) return in_scope(constant(leaf_of<int64_t>(Shape{count}, value)));
  const auto narrow = [=](int64_t i) { return static_cast<int32_t>(value(i)); };
  return in_scope(constant(leaf_of<int32_t>(Shape{count}, narrow)));
}

Array detail::integer_range_between(int64_t start, int64_t stop, int64_t step) {
  if (step == 0) refuse(ErrorKind::argument, "arange", "the step cannot be 0", "0", "use full for equal numbers");
  const int64_t low = step > 0 ? start : stop, high = step > 0 ? stop : start;
  if (low >= high) return detail::integer_range(start, step, 0);
  const uint64_t count = steps_in(static_cast<uint64_t>(high) - static_cast<uint64_t>(low), step);
  if (count > uint64_t{largest_count}) {
    refuse(ErrorKind::shape, "arange", "an array has at most 2^58 elements",
           std::to_string(count) + " numbers from " + std::to_string(start) + " to " + std::to_string(stop),
           "use a smaller range or a larger step");
  }
  return detail::integer_range(start, step, static_cast<int64_t>(count));
}

Array detail::integer_range_between(int64_t start, int64_t stop, int64_t step, const ArrayOptions& options) {
  return placed(options, [&] {
    const Array range = detail::integer_range_between(start, stop, step);
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
  if (!(steps < 9e15)) {  // up to here a double counts without gaps
    const bool finite = std::isfinite(start) && std::isfinite(stop) && std::isfinite(step) && step != 0;
    refuse(ErrorKind::argument, "arange",
           finite ? "the range must have fewer than 9e15 numbers" : "the range must be finite and the step not 0",
           "start " + short_text(start) + ", stop " + short_text(stop) + ", step " + short_text(step),
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
  product_of_sizes("eye", {rows, columns});
  return cast(eq(arange(rows), reshape(arange(columns), {1, columns})), type);
}

Array eye(int64_t n, const ArrayOptions& options) { return eye(n, n, options); }

Array eye(int64_t rows, int64_t columns, const ArrayOptions& options) {
  return placed(options, [&] { return eye(rows, columns, options.type_or(Float32)); });
}

}  // namespace rosin
