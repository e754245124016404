// All steps of a recurrent layer as one op, which the CPU has for Float32. Layers record it where it can be taken, and
// the same in other ops, step by step, elsewhere. Read next: cpu/sequence.hpp (how it is computed), nn/recurrent.cpp.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>

#include "graph/attributes.hpp"

namespace rosin {

/// What the steps of a sequence are computed of. `share` of a step is Wi x + b.
///   tanh, relu  h' = act(share + W h)
///   lstm        i, f, g, o = share + W h; c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c')
///   gru         r, z = sigmoid(share + W h); n = tanh(share + r (W h)); h' = n + z (h - n)
///   gruv3       r, z as of gru; n = tanh(share + V (r h))
struct SequenceOperands {
  SequenceCell cell = SequenceCell::tanh;
  Array shares = {};            // (gates out, batch, steps)
  Array recurrent_weight = {};  // W (gates out, out); of gruv3 (2 out, out)
  Array candidate_weight = {};  // V (out, out), of gruv3 alone
  Array hidden = {};            // (out, batch): h before the first step
  Array cells = {};             // (out, batch): c before it, of lstm alone
  Array lengths = {};           // (batch) Int64, or nothing: steps beyond it leave the state as it is
  bool reversed = false;        // the last step comes first
};

/// The states between the steps: that behind step t stands at t + 1, what was before the first at 0; reversed: at t,
/// and at `steps`.
struct SequenceStates {
  Array hidden;  // (out, batch, steps + 1)
  Array cells;   // the same, of lstm alone
};

/// While it lives, layers of this thread record ops that every device has: everywhere, or inside gradient calls.
class StepByStep {
 public:
  enum Where : uint8_t { nowhere, in_gradients, everywhere };
  explicit StepByStep(Where where = everywhere) noexcept;
  StepByStep(const StepByStep&) = delete;
  StepByStep& operator=(const StepByStep&) = delete;
  ~StepByStep();
  /// Whether one lives on this thread that asks for something.
  static bool is_wanted() noexcept;

 private:
  Where outer_;
};

/// Whether layers record ops that every device has and that have all gradients: as StepByStep says, under autocast,
/// and inside two gradient calls, where a gradient may have a gradient.
bool records_steps();

/// Whether `sequence` can be recorded of these here.
bool takes_sequence(const SequenceOperands& operands);

SequenceStates sequence(const SequenceOperands& operands);

/// A state (out), (out, 1) or (out, batch) for each sequence of the batch: (out, batch).
Array state_of_batch(const Array& state, int64_t batch);

}  // namespace rosin
