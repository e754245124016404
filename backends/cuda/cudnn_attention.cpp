// Attention as a graph. From cuDNN 9.21 on it is one operation, whose logits go through a graph of their own where
// queries do not see all keys. See cudnn_graph.hpp.
#include <limits>

#include "cuda/cudnn_graph_parts.hpp"

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
  AttentionGraph(const DnnTarget& target, const Attention& attention) : parts_(target), a_(attention) {
    const Names names = names_of(a_.gradient);
    const dnn::Type type = dnn_type_of(a_.type);
    const dnn::Descriptor logits = a_.causal ? causal_logits() : nullptr;
    std::vector<std::pair<Attribute, dnn::Descriptor>> set{
        {names.q, parts_.array(q_id, type, a_.q)},
        {names.k, parts_.array(k_id, type, a_.k)},
        {names.v, parts_.array(v_id, type, a_.v)},
        {names.y, parts_.array(y_id, type, a_.y)},
        {names.scale, parts_.number(scale_id, static_cast<float>(a_.scale))}};
    if (a_.state.at >= 0) set.emplace_back(names.state, parts_.array(state_id, dnn::Type::float32, a_.state));
    if (a_.gradient) {
      set.emplace_back(Attribute::attention_back_dy, parts_.array(dy_id, type, a_.dy));
      set.emplace_back(Attribute::attention_back_dq, parts_.array(dq_id, type, a_.dq));
      set.emplace_back(Attribute::attention_back_dk, parts_.array(dk_id, type, a_.dk));
      set.emplace_back(Attribute::attention_back_dv, parts_.array(dv_id, type, a_.dv));
    }
    const DnnDescriptor& made = parts_.add(names.kind);
    for (const auto& [which, part] : set) made.set(which, ValueType::descriptor, part);
    if (logits) {
      made.set(names.logits, ValueType::descriptor, logits);
      made.set(names.logits_from, ValueType::int64, logits_id);
      made.set(names.logits_to, ValueType::int64, seen_id);
    }
    made.finish("attention");
    parts_.graph("graph of attention", {made.get()});
  }

  DnnGraph take() && { return std::move(parts_).take(); }

 private:
  /// Query i sees keys 0 to i; other logits become minus infinity.
  dnn::Descriptor causal_logits() {
    const int64_t batch = a_.q.sizes[0], heads = a_.q.sizes[1], queries = a_.q.sizes[2], keys = a_.k.sizes[2];
    const Tensor form{{batch, heads, queries, keys}, {heads * queries * keys, queries * keys, keys, 1}, -1};
    const dnn::Descriptor from = parts_.inner(logits_id, dnn::Type::float32, form);
    const dnn::Descriptor to = parts_.inner(seen_id, dnn::Type::float32, form);
    const dnn::Descriptor never = parts_.number(never_id, -std::numeric_limits<float>::infinity());
    const DnnDescriptor& made = parts_.add(Kind::band_mask);
    made.set(Attribute::band_x, ValueType::descriptor, from);
    made.set(Attribute::band_other, ValueType::descriptor, never);
    made.set(Attribute::band_y, ValueType::descriptor, to);
    made.set(Attribute::band_comparison, ValueType::pointwise_mode, dnn::PointwiseMode::at_least);
    made.finish("causal logits");
    return parts_.graph("graph of causal logits", {made.get()});
  }

  GraphParts parts_;
  const Attention& a_;
};

}  // namespace

DnnGraph graph_of(const DnnTarget& target, const Attention& attention) {
  const bool whole = target.library->is_at_least(9, 21);
  DnnGraph graph = whole ? AttentionGraph(target, attention).take() : steps_of(target, attention);
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
