// The transformations of winograd.cpp, included by each tile_*.cpp after tile_body.hpp: V = B'dB of an image's square
// d, U = GwG' of weights, the result A'MA of products M, and the adjoints AyA' and G'MG for gradients. Polynomials are
// taken at 0, a, -a, b, -b and infinity. a = sqrt(1/2) and b = sqrt(2) keep the factors near 1: errors are a quarter of
// those at 0, 1, -1, 2, -2.
//        1    0  -5/2    0   1   0           1      0      0          1   0    0    0
//        0  -2a   -2     a   1   0         -2/3  -2a/3   -1/3         1   a   1/2  a/2
//   B' = 0   2a   -2    -a   1   0     G = -2/3   2a/3   -1/3     A = 1  -a   1/2 -a/2
//        0  -b/2 -1/2    b   1   0          1/6   b/6    1/3          1   b    2   2b
//        0   b/2 -1/2   -b   1   0          1/6  -b/6    1/3          1  -b    2  -2b
//        0    1    0   -5/2  0   1           0      0      1          0   0    0    1
#pragma once

constexpr float root_half = 0.70710678118654752f, root_two = 1.41421356237309505f;  // a and b
constexpr int side = WinogradKernels::side, window = WinogradKernels::window;

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

/// factor * x [+ y].
inline Vec<float>::Register times(float factor, Vec<float>::Register x) {
  return Vec<float>::mul(Vec<float>::splat(&factor), x);
}
inline Vec<float>::Register plus_times(Vec<float>::Register y, float factor, Vec<float>::Register x) {
  return Vec<float>::fma(Vec<float>::splat(&factor), x, y);
}

/// Rows of B' times x(0), ..., x(5).
struct ImageSums {
  static constexpr int extent = window;
  template <int Row, class Line> static Vec<float>::Register row(Line x) {
    if constexpr (Row == 0) return Vec<float>::add(x(0), plus_times(x(4), -2.5f, x(2)));
    else if constexpr (Row == 5) return Vec<float>::add(x(1), plus_times(x(5), -2.5f, x(3)));
    else {
      constexpr float square = Row <= 2 ? 2.0f : 0.5f, point = Row <= 2 ? root_half : root_two;
      const auto even = plus_times(x(4), -square, x(2)), odd = plus_times(x(3), -square, x(1));
      return plus_times(even, Row % 2 == 1 ? point : -point, odd);
    }
  }
};

/// Rows of A times y(0), ..., y(3).
struct GradientSums {
  static constexpr int extent = side;
  template <int Row, class Line> static Vec<float>::Register row(Line y) {
    if constexpr (Row == 0) return y(0);
    else if constexpr (Row == 5) return y(3);
    else {
      constexpr float square = Row <= 2 ? 0.5f : 2.0f, point = Row <= 2 ? root_half : root_two;
      const auto even = plus_times(y(0), square, y(2)), odd = plus_times(y(1), square, y(3));
      return plus_times(even, Row % 2 == 1 ? point : -point, odd);
    }
  }
};

/// A' times m(0), ..., m(5), as to(0, sum), ..., to(3, sum).
template <class Line, class To> void result_line(Line m, To to) {
  using R = Vec<float>;
  const auto sum = R::add(m(1), m(2)), difference = R::sub(m(1), m(2));
  const auto far_sum = R::add(m(3), m(4)), far_difference = R::sub(m(3), m(4));
  to(0, R::add(m(0), R::add(sum, far_sum)));
  to(1, plus_times(times(root_half, difference), root_two, far_difference));
  to(2, plus_times(times(0.5f, sum), 2.0f, far_sum));
  to(3, plus_times(plus_times(m(5), root_half / 2, difference), 2 * root_two, far_difference));
}

/// G times w(0), w(1), w(2), as to(0, sum), ..., to(5, sum).
template <class Line, class To> void weights_line(Line w, To to) {
  using R = Vec<float>;
  const auto outer = plus_times(times(-1.0f / 3, w(2)), -2.0f / 3, w(0)), inner = times(-2 * root_half / 3, w(1));
  const auto far_outer = plus_times(times(1.0f / 6, w(0)), 1.0f / 3, w(2)), far_inner = times(root_two / 6, w(1));
  to(0, w(0));
  to(1, R::add(outer, inner));
  to(2, R::sub(outer, inner));
  to(3, R::add(far_outer, far_inner));
  to(4, R::sub(far_outer, far_inner));
  to(5, w(2));
}

