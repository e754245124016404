// See few_conv.hpp. Padding is zeros that are multiplied, so values that are not finite are left to another engine
// (checked.hpp). Read first: few_writer.hpp.
#include "cpu/few_conv.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cpu/few_writer.hpp"
#include "engines/checked.hpp"
#include "engines/conv_cuts.hpp"
#include "engines/conv_shape.hpp"
#include "engines/epilogue.hpp"
#include "engines/form_name.hpp"

namespace rosin::cpu {
namespace {

using engines::ConvKind;
using engines::ConvPieces;
using engines::ConvShape;
using engines::ConvSpec;
using engines::VendorBuffers;
using plan::Activation;

using Loop = std::shared_ptr<const MachineLoop>;

FewText text_of(const ConvSpec& spec, int64_t block) {
  return {.block = block,
          .channels = spec.out_channels,
          .elements = spec.in[0],
          .results = spec.out[0],
          .pad = spec.pad_low[0],
          .taps = spec.kernel[0],
          .tap_rows = spec.kernel[1],
          .bias = spec.epilogue.bias,
          .rectified = spec.epilogue.activation == Activation::relu};
}

void clear(float* first, int64_t count) { std::memset(first, 0, static_cast<size_t>(count) * sizeof(float)); }

void repeat(const MachineLoop& loop, const float* from, int64_t rows, float* to) {
  void* memory[] = {to, const_cast<float*>(from)};
  if (rows > 0) loop.run(memory, rows, 0);
}

class FewConv final : public engines::VendorCall {
 public:
  FewConv(const ConvSpec& spec, int64_t block)
      : spec_(spec), text_(text_of(spec, block)), pieces_(engines::ConvCuts(spec, 1)), lanes_(text_.phases() * block),
        repeating_(repeating_loop(text_)) {
    for (const int64_t together : rows_together) loops_.push_back(sums_loop(text_, together));
    const int64_t most = rows_together[0], fit = most_elements / text_.pitch() - (text_.tap_rows - 1);
    rows_ = std::min(std::max(most, fit / most * most), spec.out[1]);
    band_ = (rows_ + text_.tap_rows - 1) * text_.pitch();
    chunks_ = static_cast<int64_t>(pieces_.pieces.size());
    workspace_bytes_ = packed_bytes();
    scratch_bytes_ = static_cast<size_t>(band_ + lanes_) * sizeof(float);
    has_begin_ = true;
  }

  bool stands() const { return repeating_ && std::count(loops_.begin(), loops_.end(), nullptr) == 0; }
  const char* engine() const noexcept override { return "few"; }
  size_t bytes() const noexcept override {
    size_t bytes = sizeof(*this) + repeating_->bytes();
    for (const Loop& loop : loops_) bytes += loop->bytes();
    return bytes + pieces_.pieces.capacity() * sizeof(ConvPieces::Piece) + pieces_.sizes.capacity() * sizeof(ConvSpec);
  }
  std::optional<engines::MatmulPart> part_of(int64_t chunk) const override { return pieces_[chunk].part; }

  engines::Form form(int operand) const override {
    if (operand == 0) return {};
    return {engines::form_name("few", {text_.block, spec_.flipped}), packed_bytes()};
  }
  void make_form(int, const void* weights, void* to) const override {
    pack(static_cast<const float*>(weights), static_cast<float*>(to));
  }
  void begin(const VendorBuffers& buffers) const override {
    if (!buffers.forms[1]) make_form(1, buffers.second, buffers.workspace);
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const ConvPieces::Piece& piece = pieces_[chunk];
    const ConvSpec& size = pieces_.sizes[piece.size];
    auto* const band = static_cast<float*>(scratch);
    float* const bias = band + band_;
    for (int64_t i = 0; text_.bias && i < lanes_; ++i)
      bias[i] = static_cast<const float*>(buffers.third)[i % text_.channels];
    for (int64_t image = 0; image < size.batch; ++image) {
      const float* const x = static_cast<const float*>(buffers.first) + piece.x + image * count_of(size.in);
      float* const y = static_cast<float*>(buffers.result) + piece.y + image * count_of(size.out) * text_.channels;
      for (int64_t row = 0; row < size.out[1]; row += rows_) {
        const int64_t rows = std::min(rows_, size.out[1] - row);
        fill(size, x, row, rows, band);
        sum(rows, band, buffers, y + row * row_results(), bias);
      }
    }
  }

 private:
  static constexpr int64_t rows_together[] = {4, 2, 1};
  static constexpr int64_t most_elements = 8192;  // Float32 of a band: the first cache holds them

  static int64_t count_of(const int64_t* sizes) { return sizes[0] * sizes[1]; }
  int64_t row_results() const { return text_.results * text_.channels; }

