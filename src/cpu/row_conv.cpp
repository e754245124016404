// See row_conv.hpp. A chunk has whole images, or of few images some rows, as other convolutions have them. It computes
// a block of channels at a time, whose weights (or, where lanes are channels, images) the first caches hold. Read
// first: row_writer.hpp.
#include "cpu/row_conv.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/strided_copy.hpp"
#include "base/workers.hpp"
#include "cpu/few_conv.hpp"
#include "engines/conv_cuts.hpp"
#include "engines/conv_shape.hpp"
#include "engines/converted.hpp"
#include "engines/epilogue.hpp"
#include "engines/form_name.hpp"
#include "engines/tile.hpp"
#include "engines/winograd.hpp"

namespace rosin::cpu {
namespace {

using engines::ConvKind;
using engines::ConvShape;
using engines::ConvSpec;
using engines::VendorBuffers;
using plan::Activation;

using Loop = std::shared_ptr<const MachineLoop>;

/// Which rows of taps a row of results takes, and what they stand over.
struct Row {
  int64_t elements = 0;  // the row of elements of the first one
  int64_t first = 0, count = 0;
};

/// What one size of a chunk takes.
struct Size {
  Loop whole, last;  // of whole blocks of channels and of the last one
  std::vector<Row> rows;
  int64_t batch = 0, row_elements = 0, row_results = 0, elements = 0, results = 0;  // of a row, of an image
};

bool is_by_data(const ConvSpec& spec) { return spec.kind == ConvKind::backward_data; }
/// Channels of what is read, and of results.
int64_t given_channels(const ConvSpec& spec) { return is_by_data(spec) ? spec.out_channels : spec.in_channels; }
int64_t made_channels(const ConvSpec& spec) { return is_by_data(spec) ? spec.in_channels : spec.out_channels; }
bool is_half(DType type) { return half_packing(type) != Packing::none; }

/// Channels that each result is summed over.
int64_t depth_of(const ConvSpec& spec) { return given_channels(spec) / spec.groups; }
/// Whether lanes of one register are channels that have filters of their own, or few of them in common.
bool is_of_lanes(const ConvSpec& spec, int64_t block) {
  const int64_t depth = depth_of(spec);
  return spec.groups > 1 && spec.in_channels == spec.out_channels && depth < block && block % depth == 0;
}

/// Along one dim, as RowText says it.
RowText along(const ConvSpec& spec, int dim) {
  RowText text;
  text.by_data = is_by_data(spec);
  text.elements = text.by_data ? spec.out[dim] : spec.in[dim];
  text.results = text.by_data ? spec.in[dim] : spec.out[dim];
  text.taps = spec.kernel[dim];
  text.stride = spec.stride[dim];
  text.dilation = spec.dilation[dim];
  text.pad = spec.pad_low[dim];
  return text;
}

/// Taps of a gradient stand over every so many elements only.
int64_t step_of_taps(const RowText& along) {
  return along.by_data ? along.stride / std::gcd(along.stride, along.dilation) : 1;
}

std::vector<Row> rows_of(const RowText& across) {
  std::vector<Row> rows(static_cast<size_t>(across.results));
  for (int64_t r = 0; r < across.results; ++r) {
    Row& row = rows[static_cast<size_t>(r)];
    for (int64_t t = 0; t < across.taps; ++t) {
      const std::optional<int64_t> element = across.element_of(r, t);
      if (!element) continue;
      if (row.count++ == 0) row.elements = *element, row.first = t;
    }
  }
  return rows;
}

/// Windows that are single points one beside the other: the rows of an image are one.
ConvSpec with_rows_joined(const ConvSpec& given) {
  ConvSpec spec = given;
  bool joins = true;
  for (int d = 0; d < 2; ++d) {
    joins = joins && spec.kernel[d] == 1 && spec.stride[d] == 1 && spec.pad_low[d] == 0 && spec.pad_high[d] == 0;
  }
  for (int64_t* size : {spec.in, spec.out}) {
    if (joins) size[0] *= std::exchange(size[1], 1);
  }
  return spec;
}

bool rectifies(Activation activation) { return activation == Activation::relu || activation == Activation::relu6; }

/// How the channels of results are taken: so many of each of the convolution's groups at a time.
struct Blocks {
  int64_t channels = 0;  // of a group of the convolution; of all, where lanes are of several
  int64_t lanes = 0;     // of a whole block
  int64_t each = 1;      // blocks of such a group
  int64_t count = 1;     // of all

