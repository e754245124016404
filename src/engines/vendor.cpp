// Who answers a vendor call: checks of the spec, then the rule that picks an engine by shape. Read after vendor.hpp;
// next onednn_matmul.cpp, tile_matmul.cpp, plain_matmul.cpp.
#include "engines/vendor.hpp"

#include <algorithm>
#include <string>

#include <rosin/error.hpp>

#include "base/instruction_set.hpp"
#include "engines/checked.hpp"
#include "engines/conv_shape.hpp"
#include "engines/converted.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/onednn.hpp"
#include "engines/plain.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"
#include "engines/winograd.hpp"

namespace rosin::engines {

namespace {

std::string numbers(const int64_t* values, int count) {
  std::string text = "(";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + ")";
}

void require(bool holds, const char* op, const char* rule, const std::string& came) {
  if (holds) return;
  throw Error(ErrorKind::argument, std::string(op) + ": " + rule + "; got " + came + "; correct the call's spec");
}

void check_matmul(const MatmulSpec& spec) {
  const int64_t sizes[] = {spec.m, spec.n, spec.k, spec.batch};
  require(std::min({spec.m, spec.n, spec.k, spec.batch}) >= 0, "matmul", "sizes (m, n, k, batch) are not negative",
          numbers(sizes, 4));
  const int64_t strides[] = {spec.lda, spec.ldb, spec.ldc};
  require(spec.lda >= (spec.a_transposed ? spec.k : spec.m) && spec.ldb >= (spec.b_transposed ? spec.n : spec.k) &&
              spec.ldc >= spec.m,
          "matmul", "columns do not overlap", "distances (lda, ldb, ldc) " + numbers(strides, 3));
}

/// A batch whose items all read one A and lie behind one another is one wide product.
MatmulSpec folded(const MatmulSpec& given) {
  MatmulSpec spec = given;
  const bool adjacent =
      !spec.b_transposed && spec.b_batch_stride == spec.ldb * spec.n && spec.c_batch_stride == spec.ldc * spec.n;
  if (spec.batch > 1 && spec.a_batch_stride == 0 && adjacent) {
    spec.n *= spec.batch;
    spec.batch = 1;
  }
  return spec;
}

/// Of products with a transposed B, such as gradients by weights. oneDNN copies all of A for few columns at a time;
/// measured on Zen 3: the tile kernel takes about four fifths of its time at 128 columns, and four thirds at 64.
bool tile_is_faster_on_avx2(const MatmulSpec& spec) {
  return !spec.a_transposed && spec.n >= 96 && (spec.n <= 256 || spec.k <= 512) && spec.m <= 1024;
}

/// The same with AVX-512, where chunks are rows of A, which oneDNN copies line by line. Measured on Zen 4: the tile
/// kernel takes 0.65 to 0.98 of its time at 100 to 256 columns, 1.3 at 32, 1.05 where the sum is longer or A taller.
bool tile_is_faster_on_avx512(const MatmulSpec& spec) {
  return !spec.a_transposed && spec.n >= 96 && spec.n <= 256 && spec.m >= 2 * spec.n && spec.m <= 1024 &&
         spec.k <= 4096;
}

/// With AVX-512 oneDNN copies A, for however few columns. The tile kernel takes 0.4 to 0.9 of its time on Granite
/// Rapids, whose second cache holds twice as much as that of others, and 0.28 to 0.75 on Zen 5 (4 to 31 columns, A of
/// 0.5 to 2 M elements).
bool has_few_columns_on_avx512(const MatmulSpec& spec) {
  const int64_t most = multiplies_widest_in_pairs() ? 1 << 21 : 1 << 18;  // elements of A
  return !spec.a_transposed && !spec.b_transposed && spec.n < 32 && spec.m * spec.k <= most;
}

/// Whether a kernel for few rows or columns is best.
bool is_of_few(const MatmulSpec& spec) {
  return dots_pay(spec) || sweep_pays(spec) || (tile_kernels().vector_bytes == 64 && has_few_columns_on_avx512(spec));
}

/// Measured on AVX-512 (Sapphire Rapids): up to 30 M multiply-adds the tile kernel is as fast as oneDNN, which needs
/// 30 ms at its first product to build its kernels. It is slower where it would copy a transposed A for few columns,
/// where a wide A is read for few columns, and where a short k leaves little work between reading and writing C.
bool tile_is_faster(const MatmulSpec& spec) {
  if (is_of_few(spec)) return true;
  const int64_t work = spec.m * spec.n * spec.k;
  const bool middle = work <= 30'000'000;
  if (spec.a_transposed) return work <= 8192 || (middle && spec.n >= 32 && (spec.k >= 48 || work <= 2'000'000));
  if (spec.b_transposed && tile_kernels().vector_bytes == 32 && tile_is_faster_on_avx2(spec)) return true;
  if (spec.b_transposed && tile_kernels().vector_bytes == 64 && tile_is_faster_on_avx512(spec)) return true;
  if (spec.b_transposed) return work <= 4'000'000 || spec.m * spec.n <= 4096 || (middle && spec.k >= 48);
  return work <= 1'000'000 || spec.n <= 3 || (middle && spec.m >= 32 && spec.m <= 768 && spec.n >= 48);
}

/// Large caches hold what the tile kernel reads again for each few of so many columns, without a copy of A. Measured on
/// Granite Rapids, of 140 sizes in three orders and in training steps: panels take 1.1 to 1.6 times as long; of more
/// columns, and of an A that is transposed, they are faster, as they are than oneDNN.
bool fits_large_caches(const MatmulSpec& spec) {
  return has_large_caches() && spec.type == DType::Float32 && !spec.a_transposed && spec.n <= 128 && spec.m >= 64 &&
         spec.k >= short_sum && spec.m * spec.k <= 600'000;
}

/// Elements of B, which are copied before the first chunk.
constexpr int64_t most_copied_halves = 1 << 25;

/// Whether kernels for few lines may answer a product of halves. Matrix registers are faster from 4 lines on: measured
/// on Granite Rapids, 0.4 to 0.9 of the time.
bool may_go_by_lines(const MatmulSpec& spec) { return !amx_can(spec) || std::min(spec.m, spec.n) < 4; }

Engine best_for_matmul(const MatmulSpec& spec) {
  if (fits_large_caches(spec) && spec.batch == 1) return Engine::tile;
  const bool tiles = spec.type == DType::Float32 || spec.type == DType::Float64;
  if (tiles && packing_pays(spec) && !is_of_few(spec)) return Engine::packed;
  if (spec.type == DType::Float64) return Engine::tile;
  if (amx_can(spec) && spec.n * spec.k <= most_copied_halves) return Engine::amx;
  if (spec.type == DType::BFloat16) {
    return onednn_bfloat_products() == BFloatProducts::none ? Engine::plain : Engine::onednn;
  }
  if (spec.type != DType::Float32) return Engine::plain;
  return have_onednn && !tile_is_faster(spec) ? Engine::onednn : Engine::tile;
}

/// Filters of single channels over one dim as such over two: oneDNN has fast kernels for those alone.
ConvSpec lifted(const ConvSpec& given) {
  ConvSpec spec = given;
  const bool of_single_channels = spec.groups == spec.in_channels && spec.groups == spec.out_channels;
  if (spec.spatial != 1 || spec.groups == 1 || !of_single_channels) return spec;
  spec.spatial = 2;
  for (int64_t* size : {spec.in, spec.out, spec.kernel, spec.stride, spec.dilation}) size[1] = 1;
  spec.pad_low[1] = spec.pad_high[1] = 0;
  return spec;
}

bool tile_is_faster_forward(const ConvSpec& spec, int64_t taps) {
  const int64_t in = spec.in_channels, out = spec.out_channels;
  if (in <= 8 && out <= (in <= 5 ? 32 : 16)) return true;
  if (taps == 1) return false;
  if (out <= 8) return std::all_of(spec.stride, spec.stride + spec.spatial, [](int64_t step) { return step == 1; });
  return spec.spatial > 1 && in <= 20 && out <= 48;
}

bool tile_is_faster_by_data(const ConvSpec& spec, int64_t taps) {
  const int64_t in = spec.in_channels, out = spec.out_channels;
  if (spec.spatial == 1) return false;
  if (in <= 6) return in <= 4 || out >= 16 || taps >= 25;
  if (in <= 8) return out >= (taps >= 25 ? 16 : 20);
  if (in <= 10) return out >= 24;
  return in > 16 && in <= 24 && out >= (in <= 20 ? 17 : 32);
}

bool tile_is_faster_by_weights(const ConvSpec& spec) {
  const int64_t out = spec.out_channels;
  if (out <= 8) return true;
  return spec.in_channels >= 3 && (out <= 12 || (out > 16 && 10 * round_up(out, 16) >= 11 * out));
}

Engine best_for_conv(const ConvSpec& spec) {
  if (spec.batch * spec.in_channels * spec.out_channels == 0) return Engine::plain;
  if (spec.type == DType::Float64) return Engine::tile;
  if (spec.type == DType::BFloat16) {
    const BFloatProducts products = onednn_bfloat_products();
    const bool by_floats =
        products == BFloatProducts::none || (products == BFloatProducts::pairs && winograd_beats_pairs(spec));
    return by_floats ? Engine::plain : Engine::onednn;
  }
  if (spec.type != DType::Float32) return Engine::plain;
  if (winograd_pays(spec)) return Engine::winograd;
  return have_onednn && !tile_pays(spec) ? Engine::onednn : Engine::tile;
}

/// What oneDNN's product is watched for: odd sums of BFloat16 are filled up with zeros on some processors. What is not
/// finite in an operand shows in results too, with such a zero or without: few results are looked at instead of much
/// larger operands.
Watched watched(const MatmulSpec& spec) {
  if (spec.type != DType::BFloat16 || spec.accumulate) return {};
  const auto length = [&](int64_t columns, int64_t rows, int64_t distance, int64_t stride) {
    return (spec.batch - 1) * stride + (columns - 1) * distance + rows;
  };
  if (8 * spec.m * spec.n <= (spec.m + spec.n) * spec.k) {
    return {0, 0, length(spec.n, spec.m, spec.ldc, spec.c_batch_stride)};
  }
  return {spec.a_transposed ? length(spec.m, spec.k, spec.lda, spec.a_batch_stride)
                            : length(spec.k, spec.m, spec.lda, spec.a_batch_stride),
          spec.b_transposed ? length(spec.k, spec.n, spec.ldb, spec.b_batch_stride)
                            : length(spec.n, spec.k, spec.ldb, spec.b_batch_stride),
          0};
}

/// The same for convolutions: weights meet the padding of images, and in BFloat16 channels are filled up too.
Watched watched(const ConvSpec& spec) {
  int64_t in = spec.batch * spec.in_channels, out = spec.batch * spec.out_channels;
  int64_t weights = spec.in_channels / spec.groups * spec.out_channels, pads = 0;
  for (int i = 0; i < spec.spatial; ++i) {
    in *= spec.in[i];
    out *= spec.out[i];
    weights *= spec.kernel[i];
    pads += spec.pad_low[i] + spec.pad_high[i];
  }
  const bool half = spec.type == DType::BFloat16;
  if (spec.kind == ConvKind::backward_weights) return {0, 0, half || pads > 0 ? weights : 0};
  if (spec.kind == ConvKind::backward_data) return {half ? out : 0, half ? weights : 0, 0};
  return {half ? in : 0, half || pads > 0 ? weights : 0, 0};
}

/// oneDNN's sums, and then the epilogue: see onednn_matmul.cpp.
template <class Spec>
std::unique_ptr<VendorCall> onednn_finished(std::unique_ptr<VendorCall> (*onednn)(const Spec&), const Spec& spec) {
  return with_epilogue(spec, false, onednn);
}

std::unique_ptr<VendorCall> converted_call(const MatmulSpec& spec) { return converted(spec, &prepare_matmul); }
std::unique_ptr<VendorCall> converted_call(const ConvSpec& spec) { return converted(spec, &prepare_conv); }

bool is_half(DType type) { return type == DType::Float16 || type == DType::BFloat16; }

/// Halves by the engines of Float32, which are many times faster than plain loops.
template <class Spec> std::unique_ptr<VendorCall> by_floats(const Spec& spec) {
  return with_epilogue(spec, false, [](const Spec& inner) { return converted_call(inner); });
}

/// What computes the type without oneDNN.
template <class Spec>
std::unique_ptr<VendorCall> own(std::unique_ptr<VendorCall> (*tile)(const Spec&),
                                std::unique_ptr<VendorCall> (*plain)(const Spec&), const Spec& spec) {
  return spec.type == DType::Float32 ? tile(spec) : with_epilogue(spec, false, plain);
}

/// oneDNN, and our own engine where its answer is not the definition's.
template <class Spec>
std::unique_ptr<VendorCall> onednn_checked(std::unique_ptr<VendorCall> (*onednn)(const Spec&),
                                           std::unique_ptr<VendorCall> (*tile)(const Spec&),
                                           std::unique_ptr<VendorCall> (*plain)(const Spec&), const Spec& spec) {
  std::unique_ptr<VendorCall> call = onednn_finished(onednn, spec);
  const Watched counts = watched(spec);
  if (counts.first + counts.second + counts.result == 0) return call;
  return checked(std::move(call), own(tile, plain, spec), spec.type, counts);
}

/// oneDNN where it takes the call; else what computes the type without it (some processors have no BFloat16).
template <class Spec>
std::unique_ptr<VendorCall> onednn_or(std::unique_ptr<VendorCall> (*onednn)(const Spec&),
                                      std::unique_ptr<VendorCall> (*tile)(const Spec&),
                                      std::unique_ptr<VendorCall> (*plain)(const Spec&), const Spec& spec) {
  try {
    return onednn_checked(onednn, tile, plain, spec);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::backend) throw;
  }
  if (is_half(spec.type)) return by_floats(spec);
  return own(tile, plain, spec);
}

/// Winograd's filtering, and our own engine where that does not know the result.
std::unique_ptr<VendorCall> winograd_checked(const ConvSpec& spec) {
  int64_t weights = spec.in_channels * spec.out_channels;
  for (int i = 0; i < spec.spatial; ++i) weights *= spec.kernel[i];
  const Watched counts{0, 0, spec.kind == ConvKind::backward_weights ? weights : 0};
  return checked(prepare_winograd_conv(spec), prepare_tile_conv(spec), spec.type, counts);
}

}  // namespace

