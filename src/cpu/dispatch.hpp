// From an element type known at run time to code compiled for the C++ type. Read next: gather.cpp (how kernels use it).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <rosin/dtype.hpp>
#include <rosin/error.hpp>
#include <rosin/half.hpp>

#include "cpu/call.hpp"

namespace rosin::cpu {

/// Sixteen bytes: what is moved for the largest element type.
struct Wide {
  uint64_t words[2];
};

[[noreturn]] inline void refuse_type(std::string_view op, DType type) {
  throw Error(ErrorKind::dtype, std::string(op) + ": not defined for elements of type " + to_string(type) +
                                    "; convert the operand with cast");
}

/// Calls f with std::type_identity<T>, T as large as an element: for code that only moves elements.
template <class F> auto with_bytes_of(DType type, F&& f) {
  switch (size_of(type)) {
    case 1: return f(std::type_identity<uint8_t>{});
    case 2: return f(std::type_identity<uint16_t>{});
    case 4: return f(std::type_identity<uint32_t>{});
    case 8: return f(std::type_identity<uint64_t>{});
    default: return f(std::type_identity<Wide>{});
  }
}

/// The same for floats, with float, double, Half or BFloat. Error (dtype) for other types.
template <class F> auto with_float(std::string_view op, DType type, F&& f) {
  switch (type) {
    case DType::Float16: return f(std::type_identity<Half>{});
    case DType::BFloat16: return f(std::type_identity<BFloat>{});
    case DType::Float32: return f(std::type_identity<float>{});
    case DType::Float64: return f(std::type_identity<double>{});
    default: refuse_type(op, type);
  }
}

/// The same for all types that numbers have. Error (dtype) for Bool and complex types.
template <class F> auto with_number(std::string_view op, DType type, F&& f) {
  switch (type) {
    case DType::UInt8: return f(std::type_identity<uint8_t>{});
    case DType::Int8: return f(std::type_identity<int8_t>{});
    case DType::Int16: return f(std::type_identity<int16_t>{});
    case DType::UInt16: return f(std::type_identity<uint16_t>{});
    case DType::Int32: return f(std::type_identity<int32_t>{});
    case DType::UInt32: return f(std::type_identity<uint32_t>{});
    case DType::Int64: return f(std::type_identity<int64_t>{});
    case DType::UInt64: return f(std::type_identity<uint64_t>{});
    default: return with_float(op, type, f);
  }
}

template <class T> struct ComputedIn {
  using type = T;
};
template <> struct ComputedIn<Half> {
  using type = float;
};
template <> struct ComputedIn<BFloat> {
  using type = float;
};
/// What sums of T are kept in: float for the halves, else T.
template <class T> using Computed = typename ComputedIn<T>::type;

template <class T> inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;

/// a + b and a * b; integers wrap around.
template <class T> T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class T> T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class T> bool is_nan([[maybe_unused]] T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return value != value;
  }
}

/// An operand of integers of any type, read as int64.
class Integers {
 public:
  Integers(const void* data, DType type) : data_(data), type_(type) {}

  int64_t operator[](int64_t i) const {
    return typed([i](const auto* data) { return static_cast<int64_t>(data[i]); });
  }

  /// The index into a dim of `size` elements, counted from the end when negative. Error (argument) outside.
  int64_t place(std::string_view op, int64_t i, int64_t size) const {
    const int64_t index = (*this)[i];
    if (index >= 0 && index < size) [[likely]]
      return index;
    if (index < 0 && index >= -size) return index + size;
    throw Error(ErrorKind::argument, std::string(op) + ": an index must lie in its dim of " + std::to_string(size) +
                                         " elements; got " + std::to_string(index) +
                                         "; indices count from 0, negative ones from the end");
  }

