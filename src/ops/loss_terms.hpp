// Ops that losses are made of, each one node: products of which a weight of 0 takes part with nothing, the binary
// cross-entropy of logits, and logsoftmax. Read next: loss/loss.cpp.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// weight*value, 0 where the weight is 0, also of values that are infinite or NaN. The gradient by the weight is 0
/// where the value is infinite.
Array masked_product(const Array& weight, const Array& value);
/// -y*log(sigmoid(x)) - (1 - y)*log(1 - sigmoid(x)), also where x is infinite. The gradient by y is 0 there.
Array logit_entropy(const Array& x, const Array& y);
/// logsoftmax for what is one kernel with its gradient, mostly: that finds exp(x - peak) in its registers, where the
/// one of the public header takes exp of the result, so that nothing else is kept.
Array logsoftmax_in_loss(const Array& x, int dim);

/// What this thread has cast to the floats x, where these hold it exactly; else x.
Array unwidened(const Array& x);
/// logsoftmax(widened(x)) where `place` (1 in place of the dim) says, of which only there `there` is true: reads one
/// element of a line for it, while the gradient is that of all.
Array logsoftmax_at(const Array& x, const Array& place, const Array& there, int dim);

}  // namespace rosin
