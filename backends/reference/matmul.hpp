// The vendor call: matmul with plain loops, with bias and relu, so that rosin's way through vendor calls can be tested
// without a vendor.
#pragma once

#include <vector>

#include <rosin/backend.h>

#include "device.hpp"

namespace rosin::reference {

/// A matmul that has been checked; it owns what it describes.
struct Matmul {
  rosin_call_array a{}, b{}, result{};
  rosin_epilogue epilogue{};
};

}  // namespace rosin::reference

struct rosin_call {
  rosin_device* device = nullptr;
  rosin::reference::Matmul what;
};

namespace rosin::reference {

/// Device memory that a call needs; it is only asked for and looked at.
inline constexpr uint64_t matmul_workspace = 256;

/// Throws Failure with ROSIN_UNSUPPORTED for what is no matmul of Float32 or Float64. Sizes are not looked at.
Matmul checked_matmul(const rosin_device& device, const rosin_call_description& what);
/// The same for sizes: with vendor_rows=N, products of more than N rows are unsupported.
void check_sizes(const rosin_device& device, const Matmul& what);

/// The bytes of each array, checked against its block.
struct MatmulBytes {
  const char* a = nullptr;
  const char* b = nullptr;
  const char* bias = nullptr;
  char* result = nullptr;
};
MatmulBytes matmul_bytes(const rosin_call& call, const rosin_place* buffers);

void matmul(const Matmul& what, const MatmulBytes& at);

}  // namespace rosin::reference