  Blocks(const ConvSpec& spec, int64_t block) {
    const bool of_lanes = is_of_lanes(spec, block);
    channels = of_lanes ? made_channels(spec) : made_channels(spec) / spec.groups;
    const int64_t vectors = (channels + block - 1) / block, results = along(spec, 0).results;
    int64_t least = std::numeric_limits<int64_t>::max(), together = 1;
    for (int64_t some = 1; some <= std::min(of_lanes ? 1 : most_row_vectors(block), vectors); ++some) {
      const int64_t blocks = (vectors + some - 1) / some, even = (vectors + blocks - 1) / blocks;
      const int64_t cost = row_cost(results, even, block) * (vectors / even) + row_cost(results, vectors % even, block);
      if (cost > least) continue;
      least = cost;
      together = even;
    }
    lanes = together * block;
    each = (vectors + together - 1) / together;
    count = each * (made_channels(spec) / channels);
  }

  /// Channels of a block, and the first of them.
  int64_t lanes_of(int64_t i) const { return std::min(lanes, channels - i % each * lanes); }
  int64_t first(int64_t i) const { return i / each * channels + i % each * lanes; }
  bool is_last(int64_t i) const { return i % each + 1 == each; }
};

/// What is done for a block with so many channels.
RowText row_text(const ConvSpec& spec, int64_t block, int64_t lanes) {
  RowText text = along(spec, 0);
  const RowText across = along(spec, 1);
  text.block = block;
  text.lanes = lanes;
  text.packing = half_packing(spec.type);
  (is_of_lanes(spec, block) ? text.spread : text.depth) = depth_of(spec);
  text.result_step = made_channels(spec);
  text.element_step = given_channels(spec);
  text.tap_rows = step_of_taps(across);
  text.element_rows = across.by_data ? -across.dilation * text.tap_rows / across.stride : across.dilation;
  text.bias = spec.epilogue.bias;
  text.center = spec.epilogue.center;
  text.factor = spec.epilogue.factor;
  text.shift = spec.epilogue.shift;
  text.residual = spec.epilogue.residual;
  text.rectified = rectifies(spec.epilogue.activation);
  if (spec.epilogue.activation == Activation::relu6) text.most = 6;
  return text;
}

/// Lines of memory of the next block's weights that are asked for in a turn, so that a block asks for all of them:
/// weights that no cache holds are read while others are multiplied.
int64_t lines_ahead(const RowText& text, const ConvSpec& spec) {
  constexpr int64_t line = 64 / sizeof(float), most = 8;
  const int64_t weights = spec.kernel[0] * spec.kernel[1] * text.tap_weights();
  const int64_t turns = row_tiles(text.results, text.vectors(), text.block) * along(spec, 1).results * spec.kernel[0] *
                        spec.kernel[1] * (text.depth / RowText::channels_together);
  return turns == 0 ? 0 : std::min(most, (weights / line + turns - 1) / turns);
}

class RowConv final : public engines::VendorCall {
 public:
  RowConv(const ConvSpec& spec, int64_t block)
      : spec_(spec), block_(block), pieces_(engines::ConvCuts(spec, 1)),
        blocks_(with_rows_joined(pieces_.sizes.front()), block), taps_(ConvShape(spec).kernel.count()) {
    chunks_ = static_cast<int64_t>(pieces_.pieces.size());
    for (const ConvSpec& size : pieces_.sizes) add_size(with_rows_joined(size));
    workspace_bytes_ = packed_bytes() + (is_half(spec.type) ? weight_count() * sizeof(float) : 0);
    has_begin_ = true;
  }

  /// Whether the code of all sizes could be written.
  bool stands() const {
    return std::all_of(sizes_.begin(), sizes_.end(), [](const Size& size) { return size.whole && size.last; });
  }

  const char* engine() const noexcept override { return "rows"; }
  size_t bytes() const noexcept override {
    size_t bytes = sizeof(*this);
    for (const Size& size : sizes_) {
      bytes += sizeof(Size) + sizeof(ConvSpec) + size.rows.capacity() * sizeof(Row) + size.whole->bytes() +
               size.last->bytes();
    }
    return bytes;
  }
  std::optional<engines::MatmulPart> part_of(int64_t chunk) const override {
    const engines::ConvPieces::Piece& piece = pieces_[chunk];
    const Size& size = sizes_[piece.size];
    const int64_t channels = made_channels(spec_), first = begin_of_results(piece) / channels;
    return engines::MatmulPart{0, 1, first, first + size.batch * size.results, 0, channels};
  }