  /// The rows of elements under some rows of results.
  void fill(const ConvSpec& size, const float* image, int64_t row, int64_t rows, float* band) const {
    const int64_t above = row - size.pad_low[1], all = rows + text_.tap_rows - 1;
    const int64_t first = std::clamp<int64_t>(above, 0, size.in[1]), last = std::clamp(above + all, first, size.in[1]);
    clear(band, std::min(all, first - above) * text_.pitch());
    repeat(*repeating_, image + first * text_.elements, last - first, band + (first - above) * text_.pitch());
    const int64_t end = std::max<int64_t>(last - above, 0);
    clear(band + end * text_.pitch(), (all - end) * text_.pitch());
  }

  void sum(int64_t rows, float* band, const VendorBuffers& buffers, float* y, float* bias) const {
    void* const packed = const_cast<void*>(buffers.forms[1] ? buffers.forms[1] : buffers.workspace);
    for (int64_t row = 0; row < rows;) {
      size_t kind = 0;
      while (rows_together[kind] > rows - row) ++kind;
      void* memory[] = {y + row * row_results(), band + row * text_.pitch(), packed, bias};
      loops_[kind]->run(memory, 0, 0);
      row += rows_together[kind];
    }
  }

  size_t packed_bytes() const { return static_cast<size_t>(text_.tap_rows * text_.row_weights()) * sizeof(float); }
  void pack(const float* weights, float* to) const {
    const int64_t taps = text_.taps * text_.tap_rows;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const float* const from = weights + (spec_.flipped ? taps - 1 - tap : tap);
      for (int64_t i = 0; i < lanes_; ++i) *to++ = from[i % text_.channels * taps];
    }
  }

  ConvSpec spec_;
  FewText text_;
  ConvPieces pieces_;
  int64_t lanes_;  // of all phases
  Loop repeating_;
  std::vector<Loop> loops_;  // of so many rows together
  int64_t rows_ = 0;         // of results, whose elements are repeated at once
  int64_t band_ = 0;         // Float32 that these take
};

/// The sums of a chunk are lanes; those of all chunks are added up before what is of one channel.
class FewWeights final : public engines::VendorCall {
 public:
  FewWeights(const ConvSpec& spec, int64_t block)
      : spec_(spec), text_(text_of(spec, block)), pieces_(engines::ConvCuts(spec, most_chunks)),
        sums_(text_.tap_rows * text_.row_weights()), repeating_(repeating_loop(text_)),
        together_(most_taps_together(text_)) {
    for (int64_t tap = 0; tap < text_.taps; tap += together_) {
      const int64_t count = std::min(together_, text_.taps - tap);
      for (int64_t phase = 0; phase < text_.phases(); ++phase)
        parts_.push_back({few_weights_loop(text_, phase, tap, count), phase, tap, count});
    }
    chunks_ = static_cast<int64_t>(pieces_.pieces.size());
    workspace_bytes_ = static_cast<size_t>(chunks_ * sums_) * sizeof(float);
    zeros_at_ = spec.in[1] * text_.pitch();
    under_at_ = static_cast<size_t>(zeros_at_ + text_.vectors() * block) * sizeof(float);
    scratch_bytes_ = under_at_ + static_cast<size_t>(spec.in[1] * text_.tap_rows) * sizeof(float*);
    has_finish_ = true;
  }

