// Attention as the steps that it is made of, in which cuDNN before 9.21 finds it. See cudnn_graph_parts.hpp.
#include <limits>

#include "cuda/cudnn_graph_parts.hpp"

namespace rosin::cuda {
namespace {

using dnn::Attribute;
using dnn::Kind;
using dnn::PointwiseMode;
using dnn::Type;
using dnn::ValueType;

constexpr int64_t queries_dim = 2, keys_dim = 3;  // of logits

/// What a step reads or makes: with its form, from which follows that of the next.
struct Value {
  dnn::Descriptor array = nullptr;
  Tensor form;
};

/// Side by side, the last dim first.
Tensor packed(std::vector<int64_t> sizes) {
  Tensor made{std::move(sizes), {}, -1};
  made.strides.assign(made.sizes.size(), 1);
  for (size_t d = made.sizes.size() - 1; d-- > 0;) made.strides[d] = made.strides[d + 1] * made.sizes[d + 1];
  return made;
}

/// The same array with its last two dims exchanged.
Tensor turned(Tensor form) {
  std::swap(form.sizes[2], form.sizes[3]);
  std::swap(form.strides[2], form.strides[3]);
  return form;
}

class Steps {
 public:
  Steps(const DnnTarget& target, const Attention& attention)
      : parts_(target), a_(attention), type_(dnn_type_of(attention.type)) {
    q_ = array(a_.q);
    k_turned_ = array(a_.k, turned(a_.k));
    scale_ = {parts_.number(next_++, static_cast<float>(a_.scale)), {}};
    if (a_.gradient) backward();
    else forward();
    parts_.graph("graph of attention", operations_);
  }

  DnnGraph take() && { return std::move(parts_).take(); }

 private:
  Value array(const Tensor& from, const Tensor& form, Type type) {
    Tensor read = form;
    read.at = from.at;
    return {parts_.array(next_++, type, read), read};
  }
  Value array(const Tensor& from, const Tensor& form) { return array(from, form, type_); }
  Value array(const Tensor& from) { return array(from, from); }
  Value inner(const Tensor& form, Type type = Type::float32) { return {parts_.inner(next_++, type, form), form}; }
  Tensor logits_form() const { return packed({a_.q.sizes[0], a_.q.sizes[1], a_.q.sizes[2], a_.k.sizes[2]}); }
  Tensor column_form() const { return packed({a_.q.sizes[0], a_.q.sizes[1], a_.q.sizes[2], 1}); }

  void operation(Kind kind, std::initializer_list<std::pair<Attribute, dnn::Descriptor>> parts, const char* what) {
    const DnnDescriptor& made = parts_.add(kind);
    for (const auto& [which, part] : parts) {
      if (part) made.set(which, ValueType::descriptor, part);
    }
    made.finish(what);
    operations_.push_back(made.get());
  }

  /// y = mode(x, b), and of select(x, b, t): x where t.
  void store(PointwiseMode mode, const Value& y, const Value& x, const Value& b = {}, const Value& t = {},
             Type precision = Type::float32, int64_t axis = -1) {
    const DnnDescriptor& how = parts_.add(Kind::pointwise);
    how.set(Attribute::pointwise_mode, ValueType::pointwise_mode, mode);
    how.set(Attribute::pointwise_precision, ValueType::data_type, precision);
    if (axis >= 0) how.set(Attribute::pointwise_axis, ValueType::int64, axis);
    how.finish("step of attention");
    operation(Kind::pointwise_operation,
              {{Attribute::operation_pointwise, how.get()},
               {Attribute::operation_x, x.array},
               {Attribute::operation_b, b.array},
               {Attribute::operation_t, t.array},
               {Attribute::operation_y, y.array}},
              "step of attention");
  }
  Value pointwise(PointwiseMode mode, const Value& x, const Value& b = {}) {
    const Value y = inner(x.form);
    store(mode, y, x, b);
    return y;
  }

  void matmul(const Value& c, const Value& a, const Value& b) {
    const DnnDescriptor& how = parts_.add(Kind::matmul);
    how.set(Attribute::matmul_type, ValueType::data_type, Type::float32);
    how.finish("product of attention");
    operation(Kind::matmul_operation,
              {{Attribute::matmul_how, how.get()},
               {Attribute::matmul_a, a.array},
               {Attribute::matmul_b, b.array},
               {Attribute::matmul_c, c.array}},
              "product of attention");
  }

  /// Along the dims of one element in y.
  void reduce(dnn::ReductionMode mode, const Value& y, const Value& x) {
    const DnnDescriptor& how = parts_.add(Kind::reduction);
    how.set(Attribute::reduction_mode, ValueType::reduction_mode, mode);
    how.set(Attribute::reduction_type, ValueType::data_type, Type::float32);
    how.finish("sum of attention");
    operation(
        Kind::reduction_operation,
        {{Attribute::reduction_how, how.get()}, {Attribute::reduction_x, x.array}, {Attribute::reduction_y, y.array}},
        "sum of attention");
  }

