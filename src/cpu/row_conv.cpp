// See row_conv.hpp. A chunk has whole images, or of few images some rows, as other convolutions have them. It computes
// a group of channels at a time, whose weights (or, of single channels, images) the first caches hold. Read first:
// row_writer.hpp.
#include "cpu/row_conv.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/strided_copy.hpp"
#include "base/workers.hpp"
#include "engines/conv_cuts.hpp"
#include "engines/conv_shape.hpp"
#include "engines/epilogue.hpp"
#include "engines/form_name.hpp"
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
  Loop whole, last;  // of whole groups of channels and of the last one
  std::vector<Row> rows;
  int64_t batch = 0, row_elements = 0, row_results = 0, elements = 0, results = 0;  // of a row, of an image
};

bool is_of_single_channels(const ConvSpec& spec) { return spec.groups > 1; }
bool is_by_data(const ConvSpec& spec) { return spec.kind == ConvKind::backward_data; }

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
  bool joins = !is_by_data(spec);
  for (int d = 0; d < 2; ++d) {
    joins = joins && spec.kernel[d] == 1 && spec.stride[d] == 1 && spec.pad_low[d] == 0 && spec.pad_high[d] == 0;
  }
  for (int64_t* size : {spec.in, spec.out}) {
    if (joins) size[0] *= std::exchange(size[1], 1);
  }
  return spec;
}

bool rectifies(Activation activation) { return activation == Activation::relu || activation == Activation::relu6; }

/// How the channels of results are grouped: in registers side by side.
struct Groups {
  int64_t count = 1;  // groups
  int64_t lanes = 0;  // of a whole one

  Groups(const ConvSpec& spec, int64_t block) {
    const int64_t vectors = (spec.out_channels + block - 1) / block;
    const int64_t most = is_of_single_channels(spec) ? 1 : most_row_vectors(block), results = along(spec, 0).results;
    int64_t least = std::numeric_limits<int64_t>::max(), together = 1;
    for (int64_t some = 1; some <= std::min(most, vectors); ++some) {
      const int64_t groups = (vectors + some - 1) / some, even = (vectors + groups - 1) / groups;
      const int64_t cost = row_cost(results, even, block) * (vectors / even) + row_cost(results, vectors % even, block);
      if (cost > least) continue;
      least = cost;
      together = even;
    }
    lanes = together * block;
    count = (vectors + together - 1) / together;
  }
};

/// What is done for a group with so many channels.
RowText row_text(const ConvSpec& spec, int64_t block, int64_t lanes) {
  RowText text = along(spec, 0);
  const RowText across = along(spec, 1);
  text.block = block;
  text.lanes = lanes;
  text.depth = is_of_single_channels(spec) ? 0 : spec.in_channels;
  text.result_step = spec.out_channels;
  text.element_step = spec.in_channels;
  text.tap_rows = step_of_taps(across);
  text.element_rows = across.by_data ? -across.dilation * text.tap_rows / across.stride : across.dilation;
  text.bias = spec.epilogue.bias;
  text.residual = spec.epilogue.residual;
  text.rectified = rectifies(spec.epilogue.activation);
  if (spec.epilogue.activation == Activation::relu6) text.most = 6;
  return text;
}

class RowConv final : public engines::VendorCall {
 public:
  RowConv(const ConvSpec& spec, int64_t block)
      : spec_(spec), block_(block), pieces_(engines::ConvCuts(spec, 1)),
        groups_(with_rows_joined(pieces_.sizes.front()), block), taps_(ConvShape(spec).kernel.count()) {
    chunks_ = static_cast<int64_t>(pieces_.pieces.size());
    for (const ConvSpec& size : pieces_.sizes) add_size(with_rows_joined(size));
    workspace_bytes_ = packed_bytes();
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
    const int64_t first = begin_of_results(piece) / spec_.out_channels;
    return engines::MatmulPart{0, 1, first, first + size.batch * size.results, 0, spec_.out_channels};
  }

