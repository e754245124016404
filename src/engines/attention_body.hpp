// The body of attention's kernels on one block of logits, included as tile_body.hpp is. Lanes are queries, so that a
// softmax over the keys goes on in each lane by itself. Beside what tile_body.hpp needs, Vec<float> has sub, most (a
// where it is more than b, else b: b where one is NaN) and power (the low bits as the exponent of a float).
// Read after attention_block.hpp.
#pragma once

/// e^x within 2 ulp for x below the logarithm of the largest number; below that of the least normal one it is 0. By the
/// polynomial that exp has elsewhere (ops/math_exponential.hpp). Made before a loop, so that its numbers are in
/// registers.
template <class R> class PowerOfE {
 public:
  PowerOfE() {
    static constexpr float numbers[] = {0.001392692661f, 0.008363773874f, 0.04166655011f, 0.1666657338f,   0.5f,
                                        -88.0f,          0x1.715476p+0f,  -0x1.62e4p-1f,  -0x1.7f7d1cp-20f};
    // Sums with it have the exponent, as floats have it, in their low bits.
    static constexpr float shift = 0x1.8p23f + 127.0f, one = 1.0f;
#pragma GCC unroll 5
    for (int i = 0; i < 5; ++i) terms_[i] = R::splat(&numbers[i]);
    lowest_ = R::splat(&numbers[5]);
    turns_ = R::splat(&numbers[6]);
    high_ = R::splat(&numbers[7]);
    low_ = R::splat(&numbers[8]);
    shift_ = R::splat(&shift);
    one_ = R::splat(&one);
  }

  [[gnu::always_inline]] typename R::Register operator()(typename R::Register x) const {
    x = R::most(lowest_, x);
    const typename R::Register sum = R::fma(x, turns_, shift_), n = R::sub(sum, shift_);
    const typename R::Register r = R::fma(n, low_, R::fma(n, high_, x));
    typename R::Register series = terms_[0];
#pragma GCC unroll 4
    for (int i = 1; i < 5; ++i) series = R::fma(series, r, terms_[i]);
    return R::mul(R::add(R::fma(R::mul(r, r), series, r), one_), R::power(sum));
  }

 private:
  typename R::Register terms_[5], lowest_, turns_, high_, low_, shift_, one_;
};

/// The largest of each lane and of `most`, over all keys.
template <class R>
typename R::Register most_of(const float* s, int64_t pitch, int64_t keys, typename R::Register most) {
  const typename R::Mask full = R::mask_of(R::lanes);
  typename R::Register best[4] = {most, most, most, most};
  int64_t key = 0;
  for (; key + 4 <= keys; key += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) best[i] = R::most(best[i], R::load(s + (key + i) * pitch, full));
  }
  for (; key < keys; ++key) best[0] = R::most(best[0], R::load(s + key * pitch, full));
  return R::most(R::most(best[0], best[1]), R::most(best[2], best[3]));
}

inline bool fold_logits(const LogitBlock<float>& b) {
  using R = Vec<float>;
  constexpr float least = -std::numeric_limits<float>::max();
  const R::Mask full = R::mask_of(R::lanes);
  const int64_t pitch = b.pitch, keys = b.keys;
  const PowerOfE<R> power_of_e;
  bool higher = false;
  for (int64_t row = 0; row < b.rows; row += R::lanes) {
    float* s = b.logits + row;
    const R::Register before = R::load(b.highest + row, full);
    const R::Register highest = most_of<R>(s, pitch, keys, before);
    // Where all are -Inf their differences to the least number are.
    const R::Register base = R::most(R::splat(&least), highest), factor = power_of_e(R::sub(before, base));
    R::Register sum = R::mul(R::load(b.sums + row, full), factor);
    for (int64_t key = 0; key < keys; ++key, s += pitch) {
      const R::Register weight = power_of_e(R::sub(R::load(s, full), base));
      R::store(s, weight, full);
      sum = R::add(sum, weight);
    }
    R::store(b.highest + row, highest, full);
    R::store(b.sums + row, sum, full);
    R::store(b.factors + row, factor, full);
    for (int64_t lane = 0; lane < R::lanes; ++lane) higher |= b.factors[row + lane] != 1.0f;
  }
  return higher;
}

template <bool Dropped> void weigh_rows(const SlopeBlock<float>& b) {
  using R = Vec<float>;
  const R::Mask full = R::mask_of(R::lanes);
  const int64_t pitch = b.pitch, keys = b.keys;
  const PowerOfE<R> power_of_e;
  for (int64_t row = 0; row < b.rows; row += R::lanes) {
    const R::Register state = R::load(b.state + row, full), dot = R::load(b.dots + row, full);
    float *s = b.logits + row, *ds = b.slopes + row;
    const float* factors = Dropped ? b.kept + row : nullptr;
    for (int64_t key = 0; key < keys; ++key, s += pitch, ds += pitch) {
      const R::Register weight = power_of_e(R::sub(R::load(s, full), state));
      R::Register slope = R::load(ds, full), kept = weight;
      if constexpr (Dropped) {
        const R::Register factor = R::load(factors + key * pitch, full);
        slope = R::mul(slope, factor);
        kept = R::mul(weight, factor);
      }
      R::store(ds, R::mul(weight, R::sub(slope, dot)), full);
      R::store(s, kept, full);
    }
  }
}

inline void weigh_slopes(const SlopeBlock<float>& b) {
  if (b.kept != nullptr) weigh_rows<true>(b);
  else weigh_rows<false>(b);
}
