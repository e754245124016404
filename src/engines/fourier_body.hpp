// The body of the kernels of Fourier transforms, included as tile_body.hpp is. Lanes are lines: some are brought into
// vectors, go through all passes there (Stockham's, which need no reordering: from one memory into another and back),
// and are brought back. Read after fourier_lines.hpp.
#pragma once

/// A complex number of each lane.
template <class T> struct Several {
  using V = typename Vec<T>::Register;
  V re, im;

  Several turned_back() const { return {im, -re}; }  // -i times it
};

// Not friends: g++ 12 compiles those of templates for any processor.
template <class T> Several<T> operator+(const Several<T>& a, const Several<T>& b) { return {a.re + b.re, a.im + b.im}; }
template <class T> Several<T> operator-(const Several<T>& a, const Several<T>& b) { return {a.re - b.re, a.im - b.im}; }
template <class T> Several<T> operator*(const Several<T>& a, const Several<T>& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> Several<T> operator*(const Several<T>& a, const Pair<T>& b) {
  return a * Several<T>{Vec<T>::splat(&b.re), Vec<T>::splat(&b.im)};
}
template <class T> Several<T> scaled(const Several<T>& a, const T& b) {
  const auto by = Vec<T>::splat(&b);
  return {a.re * by, a.im * by};
}

/// The first and second half of what is `i` of one and `i` of the other; and the way back.
template <class V, size_t... i> V even_lanes(V a, V b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (2 * static_cast<int>(i))...);
}
template <class V, size_t... i> V odd_lanes(V a, V b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (2 * static_cast<int>(i) + 1)...);
}
template <class V, size_t... i> V first_pairs(V a, V b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (static_cast<int>(i / 2 + i % 2 * sizeof...(i)))...);
}
template <class V, size_t... i> V last_pairs(V a, V b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (static_cast<int>((i + sizeof...(i)) / 2 + i % 2 * sizeof...(i)))...);
}
template <class T> using EachLane = std::make_index_sequence<static_cast<size_t>(Vec<T>::lanes)>;

/// A square of numbers becomes its transpose: each round moves one bit of the row's number to the lane's.
template <class T> void transpose_square(typename Vec<T>::Register* rows) {
  constexpr int lanes = Vec<T>::lanes;
  typename Vec<T>::Register other[lanes];
#pragma GCC unroll 4
  for (int round = 1; round < lanes; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < lanes / 2; ++i) {
      other[2 * i] = first_pairs(rows[i], rows[i + lanes / 2], EachLane<T>{});
      other[2 * i + 1] = last_pairs(rows[i], rows[i + lanes / 2], EachLane<T>{});
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) rows[i] = other[i];
  }
}

/// As many complex numbers as there are lanes, or `count` of them, which stand one after the other.
template <class T> Several<T> load_pairs(const T* from, int64_t count) {
  using R = Vec<T>;
  constexpr int64_t lanes = R::lanes;
  typename R::Register a, b;
  if (count >= lanes) {
    a = R::load(from);
    b = R::load(from + lanes);
  } else {
    a = R::load(from, R::mask_of(std::min(2 * count, lanes)));
    b = 2 * count > lanes ? R::load(from + lanes, R::mask_of(2 * count - lanes)) : R::zero();
  }
  return {even_lanes(a, b, EachLane<T>{}), odd_lanes(a, b, EachLane<T>{})};
}
template <class T> void store_pairs(T* to, const Several<T>& x, int64_t count) {
  using R = Vec<T>;
  constexpr int64_t lanes = R::lanes;
  const auto a = first_pairs(x.re, x.im, EachLane<T>{}), b = last_pairs(x.re, x.im, EachLane<T>{});
  if (count >= lanes) {
    R::store(to, a);
    R::store(to + lanes, b);
    return;
  }
  R::store(to, a, R::mask_of(std::min(2 * count, lanes)));
  if (2 * count > lanes) R::store(to + lanes, b, R::mask_of(2 * count - lanes));
}

template <class T> Several<T> load_lanes(const T* from, bool real, int64_t count) {
  using R = Vec<T>;
  if (!real) return load_pairs(from, count);
  return {count >= R::lanes ? R::load(from) : R::load(from, R::mask_of(count)), R::zero()};
}

