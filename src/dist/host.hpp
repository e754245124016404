// Arrays as collectives see them: in memory of the host. Read next: verbs.cpp.
#pragma once

#include <rosin/array.hpp>

namespace rosin::distributed {

/// x in memory of the CPU, evaluated: itself, or a copy of what is elsewhere or a C++ number.
Array host_array(const Array& x);
/// An array that came over the host, where `like` is, tied as that.
Array placed_like(Array made, const Array& like);

}  // namespace rosin::distributed
