// The generators of all threads as one value, for exact resume. Read next: random.cpp.
#pragma once

#include <cstdint>

#include <rosin/random.hpp>

namespace rosin {

/// The calling thread's generator, and what those of threads that draw for the first time later are made of.
struct Generators {
  Rng own;
  uint64_t seed = 0;
  uint64_t threads = 0;  // that have one
};
Generators generators();
/// The calling thread goes on with `own`; all others have new ones from their next draw on, as after seed().
void restore_generators(const Generators& saved) noexcept;

}  // namespace rosin