void check_conv(const ConvSpec& spec) {
  require(spec.spatial >= 1 && spec.spatial <= 3, "conv", "there are 1 to 3 spatial dims",
          std::to_string(spec.spatial));
  const int64_t channels[] = {spec.in_channels, spec.out_channels, spec.groups};
  require(spec.groups >= 1 && spec.in_channels % spec.groups == 0 && spec.out_channels % spec.groups == 0, "conv",
          "groups divide the channels", "(in, out, groups) " + numbers(channels, 3));
  for (int i = 0; i < spec.spatial; ++i) {
    const int64_t reach = (spec.kernel[i] - 1) * spec.dilation[i] + 1;
    const int64_t room = spec.in[i] + spec.pad_low[i] + spec.pad_high[i] - reach;
    const int64_t sizes[] = {spec.in[i], spec.kernel[i], spec.pad_low[i], spec.pad_high[i], spec.out[i]};
    const bool positive = spec.kernel[i] >= 1 && spec.stride[i] >= 1 && spec.dilation[i] >= 1 &&
                          std::min(spec.pad_low[i], spec.pad_high[i]) >= 0;
    require(positive && room >= 0 && spec.out[i] == room / spec.stride[i] + 1, "conv",
            "out is (in + pads - reach) / stride + 1",
            "(in, kernel, pad_low, pad_high, out) " + numbers(sizes, 5) + " in spatial dim " + std::to_string(i));
  }
}

