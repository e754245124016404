// From the description of a call to what the engines read: strides that they understand as transposed or not, batch
// dims as one, windows of images. Read first: plan/call.hpp, vendor.hpp.
#pragma once

#include "engines/vendor.hpp"
#include "plan/call.hpp"

namespace rosin::engines {

/// Whether the matrices of an operand of a matmul have contiguous columns or rows.
bool readable(const plan::CallArray& matrices);
/// Whether the batch dims of the operands and the result are as one: a stride each, 0 for those that are broadcast.
bool one_batch(const plan::CallDescription& matmul);

/// Whether all images of a convolution or pooling stand in logical order, and not as well in CWHN.
bool in_logical_order(const plan::CallDescription& call);

/// Of operands that are readable, with one batch.
MatmulSpec matmul_spec(const plan::CallDescription& call);
/// All images are in CWHN, whatever the description's strides are.
ConvSpec conv_spec(const plan::CallDescription& call);
/// The same, but where all stand in logical order.
PoolSpec pool_spec(const plan::CallDescription& call);

}  // namespace rosin::engines
