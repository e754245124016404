// See row_conv.hpp. All sums over some rows of images, or over some images, are made a few registers' at a time, and
// added up in memory. Channels that stand far apart, pixel by pixel, are copied into panels before: those of a register
// for all pixels one after another, so that no two pixels share a cache's places. A chunk has some channels of each
// image, so that nothing is added up behind it. Read first: weights_writer.hpp.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/strided_copy.hpp"
#include "cpu/row_conv.hpp"
#include "cpu/weights_writer.hpp"
#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"

namespace rosin::cpu {
namespace {

using engines::ConvSpec;
using engines::part_begin;
using engines::VendorBuffers;

/// From `first` on, before `last`.
struct Range {
  int64_t first = 0, last = 0;
  int64_t count() const { return std::max<int64_t>(0, last - first); }
};

Range common(const Range& a, const Range& b) { return {std::max(a.first, b.first), std::min(a.last, b.last)}; }

/// Numbers in nearly equal parts.
struct Parts {
  int64_t of = 0, count = 1;

  static Parts of_most(int64_t all, int64_t most) { return {all, (all + most - 1) / most}; }
  static Parts of_count(int64_t all, int64_t wanted) { return {all, std::clamp<int64_t>(wanted, 1, all)}; }
  Range operator[](int64_t i) const { return {part_begin(of, count, i), part_begin(of, count, i + 1)}; }
  int64_t most() const { return (of + count - 1) / count; }
};

/// A dim of a convolution, of whose elements one in `step` is read.
struct Dim {
  int64_t in, out, taps, stride, dilation, pad, step = 1;

  Dim(const ConvSpec& spec, int d)
      : in(spec.in[d]), out(spec.out[d]), taps(spec.kernel[d]), stride(spec.stride[d]), dilation(spec.dilation[d]),
        pad(spec.pad_low[d]) {
    if (taps > 1 || spec.pad_low[d] + spec.pad_high[d] > 0) return;
    in = out;
    step = std::exchange(stride, 1);
  }

  /// The element that a tap of a result stands over; it may be outside.
  int64_t element(int64_t result, int64_t tap) const { return result * stride - pad + tap * dilation; }
  /// Results under whose tap there is an element.
  Range results(int64_t tap) const {
    const int64_t first = element(0, tap), below = in - 1 - first;
    return {first >= 0 ? 0 : (-first + stride - 1) / stride, below < 0 ? 0 : std::min(out, below / stride + 1)};
  }
  /// Elements that some results' taps stand over.
  Range elements(const Range& of_results) const {
    return common({element(of_results.first, 0), element(of_results.last - 1, taps - 1) + 1}, {0, in});
  }
};

/// Pixels of some images all, or of one some rows, or a part of a row.
struct Pixels {
  Range images, rows, columns;
};

/// One of the two images, and how it is read: as it stands, or from panels.
struct Side {
  PixelSteps stands;          // from a pixel to the next
  int64_t panel = 0;          // elements of one; 0: read as it stands
  PixelSteps read;            // from a pixel to the next, where they are read
  int64_t register_step = 0;  // from the channels of a register to those of the next

  /// Of whose pixels one in `column_step` is read, of one row in `row_step`.
  Side(int64_t all, const int64_t* sizes, int64_t column_step = 1, int64_t row_step = 1) {
    const int64_t row = sizes[0] * all;
    stands = {all * column_step, row * row_step, sizes[1] * row};
  }

  int64_t place(const Pixels& pixels) const {
    return pixels.images.first * stands.image + pixels.rows.first * stands.row + pixels.columns.first * stands.pixel;
  }
};

class RowWeights final : public engines::VendorCall {
 public:
  RowWeights(const ConvSpec& spec, int64_t block)
      : spec_(spec), along_(spec, 0), across_(spec, 1), block_(block),
        elements_(spec.in_channels, spec.in, along_.step, across_.step), results_(spec.out_channels, spec.out) {
    find_steps();
    cut();
    for (int64_t vectors = 1; vectors <= lane_parts_.most(); ++vectors) loops_.push_back(weights_loop(text(vectors)));
    scratch_bytes_ = static_cast<size_t>(sums_at_ + unit_sums() * (steps() > 1 ? most_units() : 1)) * sizeof(float);
  }

