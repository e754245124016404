// Calls answered by oneDNN. Read after vendor.hpp; next onednn_matmul.cpp, onednn_conv.cpp.
#pragma once

#include <cstdint>
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

/// How oneDNN multiplies BFloat16 on this processor: by instructions for pairs (AVX512_BF16, twice as fast as Float32)
/// or for tiles (AMX, many times as fast), or not, or by converting (a third as fast).
enum class BFloatProducts : uint8_t { none, pairs, tiles };
BFloatProducts onednn_bfloat_products() noexcept;

}  // namespace rosin::engines