  bool stands() const {
    return repeating_ && std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.loop; });
  }
  const char* engine() const noexcept override { return "few"; }
  size_t bytes() const noexcept override {
    size_t bytes = sizeof(*this) + repeating_->bytes() + parts_.capacity() * sizeof(Part);
    for (const Part& part : parts_) bytes += part.loop->bytes();
    return bytes;
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const ConvPieces::Piece& piece = pieces_[chunk];
    auto* const rows = static_cast<float*>(scratch);
    float* const sums_of_chunk = static_cast<float*>(buffers.workspace) + chunk * sums_;
    clear(rows + zeros_at_, text_.vectors() * text_.block);
    clear(sums_of_chunk, sums_);
    auto* const under = reinterpret_cast<const float**>(static_cast<char*>(scratch) + under_at_);
    const float* x = static_cast<const float*>(buffers.first) + piece.x;
    const float* gradients = static_cast<const float*>(buffers.second) + piece.y;
    for (int64_t image = 0; image < pieces_.sizes[piece.size].batch; ++image) {
      repeat(*repeating_, x, spec_.in[1], rows);
      find_rows(gradients, rows + zeros_at_, under);
      float* to = sums_of_chunk;
      for (const Part& part : parts_) {
        void* memory[] = {to, rows, under};
        part.loop->run(memory, spec_.in[1], 0);
        to += text_.tap_rows * part.count * text_.block;
      }
      x += spec_.in[0] * spec_.in[1];
      gradients += spec_.out[1] * row_results();
    }
  }

  void finish(const VendorBuffers& buffers) const override {
    auto* const all = static_cast<float*>(buffers.workspace);
    for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
      const float* const some = all + chunk * sums_;
      for (int64_t i = 0; i < sums_; ++i) all[i] += some[i];
    }
    write(all, static_cast<float*>(buffers.result));
  }

 private:
  static constexpr int64_t most_chunks = 16;

  /// Some taps of each row, by one phase.
  struct Part {
    Loop loop;
    int64_t phase, tap, count;
  };

  int64_t taps() const { return text_.taps * text_.tap_rows; }
  int64_t row_results() const { return text_.results * text_.channels; }

  /// For each row of elements the rows of gradients under rows of taps.
  void find_rows(const float* gradients, const float* zeros, const float** under) const {
    for (int64_t row = 0; row < spec_.in[1]; ++row) {
      for (int64_t tap = 0; tap < text_.tap_rows; ++tap) {
        const int64_t result = row + spec_.pad_low[1] - tap;
        const bool inside = result >= 0 && result < spec_.out[1];
        *under++ = inside ? gradients + result * row_results() : zeros;
      }
    }
  }

  void write(const float* lanes, float* weights) const {
    clear(weights, taps() * text_.channels);
    for (const Part& part : parts_) {
      for (int64_t k = 0; k < text_.tap_rows * part.count; ++k) {
        const int64_t place = k / part.count * text_.taps + part.tap + k % part.count;
        float* const to = weights + (spec_.flipped ? taps() - 1 - place : place);
        int64_t channel = part.phase * text_.block % text_.channels;
        for (int64_t i = 0; i < text_.block; ++i) {
          to[channel * taps()] += *lanes++;
          if (++channel == text_.channels) channel = 0;
        }
      }
    }
  }

  ConvSpec spec_;
  FewText text_;
  ConvPieces pieces_;
  int64_t sums_;  // lanes of a chunk
  Loop repeating_;
  int64_t together_;  // taps
  std::vector<Part> parts_;
  int64_t zeros_at_ = 0;  // in the scratch, behind repeated elements: a row of gradients that is not there
  size_t under_at_ = 0;   // and bytes to the rows under taps
};

template <class T> std::unique_ptr<engines::VendorCall> made(const ConvSpec& spec, int64_t block) {
  auto call = std::make_unique<T>(spec, block);
  if (!call->stands()) return nullptr;
  const ConvShape s(spec);
  const int64_t weights = s.kernel.count() * s.in_channels * s.out_channels;
  const bool forward = spec.kind == ConvKind::forward;
  return engines::checked(std::move(call), engines::prepare_conv(spec, engines::Engine::plain), spec.type,
                          {.second = forward ? weights : 0, .result = forward ? 0 : weights});
}

/// Code is written register by register, and the rows of an image are repeated at once for a gradient.
bool few_can(const ConvSpec& spec, int64_t block) {
  constexpr int64_t most_vectors = 56, most_taps = 64, most_repeated = 1 << 17;
  const FewText text = text_of(spec, block);
  const bool of_kind = spec.kind == ConvKind::forward || spec.kind == ConvKind::backward_weights;
  const bool ones = spec.stride[0] * spec.stride[1] * spec.dilation[0] * spec.dilation[1] == 1;
  if (!of_kind || !ones || spec.type != DType::Float32 || spec.spatial != 2 || spec.logical) return false;
  if (spec.in_channels != 1 || spec.groups != 1 || spec.out_channels >= block) return false;
  if (spec.batch * spec.out_channels == 0 || !machine_code_works()) return false;
  return text.vectors() <= most_vectors && text.taps * text.tap_rows <= most_taps && most_taps_together(text) > 0 &&
         spec.in[1] * text.pitch() <= most_repeated;
}

}  // namespace

std::unique_ptr<engines::VendorCall> prepare_few_conv(const ConvSpec& spec, int64_t block) {
  engines::check_conv(spec);
  if (!few_can(spec, block)) return nullptr;
  if (spec.kind == ConvKind::backward_weights) return made<FewWeights>(spec, block);
  bool stands = true;
  auto call = engines::with_epilogue(spec, true, [&](const ConvSpec& inner) {
    auto sums = made<FewConv>(inner, block);
    stands = sums != nullptr;
    return stands ? std::move(sums) : engines::prepare_conv(inner);
  });
  return stands ? std::move(call) : nullptr;
}

/// Measured on Zen 5, with AVX-512, images of 28 x 28: forward 0.2 (of one channel) to 0.7 (of eight) of the time of
/// the tile kernel, 1.0 of seven, more than that from nine on; gradients 0.1 to 0.9 of it up to twelve channels, where
/// the sums of all taps find room, else no less. With AVX2 the same of half as many.
bool few_pays(const ConvSpec& spec, int64_t block) {
  if (!few_can(spec, block)) return false;
  const FewText text = text_of(spec, block);
  if (spec.kind == ConvKind::forward) return 2 * text.channels <= block;
  return 4 * text.channels <= 3 * block && most_taps_together(text) == text.taps;
}

}  // namespace rosin::cpu
