// Array: the one value type. A handle on a node of the recorded graph; immutable, copied freely.
// Ops on arrays stand in headers of their own (elementwise.hpp, reduce.hpp, ...); what is recorded runs at a step
// boundary or when a value is read.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <rosin/dtype.hpp>
#include <rosin/export.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/shape.hpp>
#include <rosin/slice.hpp>

namespace rosin {

struct Node;
class Device;

/// A C++ number that may stand where an Array is expected; it takes the type of its neighbours (it is "weak"). An Error
/// (dtype) where that is an integer type that cannot hold it.
template <class T>
concept Number =
    (is_element<T> && std::is_arithmetic_v<T>) || std::same_as<T, long long> || std::same_as<T, unsigned long long>;

/// An immutable n-dimensional array: column-major, dim 0 contiguous, data as (features, batch), images as (width,
/// height, channels, batch). Copying copies one pointer. An empty handle is `nothing` (absent bias, no gradient).
class ROSIN_API Array {
 public:
  /// Nothing.
  Array() noexcept = default;
  /// A weak 0-d array: Float32 (or the float type it meets) for floating point, Int32 (or the integer type it meets; of
  /// its own Int64 or UInt64 where it needs them) for integers, Bool for bool.
  template <Number T>
  Array(T value)
      : node_(std::is_same_v<T, bool>       ? weak_bool(static_cast<bool>(value))
              : std::is_floating_point_v<T> ? weak_float(static_cast<double>(value))
              : std::is_unsigned_v<T>       ? weak_unsigned(static_cast<uint64_t>(value))
                                            : weak_int(static_cast<int64_t>(value))) {}
  /// A copy of `values`, column-major: {1.0} is Float64, {1.0f} Float32. Error (shape): the counts differ. Values in
  /// braces are a constant of the program, which follows arrays that it meets to their device; data stays where it is.
  template <class T>
    requires is_element<T>
  Array(std::span<const T> values, const Shape& shape)
      : node_(copied(values.data(), values.size(), dtype_of<T>, shape)) {}
  template <class T>
    requires(is_element<T> && !std::same_as<T, bool>)
  Array(const std::vector<T>& values, const Shape& shape) : Array(std::span<const T>(values), shape) {}
  template <class T>
    requires is_element<T>
  Array(std::initializer_list<T> values, const Shape& shape)
      : node_(literal(values.begin(), values.size(), dtype_of<T>, shape)) {}

  /// An array on memory of the caller, column-major, without a copy; `values` must be aligned as T is. The values may
  /// not change while the array, a copy of it or something pending that reads it lives; rosin never writes them.
  /// `owner` (a shared_ptr, say, or nullptr for memory that outlives all arrays) is kept until the last use and then
  /// destroyed, by whichever thread that is. Error (argument): not aligned.
  template <class T, class Owner>
    requires is_element<T>
  static Array borrow(const T* values, const Shape& shape, Owner owner) {
    return adopt(borrowed(values, dtype_of<T>, shape, new Owner(static_cast<Owner&&>(owner)),
                          [](void* kept) noexcept { delete static_cast<Owner*>(kept); }));
  }
  /// The same for a vector, which is moved in. Error (shape) when the count differs from the shape's.
  template <class T>
    requires(is_element<T> && !std::same_as<T, bool>)
  static Array borrow(std::vector<T> values, const Shape& shape) {
    check_count(values.size(), shape);
    auto* kept = new std::vector<T>(static_cast<std::vector<T>&&>(values));
    return adopt(borrowed(kept->data(), dtype_of<T>, shape, kept,
                          [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); }));
  }

  Array(const Array& other) noexcept : node_(other.node_) {
    if (node_) retain(node_);
  }
  Array(Array&& other) noexcept : node_(other.node_) { other.node_ = nullptr; }
  Array& operator=(const Array& other) noexcept {
    Array copy(other);
    return *this = static_cast<Array&&>(copy);
  }
  Array& operator=(Array&& other) noexcept {
    Node* old = node_;
    node_ = other.node_;
    other.node_ = nullptr;
    if (old) release(old);
    return *this;
  }
  ~Array() {
    if (node_) release(node_);
  }

  /// Whether the handle is `nothing`.
  bool is_nothing() const noexcept { return node_ == nullptr; }

  Shape shape() const;
  int rank() const;
  /// Number of elements.
  int64_t count() const;
  /// Size of one dim; negative dims count from the end.
  int64_t size(int dim) const;
  DType dtype() const;
  Device device() const;

