// Bits of integers in kernels. Read first: code.hpp.
#pragma once

#include "kernels/code.hpp"

namespace rosin::kernels {

inline Term shifted_right(Term x, int by) {
  return x.writer->apply(Primitive::shift_right_zero, x.type, {x, like(x, by)});
}
inline Term shifted_left(Term x, int by) { return x.writer->apply(Primitive::shift_left, x.type, {x, like(x, by)}); }
inline Term bits_and(Term x, int64_t mask) { return x.writer->apply(Primitive::bit_and, x.type, {x, like(x, mask)}); }
inline Term bits_or(Term x, Term y) { return x.writer->apply(Primitive::bit_or, x.type, {x, y}); }
inline Term bits_xor(Term x, Term y) { return x.writer->apply(Primitive::bit_xor, x.type, {x, y}); }

}  // namespace rosin::kernels
