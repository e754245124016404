// The transformations of winograd.cpp, included by each tile_*.cpp after tile_body.hpp: V = B'dB of an image's square
// d, U = GwG' of weights, the result A'MA of products M, and the adjoints AyA' and G'MG for gradients, with
//        1  0 -1  0          1    0    0           1  0
//   B' = 0  1  1  0     G = 1/2  1/2  1/2     A =  1  1
//        0 -1  1  0         1/2 -1/2  1/2          1 -1
//        0  1  0 -1          0    0    1           0 -1
#pragma once

/// body(where, from, to) for all channels, in whole vectors and then those that are left: from(p), to(p, value).
template <class Body> void each_channels(int64_t channels, Body body) {
  using R = Vec<float>;
  int64_t c = 0;
  for (; c + R::lanes <= channels; c += R::lanes) {
    body([c](const float* p) { return R::load(p + c); },
         [c](float* p, typename R::Register value) { R::store(p + c, value); });
  }
  if (c == channels) return;
  const typename R::Mask mask = R::mask_of(channels - c);
  body([c, mask](const float* p) { return R::load(p + c, mask); },
       [c, mask](float* p, typename R::Register value) { R::store(p + c, value, mask); });
}

template <int Row> void image_row_of(const float* const* d, int64_t channels, float* out, int64_t step) {
  using R = Vec<float>;
  constexpr int first = Row == 0 ? 0 : Row == 2 ? 2 : 1, second = Row == 3 ? 3 : Row == 2 ? 1 : 2;
  const float* const* a = d + 4 * first;
  const float* const* b = d + 4 * second;
  each_channels(channels, [=](auto load, auto store) {
    typename R::Register t[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) t[j] = Row == 1 ? R::add(load(a[j]), load(b[j])) : R::sub(load(a[j]), load(b[j]));
    store(out, R::sub(t[0], t[2]));
    store(out + step, R::add(t[1], t[2]));
    store(out + 2 * step, R::sub(t[2], t[1]));
    store(out + 3 * step, R::sub(t[1], t[3]));
  });
}

inline void image_row(int row, const float* const* pixels, int64_t channels, float* out, int64_t step) {
  switch (row) {
    case 0: return image_row_of<0>(pixels, channels, out, step);
    case 1: return image_row_of<1>(pixels, channels, out, step);
    case 2: return image_row_of<2>(pixels, channels, out, step);
    default: return image_row_of<3>(pixels, channels, out, step);
  }
}

template <int Row> void gradient_row_of(const float* const* y, int64_t channels, float* out, int64_t step) {
  using R = Vec<float>;
  each_channels(channels, [=](auto load, auto store) {
    typename R::Register t[2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      if constexpr (Row == 0) t[j] = load(y[j]);
      else if constexpr (Row == 1) t[j] = R::add(load(y[j]), load(y[2 + j]));
      else if constexpr (Row == 2) t[j] = R::sub(load(y[j]), load(y[2 + j]));
      else t[j] = R::sub(R::zero(), load(y[2 + j]));
    }
    store(out, t[0]);
    store(out + step, R::add(t[0], t[1]));
    store(out + 2 * step, R::sub(t[0], t[1]));
    store(out + 3 * step, R::sub(R::zero(), t[1]));
  });
}

inline void gradient_row(int row, const float* const* pixels, int64_t channels, float* out, int64_t step) {
  switch (row) {
    case 0: return gradient_row_of<0>(pixels, channels, out, step);
    case 1: return gradient_row_of<1>(pixels, channels, out, step);
    case 2: return gradient_row_of<2>(pixels, channels, out, step);
    default: return gradient_row_of<3>(pixels, channels, out, step);
  }
}

inline bool result_square(const float* sums, int64_t step, int64_t channels, float* const* pixels) {
  using R = Vec<float>;
  typename R::Register zeros = R::zero();  // times what came: NaN where that is not finite
  each_channels(channels, [&](auto load, auto store) {
    typename R::Register upper[4], lower[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const float* column = sums + j * step;
      const auto middle = load(column + 4 * step), below = load(column + 8 * step);
      upper[j] = R::add(R::add(load(column), middle), below);
      lower[j] = R::sub(R::sub(middle, below), load(column + 12 * step));
    }
    const auto write = [&](const typename R::Register* row, float* left, float* right) {
      const auto first = R::add(R::add(row[0], row[1]), row[2]), second = R::sub(R::sub(row[1], row[2]), row[3]);
      zeros = R::fma(first, R::zero(), R::fma(second, R::zero(), zeros));
      if (left != nullptr) store(left, first);
      if (right != nullptr) store(right, second);
    };
    write(upper, pixels[0], pixels[1]);
    write(lower, pixels[2], pixels[3]);
  });
  float lanes[R::lanes];
  R::store(lanes, zeros);
  float sum = 0;
  for (int lane = 0; lane < R::lanes; ++lane) sum += lanes[lane];
  return sum == 0;
}

inline void weights_square(const float* taps, int64_t channels, float* out, int64_t step) {
  using R = Vec<float>;
  constexpr float one_half = 0.5f;
  const auto half = R::splat(&one_half);
  const auto spread = [half](auto a, auto b, auto c, typename R::Register* to, int distance) {
    const auto outer = R::mul(half, R::add(a, c)), inner = R::mul(half, b);
    to[0] = a;
    to[distance] = R::add(outer, inner);
    to[2 * distance] = R::sub(outer, inner);
    to[3 * distance] = c;
  };
  each_channels(channels, [&](auto load, auto store) {
    typename R::Register rows[12];
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      const float* tap = taps + j * channels;
      spread(load(tap), load(tap + 3 * channels), load(tap + 6 * channels), rows + j, 3);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      typename R::Register row[4];
      spread(rows[3 * i], rows[3 * i + 1], rows[3 * i + 2], row, 1);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) store(out + (4 * i + j) * step, row[j]);
    }
  });
}

inline void weights_gradient_square(const float* sums, int64_t step, int64_t channels, float* taps) {
  using R = Vec<float>;
  constexpr float one_half = 0.5f;
  const auto half = R::splat(&one_half);
  const auto gather = [half](auto a, auto b, auto c, auto d, typename R::Register* to, int distance) {
    const auto sum = R::mul(half, R::add(b, c));
    to[0] = R::add(a, sum);
    to[distance] = R::mul(half, R::sub(b, c));
    to[2 * distance] = R::add(sum, d);
  };
  each_channels(channels, [&](auto load, auto store) {
    typename R::Register rows[12];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const float* column = sums + j * step;
      gather(load(column), load(column + 4 * step), load(column + 8 * step), load(column + 12 * step), rows + j, 4);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      typename R::Register row[3];
      gather(rows[4 * i], rows[4 * i + 1], rows[4 * i + 2], rows[4 * i + 3], row, 1);
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) store(taps + (3 * i + j) * channels, row[j]);
    }
  });
}

constexpr WinogradKernels winograd_kernels() {
  return {&image_row, &gradient_row, &result_square, &weights_square, &weights_gradient_square};
}
