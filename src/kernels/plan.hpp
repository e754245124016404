// What this room reads of plans, by its own name. Read first: plan/layout.hpp.
#pragma once

#include "plan/layout.hpp"

namespace rosin::kernels {

using plan::Home;
using plan::Instr;
using plan::Kernel;
using plan::KernelLayout;
using plan::Layout;
using plan::memory_alignment;
using plan::Output;
using plan::Place;
using plan::Port;
using plan::PortLayout;
using plan::scalar_index;
using plan::Sizes;
using plan::Step;
using plan::Structure;
using plan::Value;
using plan::View;

}  // namespace rosin::kernels
