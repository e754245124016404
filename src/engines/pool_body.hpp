// The bodies of the pooling kernels, included once by each tile_*.cpp after its Vec (see tile_body.hpp). Lanes are
// neighbouring channels; a window's sum or maximum stays in one register.
#pragma once

/// Calls visit(window, first channel, mask) for each window and each register of channels.
template <class T, class Visit> void each_register(const PoolRun<T>& run, Visit visit) {
  constexpr int64_t lanes = Vec<T>::lanes;
  for (int64_t channel = 0; channel < run.channels; channel += lanes) {
    const int64_t left = run.channels - channel;
    const typename Vec<T>::Mask mask = Vec<T>::mask_of(left < lanes ? left : lanes);
    for (int64_t window = 0; window < run.windows; ++window) visit(window, channel, mask);
  }
}

template <class T> void max_forward_run(const PoolRun<T>& run) {
  using R = Vec<T>;
  each_register(run, [&run](int64_t window, int64_t channel, typename R::Mask mask) {
    const T* x = run.x + window * run.x_step + channel;
    typename R::Register largest = R::splat(&run.least);
    for (int64_t t = 0; t < run.taps; ++t) largest = R::larger(largest, R::load(x + run.offsets[t], mask));
    R::store(run.y + window * run.channels + channel, largest, mask);
  });
}

template <class T>
void put_gradient(const PoolRun<T>& run, T* to, typename Vec<T>::Register value, typename Vec<T>::Mask mask) {
  Vec<T>::store(to, run.overlaps ? Vec<T>::add(Vec<T>::load(to, mask), value) : value, mask);
}

/// Adds each window's dy to the first element that equals its y, or to the first NaN.
template <class T> void max_backward_run(const PoolRun<T>& run) {
  using R = Vec<T>;
  each_register(run, [&run](int64_t window, int64_t channel, typename R::Mask mask) {
    const int64_t in = window * run.x_step + channel, out = window * run.channels + channel;
    const typename R::Register largest = R::load(run.y + out, mask);
    typename R::Register pending = R::load(run.dy + out, mask);
    const auto load = [&](int64_t t) { return R::load(run.x + in + run.offsets[t], mask); };
    const auto put = [&](int64_t t, typename R::Register value) {
      put_gradient<T>(run, run.dx + in + run.offsets[t], R::where_taken(value, largest, pending), mask);
      pending = R::where_left(value, largest, pending);
    };
    constexpr int64_t together = 4;  // so that loads need not wait for the stores of the taps before
    int64_t t = 0;
    for (; t + together <= run.taps; t += together) {
      typename R::Register values[together];
#pragma GCC unroll 4
      for (int64_t i = 0; i < together; ++i) values[i] = load(t + i);
#pragma GCC unroll 4
      for (int64_t i = 0; i < together; ++i) put(t + i, values[i]);
    }
    for (; t < run.taps; ++t) put(t, load(t));
  });
}

template <class T> void mean_forward_run(const PoolRun<T>& run) {
  using R = Vec<T>;
  each_register(run, [&run](int64_t window, int64_t channel, typename R::Mask mask) {
    const T* x = run.x + window * run.x_step + channel;
    typename R::Register sum = R::zero();
    for (int64_t t = 0; t < run.taps; ++t) sum = R::add(sum, R::load(x + run.offsets[t], mask));
    R::store(run.y + window * run.channels + channel, R::mul(sum, R::splat(&run.share)), mask);
  });
}

template <class T> void mean_backward_run(const PoolRun<T>& run) {
  using R = Vec<T>;
  each_register(run, [&run](int64_t window, int64_t channel, typename R::Mask mask) {
    const typename R::Register part =
        R::mul(R::load(run.dy + window * run.channels + channel, mask), R::splat(&run.share));
    T* dx = run.dx + window * run.x_step + channel;
    for (int64_t t = 0; t < run.taps; ++t) put_gradient<T>(run, dx + run.offsets[t], part, mask);
  });
}