  engines::Form form(int operand) const override {
    if (operand == 0) return {};
    const auto type = static_cast<int64_t>(spec_.type);
    return {
        engines::form_name("rows", {block_, blocks_.lanes, blocks_.channels, spec_.flipped, is_by_data(spec_), type}),
        packed_bytes()};
  }
  void make_form(int, const void* given, void* to) const override {
    if (!is_half(spec_.type)) return pack_all(static_cast<const float*>(given), static_cast<float*>(to));
    std::vector<float> wide(weight_count());
    pack_halves(given, wide.data(), static_cast<float*>(to));
  }

  void begin(const VendorBuffers& buffers) const override {
    if (buffers.forms[1]) return;
    auto* const packed = static_cast<float*>(buffers.workspace);
    if (is_half(spec_.type)) pack_halves(buffers.second, packed + packed_bytes() / sizeof(float), packed);
    else pack_all(static_cast<const float*>(buffers.second), packed);
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void*) const override {
    const engines::ConvPieces::Piece& piece = pieces_[chunk];
    const Size& size = sizes_[piece.size];
    int64_t from = is_by_data(spec_) ? piece.y : piece.x, to = begin_of_results(piece);
    for (int64_t image = 0; image < size.batch; ++image) {
      for (int64_t i = 0; i < blocks_.count; ++i) run_block(i, size, from, to, buffers);
      from += size.elements * given_channels(spec_);
      to += size.results * made_channels(spec_);
    }
  }

 private:
  int64_t begin_of_results(const engines::ConvPieces::Piece& piece) const {
    return is_by_data(spec_) ? piece.x : piece.y;
  }
  /// Where the second cache does not hold all weights.
  bool asks_ahead() const { return packed_bytes() > (size_t{1} << 18); }

  void add_size(const ConvSpec& spec) {
    const RowText line = along(spec, 0), column = along(spec, 1);
    RowText whole = row_text(spec, block_, blocks_.lanes),
            last = row_text(spec, block_, blocks_.lanes_of(blocks_.each - 1));
    for (RowText* text : {&whole, &last}) text->ahead = asks_ahead() ? lines_ahead(*text, spec) : 0;
    Size& size = sizes_.emplace_back();
    size.last = row_loop(last);
    size.whole = blocks_.each == 1 ? size.last : row_loop(whole);
    size.rows = rows_of(column);
    size.batch = spec.batch;
    size.row_elements = line.elements * given_channels(spec);
    size.row_results = line.results * made_channels(spec);
    size.elements = line.elements * column.elements;
    size.results = line.results * column.results;
  }

  /// A block of an image: its elements and results begin there.
  void run_block(int64_t i, const Size& size, int64_t from, int64_t to, const VendorBuffers& buffers) const {
    const void* const packed = buffers.forms[1] ? buffers.forms[1] : buffers.workspace;
    const auto at = [](const void* array, int64_t place, int64_t bytes = sizeof(float)) -> void* {
      return array ? const_cast<char*>(static_cast<const char*>(array) + place * bytes) : nullptr;
    };
    const auto bytes = static_cast<int64_t>(size_of(spec_.type));
    const MachineLoop& loop = blocks_.is_last(i) ? *size.last : *size.whole;
    const int64_t lane = blocks_.first(i), row_weights = spec_.kernel[0] * tap_weights(i);
    const int64_t weights = block_at(i), next = weights + taps_ * tap_weights(i);
    const auto rows = static_cast<int64_t>(size.rows.size());
    from += is_of_lanes(spec_, block_) ? lane : lane / blocks_.channels * depth_of(spec_);
    for (int64_t r = 0; r < rows; ++r) {
      const Row& row = size.rows[static_cast<size_t>(r)];
      const int64_t result = to + lane + r * size.row_results;
      void* memory[] = {at(buffers.result, result, bytes),
                        at(buffers.first, from + row.elements * size.row_elements, bytes),
                        at(packed, weights + row.first * row_weights),
                        at(buffers.third, lane),
                        at(buffers.residual, result),
                        at(packed, next + (next - weights) * r / rows),
                        at(buffers.center, lane),
                        at(buffers.factor, lane),
                        at(buffers.shift, lane),
                        nullptr};
      loop.run(memory, row.count, 0);
    }
  }

