// Buffer: a running statistic of a layer. Walked (moved, saved, printed) like an Array, never trained.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>

namespace rosin {

/// Holds one Array that a layer changes by itself, for example the running mean of BatchNorm.
class ROSIN_API Buffer {
 public:
  Buffer() noexcept = default;
  Buffer(const Array& value) : value_(value) {}

  /// The value; inside a gradient call the one last assigned there.
  const Array& value() const noexcept;
  operator const Array&() const noexcept { return value(); }
  bool is_nothing() const noexcept { return value_.is_nothing(); }

  /// The array held; for the library.
  Array& stored() noexcept { return value_; }
  /// Takes over what a gradient call has noted, and keeps what the last step left until the next one has run; for the
  /// library. `step` differs once the model's parameters have changed.
  void advance(const Array& value, uint64_t step);
  /// What the last step left, or nothing where no gradient call has written since.
  const Array& earlier() const noexcept { return earlier_; }
  void settle() noexcept { earlier_ = Array(); }
  /// Which note of a gradient call the buffer writes to, 0 for none; for the library.
  uint64_t note() const noexcept { return note_; }
  void set_note(uint64_t note) noexcept { note_ = note; }

 private:
  Array value_;
  Array earlier_;
  uint64_t note_ = 0;  // set in the copy of a model that a gradient call hands out
  uint64_t step_ = 0;  // that `earlier_` belongs to
};

/// Gives the buffer a value of the same shape; Error (shape) otherwise. Inside a gradient call the value is noted and
/// written into the model after the call, when that is not const. Outside, a const buffer keeps its value: using a
/// model that is const changes nothing.
ROSIN_API void assign(Buffer& buffer, const Array& value);
ROSIN_API void assign(const Buffer& buffer, const Array& value);

}  // namespace rosin
