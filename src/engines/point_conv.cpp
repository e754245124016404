// Convolutions whose windows are single points. Of images in CWHN: one product. Of those in logical order: a product
// for each image, whose operand of pixels and channels is the image as it stands. The gradient by weights is the sum of
// the images' products: groups of images, cut by sizes alone, are summed apart and then together. Read after
// vendor.hpp.
#include <algorithm>

#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

int64_t pixels_of(const ConvSpec& spec) { return extent_of(spec.in, spec.spatial, 1).count(); }

/// Of images: pixels by channels, times weights (in, out) or their transpose.
MatmulSpec product_of(const ConvSpec& spec) {
  const bool forward = spec.kind == ConvKind::forward;
  MatmulSpec product;
  product.type = spec.type;
  product.m = product.lda = product.ldc = pixels_of(spec);
  product.n = forward ? spec.out_channels : spec.in_channels;
  product.k = forward ? spec.in_channels : spec.out_channels;
  product.b_transposed = !forward;
  product.ldb = spec.in_channels;
  product.batch = spec.batch;
  product.a_batch_stride = product.m * product.k;
  product.c_batch_stride = product.m * product.n;
  return product;
}

/// Of one image: its channels by pixels, times the result's pixels by channels.
MatmulSpec weights_of(const ConvSpec& spec, bool accumulate) {
  MatmulSpec product;
  product.type = spec.type;
  product.m = product.ldc = spec.in_channels;
  product.n = spec.out_channels;
  product.k = product.lda = product.ldb = pixels_of(spec);
  product.a_transposed = true;
  product.accumulate = accumulate;
  return product;
}

/// Gradients by weights: a chunk is a group of images.
template <class T> class PointWeights final : public VendorCall {
 public:
  explicit PointWeights(const ConvSpec& spec)
      : batch_(spec.batch), x_(pixels_of(spec) * spec.in_channels), dy_(pixels_of(spec) * spec.out_channels),
        count_(spec.in_channels * spec.out_channels), first_(prepare_matmul(weights_of(spec, false))),
        next_(prepare_matmul(weights_of(spec, true))) {
    const int64_t pixels = pixels_of(spec), enough = (least_pixels + pixels - 1) / pixels;
    step_ = std::max(enough, images_per_chunk(batch_, x_ * spec.out_channels, sizeof(T) == sizeof(float) ? 60 : 30));
    chunks_ = (batch_ + step_ - 1) / step_;
    has_finish_ = chunks_ > 1;
    may_fail_ = first_->may_fail() || next_->may_fail();
    workspace_at_ = round_up(static_cast<int64_t>(std::max(scratch_of(*first_), scratch_of(*next_))), 64);
    scratch_bytes_ = static_cast<size_t>(workspace_at_) + std::max(first_->workspace_bytes(), next_->workspace_bytes());
    workspace_bytes_ = has_finish_ ? static_cast<size_t>(chunks_ * count_) * sizeof(T) : 0;
  }

  const char* engine() const noexcept override { return first_->engine(); }
  size_t bytes() const noexcept override { return 512 + first_->bytes() + next_->bytes(); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t begin = chunk * step_, end = std::min(batch_, begin + step_);
    for (int64_t image = begin; image < end; ++image) {
      const VendorCall& product = image == begin ? *first_ : *next_;
      VendorBuffers one;
      one.first = static_cast<const T*>(buffers.first) + image * x_;
      one.second = static_cast<const T*>(buffers.second) + image * dy_;
      one.result = has_finish_ ? static_cast<T*>(buffers.workspace) + chunk * count_ : buffers.result;
      one.workspace = static_cast<char*>(scratch) + workspace_at_;
      if (product.has_begin()) product.begin(one);
      for (int64_t part = 0; part < product.chunks(); ++part) product.run_chunk(part, one, scratch);
      if (product.has_finish()) product.finish(one);
    }
  }

  void finish(const VendorBuffers& buffers) const override {
    const T* const sums = static_cast<const T*>(buffers.workspace);
    T* const result = static_cast<T*>(buffers.result);
    std::copy_n(sums, count_, result);
    for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
      for (int64_t i = 0; i < count_; ++i) result[i] += sums[chunk * count_ + i];
    }
  }

 private:
  static constexpr int64_t least_pixels = 1024;  // of a group: adding up its sums takes little beside

  static size_t scratch_of(const VendorCall& call) { return call.scratch_bytes_per_chunk(); }

  int64_t batch_, x_, dy_, count_;  // elements of an image, of one of the result, of the weights
  std::unique_ptr<VendorCall> first_, next_;
  int64_t step_ = 1, workspace_at_ = 0;  // of a product, in the scratch
};

