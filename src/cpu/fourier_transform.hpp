// The discrete Fourier transform of one line, unscaled: by factors 4, 2, 3, 5 and other primes up to 13; a length with
// a larger prime becomes a convolution of a length that has none (Bluestein 1970).
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <vector>

namespace rosin::cpu {

/// A complex number; products without the standard's cases for infinities.
template <class T> struct Pair {
  T re = 0, im = 0;

  friend Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
  friend Pair operator-(Pair a, Pair b) { return {a.re - b.re, a.im - b.im}; }
  friend Pair operator*(Pair a, Pair b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  friend Pair operator*(Pair a, T b) { return {a.re * b, a.im * b}; }
  Pair turned() const { return {-im, re}; }  // i times it
  Pair conjugate() const { return {re, -im}; }
};

/// exp(2 pi i numerator / denominator), by the angle nearest to 0.
template <class T> Pair<T> root(int64_t numerator, int64_t denominator) {
  numerator %= denominator;
  if (2 * numerator > denominator) numerator -= denominator;
  const double angle = 2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

template <class T> class Transform {
 public:
  /// exp(-...) where forward, exp(+...) where inverse.
  Transform(int64_t length, bool inverse) : length_(length), sign_(inverse ? 1 : -1) {
    int64_t left = length;
    for (const int64_t radix : {4, 2, 3, 5, 7, 11, 13}) {
      for (; left % radix == 0; left /= radix) factors_.push_back(radix);
    }
    if (left > 1) {
      prepare_convolution();
      return;
    }
    roots_.resize(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) roots_[static_cast<size_t>(i)] = root<T>(sign_ * i, length);
  }

  /// Elements that run() needs beside its line.
  int64_t scratch() const { return inner_ ? 2 * inner_->length_ : 0; }

  /// `out` and `scratch` are other memory than `in`.
  void run(const Pair<T>* in, Pair<T>* out, Pair<T>* scratch) const {
    if (inner_) convolve(in, out, scratch);
    else transform(in, 1, out, length_, 0);
  }

 private:
  const Pair<T>& at(int64_t i) const { return roots_[static_cast<size_t>(i)]; }

  // Every stride-th element of `in`, n of them: each residue by itself, then the residues are combined.
  void transform(const Pair<T>* in, int64_t stride, Pair<T>* out, int64_t n, size_t level) const {
    if (n == 1) {
      *out = *in;
      return;
    }
    const int64_t radix = factors_[level], part = n / radix;
    for (int64_t q = 0; q < radix; ++q) {
      if (part == 1) out[q] = in[q * stride];
      else transform(in + q * stride, stride * radix, out + q * part, part, level + 1);
    }
    switch (radix) {
      case 2: return combine_two(out, part, stride);
      case 4: return combine_four(out, part, stride);
      default: return combine(out, part, stride, radix);
    }
  }

  void combine_two(Pair<T>* out, int64_t part, int64_t stride) const {
    for (int64_t k = 0; k < part; ++k) {
      const Pair<T> a = out[k], b = out[k + part] * at(k * stride);
      out[k] = a + b;
      out[k + part] = a - b;
    }
  }

  void combine_four(Pair<T>* out, int64_t part, int64_t stride) const {
    const T sign = static_cast<T>(sign_);
    for (int64_t k = 0; k < part; ++k) {
      const Pair<T> a = out[k], b = out[k + part] * at(k * stride);
      const Pair<T> c = out[k + 2 * part] * at(2 * k * stride), d = out[k + 3 * part] * at(3 * k * stride);
      const Pair<T> sum = a + c, difference = a - c, others = b + d, turned = (b - d).turned() * sign;
      out[k] = sum + others;
      out[k + part] = difference + turned;
      out[k + 2 * part] = sum - others;
      out[k + 3 * part] = difference - turned;
    }
  }

  // By definition: root number r q part of the radix.
  void combine(Pair<T>* out, int64_t part, int64_t stride, int64_t radix) const {
    Pair<T> values[13];
    const int64_t step = length_ / radix;
    for (int64_t k = 0; k < part; ++k) {
      for (int64_t q = 0; q < radix; ++q) values[q] = out[k + q * part] * at(q * k * stride);
      for (int64_t r = 0; r < radix; ++r) {
        Pair<T> sum = values[0];
        for (int64_t q = 1; q < radix; ++q) sum = sum + values[q] * at(q * r % radix * step);
        out[k + r * part] = sum;
      }
    }
  }

  // x[j] root(j k) = chirp[k] sum of (x[j] chirp[j]) / chirp[k - j], as 2 j k = j j + k k - (k - j) (k - j).
  void prepare_convolution() {
    int64_t longer = 1;
    while (longer < 2 * length_ - 1) longer *= 2;
    inner_ = std::make_unique<Transform>(longer, false);
    std::vector<Pair<T>> kernel(static_cast<size_t>(longer));
    for (int64_t k = 0; k < length_; ++k) {
      roots_.push_back(root<T>(sign_ * (k * k % (2 * length_)), 2 * length_));
      const Pair<T> value = roots_.back().conjugate();
      kernel[static_cast<size_t>(k)] = kernel[static_cast<size_t>((longer - k) % longer)] = value;
    }
    kernel_.resize(kernel.size());
    inner_->run(kernel.data(), kernel_.data(), nullptr);
    for (Pair<T>& value : kernel_) value = value * (T{1} / static_cast<T>(longer));
  }

  void convolve(const Pair<T>* in, Pair<T>* out, Pair<T>* scratch) const {
    const int64_t longer = inner_->length_;
    Pair<T>* other = scratch + longer;
    for (int64_t k = 0; k < longer; ++k) scratch[k] = k < length_ ? in[k] * at(k) : Pair<T>{};
    inner_->run(scratch, other, nullptr);
    for (int64_t k = 0; k < longer; ++k) scratch[k] = (other[k] * kernel_[static_cast<size_t>(k)]).conjugate();
    inner_->run(scratch, other, nullptr);  // the way back, as the conjugate of the way of conjugates
    for (int64_t k = 0; k < length_; ++k) out[k] = other[k].conjugate() * at(k);
  }

  int64_t length_;
  int64_t sign_;
  std::vector<int64_t> factors_;
  std::vector<Pair<T>> roots_, kernel_;  // of a convolution: the chirp, and its transform
  std::unique_ptr<Transform> inner_;
};

}  // namespace rosin::cpu
