// The half type of this thread's innermost autocast scope. Read next: ops/autocast_casts.hpp.
#pragma once

#include <rosin/autocast.hpp>

namespace rosin {

/// Float32: there is no scope; Float64: a walk back, in which float types may meet as in a scope and nothing is
/// converted.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local DType autocast_half;

inline bool is_half(DType type) noexcept { return type == DType::Float16 || type == DType::BFloat16; }
inline bool is_autocast() noexcept { return is_half(autocast_half); }
/// Whether an op of two float types gives the wider one.
inline bool promotes() noexcept { return autocast_half != DType::Float32; }

/// The walk back over what was recorded in scopes: gradients meet values of other float types.
class WalkOfScopes {
 public:
  WalkOfScopes() noexcept : outer_(autocast_half) { autocast_half = DType::Float64; }
  ~WalkOfScopes() { autocast_half = outer_; }
  WalkOfScopes(const WalkOfScopes&) = delete;
  WalkOfScopes& operator=(const WalkOfScopes&) = delete;

 private:
  DType outer_;
};

/// The float type that holds both.
DType wider_float(DType a, DType b) noexcept;

}  // namespace rosin
