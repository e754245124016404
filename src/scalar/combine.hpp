// CombineBody: what a reduction or a running reduction joins elements with, in the two forms made from one generic
// lambda: compiled loops (this CPU) and scalar code (every other executor), each with the neutral element.
// Read first: body.hpp. Read next: make_combine.hpp (how both are made).
#pragma once

#include <cstdint>

#include "scalar/body.hpp"

namespace rosin {

/// result[r] = the combination of row r of `rows` rows, one after another, of `count` contiguous elements: in sixteen
/// fixed lanes that are joined as a fixed tree, so that a result depends on the elements of its row only, not on the
/// instruction set.
using ReduceLoop = void (*)(void* result, const void* x, int64_t count, int64_t rows);
/// into[i] = combine(into[i], x[i]).
using CombineLoop = void (*)(void* into, const void* x, int64_t count);
/// into[i] = the neutral element.
using NeutralLoop = void (*)(void* into, int64_t count);
/// For each of `size` rows of `count` elements, `step` elements apart, in order: out = totals = combine(totals, x). The
/// elements of a row are `line` elements apart.
using RunningLoop = void (*)(void* out, const void* x, void* totals, int64_t count, int64_t size, int64_t step,
                             int64_t line);

/// Of one type, contiguous, Bool as bytes 0 and 1; null where the body has no meaning for the type.
struct CombineLoops {
  ReduceLoop reduce = nullptr;
  CombineLoop combine = nullptr;
  NeutralLoop neutral = nullptr;
  RunningLoop running = nullptr;
};

struct CombineBody {
  CombineLoops loops[scalar_type_count] = {};                // for the best instruction set
  int64_t neutral[scalar_type_count] = {};                   // its bits, as literals of scalar code have them
  void (*code)(ScalarType type, ScalarCode& out) = nullptr;  // combine(input 0, input 1)

  const CombineLoops& of(ScalarType type) const { return loops[static_cast<int>(type)]; }
  int64_t neutral_bits(ScalarType type) const { return neutral[static_cast<int>(type)]; }
};

}  // namespace rosin