  engines::Form form(int operand) const override {
    if (operand == 0) return {};
    return {engines::form_name("rows", {block_, groups_.lanes, spec_.flipped}), packed_bytes()};
  }
  void make_form(int, const void* weights, void* to) const override {
    const auto* const from = static_cast<const float*>(weights);
    auto* const packed = static_cast<float*>(to);
    constexpr size_t worth_threads = size_t{1} << 18;  // bytes
    if (packed_bytes() < worth_threads) {
      for (int64_t group = 0; group < groups_.count; ++group) pack(group, from, packed);
    } else {
      parallel_for(groups_.count, [&](int64_t group) { pack(group, from, packed); });
    }
  }

  void begin(const VendorBuffers& buffers) const override {
    if (!buffers.forms[1]) make_form(1, buffers.second, buffers.workspace);
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void*) const override {
    const engines::ConvPieces::Piece& piece = pieces_[chunk];
    const Size& size = sizes_[piece.size];
    int64_t from = is_by_data(spec_) ? piece.y : piece.x, to = begin_of_results(piece);
    for (int64_t image = 0; image < size.batch; ++image) {
      for (int64_t group = 0; group < groups_.count; ++group) run_group(group, size, from, to, buffers);
      from += size.elements * spec_.in_channels;
      to += size.results * spec_.out_channels;
    }
  }

 private:
  int64_t begin_of_results(const engines::ConvPieces::Piece& piece) const {
    return is_by_data(spec_) ? piece.x : piece.y;
  }
  /// Channels of a group.
  int64_t lanes_of(int64_t group) const { return std::min(groups_.lanes, spec_.out_channels - group * groups_.lanes); }

  void add_size(const ConvSpec& spec) {
    const RowText line = along(spec, 0), column = along(spec, 1);
    Size& size = sizes_.emplace_back();
    size.last = row_loop(row_text(spec, block_, lanes_of(groups_.count - 1)));
    size.whole = groups_.count == 1 ? size.last : row_loop(row_text(spec, block_, groups_.lanes));
    size.rows = rows_of(column);
    size.batch = spec.batch;
    size.row_elements = line.elements * spec.in_channels;
    size.row_results = line.results * spec.out_channels;
    size.elements = line.elements * column.elements;
    size.results = line.results * column.results;
  }

  /// A group of an image: its elements and results begin there.
  void run_group(int64_t group, const Size& size, int64_t from, int64_t to, const VendorBuffers& buffers) const {
    const void* const packed = buffers.forms[1] ? buffers.forms[1] : buffers.workspace;
    const auto at = [](const void* array, int64_t place) -> void* {
      return array ? const_cast<float*>(static_cast<const float*>(array) + place) : nullptr;
    };
    const MachineLoop& loop = group + 1 < groups_.count ? *size.whole : *size.last;
    const int64_t lane = group * groups_.lanes, row_weights = spec_.kernel[0] * tap_weights(group);
    if (is_of_single_channels(spec_)) from += lane;
    int64_t result = to + lane;
    for (const Row& row : size.rows) {
      void* memory[] = {at(buffers.result, result),
                        at(buffers.first, from + row.elements * size.row_elements),
                        at(packed, group_at(group) + row.first * row_weights),
                        at(buffers.third, lane),
                        at(buffers.residual, result),
                        nullptr};
      loop.run(memory, row.count, 0);
      result += size.row_results;
    }
  }

  // --- packed weights: group by group, tap by tap, channel by channel that is summed, the lanes of whole registers ---
  int64_t depth() const { return is_of_single_channels(spec_) ? 1 : spec_.in_channels; }
  int64_t tap_weights(int64_t group) const { return depth() * engines::round_up(lanes_of(group), block_); }
  int64_t group_at(int64_t group) const { return group * taps_ * depth() * groups_.lanes; }
  size_t packed_bytes() const {
    const int64_t last = groups_.count - 1;
    return static_cast<size_t>(group_at(last) + taps_ * tap_weights(last)) * sizeof(float);
  }

