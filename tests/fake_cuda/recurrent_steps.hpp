// Recurrent layers of cuDNN's stand-in, step by step. See cudnn_recurrent.cpp (the functions).
#pragma once

#include <cstdint>

#include "cudnn.hpp"

namespace fake_dnn {

struct RecurrentForm {
  dnn::RecurrentCell cell = dnn::RecurrentCell::tanh;
  dnn::Type type = dnn::Type::float32;
  int64_t features = 0, out = 0, steps = 0, batch = 0;

  int64_t gates() const { return cell == dnn::RecurrentCell::lstm ? 4 : cell == dnn::RecurrentCell::gru ? 3 : 1; }
  int64_t parameters() const { return gates() * out * (features + out + 1); }
  uint64_t bytes(int64_t elements) const { return static_cast<uint64_t>(elements) * fake::bytes_of(element_of(type)); }
};

/// Addresses; 0: not there, zeros where it would be read.
struct RecurrentPlaces {
  uint64_t x, y, weights, h, c, last_h, last_c;
  uint64_t dy, last_dh, last_dc, dx, dh, dc;
};

/// Numbers that a layer leaves for its gradient, in `kept`: its operands.
int64_t kept_numbers(const RecurrentForm& form);

/// `kept`: null where nothing is to be kept.
void compute_layer(const RecurrentForm& form, const RecurrentPlaces& at, double* kept);
/// dx, dh and dc where they are there. The gradient by the weights takes the place of what was kept.
void compute_data_gradient(const RecurrentForm& form, const RecurrentPlaces& at, double* kept);
/// Added to what stands there.
void add_weight_gradient(const RecurrentForm& form, uint64_t dweights, const double* kept);

}  // namespace fake_dnn
