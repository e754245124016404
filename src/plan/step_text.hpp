// What a step computes, as text: for messages and profiles.
#pragma once

#include <string>

#include "plan/layout.hpp"

namespace rosin::plan {

/// Names of its ops: "matmul", of a kernel "multiply add tanh", of one that only moves elements "copy".
std::string ops_of(const Structure& structure, const Step& step);
/// What it reads and writes: of a call "(256, 784) (784, 128) Float32", operands and the type of the result; of a
/// kernel the sizes and the type that it works in.
std::string sizes_of(const Layout& layout, const Step& step);

}  // namespace rosin::plan
