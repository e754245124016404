// Pooling of images of one channel, some of them at a time as the channels of one image: where rows are too short, or
// windows too far apart, for neighbouring windows to be computed side by side. What is turned stays in the cache. Read
// after tile.hpp; the other way is plane_pool.cpp.
#include <algorithm>
#include <array>
#include <utility>

#include "base/strided_copy.hpp"
#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/tile.hpp"

namespace rosin::engines {

namespace {

constexpr int operands = 3;

/// The way of `planes` planes to an image with as many channels, or back.
BlockCopy turning(int64_t planes, int64_t points, size_t width, bool back) {
  StridedCopy copy;
  copy.rank = 2;
  copy.sizes[0] = points, copy.sizes[1] = planes;
  int64_t(&beside)[Shape::max_rank] = back ? copy.source : copy.target;
  int64_t(&apart)[Shape::max_rank] = back ? copy.target : copy.source;
  beside[0] = planes, beside[1] = 1;
  apart[0] = 1, apart[1] = points;
  return {copy, width, back ? 0 : 1, back ? 1 : 0};
}

/// A call for so many planes at once.
class Together {
 public:
  Together() = default;
  Together(PoolSpec spec, int64_t planes, const MakePool& make)
      : counts_(image_counts(spec)), width_(size_of(spec.type)) {
    for (size_t i = 0; i < counts_.size(); ++i) copies_[i] = turning(planes, counts_[i], width_, i == operands);
    spec.batch = 1;
    spec.channels = planes;
    call_ = make(spec);
    place(operands, planes);
    for (int i = 0; i < operands; ++i) place(i, planes);
    scratch_at_ = bytes_;
    bytes_ += call_->scratch_bytes_per_chunk();
  }

  size_t bytes() const { return bytes_; }
  const char* engine() const { return call_->engine(); }

  /// From plane `first` on.
  void run(int64_t first, const VendorBuffers& buffers, void* scratch) const {
    const auto at = [&](size_t i) { return static_cast<char*>(scratch) + places_[i]; };
    const auto behind = [&](size_t i) { return static_cast<size_t>(first * counts_[i]) * width_; };
    const void* const given[operands] = {buffers.first, buffers.second, buffers.third};
    for (size_t i = 0; i < operands; ++i) {
      if (counts_[i] > 0) copies_[i].run_here(at(i), static_cast<const char*>(given[i]) + behind(i));
    }
    const VendorBuffers inside{at(0), at(1), at(2), at(operands), nullptr};
    for (int64_t chunk = 0; chunk < call_->chunks(); ++chunk)
      call_->run_chunk(chunk, inside, static_cast<char*>(scratch) + scratch_at_);
    copies_[operands].run_here(static_cast<char*>(buffers.result) + behind(operands), at(operands));
  }

 private:
  void place(int i, int64_t planes) {
    const auto at = static_cast<size_t>(i);
    places_[at] = bytes_;
    bytes_ += static_cast<size_t>(round_up(counts_[at] * planes * static_cast<int64_t>(width_), 64));
  }

  std::array<int64_t, operands + 1> counts_{};
  size_t width_ = 1;
  std::array<BlockCopy, operands + 1> copies_;
  std::unique_ptr<VendorCall> call_;
  std::array<size_t, operands + 1> places_{};  // in the scratch
  size_t bytes_ = 0, scratch_at_ = 0;
};

class TurnedPool final : public VendorCall {
 public:
  TurnedPool(const PoolSpec& spec, const MakePool& make) : planes_(spec.batch) {
    const auto counts = image_counts(spec);
    const auto width = static_cast<int64_t>(size_of(spec.type));
    const bool pads = std::any_of(spec.pad_low, spec.pad_low + spec.spatial, [](int64_t pad) { return pad > 0; });
    const int64_t bytes = pads ? second_cache : first_cache;
    const int64_t lines = std::clamp<int64_t>(bytes / (64 * std::max(counts[0], counts[operands])), 1, 16);
    side_ = std::min(planes_, lines * 64 / width);
    const int64_t each = (counts[0] + counts[operands]) * extent_of(spec.kernel, spec.spatial, 1).count();
    step_ = images_per_chunk((planes_ + side_ - 1) / side_, side_ * each, 4);
    chunks_ = ((planes_ + side_ - 1) / side_ + step_ - 1) / step_;
    together_ = Together(spec, side_, make);
    if (planes_ % side_ != 0) rest_ = Together(spec, planes_ % side_, make);
    scratch_bytes_ = std::max(together_.bytes(), rest_.bytes());
  }

  const char* engine() const noexcept override { return together_.engine(); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t end = std::min(planes_, (chunk + 1) * step_ * side_);
    for (int64_t plane = chunk * step_ * side_; plane < end; plane += side_)
      (plane + side_ <= planes_ ? together_ : rest_).run(plane, buffers, scratch);
  }

 private:
  /// Of an image, if it can be: lines of 64 bytes for each element. Windows at borders, which are computed one by one,
  /// are the fewer the more channels an image has.
  static constexpr int64_t first_cache = 1 << 14, second_cache = 1 << 17;

  int64_t planes_, side_ = 1;  // of them at a time
  int64_t step_ = 1;           // times in a chunk
  Together together_, rest_;
};

}  // namespace

std::unique_ptr<VendorCall> prepare_turned_pool(const PoolSpec& spec, const MakePool& make) {
  return std::make_unique<TurnedPool>(spec, make);
}

}  // namespace rosin::engines
