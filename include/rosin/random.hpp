// Random numbers: Philox4x32-10 counters. Key and counter are taken when an op is recorded, so a draw depends on
// nothing else: not on device, thread count or evaluation. Source: Salmon et al., Parallel Random Numbers: As Easy as
// 1, 2, 3.
#pragma once

#include <concepts>
#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/array_options.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// A generator: a key and a counter. A plain value: copies draw the same numbers. Not for use by two threads at once.
/// As a member of a layer, `mutable Rng rng{7};`, it moves on like a Buffer: what a gradient call draws from the copy
/// of the model that it hands out, the model that is not const has drawn when the call has returned, unless its step
/// fails.
class ROSIN_API Rng {
 public:
  explicit Rng(uint64_t seed = 0) noexcept : key_(seed) {}
  Rng(const Rng&) noexcept = default;
  Rng& operator=(const Rng& other) noexcept {
    key_ = other.key_;
    counter_ = other.counter_;
    earlier_key_ = other.earlier_key_;
    earlier_counter_ = other.earlier_counter_;
    step_ = other.step_;
    stepped_ = other.stepped_;
    if (note_ != 0) tell_call();
    return *this;
  }

  /// An independent generator; this one moves on.
  Rng split() noexcept;
  /// An independent generator that depends on this one's key and on `data` alone; this one does not move.
  Rng derive(uint64_t data) const noexcept;

  uint64_t key() const noexcept { return key_; }
  /// Blocks of four 32-bit words drawn so far.
  uint64_t counter() const noexcept { return counter_; }
  /// For exact resume.
  static Rng restored(uint64_t key, uint64_t counter) noexcept {
    Rng rng(key);
    rng.counter_ = counter;
    return rng;
  }
  /// The counter before; moves on by `blocks`.
  uint64_t take(uint64_t blocks) noexcept {
    const uint64_t before = counter_;
    counter_ += blocks;
    if (note_ != 0) tell_call();
    return before;
  }
  /// The next 64 bits, at once and on the host (shuffling).
  uint64_t next() noexcept;
  /// A number in [0, bound), every one equally likely. bound > 0.
  uint64_t below(uint64_t bound) noexcept;

  /// Whether both draw the same numbers from here on.
  bool operator==(const Rng& other) const noexcept { return key_ == other.key_ && counter_ == other.counter_; }

  /// Which note of a gradient call learns of draws, 0 for none; for the library.
  uint64_t note() const noexcept { return note_; }
  void set_note(uint64_t note) noexcept { note_ = note; }
  /// What a gradient call has drawn, which a step may take back; for the library. As Buffer::advance.
  void advance(uint64_t key, uint64_t counter, uint64_t step) noexcept;
  bool has_earlier() const noexcept { return stepped_; }
  void settle() noexcept { stepped_ = false; }
  void step_back() noexcept;

 private:
  void tell_call() const noexcept;

  uint64_t key_;
  uint64_t counter_ = 0;
  uint64_t note_ = 0;  // set in the copy of a model that a gradient call hands out
  uint64_t earlier_key_ = 0, earlier_counter_ = 0, step_ = 0;
  bool stepped_ = false;  // the earlier ones are those of the last step
};

/// Restarts the generators of all threads: this thread has (value, 0), others (value, 1), (value, 2), ... in order of
/// first use. Before the first call the seed is 0 and the first thread that draws has (0, 0).
ROSIN_API void seed(uint64_t value);
/// This thread's generator; functions without an Rng draw from it.
ROSIN_API Rng& default_rng();

/// Numbers in [low, high): of `type`, Float32 from 24 random bits, Float64 from 53, Float16 from 11,
/// BFloat16 from 8; halves between other bounds than 0 and 1 are rounded, and may be `high`.
ROSIN_API Array uniform(Rng& rng, const Shape& shape, const Array& low, const Array& high, DType type = Float32);
ROSIN_API Array uniform(Rng& rng, const Shape& shape, const Array& low, const Array& high, const ArrayOptions& options);
ROSIN_API Array uniform(const Shape& shape, const Array& low = 0, const Array& high = 1, DType type = Float32);
ROSIN_API Array uniform(const Shape& shape, const Array& low, const Array& high, const ArrayOptions& options);
/// Normal numbers with mean and standard deviation. Source: Box and Muller.
ROSIN_API Array normal(Rng& rng, const Shape& shape, const Array& mean, const Array& deviation, DType type = Float32);
ROSIN_API Array normal(Rng& rng, const Shape& shape, const Array& mean, const Array& deviation,
                       const ArrayOptions& options);
ROSIN_API Array normal(const Shape& shape, const Array& mean = 0, const Array& deviation = 1, DType type = Float32);
ROSIN_API Array normal(const Shape& shape, const Array& mean, const Array& deviation, const ArrayOptions& options);
/// Bool: true with probability p (0-d, or broadcast to shape).
ROSIN_API Array bernoulli(Rng& rng, const Array& p, const Shape& shape);
ROSIN_API Array bernoulli(Rng& rng, const Array& p, const Shape& shape, const ArrayOptions& options);
ROSIN_API Array bernoulli(const Array& p, const Shape& shape);
ROSIN_API Array bernoulli(const Array& p, const Shape& shape, const ArrayOptions& options);
/// Integers in [low, high), equally likely to within 2^-32; Int32, or Int64 where a bound needs it.
/// Error (argument): low >= high.
ROSIN_API Array randint(Rng& rng, int64_t low, int64_t high, const Shape& shape);
ROSIN_API Array randint(Rng& rng, int64_t low, int64_t high, const Shape& shape, const ArrayOptions& options);
ROSIN_API Array randint(int64_t low, int64_t high, const Shape& shape);
ROSIN_API Array randint(int64_t low, int64_t high, const Shape& shape, const ArrayOptions& options);
/// The numbers 0 .. n - 1 in random order (Int32), every order equally likely.
ROSIN_API Array permutation(Rng& rng, int64_t n);
ROSIN_API Array permutation(Rng& rng, int64_t n, const ArrayOptions& options);
ROSIN_API Array permutation(int64_t n);
ROSIN_API Array permutation(int64_t n, const ArrayOptions& options);

/// Uniform in [0, 1) and standard normal; T is float or double, unless the options state a type.
template <std::floating_point T = float> Array rand(const Shape& shape) { return uniform(shape, 0, 1, dtype_of<T>); }
template <std::floating_point T = float> Array rand(Rng& rng, const Shape& shape) {
  return uniform(rng, shape, 0, 1, dtype_of<T>);
}
template <std::floating_point T = float> Array randn(const Shape& shape) { return normal(shape, 0, 1, dtype_of<T>); }
template <std::floating_point T = float> Array randn(Rng& rng, const Shape& shape) {
  return normal(rng, shape, 0, 1, dtype_of<T>);
}

template <std::floating_point T = float> Array rand(const Shape& shape, const ArrayOptions& options) {
  return uniform(shape, 0, 1, options.with_type(dtype_of<T>));
}
template <std::floating_point T = float> Array rand(Rng& rng, const Shape& shape, const ArrayOptions& options) {
  return uniform(rng, shape, 0, 1, options.with_type(dtype_of<T>));
}
template <std::floating_point T = float> Array randn(const Shape& shape, const ArrayOptions& options) {
  return normal(shape, 0, 1, options.with_type(dtype_of<T>));
}
template <std::floating_point T = float> Array randn(Rng& rng, const Shape& shape, const ArrayOptions& options) {
  return normal(rng, shape, 0, 1, options.with_type(dtype_of<T>));
}

}  // namespace rosin
