// See describe.hpp.
#include "plan/describe.hpp"

#include <algorithm>
#include <array>

namespace rosin::plan {
namespace {

/// Roles of the operands, and of the result as the last.
struct Form {
  CallKind kind;
  std::array<CallRole, 4> roles;
  size_t count;
};

template <class... Roles> Form form(CallKind kind, Roles... roles) { return {kind, {roles...}, sizeof...(roles)}; }

using enum CallRole;

std::optional<Form> form_of(Contraction contraction) {
  switch (contraction) {
    case Contraction::none: return std::nullopt;
    case Contraction::matmul: return form(CallKind::matmul, left, right, output);
    case Contraction::convolution: return form(CallKind::convolution, input, weights, output);
    case Contraction::convolution_data:
      return form(CallKind::convolution_data, output_gradient, weights, input_gradient);
    case Contraction::convolution_weights:
      return form(CallKind::convolution_weights, input, output_gradient, weights_gradient);
  }
  return std::nullopt;
}

std::optional<Form> form_of(Window window) {
  switch (window) {
    case Window::none:
    case Window::maximum_pick: return std::nullopt;
    case Window::maximum:
    case Window::mean: return form(CallKind::pooling, input, output);
    case Window::maximum_gradient: return form(CallKind::pooling_data, input, output, output_gradient, input_gradient);
    case Window::mean_gradient: return form(CallKind::pooling_data, output_gradient, input_gradient);
  }
  return std::nullopt;
}

CallWindow window_of(const Op& op, const WindowAttributes& attributes, int rank) {
  CallWindow window;
  window.spatial = rank - 2;
  std::copy_n(attributes.stride, 3, window.stride);
  std::copy_n(attributes.dilation, 3, window.dilation);
  std::copy_n(attributes.pad_low, 3, window.pad_low);
  std::copy_n(attributes.pad_high, 3, window.pad_high);
  std::copy_n(attributes.window, 3, window.window);
  window.groups = attributes.groups;
  window.flipped = attributes.flipped != 0;
  window.mean = op.window == Window::mean || op.window == Window::mean_gradient;
  return window;
}

bool is_recurrent(const Op& op) {
  return op.routine == Routine::recurrent || op.routine == Routine::recurrent_gradient;
}

std::optional<Cell> cell_of(SequenceCell cell) {
  switch (cell) {
    case SequenceCell::tanh: return Cell::tanh;
    case SequenceCell::relu: return Cell::relu;
    case SequenceCell::lstm: return Cell::lstm;
    case SequenceCell::gru: return Cell::gru;
    case SequenceCell::gruv3: break;
  }
  return std::nullopt;
}

/// What the operands of a recurrent layer, or of its gradient, are; see ops/recurrent_call.hpp.
std::vector<CallRole> roles_of_layer(const Op& op, const RecurrentAttributes& how) {
  std::vector<CallRole> roles{input, weights, first_state};
  if (how.cell == SequenceCell::lstm) roles.push_back(first_cell);
  if (op.routine == Routine::recurrent) return roles;
  roles.insert(roles.end(), {output, reserve});
  if (how.output_slope) roles.push_back(output_gradient);
  if (how.state_slope) roles.push_back(last_state_gradient);
  if (how.cell_slope) roles.push_back(last_cell_gradient);
  return roles;
}

/// What results number 0, 1, ... of a call of several are.
std::array<CallRole, 4> roles_of_results(CallKind kind) {
  switch (kind) {
    case CallKind::attention: return {output, state};
    case CallKind::attention_data: return {query_gradient, key_gradient, value_gradient};
    case CallKind::recurrent: return {output, last_state, last_cell, reserve};
    default: return {input_gradient, weights_gradient, first_state_gradient, first_cell_gradient};
  }
}

std::optional<CallDescription> describe_recurrent(const Op& op, const RecurrentAttributes& how,
                                                  std::span<const CallArray> operands, const CallArray& result) {
  const std::optional<Cell> cell = cell_of(how.cell);
  if (!cell) return std::nullopt;
  CallDescription call;
  call.kind = op.routine == Routine::recurrent ? CallKind::recurrent : CallKind::recurrent_data;
  call.attributes.cell = *cell;
  call.arrays.assign(operands.begin(), operands.end());
  const std::vector<CallRole> roles = roles_of_layer(op, how);
  for (size_t i = 0; i < roles.size(); ++i) call.arrays[i].role = roles[i];
  call.arrays.push_back(result);
  call.arrays.back().role = roles_of_results(call.kind)[0];
  return call;
}

/// Sequences (features, length, batch), or one of them, as heads (features of a head, length, heads, batch).
CallArray in_heads(const CallArray& x, int64_t heads) {
  const bool batched = x.shape.rank() == 3;
  CallArray made{x.type, {x.shape[0] / heads, x.shape[1], heads, batched ? x.shape[2] : 1}, {}};
  made.strides[0] = x.strides[0];
  made.strides[1] = x.strides[1];
  made.strides[2] = made.shape[0] * x.strides[0];
  made.strides[3] = batched ? x.strides[2] : 1;
  return made;
}

/// An array of attention in its role; states are (length, heads, batch) as they are.
CallArray attention_array(const CallArray& x, CallRole role, const AttentionAttributes& how) {
  const bool of_keys = role == key || role == value || role == key_gradient || role == value_gradient;
  CallArray made = role == state ? x : in_heads(x, of_keys ? how.kv_heads : how.heads);
  made.role = role;
  return made;
}

/// What libraries compute: without bias, mask and dropout, whose numbers are rosin's own; in order where there are as
/// many queries as keys.
std::optional<CallDescription> describe_attention(const AttentionAttributes& how, std::span<const CallArray> operands,
                                                  const CallArray& result) {
  if (how.has_bias || how.has_mask || how.is_dropped) return std::nullopt;
  if (how.causal && operands[0].shape[1] != operands[1].shape[1]) return std::nullopt;
  constexpr CallRole roles[] = {query, key, value, output, state, output_gradient};
  CallDescription call;
  call.kind = operands.size() == 3 ? CallKind::attention : CallKind::attention_data;
  call.attributes.scale = how.scale;
  call.attributes.causal = how.causal != 0;
  for (size_t i = 0; i < operands.size(); ++i) call.arrays.push_back(attention_array(operands[i], roles[i], how));
  call.arrays.push_back(attention_array(result, roles_of_results(call.kind)[0], how));
  if (call.kind == CallKind::attention_data) {
    call.arrays.push_back(attention_array(operands[1], key_gradient, how));
    call.arrays.push_back(attention_array(operands[2], value_gradient, how));
  }
  return call;
}

}  // namespace

std::optional<CallDescription> describe(const Op& op, const Attributes& attributes, std::span<const CallArray> operands,
                                        const CallArray& result) {
  if (op.kind == Kind::attention) return describe_attention(attributes.as<AttentionAttributes>(), operands, result);
  if (is_recurrent(op)) return describe_recurrent(op, attributes.as<RecurrentAttributes>(), operands, result);
  const std::optional<Form> known = op.kind == Kind::window ? form_of(op.window) : form_of(op.contraction);
  if (!known) return std::nullopt;
  CallDescription call;
  call.kind = known->kind;
  call.arrays.assign(operands.begin(), operands.end());
  call.arrays.push_back(result);
  for (size_t i = 0; i < known->count; ++i) call.arrays[i].role = known->roles[i];
  if (call.kind != CallKind::matmul) {
    call.window = window_of(op, attributes.as<WindowAttributes>(), result.shape.rank());
  }
  return call;
}

namespace {

CallArray array_of(const Layout& layout, int32_t value) {
  const View& view = layout.views[static_cast<size_t>(value)];
  CallArray made{layout.structure->graph.values[static_cast<size_t>(value)].dtype,
                 Shape(std::span<const int64_t>(view.sizes, view.rank)),
                 {}};
  std::copy(std::begin(view.strides), std::end(view.strides), made.strides);
  return made;
}

CallArray as_result(const Layout& layout, const Step& step, CallKind kind, size_t number, CallArray made) {
  made.role = roles_of_results(kind)[number];
  if (kind != CallKind::attention && kind != CallKind::attention_data) return made;
  return attention_array(made, made.role, layout.attributes[static_cast<size_t>(step.node)].as<AttentionAttributes>());
}

/// The results of a node of several that somebody reads, in the place of those that the op has.
void take_results(const Layout& layout, const Step& step, CallDescription& call) {
  if (step.results.empty()) return;
  call.arrays.resize(static_cast<size_t>(layout.structure->graph.values[static_cast<size_t>(step.node)].operands));
  for (size_t i = 0; i < step.results.size(); ++i) {
    if (step.results[i] < 0) continue;
    const CallArray made = array_of(layout, step.results[i]);
    call.arrays.push_back(as_result(layout, step, call.kind, i, made));
  }
}

}  // namespace

std::optional<CallDescription> describe_bare(const Layout& layout, const Step& step) {
  const Value& node = layout.structure->graph.values[static_cast<size_t>(step.node)];
  std::vector<CallArray> operands;
  for (int i = 0; i < node.operands; ++i) operands.push_back(array_of(layout, node.in[i]));
  std::optional<CallDescription> call =
      describe(*node.op, layout.attributes[static_cast<size_t>(step.node)], operands, array_of(layout, step.node));
  if (!call) return call;
  take_results(layout, step, *call);
  call->take(node.mode);
  return call;
}

std::optional<CallDescription> describe(const Layout& layout, const Step& step) {
  std::optional<CallDescription> call = describe_bare(layout, step);
  if (!call) return call;
  std::vector<CallArray> arrays;
  for (const int32_t value : values_of_epilogue(step)) arrays.push_back(array_of(layout, value));
  add_epilogue(*call, step.epilogue, arrays);
  return call;
}

namespace {

std::vector<CallRole> roles_of(const Epilogue& epilogue) {
  std::vector<CallRole> roles;
  if (epilogue.bias) roles.push_back(bias);
  if (epilogue.residual) roles.push_back(residual);
  if (epilogue.auxiliary) roles.push_back(auxiliary);
  if (epilogue.bias_gradient) roles.push_back(bias_gradient);
  if (epilogue.center) roles.push_back(center);
  if (epilogue.factor) roles.push_back(factor);
  if (epilogue.shift) roles.push_back(shift);
  return roles;
}

}  // namespace

void add_epilogue(CallDescription& call, const Epilogue& epilogue, std::span<const CallArray> arrays) {
  call.epilogue = epilogue;
  const std::vector<CallRole> roles = roles_of(epilogue);
  for (size_t i = 0; i < roles.size(); ++i) call.arrays.insert(call.arrays.end() - 1, arrays[i])->role = roles[i];
}

std::vector<CallArray> arrays_of(const Epilogue& epilogue, const CallArray& result) {
  std::vector<CallArray> arrays;
  for (const CallRole role : roles_of(epilogue)) {
    CallArray& array = arrays.emplace_back(result);
    if (role != residual && role != auxiliary) array.shape = Shape{0};
    if (role == auxiliary && has_bits(epilogue.activation)) array.type = DType::UInt8;
  }
  return arrays;
}

std::vector<int32_t> values_of_epilogue(const Step& step) {
  std::vector<int32_t> values;
  for (const int32_t value :
       {step.bias, step.residual, step.auxiliary, step.bias_gradient, step.center, step.factor, step.shift}) {
    if (value >= 0) values.push_back(value);
  }
  return values;
}

const Op& op_of(Activation activation) {
  static const Op* const ops[] = {nullptr,         find_op("relu"),       find_op("sigmoid"),    find_op("tanh"),
                                  find_op("gelu"), find_op("relu_slope"), find_op("gelu_slope"), find_op("relu6")};
  return *ops[static_cast<size_t>(activation)];
}

Activation activation_of(const Op& op) {
  for (const Activation known : {Activation::relu, Activation::sigmoid, Activation::tanh, Activation::gelu,
                                 Activation::relu_gradient, Activation::gelu_gradient, Activation::relu6}) {
    if (&op == &op_of(known)) return known;
  }
  return Activation::none;
}

}  // namespace rosin::plan
