// A recurrent layer, the products with its input included, as one op that a device's library computes (cuDNN). Layers
// record it where there is one; sequence.hpp is the CPU's. Read next: nn/recurrent.cpp.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>

#include "graph/attributes.hpp"

namespace rosin {

/// Weights as libraries take them: a row of the input's weights, the state's and the biases, gate by gate.
struct RecurrentWeights {
  Array input, recurrent;  // (gates out, features), (gates out, out)
  Array bias;              // (gates out), or nothing
};

struct RecurrentOperands {
  SequenceCell cell = SequenceCell::tanh;
  Array x;  // (features, steps, batch)
  RecurrentWeights weights = {};
  Array hidden = {};      // h before the first step: (out), (out, 1) or (out, batch)
  Array cells = {};       // c before it, of lstm alone
  bool reversed = false;  // the last step comes first
};

struct RecurrentStates {
  Array outputs;        // (out, steps, batch)
  Array hidden, cells;  // (out, batch): behind the step that comes last
};

/// Whether `recurrent` can be recorded of these here: they stand on a device whose library computes it. Not where other
/// ops are wanted (StepByStep, records_steps), nor in math mode exact.
bool takes_recurrent(const RecurrentOperands& operands);

RecurrentStates recurrent(const RecurrentOperands& operands);

}  // namespace rosin
