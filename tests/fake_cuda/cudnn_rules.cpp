// What the objects of cuDNN's stand-in may be told, and when they make sense. See cudnn.hpp.
#include <algorithm>
#include <cstring>
#include <set>

#include "cudnn.hpp"
#include "machine.hpp"

namespace fake_dnn {
namespace {

using dnn::Attribute;
using dnn::Kind;
using dnn::ValueType;
using fake::Trouble;

constexpr int64_t most_dims = 16, most_spatial = 3, most_parts = 64;

/// An attribute of a kind: its type, how many values, and whether it must be there.
struct Rule {
  Kind kind;
  Attribute which;
  ValueType type;
  int64_t most;
  bool needed;
};

constexpr Rule rules[] = {
    {Kind::tensor, Attribute::tensor_type, ValueType::data_type, 1, true},
    {Kind::tensor, Attribute::tensor_dimensions, ValueType::int64, most_dims, true},
    {Kind::tensor, Attribute::tensor_strides, ValueType::int64, most_dims, true},
    {Kind::tensor, Attribute::tensor_id, ValueType::int64, 1, true},
    {Kind::tensor, Attribute::tensor_alignment, ValueType::int64, 1, true},
    {Kind::tensor, Attribute::tensor_is_virtual, ValueType::boolean, 1, false},
    {Kind::tensor, Attribute::tensor_by_value, ValueType::boolean, 1, false},
    {Kind::convolution, Attribute::convolution_type, ValueType::data_type, 1, true},
    {Kind::convolution, Attribute::convolution_mode, ValueType::convolution_mode, 1, true},
    {Kind::convolution, Attribute::convolution_spatial, ValueType::int64, 1, true},
    {Kind::convolution, Attribute::convolution_dilations, ValueType::int64, most_spatial, true},
    {Kind::convolution, Attribute::convolution_strides, ValueType::int64, most_spatial, true},
    {Kind::convolution, Attribute::convolution_pre_paddings, ValueType::int64, most_spatial, true},
    {Kind::convolution, Attribute::convolution_post_paddings, ValueType::int64, most_spatial, true},
    {Kind::forward, Attribute::forward_convolution, ValueType::descriptor, 1, true},
    {Kind::forward, Attribute::forward_x, ValueType::descriptor, 1, true},
    {Kind::forward, Attribute::forward_w, ValueType::descriptor, 1, true},
    {Kind::forward, Attribute::forward_y, ValueType::descriptor, 1, true},
    {Kind::forward, Attribute::forward_alpha, ValueType::float32, 1, true},
    {Kind::forward, Attribute::forward_beta, ValueType::float32, 1, true},
    {Kind::backward_data, Attribute::data_convolution, ValueType::descriptor, 1, true},
    {Kind::backward_data, Attribute::data_dx, ValueType::descriptor, 1, true},
    {Kind::backward_data, Attribute::data_w, ValueType::descriptor, 1, true},
    {Kind::backward_data, Attribute::data_dy, ValueType::descriptor, 1, true},
    {Kind::backward_data, Attribute::data_alpha, ValueType::float32, 1, true},
    {Kind::backward_data, Attribute::data_beta, ValueType::float32, 1, true},
    {Kind::backward_weights, Attribute::weights_convolution, ValueType::descriptor, 1, true},
    {Kind::backward_weights, Attribute::weights_x, ValueType::descriptor, 1, true},
    {Kind::backward_weights, Attribute::weights_dw, ValueType::descriptor, 1, true},
    {Kind::backward_weights, Attribute::weights_dy, ValueType::descriptor, 1, true},
    {Kind::backward_weights, Attribute::weights_alpha, ValueType::float32, 1, true},
    {Kind::backward_weights, Attribute::weights_beta, ValueType::float32, 1, true},
    {Kind::pointwise, Attribute::pointwise_mode, ValueType::pointwise_mode, 1, true},
    {Kind::pointwise, Attribute::pointwise_precision, ValueType::data_type, 1, true},
    {Kind::pointwise, Attribute::pointwise_nan, ValueType::nan_propagation, 1, false},
    {Kind::pointwise_operation, Attribute::operation_pointwise, ValueType::descriptor, 1, true},
    {Kind::pointwise_operation, Attribute::operation_x, ValueType::descriptor, 1, true},
    {Kind::pointwise_operation, Attribute::operation_b, ValueType::descriptor, 1, false},
    {Kind::pointwise_operation, Attribute::operation_y, ValueType::descriptor, 1, true},
    {Kind::attention, Attribute::attention_q, ValueType::descriptor, 1, true},
    {Kind::attention, Attribute::attention_k, ValueType::descriptor, 1, true},
    {Kind::attention, Attribute::attention_v, ValueType::descriptor, 1, true},
    {Kind::attention, Attribute::attention_y, ValueType::descriptor, 1, true},
    {Kind::attention, Attribute::attention_state, ValueType::descriptor, 1, false},
    {Kind::attention, Attribute::attention_scale, ValueType::descriptor, 1, false},
    {Kind::attention, Attribute::attention_logits, ValueType::descriptor, 1, false},
    {Kind::attention, Attribute::attention_logits_from, ValueType::int64, 1, false},
    {Kind::attention, Attribute::attention_logits_to, ValueType::int64, 1, false},
    {Kind::attention_backward, Attribute::attention_back_q, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_k, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_v, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_y, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_state, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_scale, ValueType::descriptor, 1, false},
    {Kind::attention_backward, Attribute::attention_back_dq, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_dk, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_dv, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_dy, ValueType::descriptor, 1, true},
    {Kind::attention_backward, Attribute::attention_back_logits, ValueType::descriptor, 1, false},
    {Kind::attention_backward, Attribute::attention_back_logits_from, ValueType::int64, 1, false},
    {Kind::attention_backward, Attribute::attention_back_logits_to, ValueType::int64, 1, false},
    {Kind::band_mask, Attribute::band_x, ValueType::descriptor, 1, true},
    {Kind::band_mask, Attribute::band_other, ValueType::descriptor, 1, true},
    {Kind::band_mask, Attribute::band_y, ValueType::descriptor, 1, true},
    {Kind::band_mask, Attribute::band_comparison, ValueType::pointwise_mode, 1, true},
    {Kind::graph, Attribute::graph_handle, ValueType::handle, 1, true},
    {Kind::pointwise, Attribute::pointwise_axis, ValueType::int64, 1, false},
    {Kind::pointwise_operation, Attribute::operation_t, ValueType::descriptor, 1, false},
    {Kind::matmul, Attribute::matmul_type, ValueType::data_type, 1, true},
    {Kind::matmul_operation, Attribute::matmul_how, ValueType::descriptor, 1, true},
    {Kind::matmul_operation, Attribute::matmul_a, ValueType::descriptor, 1, true},
    {Kind::matmul_operation, Attribute::matmul_b, ValueType::descriptor, 1, true},
    {Kind::matmul_operation, Attribute::matmul_c, ValueType::descriptor, 1, true},
    {Kind::reduction, Attribute::reduction_mode, ValueType::reduction_mode, 1, true},
    {Kind::reduction, Attribute::reduction_type, ValueType::data_type, 1, true},
    {Kind::reduction_operation, Attribute::reduction_how, ValueType::descriptor, 1, true},
    {Kind::reduction_operation, Attribute::reduction_x, ValueType::descriptor, 1, true},
    {Kind::reduction_operation, Attribute::reduction_y, ValueType::descriptor, 1, true},
    {Kind::reshape, Attribute::reshape_x, ValueType::descriptor, 1, true},
    {Kind::reshape, Attribute::reshape_y, ValueType::descriptor, 1, true},
    {Kind::graph, Attribute::graph_operations, ValueType::descriptor, most_parts, true},
    {Kind::heuristics, Attribute::heuristics_graph, ValueType::descriptor, 1, true},
    {Kind::heuristics, Attribute::heuristics_mode, ValueType::heuristic_mode, 1, true},
    {Kind::plan, Attribute::plan_handle, ValueType::handle, 1, true},
    {Kind::plan, Attribute::plan_configuration, ValueType::descriptor, 1, false},
    {Kind::plan, Attribute::plan_text, ValueType::text, 1 << 20, false},
    {Kind::variant_pack, Attribute::pack_ids, ValueType::int64, most_parts, true},
    {Kind::variant_pack, Attribute::pack_pointers, ValueType::pointer, most_parts, true},
    {Kind::variant_pack, Attribute::pack_workspace, ValueType::pointer, 1, true},
};

void finish_tensor(const Descriptor& one) {
  const Tensor made = tensor_of(one);
  if (made.sizes.size() < 3 || made.sizes.size() != made.strides.size()) wrong("an array of these dims");
  for (size_t d = 0; d < made.sizes.size(); ++d) {
    if (made.sizes[d] < 1 || made.strides[d] < 1) wrong("an array with sizes or strides below 1");
  }
  if (made.alignment < 1 || (made.alignment & (made.alignment - 1)) != 0) wrong("an alignment that is no power of 2");
}

void finish_window(const Descriptor& one) {
  const auto spatial = static_cast<size_t>(one.number(Attribute::convolution_spatial));
  for (const Attribute each : {Attribute::convolution_dilations, Attribute::convolution_strides,
                               Attribute::convolution_pre_paddings, Attribute::convolution_post_paddings}) {
    const std::vector<int64_t> all = one.numbers(each);
    const bool pads = each == Attribute::convolution_pre_paddings || each == Attribute::convolution_post_paddings;
    if (all.size() != spatial) wrong("a window with numbers for other dims");
    if (*std::min_element(all.begin(), all.end()) < (pads ? 0 : 1)) wrong("a window with numbers that are too small");
  }
}

/// How an operation of each kind calls its parts.
struct Names {
  Attribute window, x, w, y, alpha, beta;
};

Names names_of(Kind kind) {
  using enum Attribute;
  switch (kind) {
    case Kind::backward_data: return {data_convolution, data_dx, data_w, data_dy, data_alpha, data_beta};
    case Kind::backward_weights:
      return {weights_convolution, weights_x, weights_dw, weights_dy, weights_alpha, weights_beta};
    default: return {forward_convolution, forward_x, forward_w, forward_y, forward_alpha, forward_beta};
  }
}

double factor(const Descriptor& one, Attribute which) {
  const Values& values = one.given.at(which);
  float single = 0;
  double wide = 0;
  if (values.type == ValueType::float64) std::memcpy(&wide, values.bytes.data(), sizeof wide);
  else std::memcpy(&single, values.bytes.data(), sizeof single);
  return values.type == ValueType::float64 ? wide : static_cast<double>(single);
}

Convolution operation_of(const Descriptor& one) {
  const Names names = names_of(one.kind);
  const Descriptor& window = one.object(names.window);
  if (window.kind != Kind::convolution) wrong("a window that is another object");
  Convolution made;
  made.kind = one.kind;
  made.x = tensor_of(one.object(names.x));
  made.w = tensor_of(one.object(names.w));
  made.y = tensor_of(one.object(names.y));
  made.sums = static_cast<dnn::Type>(window.number(Attribute::convolution_type));
  made.flipped = window.number(Attribute::convolution_mode) == static_cast<int64_t>(dnn::ConvolutionMode::flipped);
  made.stride = window.numbers(Attribute::convolution_strides);
  made.dilation = window.numbers(Attribute::convolution_dilations);
  made.pad_low = window.numbers(Attribute::convolution_pre_paddings);
  made.pad_high = window.numbers(Attribute::convolution_post_paddings);
  made.alpha = factor(one, names.alpha);
  made.beta = factor(one, names.beta);
  return made;
}

void finish_convolution(const Descriptor& one) {
  const Convolution c = operation_of(one);
  const size_t rank = c.x.sizes.size();
  if (c.w.sizes.size() != rank || c.y.sizes.size() != rank || c.stride.size() + 2 != rank) wrong("other dims");
  if (c.x.sizes[0] != c.y.sizes[0] || c.w.sizes[0] != c.y.sizes[1]) wrong("batches or channels that do not fit");
  if (c.x.sizes[1] % c.w.sizes[1] != 0 || c.y.sizes[1] % (c.x.sizes[1] / c.w.sizes[1]) != 0)
    wrong("groups that do not fit");
  for (size_t d = 2; d < rank; ++d) {
    const size_t s = d - 2;
    const int64_t room = c.x.sizes[d] + c.pad_low[s] + c.pad_high[s] - c.dilation[s] * (c.w.sizes[d] - 1) - 1;
    if (room < 0 || c.y.sizes[d] != room / c.stride[s] + 1) wrong("images whose sizes do not fit");
  }
  const bool wide = c.sums == dnn::Type::float64;
  const ValueType factors = wide ? ValueType::float64 : ValueType::float32;
  const Names names = names_of(one.kind);
  if (one.given.at(names.alpha).type != factors || one.given.at(names.beta).type != factors) {
    wrong("factors of another type than the sums");
  }
}

void finish_pointwise(const Descriptor& one) {
  const Descriptor& how = one.object(Attribute::operation_pointwise);
  if (how.kind != Kind::pointwise) wrong("a function that is another object");
  const auto mode = static_cast<dnn::PointwiseMode>(how.number(Attribute::pointwise_mode));
  if (mode != dnn::PointwiseMode::add && mode != dnn::PointwiseMode::relu) return;  // of attention: with the graph
  if (one.has(Attribute::operation_b) != (mode == dnn::PointwiseMode::add)) wrong("operands of another function");
  const Tensor x = tensor_of(one.object(Attribute::operation_x)), y = tensor_of(one.object(Attribute::operation_y));
  if (x.sizes != y.sizes) wrong("a result of another size");
  if (mode != dnn::PointwiseMode::add) return;
  const Tensor b = tensor_of(one.object(Attribute::operation_b));
  for (size_t d = 0; d < x.sizes.size(); ++d) {
    if (b.sizes.size() != x.sizes.size() || (b.sizes[d] != 1 && b.sizes[d] != x.sizes[d]))
      wrong("an array that does not broadcast");
  }
}

/// Of attention, or of what becomes of its logits: one operation.
bool finish_single(const Descriptor& one) {
  const std::vector<Object>& operations = one.objects(Attribute::graph_operations);
  if (operations.front()->kind == Kind::band_mask) {
    if (operations.size() != 1) refuse("logits that go another way");
    return true;
  }
  if (has_steps(one)) steps_of(one);
  else if (has_attention(one)) check_attention(attention_of(one));
  else return false;
  return true;
}

/// All arrays of a graph have numbers of their own; what is between operations is virtual, and nothing else.
void finish_graph(const Descriptor& one) {
  if (finish_single(one)) return;
  std::map<int64_t, const Descriptor*> known;
  std::set<const Descriptor*> made, read;
  const auto meet = [&](const Object& tensor) {
    const auto [found, added] = known.emplace(tensor->number(Attribute::tensor_id), tensor.get());
    if (!added && found->second != tensor.get()) wrong("two arrays with one number");
  };
  for (const Object& operation : one.objects(Attribute::graph_operations)) {
    for (const auto& [which, values] : operation->given) {
      for (const Object& part : values.objects) {
        if (part->kind != Kind::tensor) continue;
        meet(part);
        const bool result = which == Attribute::forward_y || which == Attribute::data_dx ||
                            which == Attribute::weights_dw || which == Attribute::operation_y;
        (result ? made : read).insert(part.get());
      }
    }
  }
  for (const auto& [id, tensor] : known) {
    const bool between = made.contains(tensor) && read.contains(tensor);
    if (tensor_of(*tensor).is_virtual != between) wrong("what stands between operations is virtual, and nothing else");
  }
  convolution_of(one);
}

/// A plan that another process has built.
void finish_text(Descriptor& one) {
  const std::vector<unsigned char>& bytes = one.given.at(Attribute::plan_text).bytes;
  one.engine = engine_numbered(read_plan({bytes.begin(), bytes.end()}, one));
  if (!one.engine || one.engine->refuses) refuse("a plan of an engine that is not there");
}

void take_configuration(Descriptor& one) {
  if (!one.has(Attribute::plan_configuration)) wrong("an attribute is missing");
  const Descriptor& configuration = one.object(Attribute::plan_configuration);
  if (!configuration.engine) wrong("a plan without an engine");
  if (configuration.engine->refuses) refuse("this engine builds no plan here");
  one.engine = configuration.engine;
  one.graph = configuration.graph;
}

void finish_plan(Descriptor& one) {
  if (one.has(Attribute::plan_text)) finish_text(one);
  else take_configuration(one);
  const auto reach = [](auto problem) { return problem.stored().back()->reach(); };
  const uint64_t result = has_attention(*one.graph) ? reach(attention_of(*one.graph))
                          : has_steps(*one.graph)   ? reach(steps_of(*one.graph))
                                                    : reach(convolution_of(*one.graph));
  one.room = one.engine->room ? result * 2 + 100 : 0;
}

void finish_pack(const Descriptor& one) {
  const std::vector<int64_t> ids = one.numbers(Attribute::pack_ids);
  if (one.given.at(Attribute::pack_pointers).count != static_cast<int64_t>(ids.size()))
    wrong("a number for each array");
  if (std::set<int64_t>(ids.begin(), ids.end()).size() != ids.size()) wrong("an array is named twice");
}

}  // namespace

[[noreturn]] void refuse(const char* text) { throw Trouble{fake::not_supported, text}; }

Tensor tensor_of(const Descriptor& one) {
  if (one.kind != Kind::tensor) wrong("an array that is another object");
  Tensor made;
  made.type = static_cast<dnn::Type>(one.number(Attribute::tensor_type));
  made.sizes = one.numbers(Attribute::tensor_dimensions);
  made.strides = one.numbers(Attribute::tensor_strides);
  made.id = one.number(Attribute::tensor_id);
  made.alignment = one.number(Attribute::tensor_alignment);
  made.is_virtual = one.has(Attribute::tensor_is_virtual) && one.number(Attribute::tensor_is_virtual) != 0;
  made.by_value = one.has(Attribute::tensor_by_value) && one.number(Attribute::tensor_by_value) != 0;
  return made;
}

uint64_t element_bytes(ValueType type) {
  switch (type) {
    case ValueType::boolean:
    case ValueType::text: return 1;
    case ValueType::handle:
    case ValueType::int64:
    case ValueType::float64:
    case ValueType::pointer:
    case ValueType::descriptor: return 8;
    default: return 4;
  }
}

std::vector<int64_t> Descriptor::numbers(Attribute which) const {
  const Values& values = given.at(which);
  const uint64_t bytes = element_bytes(values.type);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < values.count; ++i) {
    const unsigned char* from = values.bytes.data() + static_cast<uint64_t>(i) * bytes;
    int64_t wide = 0;
    int32_t narrow = 0;
    if (bytes == 8) std::memcpy(&wide, from, 8);
    else if (bytes == 4) std::memcpy(&narrow, from, 4);
    else narrow = *from;
    all.push_back(bytes == 8 ? wide : narrow);
  }
  return all;
}