  /// The value of an array of one element, converted to T; evaluates what is pending. Error (shape) for more elements.
  template <class T = double>
    requires is_element<T>
  T item() const& {
    T value;
    read_item(&value, dtype_of<T>);
    return value;
  }
  template <class T = double>
    requires is_element<T>
  T item() && {
    evaluate_last();
    return item<T>();
  }
  /// The element at (i, j, ...); negative indices count from the end.
  template <std::integral... I>
    requires(sizeof...(I) > 0)
  double item(I... indices) const {
    const int64_t at[] = {static_cast<int64_t>(indices)...};
    return read_element(at);
  }
  /// Part of the array, with a gradient: x(slice(), 3) is column 3, x(slice(1, 5), slice()) rows 1 to 4; as `index` of
  /// movement.hpp, which states the errors. Arrays are values: `set(x, {slice(), 3}, v)` gives one with other elements.
  template <class... Range>
    requires(sizeof...(Range) > 0 && (std::convertible_to<const Range&, Slice> && ...))
  Array operator()(const Range&... ranges) const {
    const Slice list[] = {ranges...};
    return indexed(list);
  }
  /// All elements, column-major, converted to T.
  template <class T = float>
    requires(is_element<T> && !std::same_as<T, bool>)
  std::vector<T> to_vector() const& {
    std::vector<T> values = detail::host_vector<T>("to_vector", count());
    copy_to(std::span<T>(values));
    return values;
  }
  template <class T = float>
    requires(is_element<T> && !std::same_as<T, bool>)
  std::vector<T> to_vector() && {
    evaluate_last();
    return to_vector<T>();
  }
  /// Copies all elements, column-major and converted, to memory of the caller. Error (shape) when the counts differ.
  template <class T>
    requires is_element<T>
  void copy_to(std::span<T> target) const {
    read_all(target.data(), target.size(), dtype_of<T>);
  }

  /// The elements where they stand, column-major: evaluates what is pending, and copies nothing. They stay as they are
  /// while this handle or a copy of it lives; `update` gives a model's member another array, so hold a copy of that.
  /// Errors: device (elsewhere than on the CPU), dtype (elements of another type), argument (a C++ number).
  template <class T>
    requires is_element<T>
  std::span<const T> data() const& {
    return {static_cast<const T*>(values_of(dtype_of<T>)), static_cast<size_t>(count())};
  }
  template <class T> std::span<const T> data() const&& = delete;

  /// The node; for the library.
  Node* node() const noexcept { return node_; }
  /// Takes over one user count of the node; for the library.
  static Array adopt(Node* node) noexcept {
    Array array;
    array.node_ = node;
    return array;
  }
  /// Gives the user count away; for the library.
  Node* leak() noexcept {
    Node* node = node_;
    node_ = nullptr;
    return node;
  }

 private:
  static Node* weak_bool(bool value);
  static Node* weak_int(int64_t value);
  static Node* weak_unsigned(uint64_t value);
  static Node* weak_float(double value);
  static Node* copied(const void* values, size_t count, DType type, const Shape& shape);
  static Node* literal(const void* values, size_t count, DType type, const Shape& shape);
  static void check_count(size_t count, const Shape& shape);
  static Node* borrowed(const void* values, DType type, const Shape& shape, void* owner, void (*drop)(void*) noexcept);
  static void retain(Node* node) noexcept;
  static void release(Node* node) noexcept;
  void evaluate_last() const;
  void read_item(void* value, DType type) const;
  double read_element(std::span<const int64_t> at) const;
  Array indexed(std::span<const Slice> ranges) const;
  void read_all(void* target, size_t count, DType type) const;
  const void* values_of(DType type) const;

  Node* node_ = nullptr;
};

/// Whether both handles are the same value object (Julia's ===).
inline bool same(const Array& a, const Array& b) noexcept { return a.node() == b.node(); }

/// Whether this thread may read single elements of arrays on other devices, x.item(i, j): a copy each. Off by default;
/// an Error (device) then. Reading an array of one element, x.item(), is always allowed.
ROSIN_API void allowscalar(bool on = true);

/// Computes everything pending on this thread that a handle holds.
ROSIN_API void eval();
/// As eval(), and makes sure that this array has its values (also when another thread recorded it).
ROSIN_API void eval(const Array& x);
/// The same of a temporary: what else its expression computes on the way, element by element, is not kept for handles
/// that will go with it. (One that stays has its values when they are read, computed once more.)
ROSIN_API void eval(Array&& x);
/// The same for several arrays: eval(loss, accuracy). What is pending for them is computed together.
template <class... More>
  requires(std::same_as<More, Array> && ...)
void eval(const Array& x, const Array& y, const More&... more) {
  eval(x);
  eval(y);
  (eval(more), ...);
}

/// Shape and elements as Julia shows them, e.g. "2×5 Array{Float32} on CPU:" and the rows; a 0-d array is a number.
ROSIN_API std::string to_string(const Array& x);

}  // namespace rosin
