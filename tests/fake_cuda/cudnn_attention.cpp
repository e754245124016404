// Attention of cuDNN's stand-in: what a graph of it says, and numbers, query by query. See cudnn.hpp.
#include <algorithm>
#include <cmath>

#include "cudnn.hpp"
#include "library_work.hpp"

namespace fake_dnn {
namespace {

using dnn::Attribute;
using dnn::Kind;

/// How the operation and its gradient call their parts.
struct Names {
  Attribute q, k, v, y, state, scale, logits, from, to;
};
Names names_of(Kind kind) {
  using enum Attribute;
  if (kind == Kind::attention) {
    return {attention_q,     attention_k,      attention_v,           attention_y,        attention_state,
            attention_scale, attention_logits, attention_logits_from, attention_logits_to};
  }
  return {attention_back_q,      attention_back_k,           attention_back_v,
          attention_back_y,      attention_back_state,       attention_back_scale,
          attention_back_logits, attention_back_logits_from, attention_back_logits_to};
}

/// Logits go through a mask that leaves those on and below the diagonal.
void take_logits(const Descriptor& operation, const Names& names, Attention& made) {
  if (!operation.has(names.logits)) return;
  const Descriptor& mask = *operation.object(names.logits).objects(Attribute::graph_operations).at(0);
  if (mask.kind != Kind::band_mask) refuse("logits that go another way");
  const Tensor from = tensor_of(mask.object(Attribute::band_x)), to = tensor_of(mask.object(Attribute::band_y));
  if (operation.number(names.from) != from.id || operation.number(names.to) != to.id) wrong("logits of another graph");
  if (!from.is_virtual || !to.is_virtual || from.sizes != to.sizes) wrong("logits that are stored, or change sizes");
  const std::vector<int64_t> logits{made.q.sizes[0], made.q.sizes[1], made.q.sizes[2], made.k.sizes[2]};
  if (from.sizes != logits) wrong("logits of other sizes");
  const auto least = static_cast<int64_t>(dnn::PointwiseMode::at_least);
  if (mask.number(Attribute::band_comparison) != least) refuse("a mask of another form");
  made.causal = true;
  made.never = tensor_of(mask.object(Attribute::band_other));
  if (!made.never.by_value) refuse("a number of the device");
}

double at(const Tensor& tensor, int64_t b, int64_t h, int64_t t, int64_t f) {
  const std::vector<int64_t>& s = tensor.strides;
  return fake::read_element(element_of(tensor.type), tensor.address, b * s[0] + h * s[1] + t * s[2] + f * s[3]);
}
void put(const Tensor& tensor, int64_t b, int64_t h, int64_t t, int64_t f, double value) {
  const std::vector<int64_t>& s = tensor.strides;
  fake::write_element(element_of(tensor.type), tensor.address, b * s[0] + h * s[1] + t * s[2] + f * s[3], value);
}

using Sums = std::vector<double>;

size_t place(const Tensor& tensor, int64_t b, int64_t h, int64_t t, int64_t f) {
  const std::vector<int64_t>& n = tensor.sizes;
  return static_cast<size_t>(((b * n[1] + h) * n[2] + t) * n[3] + f);
}
Sums sums_for(const Tensor& tensor) {
  return Sums(static_cast<size_t>(tensor.sizes[0] * tensor.sizes[1] * tensor.sizes[2] * tensor.sizes[3]));
}
void put_all(const Tensor& tensor, const Sums& sums) {
  for (int64_t i = 0; i < static_cast<int64_t>(sums.size()); ++i) {
    const std::vector<int64_t>& n = tensor.sizes;
    put(tensor, i / n[3] / n[2] / n[1], i / n[3] / n[2] % n[1], i / n[3] % n[2], i % n[3],
        sums[static_cast<size_t>(i)]);
  }
}

/// The weights of a query, and the logarithm of the sum of the exponentials.
std::pair<Sums, double> weights_of(const Attention& a, int64_t b, int64_t h, int64_t t) {
  const int64_t of = h / (a.q.sizes[1] / a.k.sizes[1]), keys = a.k.sizes[2];
  Sums weights(static_cast<size_t>(a.causal ? std::min(t + 1, keys) : keys));
  for (size_t s = 0; s < weights.size(); ++s) {
    for (int64_t f = 0; f < a.q.sizes[3]; ++f)
      weights[s] += at(a.q, b, h, t, f) * at(a.k, b, of, static_cast<int64_t>(s), f);
    weights[s] *= a.factor;
  }
  const double most = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - most);
  for (double& weight : weights) weight /= sum;
  return {std::move(weights), most + std::log(sum)};
}

void compute_query(const Attention& a, int64_t b, int64_t h, int64_t t) {
  const int64_t of = h / (a.q.sizes[1] / a.k.sizes[1]);
  const auto [weights, state] = weights_of(a, b, h, t);
  for (int64_t f = 0; f < a.y.sizes[3]; ++f) {
    double sum = 0;
    for (size_t s = 0; s < weights.size(); ++s) sum += weights[s] * at(a.v, b, of, static_cast<int64_t>(s), f);
    put(a.y, b, h, t, f, sum);
  }
  if (!a.state.sizes.empty()) put(a.state, b, h, t, 0, state);
}

struct Slopes {
  Sums q, k, v;
};

/// The state must be that of these operands, and y their result: the gradient reads both.
void add_query(const Attention& a, int64_t b, int64_t h, int64_t t, Slopes& slopes) {
  const int64_t of = h / (a.q.sizes[1] / a.k.sizes[1]);
  const auto [weights, state] = weights_of(a, b, h, t);
  if (!(std::fabs(state - at(a.state, b, h, t, 0)) <= 1e-2 * (1 + std::fabs(state)))) {
    throw fake::Trouble{fake::launch_failed, "a gradient of attention with another one's state"};
  }
  double dots = 0;
  for (int64_t f = 0; f < a.y.sizes[3]; ++f) dots += at(a.y, b, h, t, f) * at(a.dy, b, h, t, f);
  for (size_t key = 0; key < weights.size(); ++key) {
    const auto s = static_cast<int64_t>(key);
    double slope = 0;
    for (int64_t f = 0; f < a.y.sizes[3]; ++f) {
      slope += at(a.dy, b, h, t, f) * at(a.v, b, of, s, f);
      slopes.v[place(a.v, b, of, s, f)] += weights[key] * at(a.dy, b, h, t, f);
    }
    const double by_logit = a.factor * weights[key] * (slope - dots);
    for (int64_t f = 0; f < a.q.sizes[3]; ++f) {
      slopes.q[place(a.q, b, h, t, f)] += by_logit * at(a.k, b, of, s, f);
      slopes.k[place(a.k, b, of, s, f)] += by_logit * at(a.q, b, h, t, f);
    }
  }
}

}  // namespace