  /// The same of `count` indices from `first` on. Most often none is negative, which the first look shows.
  void places(std::string_view op, int64_t first, int64_t count, int64_t size, int64_t* out) const {
    if (typed([&](const auto* data) { return read_inside(data + first, count, size, out); })) return;
    uint64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      out[i] += (out[i] >> 63) & size;
      wrong |= static_cast<uint64_t>(out[i]) | static_cast<uint64_t>(size - 1 - out[i]);
    }
    for (int64_t i = 0; wrong >> 63 != 0 && i < count; ++i) place(op, first + i, size);  // throws
  }

 private:
  /// Whether all indices lie in [0, size): looked at in 32 bits where they have no more.
  template <class T> static bool read_inside(const T* data, int64_t count, int64_t size, int64_t* out) {
    using Number = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    const auto last = static_cast<Number>(std::min<int64_t>(size - 1, std::numeric_limits<Number>::max() / 2));
    Number wrong = 0;  // its first bit is that of an index or of its distance to the last one
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<int64_t>(data[i]);
      wrong |= static_cast<Number>(data[i]) | (last - static_cast<Number>(data[i]));
    }
    return wrong >> (sizeof(Number) * 8 - 1) == 0;
  }

  template <class F> std::invoke_result_t<F, const int32_t*> typed(F&& f) const {
    switch (type_) {
      case DType::Int32: return f(static_cast<const int32_t*>(data_));
      case DType::Int64: return f(static_cast<const int64_t*>(data_));
      case DType::UInt64: return f(static_cast<const int64_t*>(data_));
      case DType::UInt32: return f(static_cast<const uint32_t*>(data_));
      case DType::UInt16: return f(static_cast<const uint16_t*>(data_));
      case DType::Int16: return f(static_cast<const int16_t*>(data_));
      case DType::Int8: return f(static_cast<const int8_t*>(data_));
      default: return f(static_cast<const uint8_t*>(data_));
    }
  }

  const void* data_;
  DType type_;
};

/// Calls f(places, first, count) for some of the indices [first, last) at a time, in their order.
template <class F>
void each_few_places(const Integers& indices, std::string_view op, int64_t first, int64_t last, int64_t size, F&& f) {
  constexpr int64_t most = 512;
  int64_t places[most];
  for (; first < last; first += most) {
    const int64_t count = std::min(most, last - first);
    indices.places(op, first, count, size, places);
    f(static_cast<const int64_t*>(places), first, count);
  }
}

/// An array seen from one dim: the sizes before it, its own, and after it.
struct Lines {
  int64_t inner = 1, size = 1, outer = 1;
};
inline Lines lines_of(const Shape& shape, int dim) {
  Lines lines;
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t& part = d < dim ? lines.inner : d == dim ? lines.size : lines.outer;
    part *= shape[d];
  }
  return lines;
}

/// A range cut into equal pieces and a shorter last one.
struct Pieces {
  int64_t length = 0, step = 1;

  /// Pieces of about `elements` elements, where each entry of the range stands for `each` of them.
  static Pieces of(int64_t length, int64_t each, int64_t elements = 32768) {
    return {length, std::max<int64_t>(1, elements / std::max<int64_t>(1, each))};
  }
  int64_t count() const { return (length + step - 1) / step; }
  int64_t first(int64_t piece) const { return piece * step; }
  int64_t last(int64_t piece) const { return std::min(length, (piece + 1) * step); }
};

/// Lines that run beside each other (dims before the scanned one), in blocks of at most `width` of them.
struct LineBlocks {
  static constexpr int64_t width = 64;
  Lines lines;
  Pieces blocks;  // of all blocks, those of one outer index one after another

  /// `work`: elements that are touched along one line.
  LineBlocks(const Lines& all, int64_t work)
      : lines(all), blocks(Pieces::of(per_outer(all) * all.outer, work * std::min(width, all.inner))) {}

  static int64_t per_outer(const Lines& lines) { return (lines.inner + width - 1) / width; }
  int64_t count() const { return blocks.count(); }
  /// Calls f(outer index, first inner index, number of lines) for the blocks of a chunk.
  template <class F> void each(int64_t chunk, F&& f) const {
    const int64_t per = per_outer(lines);
    for (int64_t block = blocks.first(chunk); block < blocks.last(chunk); ++block) {
      const int64_t first = block % per * width;
      f(block / per, first, std::min(width, lines.inner - first));
    }
  }
};

/// Makers of calls, one per file of kernels.
/// A contiguous copy of x, broadcast to `shape`.
std::unique_ptr<Call> prepare_copy(const CallArray& x, const Shape& shape);
std::unique_ptr<Call> prepare_movement(const CallSpec& spec);
std::unique_ptr<Call> prepare_gather(const CallSpec& spec);
std::unique_ptr<Call> prepare_weighed_sums(const CallSpec& spec);
std::unique_ptr<Call> prepare_scatter(const CallSpec& spec);
std::unique_ptr<Call> prepare_sort(const CallSpec& spec);
std::unique_ptr<Call> prepare_scan(const CallSpec& spec);
std::unique_ptr<Call> prepare_random(const CallSpec& spec);
std::unique_ptr<Call> prepare_attention(const CallSpec& spec);
std::unique_ptr<Call> prepare_routine(const CallSpec& spec);
std::unique_ptr<Call> prepare_window(const CallSpec& spec);

}  // namespace rosin::cpu
