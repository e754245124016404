// Gather, take_along and one-hot: every chunk writes its own rows of the result.
#include "cpu/dispatch.hpp"
#include "graph/gather_form.hpp"

namespace rosin::cpu {
namespace {

// x (inner, n, outer), indices (m) -> (inner, m, outer).
template <class T> class GatherCall final : public Call {
 public:
  GatherCall(const CallSpec& spec, int dim)
      : op_(spec.op->name), index_type_(spec.operands[1].type), x_(lines_of(spec.operands[0].shape, dim)),
        indices_(spec.operands[1].shape.count()), rows_(Pieces::of(indices_ * x_.outer, x_.inner)) {}

  int64_t chunks() const override { return rows_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const T* x = static_cast<const T*>(data.operands[0]);
    const Integers indices(data.operands[1], index_type_);
    T* out = static_cast<T*>(data.result);
    for (int64_t row = rows_.first(chunk); row < rows_.last(chunk);) {
      const int64_t outer = row / indices_, first = row - outer * indices_;
      const int64_t last = std::min(indices_, rows_.last(chunk) - outer * indices_);
      const T* from = x + outer * x_.size * x_.inner;
      if (x_.inner == 1) take_elements(out + row, from, indices, first, last);
      else take_rows(out + row * x_.inner, from, indices, first, last);
      row += last - first;
    }
  }

 private:
  void take_elements(T* out, const T* x, const Integers& indices, int64_t first, int64_t last) const {
    for (int64_t i = first; i < last; ++i) *out++ = x[indices.place(op_, i, x_.size)];
  }

  // Rows stand anywhere: those that are wanted soon are asked for.
  void take_rows(T* out, const T* x, const Integers& indices, int64_t first, int64_t last) const {
    constexpr int64_t ahead = 8, most_lines = 8, line = 64 / static_cast<int64_t>(sizeof(T));
    for (int64_t i = first; i < last; ++i, out += x_.inner) {
      const int64_t soon = i + ahead < last ? indices[i + ahead] : 0;
      if (soon > 0 && soon < x_.size) {
        for (int64_t at = 0; at < std::min(x_.inner, most_lines * line); at += line) {
          __builtin_prefetch(x + soon * x_.inner + at);
        }
      }
      std::memcpy(out, x + indices.place(op_, i, x_.size) * x_.inner, static_cast<size_t>(x_.inner) * sizeof(T));
    }
  }

  std::string_view op_;
  DType index_type_;
  Lines x_;
  int64_t indices_;
  Pieces rows_;
};

// x (inner, n, outer), indices (inner, m, outer) -> (inner, m, outer).
template <class T> class TakeCall final : public Call {
 public:
  TakeCall(const CallSpec& spec, int dim)
      : op_(spec.op->name), index_type_(spec.operands[1].type), x_(lines_of(spec.operands[0].shape, dim)),
        taken_(spec.operands[1].shape[dim]), rows_(Pieces::of(taken_ * x_.outer, x_.inner)) {}

  int64_t chunks() const override { return rows_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const Integers indices(data.operands[1], index_type_);
    T* out = static_cast<T*>(data.result);
    for (int64_t row = rows_.first(chunk); row < rows_.last(chunk); ++row) {
      const T* x = static_cast<const T*>(data.operands[0]) + row / taken_ * x_.size * x_.inner;
      for (int64_t i = 0; i < x_.inner; ++i) {
        const int64_t element = row * x_.inner + i;
        out[element] = x[indices.place(op_, element, x_.size) * x_.inner + i];
      }
    }
  }

 private:
  std::string_view op_;
  DType index_type_;
  Lines x_;
  int64_t taken_;
  Pieces rows_;
};

// labels (m) -> Bool (classes, m).
class OnehotCall final : public Call {
 public:
  explicit OnehotCall(const CallSpec& spec)
      : op_(spec.op->name), label_type_(spec.operands[0].type), classes_(spec.result.shape[0]),
        labels_(Pieces::of(spec.operands[0].shape.count(), classes_)) {}

  int64_t chunks() const override { return labels_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const Integers labels(data.operands[0], label_type_);
    uint8_t* out = static_cast<uint8_t*>(data.result);
    for (int64_t i = labels_.first(chunk); i < labels_.last(chunk); ++i) {
      const int64_t label = labels[i];
      if (label < 0 || label >= classes_) refuse(label);
      std::memset(out + i * classes_, 0, static_cast<size_t>(classes_));
      out[i * classes_ + label] = 1;
    }
  }

 private:
  [[noreturn]] void refuse(int64_t label) const {
    throw Error(ErrorKind::argument, std::string(op_) + ": a label must be in [0, " + std::to_string(classes_) +
                                         "); got " + std::to_string(label) + "; labels count from 0");
  }

  std::string_view op_;
  DType label_type_;
  int64_t classes_;
  Pieces labels_;
};

// labels (m) -> Bool (m), true where none is wrong.
class LabelsCall final : public Call {
 public:
  explicit LabelsCall(const CallSpec& spec)
      : op_(*spec.op), attributes_(spec.attributes), type_(spec.operands[0].type),
        labels_(Pieces::of(spec.operands[0].shape.count(), 1)) {}

  int64_t chunks() const override { return labels_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const Integers labels(data.operands[0], type_);
    const int64_t classes = attributes_.as<LabelAttributes>().classes, first = labels_.first(chunk);
    for (int64_t i = first; i < labels_.last(chunk); ++i) {
      if (labels[i] < 0 || labels[i] >= classes) op_.refuse_index(attributes_, labels[i]);
    }
    std::memset(static_cast<uint8_t*>(data.result) + first, 1, static_cast<size_t>(labels_.last(chunk) - first));
  }

 private:
  const Op& op_;
  Attributes attributes_;
  DType type_;
  Pieces labels_;
};

}  // namespace

std::unique_ptr<Call> prepare_gather(const CallSpec& spec) {
  if (spec.operands.size() == 1) {
    if (spec.attributes.as<LabelAttributes>().classes > 0) return std::make_unique<LabelsCall>(spec);
    return std::make_unique<OnehotCall>(spec);
  }
  const auto attributes = spec.attributes.as<GatherAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  return with_bytes_of(spec.result.type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
    if (attributes.along == 1) return std::make_unique<TakeCall<T>>(spec, dim);
    return std::make_unique<GatherCall<T>>(spec, dim);
  });
}

}  // namespace rosin::cpu