  bool stands() const {
    return std::all_of(loops_.begin(), loops_.end(), [](const auto& loop) { return loop != nullptr; });
  }
  const char* engine() const noexcept override { return "rows"; }
  size_t bytes() const noexcept override {
    size_t bytes = sizeof(*this) + loops_.capacity() * sizeof(loops_.front());
    for (const auto& loop : loops_) bytes += loop->bytes();
    return bytes;
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    auto* const memory = static_cast<float*>(scratch);
    const Range lane_parts = lane_chunks_[chunk % lane_chunks_.count];
    const Range channel_parts = channel_chunks_[chunk / lane_chunks_.count];
    const Range of_elements = registers(lane_parts), of_results = registers_of_channels(channel_parts);
    for (int64_t i = 0; i < steps(); ++i) {
      const Pixels step = step_at(i);
      const float* const x = read_from(elements_, buffers.first, elements_of(step), of_elements, memory);
      const float* const dy = read_from(results_, buffers.second, step, of_results, memory + results_at_);
      float* sums = memory + sums_at_;
      for (int64_t l = lane_parts.first; l < lane_parts.last; ++l) {
        const Range vectors = lane_parts_[l];
        const float* const lanes = x + (vectors.first - of_elements.first) * elements_.register_step;
        for (int64_t c = channel_parts.first; c < channel_parts.last; ++c) {
          const int64_t channel = c * together_ - of_results.first * block_;
          const float* const channels = dy + channel / block_ * results_.register_step + channel % block_;
          if (i == 0) std::fill_n(sums, unit_sums(), 0.0f);
          add(step, vectors.count(), lanes, channels, sums);
          if (i + 1 == steps()) write(vectors, c * together_, sums, static_cast<float*>(buffers.result));
          if (steps() > 1) sums += unit_sums();
        }
      }
    }
  }

 private:
  static constexpr int64_t thousands = 60;  // multiply-adds a microsecond
  static constexpr int64_t pixels_of_step = 200, most_columns = 80;
  static constexpr int64_t most_apart = 256;  // elements
  static constexpr int64_t most_chunks = 16;  // each reads a part of all pixels

  // --- steps: results whose products are summed together ---
  void find_steps() {
    columns_ = Parts::of_most(along_.out, most_columns);
    images_ = std::clamp<int64_t>(pixels_of_step / (along_.out * across_.out), 1, spec_.batch);
    rows_ = images_ > 1 ? across_.out : std::clamp<int64_t>(pixels_of_step / columns_.most(), 1, across_.out);
    steps_of_column_ = (across_.out + rows_ - 1) / rows_;
    for (int64_t i = 0; i < columns_.count * steps_of_column_; ++i) {
      const Pixels step = elements_of(step_at(i));
      element_columns_ = std::max(element_columns_, step.columns.count());
      element_rows_ = std::max(element_rows_, step.rows.count());
    }
    find_reads(elements_, element_rows_, element_columns_);
    find_reads(results_, rows_, columns_.most());
  }
  void find_reads(Side& side, int64_t rows, int64_t columns) const {
    side.read = side.stands;
    side.register_step = block_;
    if (side.stands.pixel <= most_apart) return;
    side.read = {block_, columns * block_, rows * columns * block_};
    side.register_step = side.panel = images_ * side.read.image;
  }
  int64_t steps() const { return (spec_.batch + images_ - 1) / images_ * columns_.count * steps_of_column_; }
  Pixels step_at(int64_t i) const {
    const int64_t row = i % steps_of_column_ * rows_, column = i / steps_of_column_ % columns_.count;
    const int64_t image = i / steps_of_column_ / columns_.count * images_;
    return {
        {image, std::min(spec_.batch, image + images_)}, {row, std::min(across_.out, row + rows_)}, columns_[column]};
  }
  Pixels elements_of(const Pixels& results) const {
    return {results.images, across_.elements(results.rows), along_.elements(results.columns)};
  }

  // --- units: some registers of lanes, which are input channels, and some output channels ---
  void cut() {
    lane_parts_ = Parts::of_most(spec_.in_channels / block_, most_weight_vectors);
    together_ = most_weight_channels(lane_parts_.most(), block_);
    const int64_t channel_parts = spec_.out_channels / together_;
    const int64_t work = spec_.batch * along_.out * across_.out * taps() * spec_.in_channels * spec_.out_channels;
    const int64_t wanted = std::min(
        {engines::worthwhile_chunks(work / (1000 * thousands)), most_chunks, lane_parts_.count * channel_parts});
    const int64_t of_x = element_rows_ * element_columns_ * spec_.in_channels,
                  of_dy = rows_ * columns_.most() * spec_.out_channels;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t some = 1; some <= wanted; some *= 2) {
      const Parts lanes = Parts::of_count(lane_parts_.count, some),
                  channels = Parts::of_count(channel_parts, wanted / some);
      const int64_t read = channels.count * of_x + lanes.count * of_dy;
      if (2 * lanes.count * channels.count <= wanted || read >= least) continue;
      least = read;
      lane_chunks_ = lanes;
      channel_chunks_ = channels;
    }
    chunks_ = lane_chunks_.count * channel_chunks_.count;
    results_at_ = lane_chunks_.most() * lane_parts_.most() * elements_.panel;
    sums_at_ = results_at_ + (channel_chunks_.most() * together_ / block_ + 2) * results_.panel;
  }
  int64_t taps() const { return along_.taps * across_.taps; }
  int64_t unit_sums() const { return taps() * lane_parts_.most() * block_ * together_; }
  int64_t most_units() const { return lane_chunks_.most() * channel_chunks_.most(); }
  Range registers(const Range& parts) const {
    return {lane_parts_[parts.first].first, lane_parts_[parts.last - 1].last};
  }
  Range registers_of_channels(const Range& parts) const {
    return {parts.first * together_ / block_, (parts.last * together_ + block_ - 1) / block_};
  }

