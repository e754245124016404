// Arrays that PyTorch joins or splits: the projections of attention are rows of one array there, and a recurrent layer
// has two biases, which are added. Read next: torch_names.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rosin/io.hpp>

#include "io/safetensors.hpp"

namespace rosin {

enum class TorchStorage : uint8_t {
  plain,
  backwards,  // dims in reverse order: (kernel..., in, out) here, (out, in, ...kernel) there
  flipped,    // the same, and every spatial dim is reversed: true convolutions here, cross-correlations there
  summed,     // bias_ih and bias_hh there, whose sum is the bias here
  gated,      // the same, but for the last third of bias_hh, which stands inside the reset gate
  inside      // that third
};

/// A place of a model with both names.
struct TorchPlace {
  std::string name;
  std::string torch_name;
  TorchStorage storage = TorchStorage::plain;
  std::string whole = {};  // the array of which it is some rows, where it is
  std::string alone = {};  // what it is called where PyTorch keeps the parts apart
  int64_t rows = 0;        // of it; 0: absent
};

/// Entries of PyTorch with its joined arrays taken apart and its two biases added, under `torch_name`. Error
/// (argument): a bias inside the reset gate that is not 0, for a model that has none there.
std::vector<NamedArray> parted(const std::vector<TorchPlace>& places, const std::vector<NamedArray>& entries);

/// What parted takes apart, put together: the arrays of the places as PyTorch has them, in `arrays`, under its names.
void join_parts(const std::vector<TorchPlace>& places, std::vector<OutgoingArray>& arrays);

}  // namespace rosin
