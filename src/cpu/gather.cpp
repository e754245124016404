// Gather, take_along and one-hot: every chunk writes its own rows of the result.
#include "cpu/dispatch.hpp"
#include "graph/gather_form.hpp"

namespace rosin::cpu {
namespace {

template <class T> void take_elements(T* out, const T* x, const int64_t* places, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[places[i]];
}

// x (inner, n, outer), indices (m) -> (inner, m, outer).
template <class T> class GatherCall final : public Call {
 public:
  GatherCall(const CallSpec& spec, int dim)
      : op_(spec.op->name), index_type_(spec.operands[1].type), x_(lines_of(spec.operands[0].shape, dim)),
        indices_(spec.operands[1].shape.count()), rows_(Pieces::of(indices_ * x_.outer, x_.inner)) {}

  int64_t chunks() const override { return rows_.count(); }
  size_t scratch_bytes() const override { return x_.outer > 1 ? static_cast<size_t>(indices_) * sizeof(int64_t) : 0; }

  /// Indices that are used again and again are looked at once.
  void begin(const CallData& data) override {
    if (x_.outer <= 1) return;
    Integers(data.operands[1], index_type_).places(op_, 0, indices_, x_.size, static_cast<int64_t*>(data.scratch));
  }

  void run(int64_t chunk, const CallData& data) override {
    const T* x = static_cast<const T*>(data.operands[0]);
    T* out = static_cast<T*>(data.result);
    for (int64_t row = rows_.first(chunk); row < rows_.last(chunk);) {
      const int64_t outer = row / indices_, first = row - outer * indices_;
      const int64_t last = std::min(indices_, rows_.last(chunk) - outer * indices_);
      const T* const from = x + outer * x_.size * x_.inner;
      T* const to = out + outer * indices_ * x_.inner;
      const auto take = [&](const int64_t* places, int64_t begin, int64_t count) {
        if (x_.inner == 1) take_elements(to + begin, from, places, count);
        else take_rows(to + begin * x_.inner, from, places, count);
      };
      if (x_.outer > 1) take(static_cast<const int64_t*>(data.scratch) + first, first, last - first);
      else each_few_places(Integers(data.operands[1], index_type_), op_, first, last, x_.size, take);
      row += last - first;
    }
  }

 private:
  // Rows stand anywhere: those that are wanted soon are asked for.
  void take_rows(T* out, const T* x, const int64_t* places, int64_t count) const {
    constexpr int64_t ahead = 8, most_lines = 8, line = 64 / static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < count; ++i, out += x_.inner) {
      const T* const soon = x + places[std::min(i + ahead, count - 1)] * x_.inner;
      for (int64_t at = 0; at < std::min(x_.inner, most_lines * line); at += line) __builtin_prefetch(soon + at);
      std::memcpy(out, x + places[i] * x_.inner, static_cast<size_t>(x_.inner) * sizeof(T));
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
        taken_(spec.operands[1].shape[dim]), lines_(Pieces::of(taken_ * x_.outer, x_.inner)) {}

  int64_t chunks() const override { return lines_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const Integers indices(data.operands[1], index_type_);
    const T* const x = static_cast<const T*>(data.operands[0]);
    T* const out = static_cast<T*>(data.result);
    const int64_t inner = x_.inner, first = lines_.first(chunk) * inner, last = lines_.last(chunk) * inner;
    each_few_places(indices, op_, first, last, x_.size, [&](const int64_t* places, int64_t begin, int64_t count) {
      // Stretches of one line, or of a row of lines beside each other.
      const int64_t length = inner == 1 ? taken_ : inner;
      int64_t stretch = begin / length, at = begin % length;
      for (int64_t done = 0; done < count; ++stretch, at = 0) {
        const int64_t some = std::min(count - done, length - at);
        const int64_t outer = inner == 1 ? stretch : stretch / taken_;
        const T* const from = x + outer * x_.size * inner;
        if (inner == 1) take_elements(out + begin + done, from, places + done, some);
        else take_beside(out + begin + done, from + at, places + done, some);
        done += some;
      }
    });
  }

 private:
  void take_beside(T* out, const T* x, const int64_t* places, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) out[i] = x[places[i] * x_.inner + i];
  }

  std::string_view op_;
  DType index_type_;
  Lines x_;
  int64_t taken_;
  Pieces lines_;
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
  if (attributes.along == weighed_sums) return prepare_weighed_sums(spec);
  const int dim = static_cast<int>(attributes.dim);
  return with_bytes_of(spec.result.type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
    if (attributes.along == 1) return std::make_unique<TakeCall<T>>(spec, dim);
    return std::make_unique<GatherCall<T>>(spec, dim);
  });
}

}  // namespace rosin::cpu