template <class T> Several<T> swapped_if(bool swapped, const Several<T>& x) {
  return swapped ? Several<T>{x.im, x.re} : x;
}

/// Numbers number `first` and following of some lines, one for each lane, into as many elements of `x`.
template <class T> void load_square(const FourierLines<T>& f, const T* in, int64_t count, Several<T>* x) {
  constexpr int lanes = Vec<T>::lanes;
  typename Vec<T>::Register re[lanes], im[lanes];
#pragma GCC unroll 1
  for (int lane = 0; lane < lanes; ++lane) {  // those that there are not are the last one again
    const int64_t line = std::min<int64_t>(lane, count - 1) * f.in.line * (f.real ? 1 : 2);
    const Several<T> loaded = swapped_if(f.in.swapped, load_lanes(in + line, f.real, lanes));
    re[lane] = loaded.re;
    im[lane] = loaded.im;
  }
  transpose_square<T>(re);
  transpose_square<T>(im);
#pragma GCC unroll 1
  for (int k = 0; k < lanes; ++k) x[k] = {re[k], im[k]};
}
template <class T> void store_square(const FourierLines<T>& f, const Several<T>* y, T* out, int64_t count) {
  constexpr int lanes = Vec<T>::lanes;
  typename Vec<T>::Register re[lanes], im[lanes];
#pragma GCC unroll 1
  for (int k = 0; k < lanes; ++k) {
    re[k] = y[k].re;
    im[k] = y[k].im;
  }
  transpose_square<T>(re);
  transpose_square<T>(im);
#pragma GCC unroll 1
  for (int lane = 0; lane < count; ++lane) {
    store_pairs(out + 2 * lane * f.out.line, swapped_if(f.out.swapped, Several<T>{re[lane], im[lane]}), lanes);
  }
}

/// Element by element, of which lines have less than a square.
template <class T> Several<T> load_each(const FourierLines<T>& f, const T* in, int64_t count) {
  Several<T> x{Vec<T>::zero(), Vec<T>::zero()};
  for (int64_t lane = 0; lane < count; ++lane) {
    const T* const from = in + lane * f.in.line * (f.real ? 1 : 2);
    x.re[lane] = from[0];
    if (!f.real) x.im[lane] = from[1];
  }
  return swapped_if(f.in.swapped, x);
}
template <class T> void store_each(const FourierLines<T>& f, const Several<T>& found, T* out, int64_t count) {
  const Several<T> y = swapped_if(f.out.swapped, found);
  for (int64_t lane = 0; lane < count; ++lane) {
    out[2 * lane * f.out.line] = y.re[lane];
    out[2 * lane * f.out.line + 1] = y.im[lane];
  }
}

template <class T> void load_lines(const FourierLines<T>& f, int64_t first, int64_t count, Several<T>* x) {
  const int64_t size = f.real ? 1 : 2, step = f.in.element * size;
  const T* in = f.in.first + first * f.in.line * size;
  int64_t k = 0;
  if (f.in.line == 1) {
    for (; k < f.length; ++k) x[k] = swapped_if(f.in.swapped, load_lanes(in + k * step, f.real, count));
  } else if (f.in.element == 1) {
    for (; k + Vec<T>::lanes <= f.length; k += Vec<T>::lanes) load_square(f, in + k * step, count, x + k);
  }
  for (; k < f.length; ++k) x[k] = load_each(f, in + k * step, count);
}

template <class T> void store_lines(const FourierLines<T>& f, int64_t first, int64_t count, const Several<T>* y) {
  T* const out = f.out.first + 2 * first * f.out.line;
  const int64_t step = 2 * f.out.element;
  int64_t k = 0;
  if (f.turns) {
    for (; k < f.length; ++k) {
      const T* const turns = &f.turns[k * f.lines + first].re;
      store_pairs(out + k * step, y[k] * load_pairs(turns, count), count);
    }
  } else if (f.out.line == 1) {
    for (; k < f.length; ++k) store_pairs(out + k * step, swapped_if(f.out.swapped, y[k]), count);
  } else if (f.out.element == 1) {
    for (; k + Vec<T>::lanes <= f.length; k += Vec<T>::lanes) store_square(f, y + k, out + k * step, count);
  }
  for (; k < f.length; ++k) store_each(f, y[k], out + k * step, count);
}

