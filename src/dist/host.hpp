// Where the arrays of a collective are: in memory of the host, or together on one device. Read next: verbs.cpp.
#pragma once

#include <vector>

#include <rosin/array.hpp>

namespace rosin::distributed {

/// Whether x is in memory of the CPU, or will be; a C++ number is in none.
bool is_on_cpu(const Array& x);
/// x in memory of the CPU, evaluated: itself, or a copy of what is elsewhere or a C++ number.
Array host_array(const Array& x);
/// x as a collective takes it: evaluated, where it is; a C++ number in memory of the CPU. Throws what checks of a
/// device have found in the run that makes it.
Array placed_array(const Array& x);
/// Whether all are, or will be, in memory of one device (which may be the CPU).
bool are_together(const std::vector<Array>& arrays);
/// placed_array of several that one collective takes: where they are, if that is one device; else all by host_array.
std::vector<Array> placed_together(const std::vector<Array>& arrays);
/// An array with memory of its own where x is, for whoever fills it.
Array fresh_beside(const Array& x, DType type, const Shape& shape);
/// A few elements for whoever fills them, from the heap: what ranks tell each other must not fail where arrays have no
/// more memory, or have reached their limit.
Array few_elements(DType type, int64_t count);
/// An array that came over the host, where `like` is, tied as that.
Array placed_like(Array made, const Array& like);

}  // namespace rosin::distributed
