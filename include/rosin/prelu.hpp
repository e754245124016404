// PReLU, a rectifier whose slope below 0 is trained, and activations that Flux has not: rrelu, hardshrink.
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

/// x where it is not negative, else times a slope: in training each element draws its own from [low, high), by this
/// thread's generator; else their mean, which rrelu(x) has from 1/8 and 1/3. Sources: NNlib.rrelu; torch.nn.RReLU.
ROSIN_API Array rrelu(const Array& x);
ROSIN_API Array rrelu(const Array& x, double low, double high);
/// x, but 0 from -lambda to lambda (0.5 where it is not stated), both included. Source: torch.nn.Hardshrink.
ROSIN_API Array hardshrink(const Array& x);
ROSIN_API Array hardshrink(const Array& x, double lambda);

}  // namespace rosin
