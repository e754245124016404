// The vendor call: matmul with plain loops, so that rosin's way through vendor calls can be tested without a vendor.
#pragma once

#include <rosin/backend.h>

#include "device.hpp"

struct rosin_call {
  rosin_device* device = nullptr;
  rosin_call_description what{};
};

namespace rosin::reference {

/// Device memory that a call needs; it is only asked for and looked at.
inline constexpr uint64_t matmul_workspace = 256;

/// Throws Failure with ROSIN_UNSUPPORTED for what is no matmul of Float32 or Float64.
void check_matmul(const rosin_device& device, const rosin_call_description& what);

/// The bytes of each operand, checked against its block: a, b, result.
struct MatmulBytes {
  const char* a = nullptr;
  const char* b = nullptr;
  char* result = nullptr;
};
MatmulBytes matmul_bytes(const rosin_call& call, const rosin_place* buffers);

void matmul(const rosin_call_description& what, const MatmulBytes& at);

}  // namespace rosin::reference