  // --- packed weights: block by block, tap by tap, channel by channel that is summed, the lanes of whole registers ---
  int64_t tap_weights(int64_t i) const { return depth_of(spec_) * engines::round_up(blocks_.lanes_of(i), block_); }
  int64_t block_at(int64_t i) const {
    const int64_t whole = depth_of(spec_) * blocks_.lanes, each = blocks_.each - 1;
    return taps_ * (i / blocks_.each * (each * whole + tap_weights(each)) + i % blocks_.each * whole);
  }
  size_t packed_bytes() const { return static_cast<size_t>(block_at(blocks_.count)) * sizeof(float); }

  /// What of a block's weights goes where: lanes, taps, channels that are summed; and the groups that lanes are of,
  /// where those of a gradient are of several.
  StridedCopy packing(int64_t lanes) const {
    const int64_t depth = depth_of(spec_), width = engines::round_up(lanes, block_), of_tap = depth * width;
    const int64_t filter = filter_depth() * taps_;
    StridedCopy copy{.rank = 3,
                     .sizes = {lanes, taps_, depth},
                     .target = {1, spec_.flipped ? -of_tap : of_tap, width},
                     .source = {is_by_data(spec_) ? taps_ : filter, 1, is_by_data(spec_) ? filter : taps_}};
    if (!is_by_data(spec_) || !is_of_lanes(spec_, block_) || depth == 1) return copy;
    copy.rank = 4;
    copy.sizes[0] = depth;
    copy.sizes[3] = lanes / depth;
    copy.target[3] = depth;
    copy.source[3] = depth * filter;
    return copy;
  }
  /// Input channels of a filter.
  int64_t filter_depth() const { return spec_.in_channels / spec_.groups; }
  /// Where a block's weights begin: with a filter, or for a gradient with what the first filter of a group has of a
  /// channel.
  int64_t weights_at(int64_t i) const {
    const int64_t depth = filter_depth(), first = blocks_.first(i);
    if (!is_by_data(spec_)) return first * depth * taps_;
    return (first / depth * (spec_.out_channels / spec_.groups) * depth + first % depth) * taps_;
  }

  size_t weight_count() const { return static_cast<size_t>(filter_depth() * taps_ * spec_.out_channels); }
  void pack_halves(const void* halves, float* wide, float* packed) const {
    engines::widen(spec_.type, halves, wide, static_cast<int64_t>(weight_count()));
    pack_all(wide, packed);
  }
  void pack_all(const float* from, float* packed) const {
    constexpr size_t worth_threads = size_t{1} << 18;  // bytes
    if (packed_bytes() < worth_threads) {
      for (int64_t i = 0; i < blocks_.count; ++i) pack(i, from, packed);
    } else {
      parallel_for(blocks_.count, [&](int64_t i) { pack(i, from, packed); });
    }
  }
  void pack(int64_t i, const float* weights, float* packed) const {
    const int64_t lanes = blocks_.lanes_of(i), width = engines::round_up(lanes, block_);
    const int64_t rows = taps_ * depth_of(spec_);
    const StridedCopy copy = packing(lanes);
    float* const to = packed + block_at(i);
    const float* const from = weights + weights_at(i);
    const int outer = taps_ > 1 ? 1 : 2;  // the dim that the weights have closest together
    BlockCopy(copy, sizeof(float), 0, outer).run_here(spec_.flipped ? to - (taps_ - 1) * copy.target[1] : to, from);
    for (int64_t row = 0; lanes < width && row < rows; ++row) {
      std::fill(to + row * width + lanes, to + (row + 1) * width, 0.0f);
    }
  }

