// What every function that makes arrays takes last: an element type, a device, or both.
#pragma once

#include <rosin/dtype.hpp>
#include <rosin/export.hpp>

namespace rosin {

class Device;

/// Element type and device of a new array: `zeros({2, 3}, device)`, `zeros({2, 3}, {Float16, device})`. Without a type
/// the function's usual one is taken. An array made from numbers without a device is a constant of the CPU, which
/// follows the arrays that it meets.
class ROSIN_API ArrayOptions {
 public:
  ArrayOptions(DType type) noexcept : type_(type), has_type_(true) {}
  ArrayOptions(const Device& device) noexcept;
  ArrayOptions(DType type, const Device& device) noexcept : ArrayOptions(device) {
    type_ = type;
    has_type_ = true;
  }

  DType type_or(DType usual) const noexcept { return has_type_ ? type_ : usual; }
  /// The same, of the usual type where none is stated.
  ArrayOptions with_type(DType usual) const noexcept {
    ArrayOptions options = *this;
    options.type_ = type_or(usual);
    options.has_type_ = true;
    return options;
  }
  bool has_device() const noexcept { return position_ >= 0; }
  /// In the list of all devices; for the library.
  int position() const noexcept { return position_; }

 private:
  DType type_ = DType::Float32;
  bool has_type_ = false;
  int position_ = -1;
};

}  // namespace rosin
