// Scatter and scatter_add along one dim, and the adjoint of take_along. A chunk owns a block of the elements before the
// dim and takes all indices in their order: no two chunks write one element, and sums have one order.
#include <vector>

#include "cpu/dispatch.hpp"
#include "graph/reducer.hpp"

namespace rosin::cpu {
namespace {

// The float copies in which halves are added up: one for each element of the result.
template <class T> size_t sum_bytes(const Shape& result) {
  return is_half<T> ? static_cast<size_t>(result.count()) * sizeof(float) : 0;
}

// The memory that T is added up in: the result itself, or scratch for halves.
template <class T> Computed<T>* sums(const CallData& data) {
  if constexpr (is_half<T>) {
    return static_cast<float*>(data.scratch);
  } else {
    return static_cast<T*>(data.result);
  }
}

// Halves that were added up in float are rounded once. `at` is the first element of a row of `count`.
template <class T> void round_row(const CallData& data, int64_t at, int64_t count) {
  if constexpr (is_half<T>) {
    const float* from = static_cast<const float*>(data.scratch) + at;
    T* out = static_cast<T*>(data.result) + at;
    for (int64_t i = 0; i < count; ++i) out[i] = T(from[i]);
  }
}

// target (inner, n, outer), indices (m), updates (inner, m, outer). T only moves when `add` is false.
template <class T, bool add> class ScatterCall final : public Call {
 public:
  ScatterCall(const CallSpec& spec, int dim)
      : op_(spec.op->name), index_type_(spec.operands[1].type), target_(lines_of(spec.operands[0].shape, dim)),
        indices_(spec.operands[1].shape.count()), blocks_(target_, target_.size + indices_),
        scratch_(add ? sum_bytes<T>(spec.result.shape) : 0) {}

  int64_t chunks() const override { return blocks_.count(); }
  size_t scratch_bytes() const override { return scratch_; }

  void run(int64_t chunk, const CallData& data) override {
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) { block(data, outer, first, count); });
  }

 private:
  void block(const CallData& data, int64_t outer, int64_t first, int64_t count) const {
    const T* target = static_cast<const T*>(data.operands[0]);
    const T* updates = static_cast<const T*>(data.operands[2]) + outer * indices_ * target_.inner + first;
    const Integers indices(data.operands[1], index_type_);
    const int64_t start = outer * target_.size * target_.inner + first;
    if constexpr (add) {
      Computed<T>* out = sums<T>(data);
      for (int64_t j = 0; j < target_.size; ++j) {
        const int64_t at = start + j * target_.inner;
        for (int64_t i = 0; i < count; ++i) out[at + i] = static_cast<Computed<T>>(target[at + i]);
      }
      for (int64_t k = 0; k < indices_; ++k) {
        Computed<T>* row = out + start + indices.place(op_, k, target_.size) * target_.inner;
        const T* update = updates + k * target_.inner;
        for (int64_t i = 0; i < count; ++i) row[i] = plus(row[i], static_cast<Computed<T>>(update[i]));
      }
      for (int64_t j = 0; j < target_.size; ++j) round_row<T>(data, start + j * target_.inner, count);
    } else {
      T* out = static_cast<T*>(data.result) + start;
      const size_t bytes = static_cast<size_t>(count) * sizeof(T);
      for (int64_t j = 0; j < target_.size; ++j) {
        std::memcpy(out + j * target_.inner, target + start + j * target_.inner, bytes);
      }
      for (int64_t k = 0; k < indices_; ++k) {
        const int64_t at = indices.place(op_, k, target_.size);
        std::memcpy(out + at * target_.inner, updates + k * target_.inner, bytes);
      }
    }
  }

  std::string_view op_;
  DType index_type_;
  Lines target_;
  int64_t indices_;
  LineBlocks blocks_;
  size_t scratch_;
};