bool has_attention(const Descriptor& graph) {
  const Kind kind = graph.objects(Attribute::graph_operations).front()->kind;
  return kind == Kind::attention || kind == Kind::attention_backward;
}

Attention attention_of(const Descriptor& graph) {
  const Descriptor& operation = *graph.objects(Attribute::graph_operations).at(0);
  const Names names = names_of(operation.kind);
  const auto array = [&](Attribute which) {
    return operation.has(which) ? tensor_of(operation.object(which)) : Tensor{};
  };
  Attention made;
  made.gradient = operation.kind == Kind::attention_backward;
  made.q = array(names.q);
  made.k = array(names.k);
  made.v = array(names.v);
  made.y = array(names.y);
  made.state = array(names.state);
  made.scale = array(names.scale);
  if (made.gradient) {
    made.dy = array(Attribute::attention_back_dy);
    made.dq = array(Attribute::attention_back_dq);
    made.dk = array(Attribute::attention_back_dk);
    made.dv = array(Attribute::attention_back_dv);
  }
  take_logits(operation, names, made);
  return made;
}

void check_attention(const Attention& a) {
  const auto is = [](const Tensor& x, std::vector<int64_t> sizes) { return x.sizes.empty() || x.sizes == sizes; };
  const std::vector<int64_t>&q = a.q.sizes, &k = a.k.sizes, &v = a.v.sizes;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) wrong("attention of other dims");
  const bool fits = is(a.k, {q[0], k[1], k[2], q[3]}) && is(a.v, {q[0], k[1], k[2], v[3]}) &&
                    is(a.y, {q[0], q[1], q[2], v[3]}) && is(a.state, {q[0], q[1], q[2], 1}) && is(a.dy, a.y.sizes) &&
                    is(a.dq, q) && is(a.dk, k) && is(a.dv, v) && is(a.scale, {1, 1, 1, 1});
  if (!fits || q[1] % k[1] != 0) wrong("sizes that do not fit each other");
  if (a.q.type != dnn::Type::float16 && a.q.type != dnn::Type::bfloat16) refuse("attention of other types");
  if (!a.scale.sizes.empty() && !a.scale.by_value) refuse("a number of the device");
  if (!a.state.sizes.empty() && a.state.type != dnn::Type::float32) wrong("a state of another type");
  for (const Tensor* x : {&a.q, &a.k, &a.v, &a.y, &a.dy, &a.dq, &a.dk, &a.dv}) {
    if (x->sizes.empty()) continue;
    if (x->type != a.q.type) wrong("arrays of two types");
    if (x->strides[3] != 1 || x->sizes[3] % 8 != 0) refuse("features that do not stand side by side, in eights");
  }
}

std::vector<Tensor*> Attention::stored() {
  if (gradient) return {&q, &k, &v, &y, &state, &dy, &dq, &dk, &dv};
  if (state.sizes.empty()) return {&q, &k, &v, &y};
  return {&q, &k, &v, &state, &y};
}

void compute(const Attention& a) {
  Slopes slopes;
  if (a.gradient) slopes = {sums_for(a.q), sums_for(a.k), sums_for(a.v)};
  for (int64_t i = 0; i < a.q.sizes[0] * a.q.sizes[1] * a.q.sizes[2]; ++i) {
    const int64_t b = i / a.q.sizes[2] / a.q.sizes[1], h = i / a.q.sizes[2] % a.q.sizes[1], t = i % a.q.sizes[2];
    if (a.gradient) add_query(a, b, h, t, slopes);
    else compute_query(a, b, h, t);
  }
  if (!a.gradient) return;
  put_all(a.dq, slopes.q);
  put_all(a.dk, slopes.k);
  put_all(a.dv, slopes.v);
}

}  // namespace fake_dnn
