// Convolution and its gradients. Forward and by data: an item computes one place of an image in a few channels, which
// share what it reads. By weights: a group adds up one element of a kernel for a few output channels.
// Read first: convolution.hpp, window_terms.hpp. Read next: convolution_tiles.cpp, convolution_strips.cpp (both from
// shared memory, where images are many), window.cpp.
#include "kernels/convolution.hpp"
#include "kernels/sum.hpp"
#include "kernels/window_terms.hpp"

namespace rosin::kernels {
namespace {

/// Channels of the result that one item (or group of items) computes, in blocks that do not cross groups.
class Blocks {
 public:
  Blocks(KernelWriter& writer, int64_t channels_of_group, int64_t groups)
      : w_(writer), width_(channels_of_group < widest ? 1 : widest), grouped_(groups > 1),
        blocks_of_group_(groups_for(channels_of_group, width_)), count_(blocks_of_group_ * groups),
        channels_(writer.number(channels_of_group)), blocks_(writer.number(blocks_of_group_)) {}

  int width() const { return width_; }
  int64_t count() const { return count_; }
  /// Of block number `block`: its group, and its channels within the group (some may lie beyond the end).
  Term group(Term block) const { return grouped_ ? w_.quotient(block, blocks_) : w_.index(0); }
  std::vector<Term> channels(Term block, Term group) const {
    std::vector<Term> channels;
    channels.reserve(static_cast<size_t>(width_));
    for (int i = 0; i < width_; ++i) channels.push_back((block - group * blocks_) * width_ + i);
    return channels;
  }
  Term exists(Term channel) const { return channel < channels_; }
  /// The channel, or the last one where it does not exist.
  Term existing(Term channel) const { return width_ == 1 ? channel : min(channel, channels_ - 1); }
  Term channels_of_group() const { return channels_; }

