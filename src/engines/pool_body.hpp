// The bodies of the pooling kernels, included once by each tile_*.cpp after its Vec (see tile_body.hpp). Lanes are
// neighbouring channels; a window's sum or maximum stays in one register. Where channels fill no register, those of the
// windows behind come along: a window writes beyond its own channels what the next one writes again.
#pragma once

/// All lanes of a register, or those that are left at the end.
template <class T> struct WholeRegister {
  using Register = typename Vec<T>::Register;
  static Register load(const T* from) { return Vec<T>::load(from); }
  static void store(T* to, Register value) { Vec<T>::store(to, value); }
};
template <class T> struct PartOfRegister {
  using Register = typename Vec<T>::Register;
  typename Vec<T>::Mask mask;
  Register load(const T* from) const { return Vec<T>::load(from, mask); }
  void store(T* to, Register value) const { Vec<T>::store(to, value, mask); }
};

/// Of windows whose channels fill no register, how many from the first on may reach behind them and stay among what the
/// last one reads and writes.
template <class T> int64_t reaching_windows(const PoolRun<T>& run) {
  constexpr int64_t lanes = Vec<T>::lanes;
  const int64_t in_y = run.windows - (lanes - 1) / run.channels;  // (y_step is `channels` here)
  const int64_t in_x = run.windows - (lanes - run.channels + run.x_step - 1) / run.x_step;
  return std::max<int64_t>(0, std::min(in_y, in_x));
}

/// Calls visit(window, first channel, lanes) for each window and each register of channels.
template <class T, class Visit> void each_register(const PoolRun<T>& run, bool may_reach, Visit visit) {
  constexpr int64_t lanes = Vec<T>::lanes;
  const int64_t reaching = may_reach && run.channels < lanes ? reaching_windows(run) : 0;
  for (int64_t channel = 0; channel < run.channels; channel += lanes) {
    const int64_t left = run.channels - channel, whole = left >= lanes ? run.windows : reaching;
    const PartOfRegister<T> part{Vec<T>::mask_of(left < lanes ? left : lanes)};
    for (int64_t window = 0; window < whole; ++window) visit(window, channel, WholeRegister<T>());
    for (int64_t window = whole; window < run.windows; ++window) visit(window, channel, part);
  }
}

/// The same, one window after the other, each from its last register to its first: where channels are neighbouring
/// windows, an element's gradients add up in the same order whatever their number.
template <class T, class Visit> void each_register_down(const PoolRun<T>& run, Visit visit) {
  constexpr int64_t lanes = Vec<T>::lanes;
  const int64_t whole = run.channels / lanes * lanes;
  const PartOfRegister<T> part{Vec<T>::mask_of(run.channels - whole)};
  for (int64_t window = 0; window < run.windows; ++window) {
    if (whole < run.channels) visit(window, whole, part);
    for (int64_t channel = whole - lanes; channel >= 0; channel -= lanes) visit(window, channel, WholeRegister<T>());
  }
}

/// Of gradients.
template <class T, bool Overlaps, class Visit> void each_gradient_register(const PoolRun<T>& run, Visit visit) {
  if constexpr (Overlaps) each_register_down(run, visit);
  else each_register(run, run.tiles, visit);
}

/// Calls visit(t, elements) for each tap.
template <class T, class Load, class Visit> void each_tap(int64_t taps, Load load, Visit visit) {
  constexpr int64_t together = 4;  // so that loads need not wait for the stores of the taps before
  int64_t t = 0;
  for (; t + together <= taps; t += together) {
    typename Vec<T>::Register values[together];
#pragma GCC unroll 4
    for (int64_t i = 0; i < together; ++i) values[i] = load(t + i);
#pragma GCC unroll 4
    for (int64_t i = 0; i < together; ++i) visit(t + i, values[i]);
  }
  for (; t < taps; ++t) visit(t, load(t));
}

/// The largest of a window's elements that is not less than `least`, or a NaN. `load(t)`: those of a tap.
template <class T, class Load>
typename Vec<T>::Register largest_of(typename Vec<T>::Register least, int64_t taps, Load load) {
  using R = Vec<T>;
  typename R::Register largest = least;
  auto nan = R::not_numbers(least, least);
  each_tap<T>(taps, load, [&](int64_t, typename R::Register value) {
    nan = R::either(nan, R::not_numbers(value, value));
    largest = R::larger_number(largest, value);
  });
  if (!R::any(nan)) return largest;
  largest = least;
  for (int64_t t = 0; t < taps; ++t) largest = R::larger(largest, load(t));
  return largest;
}