bool tile_pays(const ConvSpec& spec) {
  if (spec.groups > 1) return false;
  const int64_t taps = extent_of(spec.kernel, spec.spatial, 1).count();
  if (spec.kind == ConvKind::forward) return tile_is_faster_forward(spec, taps);
  if (spec.kind == ConvKind::backward_data) return tile_is_faster_by_data(spec, taps);
  return tile_is_faster_by_weights(spec);
}

std::unique_ptr<VendorCall> prepare_matmul(const MatmulSpec& given, Engine engine) {
  check_matmul(given);
  const MatmulSpec spec = folded(given);
  const bool empty = spec.m * spec.n * spec.batch * spec.k == 0;
  if (engine == Engine::best) {
    engine = empty ? Engine::plain : best_for_matmul(spec);
    if (!empty && is_half(spec.type) && !spec.accumulate && may_go_by_lines(spec)) {
      if (dots_pay(spec)) return prepare_dot_matmul(spec);
      if (sweep_pays(spec)) return prepare_sweep_matmul(spec);
    }
    if (engine == Engine::onednn) {
      return onednn_or(&prepare_onednn_matmul, &prepare_tile_matmul, &prepare_plain_matmul, spec);
    }
    if (!empty && engine == Engine::plain && is_half(spec.type)) return by_floats(spec);
  }
  if (engine == Engine::onednn) {
    return onednn_checked(&prepare_onednn_matmul, &prepare_tile_matmul, &prepare_plain_matmul, spec);
  }
  if (engine == Engine::amx) return with_epilogue(spec, false, &prepare_amx_matmul);
  if (engine == Engine::tile) return prepare_tile_matmul(spec);
  if (engine == Engine::packed) {
    require((spec.batch == 1 || spec.b_batch_stride == 0) && !empty && tile_kernels().packed.vectors > 0, "matmul",
            "panels are of products that have elements and share their second operand, on a processor that has kernels "
            "for them",
            std::to_string(spec.batch) + " products, kernels " + tile_kernels().name);
    return prepare_packed_matmul(spec);
  }
  return with_epilogue(spec, true, &prepare_plain_matmul);
}