 private:
  static constexpr int widest = 4;
  KernelWriter& w_;
  int width_;
  bool grouped_;
  int64_t blocks_of_group_, count_;
  Term channels_, blocks_;
};

std::vector<Term> joined(std::span<const Term> spatial, Term third, Term last) {
  std::vector<Term> all(spatial.begin(), spatial.end());
  all.push_back(third);
  all.push_back(last);
  return all;
}

/// Where tap `tap` stands in the kernel.
std::vector<Term> in_kernel(const Convolution& conv, const WindowTerms& windows, std::span<const Term> tap) {
  std::vector<Term> at(tap.begin(), tap.end());
  if (conv.attributes.flipped == 0) return at;
  for (size_t d = 0; d < at.size(); ++d) at[d] = windows.window(static_cast<int>(d)) - 1 - at[d];
  return at;
}

std::vector<Term> zeros(KernelWriter& w, ScalarType type, int count) {
  std::vector<Term> sums;
  sums.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) sums.push_back(w.variable(w.literal(type, 0)));
  return sums;
}

/// y from x, or x (by_data) from y: the sum over the other's channels in the group and over the windows that meet.
Launch by_places(const Convolution& conv, bool by_data) {
  KernelWriter w(by_data ? "convolution_data" : "convolution", items_of_group, conv.index());
  const ArrayTerm from(w, conv.layout, by_data ? conv.y : conv.x), weights(w, conv.layout, conv.weights),
      to(w, conv.layout, conv.node);
  const WindowTerms windows = conv.windows(w);
  const Blocks blocks(w, by_data ? conv.in_of_group() : conv.out_of_group(), conv.groups());
  const Term summed = w.number(by_data ? conv.out_of_group() : conv.in_of_group());
  const View& result = conv.view(conv.node);
  const int64_t count = result.count() / result.sizes[conv.spatial()] * blocks.count();

  std::vector<Term> sizes = size_terms(w, conv.layout, conv.node);
  sizes[static_cast<size_t>(conv.spatial())] = w.number(blocks.count());
  const Term global = w.global();
  w.when(global < w.number(count), [&] {
    const std::vector<Term> at = w.coordinates(global, sizes);
    const std::span<const Term> place = std::span(at).first(static_cast<size_t>(conv.spatial()));
    const Term block = at[place.size()], image = at.back(), group = blocks.group(block);
    const std::vector<Term> channels = blocks.channels(block, group);
    const std::vector<Term> sums = zeros(w, conv.compute(), blocks.width());
    w.loop(summed, [&](Term other) {
      const Term source = group * summed + other;
      const auto add = [&](std::span<const Term> there, std::span<const Term> tap) {
        const Term value = from.load(joined(there, source, image));
        const std::vector<Term> kernel = in_kernel(conv, windows, tap);
        for (size_t i = 0; i < sums.size(); ++i) {
          const Term own = blocks.existing(channels[i]);
          const Term out = group * blocks.channels_of_group() + own;
          add_product(sums[i], value, weights.load(by_data ? joined(kernel, own, source) : joined(kernel, other, out)));
        }
      };
      if (by_data) windows.each_window(place, add);
      else windows.each_tap(place, add);
    });
    for (size_t i = 0; i < sums.size(); ++i) {
      w.when(blocks.exists(channels[i]),
             [&] { to.store(joined(place, group * blocks.channels_of_group() + channels[i], image), sums[i]); });
    }
  });
  return w.finish(groups_for(count));
}

/// The gradient of element (tap..., in) of the kernels of a block of output channels: a group of items adds up the
/// products over all places and images.
Launch by_weights(const Convolution& conv) {
  KernelWriter w("convolution_weights", items_of_group, conv.index());
  const ArrayTerm x(w, conv.layout, conv.x), dy(w, conv.layout, conv.y), dw(w, conv.layout, conv.node);
  const WindowTerms windows = conv.windows(w);
  const Blocks blocks(w, conv.out_of_group(), conv.groups());
  const View& result = conv.view(conv.node);
  const int64_t count = result.count() / result.sizes[conv.spatial() + 1] * blocks.count();
  const size_t dims = static_cast<size_t>(conv.spatial());

  std::vector<Term> sizes = size_terms(w, conv.layout, conv.node);
  sizes.back() = w.number(blocks.count());
  const std::vector<Term> at = w.coordinates(w.group(0), sizes);
  const std::span<const Term> tap = std::span(at).first(dims);
  const Term in = at[dims], block = at.back(), group = blocks.group(block);
  const Term source = group * w.number(conv.in_of_group()) + in;
  const std::vector<Term> channels = blocks.channels(block, group);
  const std::vector<Term> sums = zeros(w, conv.compute(), blocks.width());

  std::vector<Term> places = size_terms(w, conv.layout, conv.y);
  places.erase(places.begin() + conv.spatial());  // places of all images: (spatial..., batch)
  const View& y = conv.view(conv.y);
  const Term all = w.number(y.sizes[dims] == 0 ? 0 : y.count() / y.sizes[dims]);
  const std::vector<Term> window_tap = in_kernel(conv, windows, tap);  // turning twice is no turning
  w.loop(w.item(), all, w.index(items_of_group), [&](Term number) {
    const std::vector<Term> place = w.coordinates(number, places);
    const Term image = place.back();
    const std::span<const Term> spatial = std::span(place).first(dims);
    windows.when_inside(spatial, window_tap, [&](std::span<const Term> there, std::span<const Term>) {
      const Term value = x.load(joined(there, source, image));
      for (size_t i = 0; i < sums.size(); ++i) {
        const Term out = group * blocks.channels_of_group() + blocks.existing(channels[i]);
        add_product(sums[i], value, dy.load(joined(spatial, out, image)));
      }
    });
  });
  sum_over_group(w, sums);
  w.when(w.item() == 0, [&] {
    for (size_t i = 0; i < sums.size(); ++i) {
      w.when(blocks.exists(channels[i]),
             [&] { dw.store(joined(tap, in, group * blocks.channels_of_group() + channels[i]), sums[i]); });
    }
  });
  return w.finish(count);
}

}  // namespace

bool write_convolution(const Layout& layout, const Step& step, LaunchList& list) {
  const Convolution conv(layout, step.node);
  if (conv.view(step.node).count() == 0 || write_by_strips(conv, list)) return false;
  if (write_by_tiles(conv, step, list)) return tiles_take_epilogue(conv, step);
  const bool weights = conv.what == Contraction::convolution_weights;
  list.launches.push_back(weights ? by_weights(conv) : by_places(conv, conv.what == Contraction::convolution_data));
  return false;
}

bool beats_libraries(const Layout& layout, const Step& step, const Abilities& device) {
  const Op& op = *layout.structure->graph.values[static_cast<size_t>(step.node)].op;
  if (op.kind != Kind::contraction || op.contraction == Contraction::matmul) return false;
  const Convolution conv(layout, step.node);
  if (conv.dtype() != DType::Float32 || conv.mode() != MathMode::standard || conv.view(step.node).count() == 0)
    return false;
  return strips_beat_libraries(conv, device) || tiles_beat_libraries(conv, step, device);
}

}  // namespace rosin::kernels
