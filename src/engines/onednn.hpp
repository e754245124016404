// Calls answered by oneDNN. Read after vendor.hpp; next onednn_matmul.cpp, onednn_conv.cpp.
#pragma once

#include <memory>

#include "engines/vendor.hpp"

namespace rosin::engines {

#if defined(ROSIN_HAVE_ONEDNN)
inline constexpr bool have_onednn = true;
#else
inline constexpr bool have_onednn = false;
#endif

/// Float32 and, where the processor has it, BFloat16; each throws Error(backend) where oneDNN refuses or is absent.
std::unique_ptr<VendorCall> prepare_onednn_matmul(const MatmulSpec& spec);
std::unique_ptr<VendorCall> prepare_onednn_conv(const ConvSpec& spec);

}  // namespace rosin::engines
