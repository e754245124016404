// See channel_filters.hpp. A chunk has whole images, or of few images some rows, as other convolutions have them. It
// computes a block of channels at a time, which fits the first cache. Read first: filter_writer.hpp.
#include "cpu/channel_filters.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "engines/conv_cuts.hpp"
#include "engines/conv_shape.hpp"
#include "engines/epilogue.hpp"
#include "engines/form_name.hpp"

namespace rosin::cpu {
namespace {

using engines::ConvKind;
using engines::ConvShape;
using engines::ConvSpec;
using engines::VendorBuffers;
using plan::Activation;

/// Which rows of taps a row of results takes, and what they stand over.
struct Row {
  int64_t elements = 0;  // the row of elements of the first one
  int64_t first = 0, count = 0;
};

/// Along one dim, as FilterText says it.
FilterText along(const ConvSpec& spec, int dim) {
  const bool by_data = spec.kind == ConvKind::backward_data;
  FilterText text;
  text.elements = by_data ? spec.out[dim] : spec.in[dim];
  text.results = by_data ? spec.in[dim] : spec.out[dim];
  text.taps = spec.kernel[dim];
  text.stride = spec.stride[dim];
  text.dilation = spec.dilation[dim];
  text.pad = spec.pad_low[dim];
  text.by_data = by_data;
  return text;
}

/// Taps of a gradient stand over every so many elements only.
int64_t step_of_taps(const FilterText& along) {
  return along.by_data ? along.stride / std::gcd(along.stride, along.dilation) : 1;
}

std::vector<Row> rows_of(const FilterText& across) {
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

class ChannelFilters final : public engines::VendorCall {
 public:
  /// `loops`: of whole blocks and of the last one.
  ChannelFilters(const ConvSpec& spec, int64_t block, std::shared_ptr<const MachineLoop> whole,
                 std::shared_ptr<const MachineLoop> last)
      : spec_(spec), s_(spec), whole_(std::move(whole)), last_(std::move(last)), block_(block),
        blocks_((spec.in_channels + block - 1) / block), pieces_(engines::ConvCuts(spec, 1)) {
    chunks_ = static_cast<int64_t>(pieces_.pieces.size());
    for (const ConvSpec& size : pieces_.sizes) rows_.push_back(rows_of(along(size, 1)));
    workspace_bytes_ = packed_bytes();
    has_begin_ = true;
  }

  const char* engine() const noexcept override { return "channels"; }
  size_t bytes() const noexcept override {
    size_t bytes = sizeof(*this) + whole_->bytes() + last_->bytes();
    for (const auto& rows : rows_) bytes += rows.capacity() * sizeof(Row) + sizeof(ConvSpec);
    return bytes;
  }
  std::optional<engines::MatmulPart> part_of(int64_t chunk) const override {
    const engines::ConvPieces::Piece& piece = pieces_[chunk];
    const ConvSpec& size = pieces_.sizes[piece.size];
    const int64_t first = begin_of_results(piece) / spec_.in_channels;
    return engines::MatmulPart{0, 1, first, first + size.batch * results_of(size), 0, spec_.in_channels};
  }

  engines::Form form(int operand) const override {
    if (operand == 0) return {};
    return {engines::form_name("channels", {block_, spec_.flipped}), packed_bytes()};
  }
  void make_form(int, const void* weights, void* to) const override {
    pack(static_cast<const float*>(weights), static_cast<float*>(to));
  }

  void begin(const VendorBuffers& buffers) const override {
    if (!buffers.forms[1]) make_form(1, buffers.second, buffers.workspace);
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void*) const override {
    const engines::ConvPieces::Piece& piece = pieces_[chunk];
    const ConvSpec& size = pieces_.sizes[piece.size];
    int64_t from = is_by_data() ? piece.y : piece.x, to = begin_of_results(piece);
    for (int64_t image = 0; image < size.batch; ++image) {
      run_image(rows_[piece.size], from, to, buffers);
      from += along(size, 0).elements * along(size, 1).elements * spec_.in_channels;
      to += results_of(size) * spec_.in_channels;
    }
  }

 private:
  bool is_by_data() const { return spec_.kind == ConvKind::backward_data; }
  int64_t begin_of_results(const engines::ConvPieces::Piece& piece) const { return is_by_data() ? piece.x : piece.y; }
  /// Of an image.
  static int64_t results_of(const ConvSpec& size) { return along(size, 0).results * along(size, 1).results; }

  /// Rows of an image: its elements and results begin there.
  void run_image(const std::vector<Row>& rows, int64_t from, int64_t to, const VendorBuffers& buffers) const {
    const void* const packed = buffers.forms[1] ? buffers.forms[1] : buffers.workspace;
    const auto at = [](const void* array, int64_t place) -> void* {
      return array ? const_cast<float*>(static_cast<const float*>(array) + place) : nullptr;
    };
    const FilterText line = along(spec_, 0);
    for (int64_t lane = 0; lane < spec_.in_channels; lane += block_) {
      const MachineLoop& loop = lane + block_ <= spec_.in_channels ? *whole_ : *last_;
      int64_t result = to + lane;
      for (const Row& row : rows) {
        void* memory[] = {at(buffers.result, result),
                          at(buffers.first, from + row.elements * line.elements * spec_.in_channels + lane),
                          at(packed, lane * s_.kernel.count() + row.first * line.taps * block_),
                          at(buffers.third, lane), at(buffers.residual, result)};
        loop.run(memory, row.count, 0);
        result += line.results * spec_.in_channels;
      }
    }
  }

  size_t packed_bytes() const { return static_cast<size_t>(blocks_ * block_ * s_.kernel.count()) * sizeof(float); }

  /// Taps in their order, of which each has the lanes of a block.
  void pack(const float* weights, float* to) const {
    const int64_t taps = s_.kernel.count();
    for (int64_t block = 0; block < blocks_; ++block, to += block_ * taps) {
      for (int64_t lane = 0; lane < block_; ++lane) {
        const int64_t channel = block * block_ + lane;
        const float* const filter = weights + channel * taps;
        for (int64_t t = 0; t < taps; ++t) {
          to[t * block_ + lane] = channel >= spec_.in_channels ? 0 : filter[spec_.flipped ? taps - 1 - t : t];
        }
      }
    }
  }

  ConvSpec spec_;
  ConvShape s_;
  std::shared_ptr<const MachineLoop> whole_, last_;
  int64_t block_, blocks_;
  engines::ConvPieces pieces_;
  std::vector<std::vector<Row>> rows_;  // by size
};

bool rectifies(Activation activation) { return activation == Activation::relu || activation == Activation::relu6; }

/// The code of a block with so many channels.
std::shared_ptr<const MachineLoop> loop_of(const ConvSpec& spec, int64_t block, int64_t lanes) {
  FilterText text = along(spec, 0);
  const FilterText across = along(spec, 1);
  text.block = block;
  text.lanes = lanes;
  text.channels = spec.in_channels;
  text.tap_rows = step_of_taps(across);
  text.element_rows = across.by_data ? -across.dilation * text.tap_rows / across.stride : across.dilation;
  text.bias = spec.epilogue.bias;
  text.residual = spec.epilogue.residual;
  text.rectified = rectifies(spec.epilogue.activation);
  if (spec.epilogue.activation == Activation::relu6) text.most = 6;
  return filter_loop(text);
}

std::unique_ptr<engines::VendorCall> prepared(const ConvSpec& spec, int64_t block) {
  const int64_t rest = spec.in_channels % block;
  const auto last = loop_of(spec, block, rest == 0 ? block : rest);
  const auto whole = rest == 0 || spec.in_channels < block ? last : loop_of(spec, block, block);
  if (!whole || !last) return nullptr;
  return std::make_unique<ChannelFilters>(spec, block, whole, last);
}

/// Code has places as numbers of 32 bits.
bool is_small(const ConvSpec& spec) {
  const ConvShape s(spec);
  constexpr int64_t most = std::numeric_limits<int32_t>::max() / 16;
  const int64_t width = std::max(s.in.w, s.out.w) + s.pad_low.w + s.kernel.w * s.dilation.w;
  return width * spec.in_channels * (s.dilation.h + 1) < most && s.kernel.count() < most / 64;
}

}  // namespace

std::unique_ptr<engines::VendorCall> prepare_channel_filters(const ConvSpec& given, int64_t block) {
  const ConvSpec spec = engines::lifted(given);
  const bool of_channels = spec.groups == spec.in_channels && spec.groups == spec.out_channels && spec.groups > 1;
  const bool of_kind = spec.type == DType::Float32 && spec.kind != ConvKind::backward_weights && spec.spatial == 2;
  if (!of_channels || !of_kind || spec.logical || spec.batch == 0 || !is_small(spec) || !machine_code_works()) {
    return nullptr;
  }
  ConvSpec inner = spec;
  if (!rectifies(spec.epilogue.activation)) inner.epilogue.activation = Activation::none;
  std::unique_ptr<engines::VendorCall> call = prepared(inner, block);
  if (!call || inner.epilogue == spec.epilogue) return call;
  plan::Epilogue rest;
  rest.activation = spec.epilogue.activation;
  return engines::finished(std::move(call), rest, spec.activation, engines::result_shape(spec));
}

}  // namespace rosin::cpu
