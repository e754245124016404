// PReLU: a rectifier whose slope below 0 is trained.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// x where x > 0, else weight*x, with one weight for all channels or one for each. Sources: He et al.: Delving Deep
/// into Rectifiers (2015); torch.nn.PReLU.
struct ROSIN_API PReLU {
  Array weight;  // (1) or (channels)
  static constexpr int rosin_fields = 1;

  /// Error (argument): channels < 1.
  explicit PReLU(int64_t channels = 1, double slope = 0.25);

  /// x is (..., channels, batch), or (channels), -> the same. Error (shape): other channels.
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

}  // namespace rosin