template <class T> void max_forward_run(const PoolRun<T>& run) {
  const auto least = Vec<T>::splat(&run.least);
  each_register(run, true,
                [x = run.x, y = run.y, offsets = run.offsets, taps = run.taps, step = run.x_step, y_step = run.y_step,
                 least](int64_t window, int64_t channel, auto lanes) {
                  const T* from = x + window * step + channel;
                  const auto load = [&](int64_t t) { return lanes.load(from + offsets[t]); };
                  lanes.store(y + window * y_step + channel, largest_of<T>(least, taps, load));
                });
}

/// Stores what a tap is given. `Overlaps`: adds it to what stands there.
template <class T, bool Overlaps, class Lanes> void put_gradient(T* to, typename Vec<T>::Register value, Lanes lanes) {
  if constexpr (Overlaps) lanes.store(to, Vec<T>::add(lanes.load(to), value));
  else lanes.store(to, value);
}

template <class T, bool Overlaps> void max_backward_with(const PoolRun<T>& run) {
  using R = Vec<T>;
  using Register = typename R::Register;
  each_gradient_register<T, Overlaps>(run, [x = run.x, y = run.y, dx = run.dx, dy = run.dy, offsets = run.offsets,
                                            taps = run.taps, step = run.x_step,
                                            y_step = run.y_step](int64_t window, int64_t channel, auto lanes) {
    const int64_t in = window * step + channel, out = window * y_step + channel;
    const Register largest = lanes.load(y + out);
    Register pending = lanes.load(dy + out);
    const auto load = [&](int64_t t) { return lanes.load(x + in + offsets[t]); };
    const auto put = [&](int64_t t, Register value) { put_gradient<T, Overlaps>(dx + in + offsets[t], value, lanes); };
    if (R::any(R::not_numbers(largest, largest))) {
      for (int64_t t = 0; t < taps; ++t) {
        const Register value = load(t);
        put(t, R::where_taken(value, largest, pending));
        pending = R::where_left(value, largest, pending);
      }
      return;
    }
    each_tap<T>(taps, load, [&](int64_t t, Register value) {
      put(t, R::where_equal(value, largest, pending));
      pending = R::where_other(value, largest, pending);
    });
  });
}

/// Adds each window's dy to the first element that equals its y, or to the first NaN.
template <class T> void max_backward_run(const PoolRun<T>& run) {
  if (run.overlaps) max_backward_with<T, true>(run);
  else max_backward_with<T, false>(run);
}

template <class T> void mean_forward_run(const PoolRun<T>& run) {
  using R = Vec<T>;
  const auto share = R::splat(&run.share);
  each_register(run, true,
                [x = run.x, y = run.y, offsets = run.offsets, taps = run.taps, step = run.x_step, y_step = run.y_step,
                 share](int64_t window, int64_t channel, auto lanes) {
                  const T* from = x + window * step + channel;
                  typename R::Register sum = R::zero();
                  for (int64_t t = 0; t < taps; ++t) sum = R::add(sum, lanes.load(from + offsets[t]));
                  lanes.store(y + window * y_step + channel, R::mul(sum, share));
                });
}

template <class T, bool Overlaps> void mean_backward_with(const PoolRun<T>& run) {
  using R = Vec<T>;
  const auto share = R::splat(&run.share);
  each_gradient_register<T, Overlaps>(
      run, [dx = run.dx, dy = run.dy, offsets = run.offsets, taps = run.taps, step = run.x_step, y_step = run.y_step,
            share](int64_t window, int64_t channel, auto lanes) {
        const auto part = R::mul(lanes.load(dy + window * y_step + channel), share);
        T* to = dx + window * step + channel;
        for (int64_t t = 0; t < taps; ++t) put_gradient<T, Overlaps>(to + offsets[t], part, lanes);
      });
}

template <class T> void mean_backward_run(const PoolRun<T>& run) {
  if (run.overlaps) mean_backward_with<T, true>(run);
  else mean_backward_with<T, false>(run);
}
