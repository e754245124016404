// The bodies of the kernels of gradients of pooling by planes, included once by each tile_*.cpp after its Vec and
// pool_body.hpp. Lanes are neighbouring windows, then neighbouring elements: what windows share is added in a register,
// as adding it up in memory would wait, at each tap, for the store of the one before, beside which it stands.
#pragma once

template <class T> void give_gradients(const GivenGradients<T>& run) {
  using V = Vec<T>;
  using Register = typename V::Register;
  const auto share = V::splat(&run.share);
  const T one = T(1);
  const auto visit = [&](int64_t row, int64_t window, auto lanes) {
    const int64_t at = row * run.windows + window, to = row * run.grid_row + window;
    const Register dy = lanes.load(run.dy + at);
    if (run.x == nullptr) return lanes.store(run.grid + to, V::mul(dy, share));
    const Register largest = lanes.load(run.y + at);
    const bool nan = V::any(V::not_numbers(largest, largest));
    Register pending = V::splat(&one), pick = V::zero();
    const T* const x = run.x + row * run.x_row + window;
    for (int64_t t = 0; t < run.taps; ++t) {
      const Register value = V::load(x + run.offsets[t]);
      pending = nan ? V::where_left(value, largest, pending) : V::where_other(value, largest, pending);
      pick = V::add(pick, pending);
    }
    lanes.store(run.picks + to, pick);
    lanes.store(run.grid + to, dy);
  };
  const int64_t whole = run.windows / V::lanes * V::lanes;
  const PartOfRegister<T> part{V::mask_of(run.windows - whole)};
  for (int64_t row = 0; row < run.rows; ++row) {
    for (int64_t window = 0; window < whole; window += V::lanes) visit(row, window, WholeRegister<T>());
    if (whole < run.windows) visit(row, whole, part);
  }
}

/// Half `half` of what two vectors hold in turn.
template <size_t half, class R, size_t... i> R in_turn(R a, R b, std::index_sequence<i...>) {
  constexpr size_t lanes = sizeof...(i);
  return __builtin_shufflevector(a, b, (half * lanes / 2 + i / 2 + i % 2 * lanes)...);
}

template <class T> void pull_gradients(const PulledGradients<T>& run) {
  using V = Vec<T>;
  using Register = typename V::Register;
  constexpr auto places = std::make_index_sequence<V::lanes>();
  const auto pulled = [&run](const auto& taps, int64_t at) {
    Register sum = V::zero();
    for (int64_t t = 0; t < taps.count; ++t) {
      Register value = V::load(run.grid + at + taps.offsets[t]);
      if (run.picks != nullptr)
        value = V::where_equal(V::load(run.picks + at + taps.offsets[t]), V::splat(taps.numbers + t), value);
      sum = V::add(sum, value);
    }
    return sum;
  };
  const auto put = [](T* to, Register value, int64_t left) {
    if (left >= V::lanes) V::store(to, value);
    else if (left > 0) V::store(to, value, V::mask_of(left));
  };
  for (int64_t row = 0; row < run.rows; ++row) {
    T* to = run.to + row * run.to_row;
    int64_t at = row * run.grid_row;
    for (int64_t left = run.count; left > 0; at += V::lanes, left -= run.step * V::lanes, to += run.step * V::lanes) {
      const Register first = pulled(run.taps[0], at);
      if (run.step == 1) {
        put(to, first, left);
        continue;
      }
      const Register second = pulled(run.taps[1], at);
      put(to, in_turn<0>(first, second, places), left);
      put(to + V::lanes, in_turn<1>(first, second, places), left - V::lanes);
    }
  }
}