  WeightsText text(int64_t vectors) const {
    return {
        .block = block_,
        .vectors = vectors,
        .channels = together_,
        .lane_steps = {along_.stride * elements_.read.pixel, across_.stride * elements_.read.row, elements_.read.image},
        .channel_steps = results_.read,
        .vector_step = elements_.register_step};
  }

  /// Where the first channel of some registers is read for the first of some pixels: in panels, into which all of them
  /// are copied, or where it stands.
  const float* read_from(const Side& side, const void* image, const Pixels& pixels, const Range& registers,
                         float* panels) const {
    const float* const from = static_cast<const float*>(image) + side.place(pixels) + registers.first * block_;
    if (side.panel == 0) return from;
    for (int64_t r = 0; r < registers.count(); ++r) {
      for (int64_t i = 0; i < pixels.images.count(); ++i) {
        for (int64_t row = 0; row < pixels.rows.count(); ++row) {
          copy_row(side, pixels.columns.count(), from + r * block_ + i * side.stands.image + row * side.stands.row,
                   panels + r * side.panel + i * side.read.image + row * side.read.row);
        }
      }
    }
    return panels;
  }
  void copy_row(const Side& side, int64_t pixels, const float* from, float* to) const {
    const auto copy = [&]<size_t block>(std::integral_constant<size_t, block>) {
      for (int64_t p = 0; p < pixels; ++p, from += side.stands.pixel, to += block) {
        std::memcpy(to, from, block * sizeof(float));
      }
    };
    if (block_ == 16) copy(std::integral_constant<size_t, 16>());
    else copy(std::integral_constant<size_t, 8>());
  }

  /// Adds a step's products to the sums of a unit, tap by tap. `lanes`, `channels`: the first pixel's.
  void add(const Pixels& step, int64_t vectors, const float* lanes, const float* channels, float* sums) const {
    const MachineLoop& loop = *loops_[static_cast<size_t>(vectors - 1)];
    const Pixels elements = elements_of(step);
    for (int64_t y = 0; y < across_.taps; ++y) {
      const Range rows = common(across_.results(y), step.rows);
      for (int64_t x = 0; x < along_.taps; ++x, sums += vectors * block_ * together_) {
        const Range columns = common(along_.results(x), step.columns);
        if (rows.count() == 0 || columns.count() == 0) continue;
        const int64_t element = (across_.element(rows.first, y) - elements.rows.first) * elements_.read.row +
                                (along_.element(columns.first, x) - elements.columns.first) * elements_.read.pixel;
        const int64_t result = (rows.first - step.rows.first) * results_.read.row +
                               (columns.first - step.columns.first) * results_.read.pixel;
        void* list[] = {sums, const_cast<float*>(lanes + element), const_cast<float*>(channels + result),
                        reinterpret_cast<void*>(step.images.count())};
        loop.run(list, rows.count(), columns.count());
      }
    }
  }

  /// The sums of a unit: tap by tap, output channel by output channel, lanes.
  void write(const Range& vectors, int64_t channel, const float* sums, float* weights) const {
    const int64_t width = vectors.count() * block_;
    const StridedCopy copy{.rank = 3,
                           .sizes = {width, taps(), together_},
                           .target = {taps(), spec_.flipped ? -1 : 1, spec_.in_channels * taps()},
                           .source = {1, width * together_, width}};
    float* const to = weights + (channel * spec_.in_channels + vectors.first * block_) * taps();
    BlockCopy(copy, sizeof(float), 0, taps() > 1 ? 1 : 2).run_here(spec_.flipped ? to + taps() - 1 : to, sums);
  }

  ConvSpec spec_;
  Dim along_, across_;
  int64_t block_;
  Side elements_, results_;
  Parts columns_;                                          // of results, step by step
  int64_t images_ = 1, rows_ = 1, steps_of_column_ = 1;    // images and rows of a step
  int64_t element_columns_ = 0, element_rows_ = 0;         // of a step, at most
  int64_t together_ = 1;                                   // output channels of a unit
  Parts lane_parts_;                                       // registers
  Parts lane_chunks_, channel_chunks_;                     // parts of lanes; parts of `together_` channels
  int64_t results_at_ = 0, sums_at_ = 0;                   // in the scratch, behind panels of elements
  std::vector<std::shared_ptr<const MachineLoop>> loops_;  // by registers
};

}  // namespace

std::unique_ptr<engines::VendorCall> prepare_row_weights(const ConvSpec& spec, int64_t block) {
  auto call = std::make_unique<RowWeights>(spec, block);
  if (!call->stands()) return nullptr;
  return call;
}

}  // namespace rosin::cpu
