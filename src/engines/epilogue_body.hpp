// The body of the kernel of epilogues, included once by each tile_*.cpp after its Vec (see tile_body.hpp).
#pragma once

template <class T> void add_and_activate(const EpilogueRun<T>& given) {
  using V = Vec<T>;
  const EpilogueRun<T> run = given;  // in registers: stores might be to anything
  const auto most = V::splat(&run.most);
  const auto end = [&](int64_t i, auto... mask) {
    auto value = V::load(run.c + i, mask...);
    if (run.bias != nullptr) value = V::add(value, V::load(run.bias + i, mask...));
    if (run.center != nullptr) value = V::sub(value, V::load(run.center + i, mask...));
    if (run.factor != nullptr) value = V::mul(value, V::load(run.factor + i, mask...));
    if (run.shift != nullptr) value = V::add(value, V::load(run.shift + i, mask...));
    if (run.residual != nullptr) value = V::add(value, V::load(run.residual + i, mask...));
    if (run.relu) value = V::at_most(V::positive(value), most);
    V::store(run.c + i, value, mask...);
  };
  int64_t i = 0;
  for (; i + V::lanes <= run.count; i += V::lanes) end(i);
  if (i < run.count) end(i, V::mask_of(run.count - i));
}
