// See joined_attention.hpp.
#include "onnx/joined_attention.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include <rosin/compose.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "onnx/conversions.hpp"
#include "onnx/convert.hpp"
#include "ops/attention.hpp"

namespace rosin::onnx {
namespace {

/// x, heads (features, length, heads, batch) or lists of sequences (features, length, batch), as sequences.
Array as_sequences(const Array& x) { return x.rank() == 4 ? join_heads(x, 3) : x; }

bool repeats(const Array& x, const Shape& logits) {
  bool fits = x.rank() <= logits.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = x.size(d) == 1 || x.size(d) == logits[d];
  return fits;
}

/// What blocks would compute of q (features, queries, ...), k turned over (keys, features, ...) and v (features of v,
/// keys, ...), if these fit each other.
std::optional<BlockedAttention> in_blocks(const Array& q, const Array& k, const Array& v, const Array& bias,
                                          double scale) {
  const int rank = q.rank();
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank) return std::nullopt;
  for (int d = 2; d < rank; ++d)
    if (k.size(d) != q.size(d) || v.size(d) != q.size(d)) return std::nullopt;
  if (k.size(1) != q.size(0) || v.size(1) != k.size(0)) return std::nullopt;
  const int64_t heads = rank == 4 ? q.size(2) : 1;
  Array added = bias;
  if (!bias.is_nothing()) {
    if (bias.dtype() != q.dtype() || !repeats(bias, rank == 4 ? Shape{k.size(0), q.size(1), q.size(2), q.size(3)}
                                                              : Shape{k.size(0), q.size(1), q.size(2)}))
      return std::nullopt;
    if (rank == 3 && bias.rank() == 3) added = reshape(bias, {bias.size(0), bias.size(1), 1, bias.size(2)});
  }
  const Array keys = rank == 4 ? permute(k, {1, 0, 2, 3}) : permute(k, {1, 0, 2});
  BlockedAttention blocks{as_sequences(q), as_sequences(keys),       as_sequences(v), heads,
                          heads,           {scale, added, {}, false}};
  if (!is_blocked(blocks, false)) return std::nullopt;
  return blocks;
}

/// Inputs: Q, K turned over, V and what is added to their products, or nothing.
Arrays attention_of_products(const NodeCall& call) {
  const Array &q = call[0], &k = call[1], &v = call[2];
  const double scale = call.real("scale", 1);
  if (const std::optional<BlockedAttention> blocks = in_blocks(q, k, v, call.maybe(3), scale)) {
    const Array y = blocked_attention(*blocks, 0, nullptr);
    return {q.rank() == 4 ? split_heads("MatMul", y, blocks->heads) : y};
  }
  Array logits = as(matmul(k, q), q.dtype());
  if (scale != 1) logits = logits * scale;
  if (call.has(3)) logits = logits + call[3];
  return {as(matmul(v, softmax(logits, 0)), q.dtype())};
}

const Conversion of_products{"MatMul", oldest_opset, newest_opset, attention_of_products};

class Joiner {
 public:
  Joiner(std::vector<Step>& steps, const std::vector<Array>& constants, const std::vector<int>& reads)
      : steps_(steps), constants_(constants), reads_(reads), maker_(reads.size(), -1), gone_(steps.size()) {
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const int slot : steps[i].outputs)
        if (slot >= 0) maker_[static_cast<size_t>(slot)] = static_cast<int>(i);
    }
  }

  void join() {
    for (size_t i = 0; i < steps_.size(); ++i) join(i);
    std::vector<Step> kept;
    for (size_t i = 0; i < steps_.size(); ++i)
      if (!gone_[i]) kept.push_back(std::move(steps_[i]));
    steps_ = std::move(kept);
  }

 private:
  bool is(int step, std::string_view op) const {
    return step >= 0 && steps_[static_cast<size_t>(step)].conversion->op == op;
  }
  /// The step that makes what nothing but one input reads; -1: there is none.
  int only_maker(int slot) const {
    return slot >= 0 && reads_[static_cast<size_t>(slot)] == 1 ? maker_[static_cast<size_t>(slot)] : -1;
  }
  int input(int step, size_t i) const { return steps_[static_cast<size_t>(step)].inputs[i]; }

  bool is_over_keys(int softmax) const {
    const Step& step = steps_[static_cast<size_t>(softmax)];
    if (step.opset < 13) return false;  // flattens
    for (const Attribute& attribute : step.attributes)
      if (attribute.name == "axis" && attribute.integer != -1) return false;
    return true;
  }

  /// The number that a slot is, if it is one.
  std::optional<double> number(int slot) const {
    const Array& x = slot >= 0 ? constants_[static_cast<size_t>(slot)] : Array();
    if (slot < 0 || x.is_nothing() || x.count() != 1 || x.rank() > 1) return std::nullopt;
    return x.to_vector<double>()[0];
  }

  /// Step i, if it is the last one of an attention.
  void join(size_t i) {
    const int last = static_cast<int>(i);
    const int softmax = is(last, "MatMul") ? only_maker(input(last, 0)) : -1;
    if (!is(softmax, "Softmax") || !is_over_keys(softmax)) return;
    std::vector<int> between{softmax};
    int bias = -1, at = only_maker(input(softmax, 0));
    if (is(at, "Add")) {
      const size_t logits = is_logits(input(at, 0)) ? 0 : 1;
      between.push_back(at);
      bias = input(at, 1 - logits);
      at = only_maker(input(at, logits));
    }
    double scale = 1;
    for (; is(at, "Mul") || is(at, "Div"); at = only_maker(input(at, 0))) {
      const std::optional<double> factor = number(input(at, 1));
      if (!factor) return;
      scale = is(at, "Mul") ? scale * *factor : scale / *factor;
      between.push_back(at);
    }
    if (!is(at, "MatMul") || steps_[static_cast<size_t>(at)].inputs.size() != 2) return;
    between.push_back(at);
    Step& step = steps_[i];
    step.inputs = {input(at, 0), input(at, 1), step.inputs[1], bias};
    step.conversion = &of_products;
    Attribute& scaled = step.attributes.emplace_back();
    scaled.name = "scale";
    scaled.real = static_cast<float>(scale);
    for (const int joined : between) gone_[static_cast<size_t>(joined)] = true;
  }

  /// Whether the slot comes from a product, scaled or not.
  bool is_logits(int slot) const {
    int at = only_maker(slot);
    while (is(at, "Mul") || is(at, "Div")) at = only_maker(input(at, 0));
    return is(at, "MatMul");
  }

  std::vector<Step>& steps_;
  const std::vector<Array>& constants_;
  const std::vector<int>& reads_;
  std::vector<int> maker_;  // by slot; -1: none
  std::vector<bool> gone_;
};

}  // namespace

void join_attention(std::vector<Step>& steps, const std::vector<Array>& constants, const std::vector<int>& reads) {
  Joiner(steps, constants, reads).join();
}

}  // namespace rosin::onnx