  /// What of a group's weights goes where.
  StridedCopy packing(int64_t lanes) const {
    const int64_t width = engines::round_up(lanes, block_), of_tap = depth() * width;
    return {.rank = 3,
            .sizes = {lanes, taps_, depth()},
            .target = {1, spec_.flipped ? -of_tap : of_tap, width},
            .source = {depth() * taps_, 1, taps_}};
  }

  void pack(int64_t group, const float* weights, float* packed) const {
    const int64_t lanes = lanes_of(group), width = engines::round_up(lanes, block_), rows = taps_ * depth();
    const StridedCopy copy = packing(lanes);
    float* const to = packed + group_at(group);
    const float* const from = weights + group * groups_.lanes * rows;
    const int outer = taps_ > 1 ? 1 : 2;  // the dim that the weights have closest together
    BlockCopy(copy, sizeof(float), 0, outer).run_here(spec_.flipped ? to - (taps_ - 1) * copy.target[1] : to, from);
    for (int64_t row = 0; lanes < width && row < rows; ++row) {
      std::fill(to + row * width + lanes, to + (row + 1) * width, 0.0f);
    }
  }

  ConvSpec spec_;
  int64_t block_;
  engines::ConvPieces pieces_;
  Groups groups_;
  int64_t taps_;
  std::vector<Size> sizes_;
};

/// Code has places as numbers of 32 bits.
bool is_small(const ConvSpec& spec) {
  const ConvShape s(spec);
  constexpr int64_t most = std::numeric_limits<int32_t>::max() / 16;
  const int64_t width = std::max(s.in.w, s.out.w) + s.pad_low.w + s.kernel.w * s.dilation.w;
  const int64_t channels = std::max(spec.in_channels, spec.out_channels);
  return width * channels * (s.dilation.h + 1) < most && s.kernel.count() * spec.in_channels < most / 64;
}

/// Whether it is a convolution that rows are written of.
bool rows_can(const ConvSpec& spec) {
  const bool of_channels = spec.groups == spec.in_channels && spec.groups == spec.out_channels && spec.groups > 1;
  const bool of_all = spec.groups == 1 && spec.kind == ConvKind::forward;
  const bool of_kind = spec.type == DType::Float32 && spec.kind != ConvKind::backward_weights && spec.spatial == 2;
  const bool empty = spec.batch * spec.in_channels * spec.out_channels == 0;
  return (of_channels || of_all) && of_kind && !spec.logical && !empty && is_small(spec) && machine_code_works();
}

/// Measured on Zen 5: with AVX-512 sums over all channels take 0.6 to 1.0 of oneDNN's time and of the tile kernel's,
/// the less the larger a part epilogues are (which oneDNN has no registers for); with AVX2 0.97 to 1.08 without them.
/// Where rows are short, weights are read for too few results.
bool rows_pay(const ConvSpec& spec, int64_t block) {
  constexpr int64_t least_results = 6;
  if (is_of_single_channels(spec)) return true;
  const bool has_long_rows = along(with_rows_joined(spec), 0).results >= least_results;
  return has_long_rows && (block == 16 || !spec.epilogue.none()) && !engines::winograd_pays(spec);
}

}  // namespace

std::unique_ptr<engines::VendorCall> prepare_row_conv(const ConvSpec& given, int64_t block) {
  const ConvSpec spec = engines::lifted(given);
  if (!rows_can(spec)) return nullptr;
  ConvSpec inner = spec;
  if (!rectifies(spec.epilogue.activation)) inner.epilogue.activation = Activation::none;
  auto call = std::make_unique<RowConv>(inner, block);
  if (!call->stands()) return nullptr;
  if (inner.epilogue == spec.epilogue) return call;
  plan::Epilogue rest;
  rest.activation = spec.epilogue.activation;
  return engines::finished(std::move(call), rest, spec.activation, engines::result_shape(spec));
}

std::unique_ptr<engines::VendorCall> prepare_row_conv(const ConvSpec& given) {
  const ConvSpec spec = engines::lifted(given);
  const int64_t block = row_block();
  return rows_can(spec) && rows_pay(spec, block) ? prepare_row_conv(spec, block) : nullptr;
}

}  // namespace rosin::cpu