/// Measured on AVX-512 (Zen 5): oneDNN then takes 0.6 to 0.9 of its time, where the copied operand is not the large
/// one.
bool turning_pays(const MatmulSpec& spec, int operand) {
  const bool transposed = operand == 0 ? spec.a_transposed : spec.b_transposed;
  const bool fits = operand == 0 ? spec.n >= 128 && spec.m <= 2 * spec.n : spec.m >= 128 && spec.m >= 4 * spec.n;
  if (!transposed || !fits || spec.batch != 1 || spec.type != DType::Float32) return false;
  return tile_kernels().vector_bytes == 64 && best_for_matmul(spec) == Engine::onednn;
}

std::unique_ptr<VendorCall> prepare_conv(const ConvSpec& given, Engine engine) {
  check_conv(given);
  require(!given.logical || takes_logical(given), "conv",
          "images in logical order have filters of single channels or points",
          std::to_string(given.groups) + " groups of " + to_string(given.type));
  if (given.logical) return planes_can(given) ? prepare_plane_conv(given) : prepare_point_conv(given);
  if (engine == Engine::best && turned_planes_pay(given)) {
    return is_half(given.type) ? by_floats(given) : prepare_plane_conv(given);
  }
  if (engine == Engine::best && whole_product_pays(given)) return prepare_whole_product(given);
  const ConvSpec spec = lifted(given);
  if (engine == Engine::best) {
    engine = best_for_conv(spec);
    if (engine == Engine::onednn) return onednn_or(&prepare_onednn_conv, &prepare_tile_conv, &prepare_plain_conv, spec);
    const bool empty = spec.batch * spec.in_channels * spec.out_channels == 0;
    if (!empty && is_half(spec.type)) return by_floats(spec);
  }
  if (engine == Engine::onednn)
    return onednn_checked(&prepare_onednn_conv, &prepare_tile_conv, &prepare_plain_conv, spec);
  if (engine == Engine::winograd) return winograd_checked(spec);
  if (engine == Engine::tile) return prepare_tile_conv(spec);
  return with_epilogue(spec, spec.kind == ConvKind::forward, &prepare_plain_conv);
}

}  // namespace rosin::engines