/// The transform of `radix` numbers. Of an odd number: sums and differences of those that have conjugate roots.
template <class T, int radix> [[gnu::always_inline]] inline void transform_few(Several<T>* v, const Pair<T>* roots) {
  if constexpr (radix == 2) {
    const Several<T> a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
  } else if constexpr (radix == 4) {
    const Several<T> a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = (v[1] - v[3]).turned_back();
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
  } else if constexpr (radix == 8) {
    constexpr T half = T(0.70710678118654752440);
    Several<T> even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
    transform_few<T, 4>(even, roots);
    transform_few<T, 4>(odd, roots);
    odd[1] = scaled(odd[1] + odd[1].turned_back(), half);
    odd[2] = odd[2].turned_back();
    odd[3] = scaled(odd[3].turned_back() - odd[3], half);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      v[k] = even[k] + odd[k];
      v[k + 4] = even[k] - odd[k];
    }
  } else {
    constexpr int half = radix / 2;
    Several<T> sums[half], differences[half];
    const Several<T> before = v[0];
#pragma GCC unroll 6
    for (int j = 1; j <= half; ++j) {
      sums[j - 1] = v[j] + v[radix - j];
      differences[j - 1] = (v[j] - v[radix - j]).turned_back();
      v[0] = v[0] + sums[j - 1];
    }
#pragma GCC unroll 6
    for (int k = 1; k <= half; ++k) {
      Several<T> even = before, odd = scaled(differences[0], roots[k].im);
#pragma GCC unroll 6
      for (int j = 1; j <= half; ++j) even = even + scaled(sums[j - 1], roots[j * k % radix].re);
#pragma GCC unroll 6
      for (int j = 2; j <= half; ++j) odd = odd + scaled(differences[j - 1], roots[j * k % radix].im);
      v[k] = even + odd;
      v[radix - k] = even - odd;
    }
  }
}

template <class T, int radix> void run_pass(const FourierPass<T>& pass, const Several<T>* x, Several<T>* y) {
  const int64_t parts = pass.parts, stride = pass.stride;
  for (int64_t part = 0; part < parts; ++part) {
    const Pair<T>* const turns = pass.turns + part * (radix - 1);
    for (int64_t i = 0; i < stride; ++i) {
      Several<T> v[radix];
#pragma GCC unroll 13
      for (int j = 0; j < radix; ++j) v[j] = x[i + stride * (part + parts * j)];
      transform_few<T, radix>(v, pass.roots);
      Several<T>* const to = y + i + stride * radix * part;
      to[0] = v[0];
#pragma GCC unroll 13
      for (int k = 1; k < radix; ++k) to[k * stride] = part == 0 ? v[k] : v[k] * turns[k - 1];
    }
  }
}

template <class T> void run_pass(const FourierPass<T>& pass, const Several<T>* x, Several<T>* y) {
  switch (pass.radix) {
    case 2: return run_pass<T, 2>(pass, x, y);
    case 3: return run_pass<T, 3>(pass, x, y);
    case 4: return run_pass<T, 4>(pass, x, y);
    case 5: return run_pass<T, 5>(pass, x, y);
    case 7: return run_pass<T, 7>(pass, x, y);
    case 8: return run_pass<T, 8>(pass, x, y);
    case 11: return run_pass<T, 11>(pass, x, y);
    default: return run_pass<T, 13>(pass, x, y);
  }
}

template <class T> void transform_lines(const FourierLines<T>& f) {
  Several<T>*x = static_cast<Several<T>*>(f.memory), *y = x + f.length;
  for (int64_t first = 0; first < f.lines; first += Vec<T>::lanes) {
    const int64_t count = std::min<int64_t>(Vec<T>::lanes, f.lines - first);
    load_lines(f, first, count, x);
    for (int i = 0; i < f.passes_count; ++i) {
      run_pass(f.passes[i], x, y);
      std::swap(x, y);
    }
    store_lines(f, first, count, x);
  }
}