  ConvSpec spec_;
  int64_t block_;
  engines::ConvPieces pieces_;
  Blocks blocks_;
  int64_t taps_;
  std::vector<Size> sizes_;
};

/// Code has places as numbers of 32 bits.
constexpr int64_t most_elements = std::numeric_limits<int32_t>::max() / 16;
bool is_small(const ConvSpec& spec) {
  const ConvShape s(spec);
  const int64_t width = std::max(s.in.w, s.out.w) + s.pad_low.w + s.kernel.w * s.dilation.w;
  const int64_t channels = std::max(spec.in_channels, spec.out_channels);
  return width * channels * (s.dilation.h + 1) < most_elements &&
         s.kernel.count() * spec.in_channels < most_elements / 64;
}

/// Gradients by weights: channels fill registers of `block`, and images are no further apart than code can say.
bool weights_can(const ConvSpec& spec, int64_t block) {
  const bool fill = spec.groups == 1 && spec.in_channels % block == 0 && spec.out_channels % block == 0;
  return fill && ConvShape(spec).in.count() * spec.in_channels < most_elements;
}

/// Whether it is a convolution that rows are written of.
bool rows_can(const ConvSpec& spec, int64_t block) {
  const bool of_kind = spec.kind != ConvKind::backward_weights || weights_can(spec, block);
  const bool empty = spec.batch * spec.in_channels * spec.out_channels == 0;
  const bool halves = is_half(spec.type) && spec.kind != ConvKind::backward_weights && block == 16;
  const bool of_type = spec.type == DType::Float32 || (halves && is_of_lanes(spec, block));
  return of_kind && of_type && spec.spatial <= 2 && !spec.logical && !empty && is_small(spec) && machine_code_works();
}

/// Measured on Zen 5, images in no cache: with AVX-512 0.3 to 1.05 of the time of oneDNN and of tiles, with AVX2 0.6 to
/// 1.0, the less the more channels and the fewer pixels. Of large images too much is read once for each chunk; of
/// single points, too much for what is multiplied.
bool weights_pay(const ConvSpec& spec) {
  constexpr int64_t least_channels = 32, most_columns = 56, least_weights_of_points = 1 << 21;
  const ConvShape s(spec);
  if (std::min(s.in_channels, s.out_channels) < least_channels || s.out.w > most_columns) return false;
  if (s.kernel.count() > 1) return !engines::winograd_pays(spec);
  return s.stride.w * s.stride.h > 1 && s.in_channels * s.out_channels >= least_weights_of_points;
}

/// Measured on Zen 5, with AVX-512: 0.6 to 1.0 of the time of oneDNN and of the tile kernel, the less the larger a part
/// epilogues are, which oneDNN has no registers for; of groups with few channels 0.25 to 0.9. The tile kernel fills
/// registers with neighbours, and is faster where half of one is left. With AVX2 0.97 to 1.08 where there is no
/// epilogue. Where rows are short, weights are read for too few results.
bool rows_pay(const ConvSpec& spec, int64_t block) {
  constexpr int64_t least_results = 6;
  if (spec.kind == ConvKind::backward_weights) return weights_pay(spec);
  if (is_of_lanes(spec, block)) return true;
  if (along(with_rows_joined(spec), 0).results < least_results || engines::winograd_pays(spec)) return false;
  const bool by_tiles = engines::tile_pays(spec);
  if (block == 8) return !by_tiles && !spec.epilogue.none();
  return is_by_data(spec) ? !by_tiles : made_channels(spec) / spec.groups > block / 2;
}

}  // namespace

std::unique_ptr<engines::VendorCall> prepare_row_conv(const ConvSpec& spec, int64_t block) {
  engines::check_conv(spec);
  if (!rows_can(spec, block)) return nullptr;
  if (spec.kind == ConvKind::backward_weights) return prepare_row_weights(spec, block);
  ConvSpec inner = spec;
  plan::Epilogue rest;  // halves are rounded by each step
  if (is_half(spec.type)) rest = std::exchange(inner.epilogue, {});
  else if (!rectifies(spec.epilogue.activation)) {
    rest.activation = std::exchange(inner.epilogue.activation, Activation::none);
  }
  auto call = std::make_unique<RowConv>(inner, block);
  if (!call->stands()) return nullptr;
  if (rest.none()) return call;
  return engines::finished(std::move(call), rest, spec.activation, engines::result_shape(spec));
}

std::unique_ptr<engines::VendorCall> prepare_row_conv(const ConvSpec& spec) {
  const int64_t block = row_block();
  if (few_pays(spec, block)) return prepare_few_conv(spec, block);
  return rows_can(spec, block) && rows_pay(spec, block) ? prepare_row_conv(spec, block) : nullptr;
}

}  // namespace rosin::cpu
