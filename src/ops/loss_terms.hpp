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

}  // namespace rosin
