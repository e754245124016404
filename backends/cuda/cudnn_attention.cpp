// Attention as a graph: one operation, whose logits go through a graph of their own where queries do not see all keys.
// See cudnn_graph.hpp.
#include <limits>

#include "cuda/cudnn_graph.hpp"

namespace rosin::cuda {
namespace {

using dnn::Attribute;
using dnn::Kind;
using dnn::ValueType;

constexpr int64_t q_id = 1, k_id = 2, v_id = 3, y_id = 4, state_id = 5, dy_id = 6, dq_id = 7, dk_id = 8, dv_id = 9,
                  scale_id = 10, never_id = 11, logits_id = 12, seen_id = 13;

/// How the operation and its gradient call their parts.
struct Names {
  Kind kind;
  Attribute q, k, v, y, state, scale, logits, logits_from, logits_to;
};
Names names_of(bool gradient) {
  using enum Attribute;
  if (gradient) {
    return {Kind::attention_backward,   attention_back_q,        attention_back_k,     attention_back_v,
            attention_back_y,           attention_back_state,    attention_back_scale, attention_back_logits,
            attention_back_logits_from, attention_back_logits_to};
  }
  return {Kind::attention, attention_q,     attention_k,      attention_v,           attention_y,
          attention_state, attention_scale, attention_logits, attention_logits_from, attention_logits_to};
}

class AttentionGraph {
 public:
  AttentionGraph(const DnnTarget& target, const Attention& attention)
      : library_(*target.library), handle_(target.handle), a_(attention) {
    const Names names = names_of(a_.gradient);
    const dnn::Type type = dnn_type_of(a_.type);
    const dnn::Descriptor logits = a_.causal ? causal_logits() : nullptr;
    std::vector<std::pair<Attribute, dnn::Descriptor>> set{
        {names.q, array(q_id, type, a_.q)},
        {names.k, array(k_id, type, a_.k)},
        {names.v, array(v_id, type, a_.v)},
        {names.y, array(y_id, type, a_.y)},
        {names.scale, number(scale_id, static_cast<float>(a_.scale))}};
    if (a_.state.at >= 0) set.emplace_back(names.state, array(state_id, dnn::Type::float32, a_.state));
    if (a_.gradient) {
      set.emplace_back(Attribute::attention_back_dy, array(dy_id, type, a_.dy));
      set.emplace_back(Attribute::attention_back_dq, array(dq_id, type, a_.dq));
      set.emplace_back(Attribute::attention_back_dk, array(dk_id, type, a_.dk));
      set.emplace_back(Attribute::attention_back_dv, array(dv_id, type, a_.dv));
    }
    const DnnDescriptor& made = add(names.kind);
    for (const auto& [which, part] : set) made.set(which, ValueType::descriptor, part);
    if (logits) {
      made.set(names.logits, ValueType::descriptor, logits);
      made.set(names.logits_from, ValueType::int64, logits_id);
      made.set(names.logits_to, ValueType::int64, seen_id);
    }
    made.finish("attention");
    graph("graph of attention", made.get());
  }

  DnnGraph take() && { return std::move(made_); }

 private:
  DnnDescriptor& add(Kind kind) { return made_.parts.emplace_back(library_, kind); }

  dnn::Descriptor array(int64_t id, dnn::Type type, const Tensor& from) {
    made_.arrays.emplace_back(id, from.at);
    return made_.parts.emplace_back(dnn_tensor(library_, id, type, from)).get();
  }

  /// A number that each run brings along.
  dnn::Descriptor number(int64_t id, float value) {
    made_.numbers.emplace_back(id, value);
    const std::vector<int64_t> ones(4, 1);
    const DnnDescriptor& made = add(Kind::tensor);
    made.set(Attribute::tensor_type, ValueType::data_type, dnn::Type::float32);
    made.set(Attribute::tensor_dimensions, ValueType::int64, ones);
    made.set(Attribute::tensor_strides, ValueType::int64, ones);
    made.set(Attribute::tensor_id, ValueType::int64, id);
    made.set(Attribute::tensor_alignment, ValueType::int64, static_cast<int64_t>(sizeof value));
    made.set(Attribute::tensor_by_value, ValueType::boolean, true);
    made.finish("number of a graph");
    return made.get();
  }

  dnn::Descriptor graph(const char* what, dnn::Descriptor operation) {
    const DnnDescriptor& made = add(Kind::graph);
    if (handle_) made.set(Attribute::graph_handle, ValueType::handle, handle_);
    made.set(Attribute::graph_operations, ValueType::descriptor, operation);
    made.finish(what);
    return made.get();
  }

  /// Query i sees keys 0 to i; other logits become minus infinity.
  dnn::Descriptor causal_logits() {
    const int64_t batch = a_.q.sizes[0], heads = a_.q.sizes[1], queries = a_.q.sizes[2], keys = a_.k.sizes[2];
    const Tensor form{{batch, heads, queries, keys}, {heads * queries * keys, queries * keys, keys, 1}, -1};
    const auto inner = [&](int64_t id) {
      return made_.parts.emplace_back(dnn_tensor(library_, id, dnn::Type::float32, form, true)).get();
    };
    const dnn::Descriptor from = inner(logits_id), to = inner(seen_id);
    const dnn::Descriptor never = number(never_id, -std::numeric_limits<float>::infinity());
    const DnnDescriptor& made = add(Kind::band_mask);
    made.set(Attribute::band_x, ValueType::descriptor, from);
    made.set(Attribute::band_other, ValueType::descriptor, never);
    made.set(Attribute::band_y, ValueType::descriptor, to);
    made.set(Attribute::band_comparison, ValueType::pointwise_mode, dnn::PointwiseMode::at_least);
    made.finish("causal logits");
    return graph("graph of causal logits", made.get());
  }

  const DnnLibrary& library_;
  dnn::Handle handle_;
  const Attention& a_;
  DnnGraph made_;
};

}  // namespace

DnnGraph graph_of(const DnnTarget& target, const Attention& attention) {
  DnnGraph graph = AttentionGraph(target, attention).take();
  graph.bytes = attention.bytes;
  graph.key = key_of(attention);
  graph.name = "attention";
  graph.type = attention.type;
  graph.deterministic = attention.deterministic;
  return graph;
}

std::string key_of(const Attention& a) {
  std::string key = "attention ";
  const auto add = [&](int64_t number) { key.append(std::to_string(number)).append(" "); };
  for (const bool flag : {a.gradient, a.causal, a.deterministic}) add(flag);
  add(a.type);
  key.append(std::to_string(a.scale)).append(" ");
  for (const Tensor* tensor : {&a.q, &a.k, &a.v, &a.y, &a.state, &a.dy, &a.dq, &a.dk, &a.dv}) {
    add(tensor->at);
    for (const int64_t number : tensor->sizes) add(number);
    for (const int64_t number : tensor->strides) add(number);
  }
  return key;
}

}  // namespace rosin::cuda