/// Of all images in CWHN: channels by pixels.
MatmulSpec whole_product_of(const ConvSpec& spec) {
  const int64_t in = spec.in_channels, out = spec.out_channels, pixels = pixels_of(spec) * spec.batch;
  MatmulSpec product;
  product.type = spec.type;
  product.epilogue = spec.epilogue;
  product.activation = spec.activation;
  product.a_transposed = spec.kind == ConvKind::forward;
  product.b_transposed = spec.kind == ConvKind::backward_weights;
  product.m = product.ldc = product.a_transposed ? out : in;
  product.n = product.b_transposed ? out : pixels;
  product.k = product.b_transposed ? pixels : product.a_transposed ? in : out;
  product.lda = in;
  product.ldb = product.a_transposed ? in : out;
  return product;
}

/// A product whose operands come in the other order.
class Exchanged final : public VendorCall {
 public:
  explicit Exchanged(std::unique_ptr<VendorCall> product) : product_(std::move(product)) {
    chunks_ = product_->chunks();
    workspace_bytes_ = product_->workspace_bytes();
    scratch_bytes_ = product_->scratch_bytes_per_chunk();
    has_begin_ = product_->has_begin();
    has_finish_ = product_->has_finish();
    may_fail_ = product_->may_fail();
  }

  const char* engine() const noexcept override { return product_->engine(); }
  size_t bytes() const noexcept override { return product_->bytes(); }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return product_->part_of(chunk); }
  bool sure(const VendorBuffers& buffers) const override { return product_->sure(exchanged(buffers)); }
  Form form(int operand) const override { return product_->form(1 - operand); }
  void make_form(int operand, const void* from, void* to) const override { product_->make_form(1 - operand, from, to); }
  void begin(const VendorBuffers& buffers) const override { product_->begin(exchanged(buffers)); }
  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    product_->run_chunk(chunk, exchanged(buffers), scratch);
  }
  void finish(const VendorBuffers& buffers) const override { product_->finish(exchanged(buffers)); }

 private:
  static VendorBuffers exchanged(VendorBuffers buffers) {
    std::swap(buffers.first, buffers.second);
    std::swap(buffers.forms[0], buffers.forms[1]);
    return buffers;
  }

  std::unique_ptr<VendorCall> product_;
};

bool is_of_points(const ConvSpec& spec) {
  if (spec.groups != 1) return false;
  for (int d = 0; d < spec.spatial; ++d) {
    if (spec.kernel[d] != 1 || spec.stride[d] != 1 || spec.pad_low[d] + spec.pad_high[d] != 0) return false;
  }
  return spec.batch * spec.in_channels * spec.out_channels * pixels_of(spec) > 0;
}

/// Measured on Zen 5: 0.2 to 1.08 of the time of oneDNN's gradient by weights, the less the more channels; of few
/// channels it is slower.
bool product_of_weights_pays(const ConvSpec& spec) {
  constexpr int64_t least_channels = 32, least_weights = 6000;
  return spec.kind == ConvKind::backward_weights && spec.type == DType::Float32 && spec.in_channels >= least_channels &&
         spec.in_channels * spec.out_channels >= least_weights;
}

/// Sums over many pixels: measured as above, panels then take 0.7 to 1.0 of the time of tiles and of oneDNN's product.
Engine engine_of_product(const ConvSpec& spec) {
  const bool by_panels = spec.kind == ConvKind::backward_weights && spec.type == DType::Float32 &&
                         spec.in_channels >= 64 && tile_kernels().packed.vectors > 0;
  return by_panels ? Engine::packed : Engine::best;
}

}  // namespace

bool points_can(const ConvSpec& spec) {
  return is_of_points(spec) && (spec.type == DType::Float32 || spec.type == DType::Float64);
}

bool whole_product_pays(const ConvSpec& spec) {
  return is_of_points(spec) && (amx_can(whole_product_of(spec)) || product_of_weights_pays(spec));
}

std::unique_ptr<VendorCall> prepare_whole_product(const ConvSpec& spec) {
  std::unique_ptr<VendorCall> product = prepare_matmul(whole_product_of(spec), engine_of_product(spec));
  if (spec.kind == ConvKind::backward_weights) return product;
  return std::make_unique<Exchanged>(std::move(product));
}

std::unique_ptr<VendorCall> prepare_point_conv(const ConvSpec& spec) {
  if (spec.kind != ConvKind::backward_weights) {
    const MatmulSpec product = product_of(spec);
    std::unique_ptr<VendorCall> call = prepare_matmul(product);
    if (spec.epilogue.none()) return call;
    ResultShape shape = result_shape(product);
    shape.own_of_columns = true;
    shape.channels = shape.columns;
    return finished(std::move(call), spec.epilogue, spec.activation, shape);
  }
  require_tile_type(spec.type, "conv");
  if (spec.type == DType::Float32) return std::make_unique<PointWeights<float>>(spec);
  return std::make_unique<PointWeights<double>>(spec);
}

}  // namespace rosin::engines