  Value turn(const Value& x, Type type) {
    const Value y = inner(turned(x.form), type);
    operation(Kind::reshape, {{Attribute::reshape_x, x.array}, {Attribute::reshape_y, y.array}}, "turn of attention");
    return y;
  }

  Value logits() {
    const Value product = inner(logits_form());
    matmul(product, q_, k_turned_);
    return pointwise(PointwiseMode::multiply, product, scale_);
  }

  /// Query i sees keys 0 to i.
  Value seen(const Value& x) {
    if (!a_.causal) return x;
    const Value row = inner(x.form, Type::int32), column = inner(x.form, Type::int32);
    store(PointwiseMode::index, row, x, {}, {}, Type::float32, queries_dim);
    store(PointwiseMode::index, column, x, {}, {}, Type::float32, keys_dim);
    const Value sees = inner(x.form, Type::boolean);
    store(PointwiseMode::at_least, sees, row, column, {}, Type::boolean);
    const Value never{parts_.number(next_++, -std::numeric_limits<float>::infinity()), {}}, y = inner(x.form);
    store(PointwiseMode::select, y, x, never, sees);
    return y;
  }

  void forward() {
    const Value v = array(a_.v), x = seen(logits());
    const Value most = inner(column_form()), sum = inner(column_form());
    reduce(dnn::ReductionMode::max, most, x);
    const Value power = pointwise(PointwiseMode::exp, pointwise(PointwiseMode::subtract, x, most));
    reduce(dnn::ReductionMode::add, sum, power);
    if (a_.state.at >= 0) {
      const Value log = pointwise(PointwiseMode::log, sum);
      store(PointwiseMode::add, array(a_.state, a_.state, Type::float32), most, log);
    }
    const Value weights = inner(x.form, type_);
    store(PointwiseMode::divide, weights, power, sum);
    matmul(array(a_.y), weights, v);
  }

  void backward() {
    const Value dy = array(a_.dy), state = array(a_.state, a_.state, Type::float32);
    const Value dots = dots_with_slopes(dy);
    const Value weights = pointwise(PointwiseMode::exp, seen(pointwise(PointwiseMode::subtract, logits(), state)));
    over_heads(a_.dv, turn(weights, type_), dy);
    const Value slope = inner(logits_form());
    matmul(slope, dy, array(a_.v, turned(a_.v)));
    const Value centred = pointwise(PointwiseMode::subtract, slope, dots);
    const Value by_logit =
        pointwise(PointwiseMode::multiply, pointwise(PointwiseMode::multiply, centred, weights), scale_);
    over_heads(a_.dk, turn(by_logit, type_), q_);
    by_queries(by_logit);
  }

  /// Of each query: the sum of dy * y.
  Value dots_with_slopes(const Value& dy) {
    const Value product = inner(packed(a_.dy.sizes)), sum = inner(column_form());
    store(PointwiseMode::multiply, product, dy, array(a_.y));
    reduce(dnn::ReductionMode::add, sum, product);
    const Value one{parts_.number(next_++, 1), {}}, kept{parts_.room(next_++, column_form()), column_form()};
    store(PointwiseMode::multiply, kept, sum, one);
    return kept;
  }

  /// The product of all heads, and where several share their keys, the sum of theirs.
  void over_heads(const Tensor& result, const Value& left, const Value& right) {
    if (result.sizes[1] == a_.q.sizes[1]) return matmul(array(result), left, right);
    const Value all = inner(packed({result.sizes[0], a_.q.sizes[1], result.sizes[2], result.sizes[3]}), type_);
    matmul(all, left, right);
    reduce(dnn::ReductionMode::add, array(result), all);
  }

  /// Blocks of keys add their parts to sums in Float32, in any order; in the same one they go without these.
  void by_queries(const Value& by_logit) {
    const Value k = turn(k_turned_, type_);
    if (a_.deterministic) return matmul(array(a_.dq), by_logit, k);
    const Tensor form = packed(a_.dq.sizes);
    const Value sums{parts_.room(next_++, form), form};
    matmul(sums, by_logit, k);
    store(PointwiseMode::identity, array(a_.dq), sums);
  }

  GraphParts parts_;
  const Attention& a_;
  Type type_;
  int64_t next_ = 1;
  Value q_, k_turned_, scale_;
  std::vector<dnn::Descriptor> operations_;
};

}  // namespace

DnnGraph steps_of(const DnnTarget& target, const Attention& attention) { return Steps(target, attention).take(); }

}  // namespace rosin::cuda
