// Generators as arrays: what files and loadmodel take over of them. Read next: io.hpp.
#pragma once

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/random.hpp>

namespace rosin {

/// What a generator is made of, as it stands in files: UInt64 (2), key and counter.
ROSIN_API Array generator_state(const Rng& rng);
/// The generator of such a state: it draws what the other one would have drawn. Error (argument): it is none.
ROSIN_API Rng restored_generator(const Array& state);

}  // namespace rosin