/// G' times m(0), ..., m(5), as to(0, sum), to(1, sum), to(2, sum).
template <class Line, class To> void weights_gradient_line(Line m, To to) {
  using R = Vec<float>;
  const auto sum = R::add(m(1), m(2)), difference = R::sub(m(1), m(2));
  const auto far_sum = R::add(m(3), m(4)), far_difference = R::sub(m(3), m(4));
  to(0, plus_times(plus_times(m(0), -2.0f / 3, sum), 1.0f / 6, far_sum));
  to(1, plus_times(times(-2 * root_half / 3, difference), root_two / 6, far_difference));
  to(2, plus_times(plus_times(m(5), -1.0f / 3, sum), 1.0f / 3, far_sum));
}

/// body(0), ..., body(window - 1), of constants.
template <class Body> void each_row(Body body) {
  [&]<int... Row>(std::integer_sequence<int, Row...>) {
    (body(std::integral_constant<int, Row>()), ...);
  }(std::make_integer_sequence<int, window>());
}

/// Row `Row` of the arrays of a square of pixels: sums over its columns, and then over these.
template <class Sums, int Row> void turn_row(const float* const* pixels, int64_t channels, float* out, int64_t step) {
  each_channels(channels, [=](auto load, auto store) {
    typename Vec<float>::Register sums[Sums::extent];
#pragma GCC unroll 6
    for (int j = 0; j < Sums::extent; ++j) {
      sums[j] = Sums::template row<Row>([&](int i) { return load(pixels[Sums::extent * i + j]); });
    }
    each_row([&](auto row) { store(out + row * step, Sums::template row<row>([&](int j) { return sums[j]; })); });
  });
}

template <class Sums> void square_row(int row, const float* const* pixels, int64_t channels, float* out, int64_t step) {
  each_row([=](auto r) {
    if (r == row) turn_row<Sums, r>(pixels, channels, out, step);
  });
}

inline bool result_square(const float* sums, int64_t step, int64_t channels, float* const* pixels) {
  using R = Vec<float>;
  typename R::Register zeros = R::zero();  // times what came: NaN where that is not finite
  each_channels(channels, [&](auto load, auto store) {
    typename R::Register rows[side][window];
#pragma GCC unroll 6
    for (int j = 0; j < window; ++j) {
      result_line([&](int i) { return load(sums + (window * i + j) * step); },
                  [&](int i, typename R::Register sum) { rows[i][j] = sum; });
    }
#pragma GCC unroll 4
    for (int i = 0; i < side; ++i) {
      result_line([&](int j) { return rows[i][j]; },
                  [&](int j, typename R::Register sum) {
                    zeros = R::fma(sum, R::zero(), zeros);
                    if (pixels[side * i + j] != nullptr) store(pixels[side * i + j], sum);
                  });
    }
  });
  float lanes[R::lanes];
  R::store(lanes, zeros);
  float sum = 0;
  for (int lane = 0; lane < R::lanes; ++lane) sum += lanes[lane];
  return sum == 0;
}

inline void weights_square(const float* taps, int64_t tap, int64_t channels, float* out, int64_t step) {
  each_channels(channels, [&](auto load, auto store) {
    typename Vec<float>::Register rows[window][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      weights_line([&](int i) { return load(taps + (3 * i + j) * tap); },
                   [&](int i, typename Vec<float>::Register sum) { rows[i][j] = sum; });
    }
#pragma GCC unroll 6
    for (int i = 0; i < window; ++i) {
      weights_line([&](int j) { return rows[i][j]; },
                   [&](int j, typename Vec<float>::Register sum) { store(out + (window * i + j) * step, sum); });
    }
  });
}

inline void weights_gradient_square(const float* sums, int64_t step, int64_t channels, float* taps, int64_t tap) {
  each_channels(channels, [&](auto load, auto store) {
    typename Vec<float>::Register rows[3][window];
#pragma GCC unroll 6
    for (int j = 0; j < window; ++j) {
      weights_gradient_line([&](int i) { return load(sums + (window * i + j) * step); },
                            [&](int i, typename Vec<float>::Register sum) { rows[i][j] = sum; });
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      weights_gradient_line([&](int j) { return rows[i][j]; },
                            [&](int j, typename Vec<float>::Register sum) { store(taps + (3 * i + j) * tap, sum); });
    }
  });
}

constexpr WinogradKernels winograd_kernels() {
  return {&square_row<ImageSums>, &square_row<GradientSums>, &result_square, &weights_square, &weights_gradient_square};
}