void check_attribute(const Descriptor& of, Attribute which, ValueType type, int64_t count) {
  if (of.finished) wrong("an attribute of what is finished");
  const auto* rule = std::find_if(std::begin(rules), std::end(rules),
                                  [&](const Rule& one) { return one.kind == of.kind && one.which == which; });
  if (rule == std::end(rules)) wrong("an attribute that these objects do not have");
  const bool factor = rule->type == ValueType::float32 && type == ValueType::float64;
  if (type != rule->type && !factor) wrong("an attribute of another type");
  if (count < 1 || count > rule->most) wrong("an attribute with another number of values");
}

void finish(Descriptor& one) {
  if (one.finished) wrong("it is finished already");
  for (const Rule& rule : rules) {
    if (rule.kind == one.kind && rule.needed && !one.has(rule.which)) wrong("an attribute is missing");
  }
  switch (one.kind) {
    case Kind::tensor: finish_tensor(one); break;
    case Kind::convolution: finish_window(one); break;
    case Kind::forward:
    case Kind::backward_data:
    case Kind::backward_weights: finish_convolution(one); break;
    case Kind::pointwise:
    case Kind::matmul:
    case Kind::matmul_operation:  // with the graph
    case Kind::reduction:
    case Kind::reduction_operation:
    case Kind::reshape:
    case Kind::attention:  // with the graph
    case Kind::attention_backward:
    case Kind::band_mask: break;
    case Kind::pointwise_operation: finish_pointwise(one); break;
    case Kind::graph: finish_graph(one); break;
    case Kind::heuristics: one.graph = one.objects(Attribute::heuristics_graph).at(0); break;
    case Kind::plan: finish_plan(one); break;
    case Kind::variant_pack: finish_pack(one); break;
    default: wrong("an object that is got, not made");
  }
  one.finished = true;
}