// The same with rows combined by a reducer, for types that it has loops for.
class CombineCall final : public Call {
 public:
  CombineCall(const CallSpec& spec, int dim)
      : op_(*spec.op), index_type_(spec.operands[1].type), target_(lines_of(spec.operands[0].shape, dim)),
        indices_(spec.operands[1].shape.count()), blocks_(target_, target_.size + indices_),
        element_(static_cast<int64_t>(size_of(spec.result.type))),
        combine_(op_.reducer->body.of(scalar_type(spec.result.type)).combine) {
    if (!combine_) refuse_type(op_.name, spec.result.type);
  }

  int64_t chunks() const override { return blocks_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const auto* target = static_cast<const char*>(data.operands[0]);
    const auto* updates = static_cast<const char*>(data.operands[2]);
    auto* out = static_cast<char*>(data.result);
    const Integers indices(data.operands[1], index_type_);
    const int64_t row = target_.inner * element_;
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const int64_t start = outer * target_.size * row + first * element_;
      for (int64_t j = 0; j < target_.size; ++j) {
        std::memcpy(out + start + j * row, target + start + j * row, static_cast<size_t>(count * element_));
      }
      for (int64_t k = 0; k < indices_; ++k) {
        const int64_t at = indices.place(op_.name, k, target_.size);
        combine_(out + start + at * row, updates + (outer * indices_ + k) * row + first * element_, count);
      }
    });
  }

 private:
  const Op& op_;
  DType index_type_;
  Lines target_;
  int64_t indices_;
  LineBlocks blocks_;
  int64_t element_;
  CombineLoop combine_;
};

// indices and updates (inner, m, outer) -> zeros (inner, n, outer) with the updates added.
template <class T> class AddAlongCall final : public Call {
 public:
  AddAlongCall(const CallSpec& spec, int dim)
      : op_(spec.op->name), index_type_(spec.operands[0].type), out_(lines_of(spec.result.shape, dim)),
        indices_(spec.operands[0].shape[dim]), blocks_(out_, out_.size + indices_),
        scratch_(sum_bytes<T>(spec.result.shape)) {}

  int64_t chunks() const override { return blocks_.count(); }
  size_t scratch_bytes() const override { return scratch_; }

  void run(int64_t chunk, const CallData& data) override {
    const Integers indices(data.operands[0], index_type_);
    const T* updates = static_cast<const T*>(data.operands[1]);
    Computed<T>* out = sums<T>(data);
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const int64_t start = outer * out_.size * out_.inner + first;
      for (int64_t j = 0; j < out_.size; ++j) std::fill_n(out + start + j * out_.inner, count, Computed<T>{});
      for (int64_t k = 0; k < indices_; ++k) {
        const int64_t from = (outer * indices_ + k) * out_.inner + first;
        for (int64_t i = 0; i < count; ++i) {
          Computed<T>& sum = out[start + indices.place(op_, from + i, out_.size) * out_.inner + i];
          sum = plus(sum, static_cast<Computed<T>>(updates[from + i]));
        }
      }
      for (int64_t j = 0; j < out_.size; ++j) round_row<T>(data, start + j * out_.inner, count);
    });
  }

 private:
  std::string_view op_;
  DType index_type_;
  Lines out_;
  int64_t indices_;
  LineBlocks blocks_;
  size_t scratch_;
};

}  // namespace

std::unique_ptr<Call> prepare_scatter(const CallSpec& spec) {
  const int dim = static_cast<int>(spec.attributes.as<DimAttributes>().dim);
  const DType type = spec.result.type;
  switch (spec.op->scatter) {
    case Scatter::write:
      return with_bytes_of(type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
        return std::make_unique<ScatterCall<T, false>>(spec, dim);
      });
    case Scatter::add:
      return with_number(spec.op->name, type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
        return std::make_unique<ScatterCall<T, true>>(spec, dim);
      });
    case Scatter::combine: return std::make_unique<CombineCall>(spec, dim);
    case Scatter::add_along:
      return with_number(spec.op->name, type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
        return std::make_unique<AddAlongCall<T>>(spec, dim);
      });
    case Scatter::none: break;
  }
  throw_unknown(*spec.op, "the CPU");
}

}  // namespace rosin::cpu
