// The text of kernels in the languages of devices. One printer for all; what differs between languages is data
// (dialects.hpp). Read first: code.hpp, include/rosin/backend.h (Kernels).
//
// Every value is a line `const T v12 = ...;`. The meaning is exactly that of scalar/primitives.hpp as long as the
// compiler is kept from changing floating-point operations:
//   OpenCL  -cl-fp32-correctly-rounded-divide-sqrt where the device has it; none of the -cl-fast options
//   CUDA    --fmad=false; --ftz=false, --prec-div=true and --prec-sqrt=true are NVRTC's own defaults
//   HIP     -ffp-contract=off -fno-fast-math; compilers before LLVM 18 take sqrt one ulp off
//   Metal   fast math switched off
#pragma once

#include <span>
#include <string>

#include "kernels/code.hpp"

namespace rosin::kernels {

enum class Language : uint8_t { opencl, cuda, hip, metal };

/// The kernels as one source, always the same text for the same codes, so it can be a key. Their names must differ.
/// Error (dtype) where the language lacks a type that a kernel uses.
/// `shared_bytes`: what shared arrays take together at most without being large, see backend.h.
std::string kernel_text(Language language, std::span<const KernelCode> codes, int64_t shared_bytes = INT64_MAX);

}  // namespace rosin::kernels
