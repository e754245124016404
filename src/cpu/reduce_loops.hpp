// The loops of reductions. Sums run in sixteen fixed lanes that are added as a fixed tree, so a result depends on the
// number of elements only, not on the instruction set.
#pragma once

#include <cstdint>

#include "graph/op.hpp"

namespace rosin::cpu {

/// Combines `count` contiguous elements into *result.
using ReduceRun = void (*)(void* result, const void* x, int64_t count);
/// into[i] = combine(into[i], x[i]).
using CombineRun = void (*)(void* into, const void* x, int64_t count);
/// into[i] = the neutral element.
using NeutralRun = void (*)(void* into, int64_t count);

struct ReduceLoops {
  ReduceRun reduce = nullptr;
  CombineRun combine = nullptr;
  NeutralRun neutral = nullptr;
};

/// Loops for a reducer (not argmax, argmin) on a type. Maximum and minimum pass NaN on.
ReduceLoops reduce_loops(Reducer reducer, ScalarType type);

}  // namespace rosin::cpu
