// Arrays made from nothing: zeros, ones, full, ranges, identity. Each takes a device as well: `zeros({2, 3}, device)`.
#pragma once

#include <concepts>
#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/array_options.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// An array of one value (0-d, not nothing), of the value's type or of `type`.
ROSIN_API Array full(const Shape& shape, const Array& value);
ROSIN_API Array full(const Shape& shape, const Array& value, DType type);
ROSIN_API Array full(const Shape& shape, const Array& value, const ArrayOptions& options);
/// All 0 or all 1.
ROSIN_API Array zeros(const Shape& shape, DType type = Float32);
ROSIN_API Array zeros(const Shape& shape, const ArrayOptions& options);
ROSIN_API Array ones(const Shape& shape, DType type = Float32);
ROSIN_API Array ones(const Shape& shape, const ArrayOptions& options);
/// Of the shape and type of x.
ROSIN_API Array zeros_like(const Array& x);
ROSIN_API Array ones_like(const Array& x);
ROSIN_API Array full_like(const Array& x, const Array& value);

namespace detail {

/// Start, start + step, ..., `count` of them; Int32, or Int64 where a value needs it.
ROSIN_API Array integer_range(int64_t start, int64_t step, int64_t count);
/// The numbers of [start, stop) in steps of `step`. Error (argument): step 0.
ROSIN_API Array integer_range_between(int64_t start, int64_t stop, int64_t step);
ROSIN_API Array integer_range_between(int64_t start, int64_t stop, int64_t step, const ArrayOptions& options);

}  // namespace detail

/// 0, 1, ..., stop - 1; start, start + step, ... before stop. Int32, or Int64 where a value needs it.
template <std::integral T> Array arange(T stop) {
  return detail::integer_range_between(0, static_cast<int64_t>(stop), 1);
}
template <std::integral T> Array arange(T stop, const ArrayOptions& options) {
  return detail::integer_range_between(0, static_cast<int64_t>(stop), 1, options);
}
template <std::integral T, std::integral U> Array arange(T start, U stop, int64_t step = 1) {
  return detail::integer_range_between(static_cast<int64_t>(start), static_cast<int64_t>(stop), step);
}
template <std::integral T, std::integral U> Array arange(T start, U stop, int64_t step, const ArrayOptions& options) {
  return detail::integer_range_between(static_cast<int64_t>(start), static_cast<int64_t>(stop), step, options);
}
/// start, start + step, ... before stop, each computed as start + i * step in double and rounded once.
ROSIN_API Array arange(double start, double stop, double step, DType type = Float32);
ROSIN_API Array arange(double start, double stop, double step, const ArrayOptions& options);
/// `count` numbers from start to stop, both included.
ROSIN_API Array linspace(double start, double stop, int64_t count, DType type = Float32);
ROSIN_API Array linspace(double start, double stop, int64_t count, const ArrayOptions& options);
/// 1 on the main diagonal, 0 elsewhere: (n, n) or (rows, columns).
ROSIN_API Array eye(int64_t n, DType type = Float32);
ROSIN_API Array eye(int64_t rows, int64_t columns, DType type = Float32);
ROSIN_API Array eye(int64_t n, const ArrayOptions& options);
ROSIN_API Array eye(int64_t rows, int64_t columns, const ArrayOptions& options);

}  // namespace rosin
