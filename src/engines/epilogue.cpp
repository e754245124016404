// See epilogue.hpp.
#include "engines/epilogue.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <rosin/error.hpp>
#include <rosin/half.hpp>

#include "engines/converted.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {
namespace {

class Finished final : public VendorCall {
 public:
  Finished(std::unique_ptr<VendorCall> call, const Epilogue& epilogue, ActivationLoop activation,
           const ResultShape& shape)
      : call_(std::move(call)), epilogue_(epilogue), activation_(activation), shape_(shape) {
    chunks_ = call_->chunks();
    workspace_bytes_ = call_->workspace_bytes();
    scratch_bytes_ = call_->scratch_bytes_per_chunk();
    has_begin_ = call_->has_begin();
    may_fail_ = call_->may_fail();
    by_parts_ = chunks_ > 0 && call_->part_of(0).has_value();
    has_finish_ = call_->has_finish() || (chunks_ > 0 && !by_parts_);
  }

  const char* engine() const noexcept override { return call_->engine(); }
  Form form(int operand) const override { return call_->form(operand); }
  void make_form(int operand, const void* from, void* to) const override { call_->make_form(operand, from, to); }
  void begin(const VendorBuffers& buffers) const override { call_->begin(buffers); }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return call_->part_of(chunk); }
  bool sure(const VendorBuffers& buffers) const override { return call_->sure(buffers); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    call_->run_chunk(chunk, buffers, scratch);
    if (by_parts_) apply(*call_->part_of(chunk), buffers);
  }

  void finish(const VendorBuffers& buffers) const override {
    if (call_->has_finish()) call_->finish(buffers);
    if (!by_parts_) apply({0, shape_.items, 0, shape_.columns, 0, shape_.rows}, buffers);
  }

 private:
  static constexpr int64_t stretch = 512;  // elements for which a bias of few rows is repeated, and that are widened

  void apply(const MatmulPart& part, const VendorBuffers& buffers) const {
    switch (shape_.type) {
      case DType::Float64: return apply_to<double>(part, buffers);
      case DType::Float16: return apply_to<Half>(part, buffers);
      case DType::BFloat16: return apply_to<BFloat>(part, buffers);
      default: return apply_to<float>(part, buffers);
    }
  }

  template <class T> void apply_to(const MatmulPart& part, const VendorBuffers& buffers) const {
    const int64_t rows = part.last_row - part.first_row;
    // Columns that lie one behind the other are one run.
    const bool joined = rows == shape_.distance && rows <= stretch / 2 && !shape_.bias_of_columns;
    const int64_t together = joined ? stretch / std::max<int64_t>(rows, 1) : 1;
    T repeated[stretch];
    const bool of_rows = epilogue_.bias && !shape_.bias_of_columns;
    const T* bias = of_rows ? static_cast<const T*>(buffers.third) + part.first_row : nullptr;
    if (bias != nullptr && joined) {
      for (int64_t i = 0; i < together; ++i) std::copy_n(bias, rows, repeated + i * rows);
      bias = repeated;
    }
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      for (int64_t column = part.first_column; column < part.last_column; column += together) {
        const int64_t at = item * shape_.item_stride + column * shape_.distance + part.first_row;
        const T* residual = epilogue_.residual ? static_cast<const T*>(buffers.residual) + at : nullptr;
        T* const c = static_cast<T*>(buffers.result) + at;
        if (epilogue_.bias && !of_rows) {
          std::fill_n(repeated, std::min(stretch, rows), static_cast<const T*>(buffers.third)[column]);
          each_stretch(rows, [&](int64_t first, int64_t count) {
            apply_to_run(c + first, repeated, residual ? residual + first : nullptr, count);
          });
        } else {
          apply_to_run(c, bias, residual, rows * std::min(together, part.last_column - column));
        }
      }
    }
  }

  template <class Visit> static void each_stretch(int64_t count, Visit visit) {
    for (int64_t first = 0; first < count; first += stretch) visit(first, std::min(stretch, count - first));
  }

  template <class T> void apply_to_run(T* c, const T* bias, const T* residual, int64_t count) const {
    if constexpr (sizeof(T) == 2) {
      each_stretch(count, [&](int64_t first, int64_t some) {
        apply_to_halves(c + first, bias ? bias + first : nullptr, residual ? residual + first : nullptr, some);
      });
    } else {
      if (bias != nullptr || residual != nullptr || rectifies())
        tile_kernels().of<T>().epilogue({c, bias, residual, count, rectifies(), static_cast<T>(most())});
      activate(c, count);
    }
  }

  /// At most a stretch: they are computed in float, and rounded by each step.
  template <class T> void apply_to_halves(T* c, const T* bias, const T* residual, int64_t count) const {
    const auto epilogue = tile_kernels().floats.epilogue;
    float values[stretch], others[stretch];
    widen(shape_.type, c, values, count);
    for (const T* added : {bias, residual}) {
      if (added == nullptr) continue;
      widen(shape_.type, added, others, count);
      epilogue({values, others, nullptr, count});
      narrow(shape_.type, values, c, count);
      widen(shape_.type, c, values, count);
    }
    if (epilogue_.activation == Activation::none) return;
    if (rectifies()) epilogue({values, nullptr, nullptr, count, true, most()});
    activate(values, count);
    narrow(shape_.type, values, c, count);
  }

  bool rectifies() const {
    return epilogue_.activation == Activation::relu || epilogue_.activation == Activation::relu6;
  }
  float most() const { return epilogue_.activation == Activation::relu6 ? 6 : std::numeric_limits<float>::infinity(); }

  /// By activations that do more than to rectify.
  template <class T> void activate(T* c, int64_t count) const {
    const void* in[] = {c};
    if (epilogue_.activation != Activation::none && !rectifies()) activation_(c, in, count);
  }

  std::unique_ptr<VendorCall> call_;
  Epilogue epilogue_;
  ActivationLoop activation_;
  ResultShape shape_;
  bool by_parts_ = false;
};

}  // namespace

std::unique_ptr<VendorCall> finished(std::unique_ptr<VendorCall> call, const Epilogue& epilogue,
                                     ActivationLoop activation, const ResultShape& shape) {
  if (!is_float(shape.type)) {
    throw Error(ErrorKind::dtype,
                std::string("call: epilogues are of floats; got ") + to_string(shape.type) + "; compute them apart");
  }
  return std::make_unique<Finished>(std::move(call), epilogue, activation, shape);
}

}  // namespace rosin::engines
