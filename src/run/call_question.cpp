// See call_question.hpp.
#include "run/call_question.hpp"

#include <algorithm>

namespace rosin {
namespace {

// The enums of plans are those of backend.h, by entries that begin, part and end their lists.
static_assert(static_cast<int>(plan::CallKind::convolution_weights) == ROSIN_CALL_CONVOLUTION_WEIGHTS);
static_assert(static_cast<int>(plan::CallKind::attention_data) == ROSIN_CALL_ATTENTION_DATA);
static_assert(static_cast<int>(plan::CallRole::output) == ROSIN_ROLE_OUTPUT);
static_assert(static_cast<int>(plan::CallRole::residual) == ROSIN_ROLE_RESIDUAL);
static_assert(static_cast<int>(plan::CallRole::bias_gradient) == ROSIN_ROLE_BIAS_GRADIENT);
static_assert(static_cast<int>(plan::CallKind::recurrent_data) == ROSIN_CALL_RECURRENT_DATA);
static_assert(static_cast<int>(plan::CallRole::value_gradient) == ROSIN_ROLE_VALUE_GRADIENT);
static_assert(static_cast<int>(plan::CallRole::last_cell_gradient) == ROSIN_ROLE_LAST_CELL_GRADIENT);
static_assert(static_cast<int>(plan::Cell::gru) == ROSIN_CELL_GRU);
static_assert(static_cast<int>(plan::Activation::tanh) == ROSIN_ACTIVATION_TANH);
static_assert(static_cast<int>(plan::Activation::gelu_gradient) == ROSIN_ACTIVATION_GELU_GRADIENT);
static_assert(static_cast<int>(plan::ComputeMode::bfloat16) == ROSIN_COMPUTE_BFLOAT16);
static_assert(static_cast<int>(plan::Order::channels_first) == ROSIN_ORDER_CHANNELS_FIRST);

rosin_call_array array(const plan::CallArray& from) {
  rosin_call_array to{static_cast<int32_t>(from.role), static_cast<int32_t>(from.type), from.shape.rank(), {}, {}};
  std::copy(from.shape.begin(), from.shape.end(), to.sizes);
  std::copy(std::begin(from.strides), std::end(from.strides), to.strides);
  return to;
}

}  // namespace

CallQuestion::CallQuestion(const plan::CallDescription& call) {
  for (const plan::CallArray& from : call.arrays) arrays_.push_back(array(from));
  plain_.size = sizeof plain_;
  plain_.kind = static_cast<int32_t>(call.kind);
  plain_.array_count = static_cast<uint32_t>(arrays_.size());
  plain_.arrays = arrays_.data();
  if (call.window.spatial > 0) take_window(call.window);
  take_attributes(call.attributes);
  const plan::Epilogue& epilogue = call.epilogue;
  plain_.epilogue = {epilogue.bias, epilogue.residual, static_cast<int32_t>(epilogue.activation), epilogue.auxiliary,
                     epilogue.bias_gradient};
  plain_.accumulate = call.accumulate;
  plain_.scaled = epilogue.scaled;
  plain_.compute = static_cast<int32_t>(call.compute);
  plain_.deterministic = call.deterministic;
  plain_.unrounded = call.unrounded;
}

void CallQuestion::take_window(const plan::CallWindow& from) {
  rosin_call_window& to = plain_.window;
  to.spatial = from.spatial;
  std::copy_n(from.stride, 3, to.stride);
  std::copy_n(from.dilation, 3, to.dilation);
  std::copy_n(from.pad_low, 3, to.pad_low);
  std::copy_n(from.pad_high, 3, to.pad_high);
  std::copy_n(from.window, 3, to.window);
  to.groups = from.groups;
  to.flipped = from.flipped;
  to.mean = from.mean;
}

/// Those that differ from what a plug-in takes them for where they are not in the list.
void CallQuestion::take_attributes(const plan::CallAttributes& from) {
  const plan::CallAttributes usual;
  const auto add = [this](rosin_attribute_key key, int64_t integer, double real) {
    attributes_.push_back({static_cast<int32_t>(key), integer, real});
  };
  if (from.epsilon != usual.epsilon) add(ROSIN_ATTRIBUTE_EPSILON, 0, from.epsilon);
  if (from.scale != usual.scale) add(ROSIN_ATTRIBUTE_SCALE, 0, from.scale);
  if (from.causal != usual.causal) add(ROSIN_ATTRIBUTE_CAUSAL, from.causal, 0);
  if (from.dropout != usual.dropout) add(ROSIN_ATTRIBUTE_DROPOUT, 0, from.dropout);
  if (from.cell != usual.cell) add(ROSIN_ATTRIBUTE_CELL, static_cast<int64_t>(from.cell), 0);
  plain_.attribute_count = static_cast<uint32_t>(attributes_.size());
  plain_.attributes = attributes_.data();
}

}  // namespace rosin
