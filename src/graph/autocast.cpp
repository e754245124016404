// Autocast: see rosin/autocast.hpp.
#include "graph/autocast.hpp"

#include <string>

#include <rosin/error.hpp>

namespace rosin {

constinit thread_local DType autocast_half = DType::Float32;

DType wider_float(DType a, DType b) noexcept {
  if (a == b) return a;
  return a == DType::Float64 || b == DType::Float64 ? DType::Float64 : DType::Float32;
}

Autocast::Autocast(DType type) : outer_(autocast_half) {
  if (!is_half(type)) {
    throw Error(ErrorKind::dtype, std::string("autocast: the type is BFloat16 or Float16; got ") + to_string(type) +
                                      "; for none write autocast(nothing)");
  }
  autocast_half = type;
}
Autocast::Autocast(Nothing) noexcept : outer_(autocast_half) { autocast_half = DType::Float32; }
Autocast::~Autocast() { autocast_half = outer_; }

DType autocast_type() noexcept { return is_autocast() ? autocast_half : DType::Float32; }

}  // namespace rosin
