// See generator_state.hpp.
#include <rosin/generator_state.hpp>

#include <span>
#include <string>

#include <rosin/error.hpp>

namespace rosin {

Array generator_state(const Rng& rng) {
  const uint64_t words[] = {rng.key(), rng.counter()};
  return Array(std::span<const uint64_t>(words), Shape{2});
}

Rng restored_generator(const Array& state) {
  const bool fits = !state.is_nothing() && state.dtype() == UInt64 && state.shape() == Shape{2};
  if (!fits) {
    throw Error(ErrorKind::argument,
                "restored_generator: the state of a generator is an array UInt64 (2); got " +
                    (state.is_nothing() ? std::string("nothing")
                                        : std::string(to_string(state.dtype())) + " " + to_string(state.shape())) +
                    "; give what generator_state made");
  }
  uint64_t words[2];
  state.copy_to(std::span<uint64_t>(words));
  return Rng::restored(words[0], words[1]);
}

}  // namespace rosin
