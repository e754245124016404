// See epilogue.hpp.
#include "engines/epilogue.hpp"

#include <algorithm>
#include <array>
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

  /// Arrays of one number for each row, or for each column: bias, center, factor, shift; null where there is none.
  template <class T> using Own = std::array<const T*, 4>;

  template <class T> void apply_to(const MatmulPart& part, const VendorBuffers& buffers) const {
    const int64_t rows = part.last_row - part.first_row;
    const bool of_columns = shape_.own_of_columns;
    // Columns that lie one behind the other are one run.
    const bool joined = rows == shape_.distance && rows <= stretch / 2 && !of_columns;
    const int64_t together = joined ? stretch / std::max<int64_t>(rows, 1) : 1;
    const Own<T> given = own_of<T>(buffers);
    T repeated[std::tuple_size_v<Own<T>>][stretch];
    Own<T> own{};
    for (size_t k = 0; k < own.size() && !of_columns; ++k) {
      if (given[k] == nullptr) continue;
      own[k] = given[k] + part.first_row;
      for (int64_t i = 0; joined && i < together; ++i) std::copy_n(own[k], rows, repeated[k] + i * rows);
      if (joined) own[k] = repeated[k];
    }
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      for (int64_t column = part.first_column; column < part.last_column; column += together) {
        const int64_t at = item * shape_.item_stride + column * shape_.distance + part.first_row;
        const T* residual = epilogue_.residual ? static_cast<const T*>(buffers.residual) + at : nullptr;
        T* const c = static_cast<T*>(buffers.result) + at;
        if (!of_columns) {
          apply_to_run(c, own, residual, rows * std::min(together, part.last_column - column));
          continue;
        }
        for (size_t k = 0; k < own.size(); ++k) {
          if (given[k] == nullptr) continue;
          std::fill_n(repeated[k], std::min(stretch, rows), given[k][column % shape_.channels]);
          own[k] = repeated[k];
        }
        each_stretch(rows, [&](int64_t first, int64_t count) {
          apply_to_run(c + first, own, residual ? residual + first : nullptr, count);
        });
      }
    }
  }

  template <class T> Own<T> own_of(const VendorBuffers& buffers) const {
    const auto array = [](bool is, const void* at) { return is ? static_cast<const T*>(at) : nullptr; };
    return {array(epilogue_.bias, buffers.third), array(epilogue_.center, buffers.center),
            array(epilogue_.factor, buffers.factor), array(epilogue_.shift, buffers.shift)};
  }
  template <class T> static EpilogueRun<T> run_of(T* c, const Own<T>& own, const T* residual, int64_t count) {
    EpilogueRun<T> run;
    run.c = c;
    run.bias = own[0];
    run.center = own[1];
    run.factor = own[2];
    run.shift = own[3];
    run.residual = residual;
    run.count = count;
    return run;
  }

  template <class Visit> static void each_stretch(int64_t count, Visit visit) {
    for (int64_t first = 0; first < count; first += stretch) visit(first, std::min(stretch, count - first));
  }

  template <class T> void apply_to_run(T* c, const Own<T>& own, const T* residual, int64_t count) const {
    if constexpr (sizeof(T) == 2) {
      each_stretch(count, [&](int64_t first, int64_t some) {
        Own<T> here = own;
        for (const T*& array : here) array = array ? array + first : nullptr;
        apply_to_halves(c + first, here, residual ? residual + first : nullptr, some);
      });
    } else {
      EpilogueRun<T> run = run_of(c, own, residual, count);
      run.relu = rectifies();
      run.most = static_cast<T>(most());
      if (run.relu || residual != nullptr || own != Own<T>{}) tile_kernels().of<T>().epilogue(run);
      activate(c, count);
    }
  }

  /// At most a stretch: they are computed in float, and rounded by each step.
  template <class T> void apply_to_halves(T* c, const Own<T>& own, const T* residual, int64_t count) const {
    const auto epilogue = tile_kernels().floats.epilogue;
    float values[stretch], others[stretch];
    widen(shape_.type, c, values, count);
    const auto step = [&](size_t k, const T* array) {
      if (array == nullptr) return;
      widen(shape_.type, array, others, count);
      Own<float> one{};
      (k < one.size() ? one[k] : one.back()) = others;  // a residual is added as a bias is
      epilogue(run_of(values, one, static_cast<const float*>(nullptr), count));
      narrow(shape_.type, values, c, count);
      widen(shape_.type, c, values, count);
    };
    for (size_t k = 0; k < own.size(); ++k) step(k, own[k]);
    step(own.size(), residual);
    if (epilogue_.activation == Activation::none) return;
    if (rectifies()) {
      EpilogueRun<float> run = run_of(values, Own<float>{}, static_cast<const float*>(nullptr), count);
      run.relu = true;
      run.most = most();
      epilogue(run);
    }
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