Convolution convolution_of(const Descriptor& graph) {
  const std::vector<Object>& operations = graph.objects(Attribute::graph_operations);
  const Kind first = operations.front()->kind;
  if (first != Kind::forward && first != Kind::backward_data && first != Kind::backward_weights) {
    refuse("a graph that begins otherwise");
  }
  Convolution made = operation_of(*operations.front());
  const Descriptor* last = &operations.front()->object(names_of(first).y);
  for (size_t i = 1; i < operations.size(); ++i) {
    const Descriptor& one = *operations[i];
    if (one.kind != Kind::pointwise_operation || first != Kind::forward) refuse("operations that do not go together");
    if (&one.object(Attribute::operation_x) != last) wrong("an operation that does not follow");
    const Descriptor& how = one.object(Attribute::operation_pointwise);
    const bool relu = how.number(Attribute::pointwise_mode) == static_cast<int64_t>(dnn::PointwiseMode::relu);
    if (relu ? !made.has_bias || made.relu : made.has_bias) refuse("a bias, then relu");
    if (relu) made.relu = true;
    else made.bias = tensor_of(one.object(Attribute::operation_b)), made.has_bias = true;
    last = &one.object(Attribute::operation_y);
  }
  if (first == Kind::forward) made.y = tensor_of(*last);
  return made;
}

}  // namespace fake_dnn
