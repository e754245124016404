// The gradient by weights of convolutions of few channels. A group brings strips of images, x and dy, to shared memory
// one after the other. Of the weights an item owns all taps along dim 0 of one row of taps for a few output channels,
// and adds up the products along lines of dy: what it has read of x serves all these taps. Sizes of images and kernels
// are literals, so that loops and places are known when a kernel is compiled.
// Read first: strip.hpp. Read next: convolution_tiles.cpp (forward and by data), convolution.cpp (all others).
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "kernels/strip.hpp"
#include "kernels/sum.hpp"

namespace rosin::kernels {
namespace {

constexpr int64_t most_sums = 32, most_channels = 8, most_step = 8;  // of an item
constexpr int64_t most_groups = 528;

/// How the work is cut.
class Cut {
 public:
  explicit Cut(const Convolution& c, int64_t shared_bytes)
      : conv(c), dims(static_cast<size_t>(c.spatial())), taps(kernel(0)), rows(weights() / taps / out()),
        channels(channels_of_item()), tiles(rows * out() / std::max<int64_t>(channels, 1)),
        tiles_of_group(std::min<int64_t>(tiles, items_of_group)), shared_bytes_(std::min(shared_bytes, most_shared)) {
    if (channels == 0) return;
    take_depth();
    turns = groups_for(all_strips(), std::max<int64_t>(wanted_parts(), 1));
    parts = groups_for(all_strips(), turns);
  }

  /// Whether a strip fits, and strips are enough.
  bool good() const { return channels > 0 && bytes() <= shared_bytes_ && parts * chunks() >= least_groups; }

  int64_t kernel(size_t d) const { return conv.view(conv.weights).sizes[d]; }
  int64_t y(size_t d) const { return conv.view(conv.y).sizes[d]; }
  int64_t stride(size_t d) const { return conv.attributes.stride[d]; }
  int64_t dilation(size_t d) const { return conv.attributes.dilation[d]; }
  int64_t out() const { return y(dims); }
  int64_t weights() const { return conv.view(conv.weights).count(); }
  int64_t chunks() const { return groups_for(tiles, tiles_of_group); }
  int64_t all_strips() const { return strips * y(dims + 1); }
  /// Lines of dy along dim 0 in a strip, and those of one place along the last dim.
  int64_t lines_of_place() const {
    int64_t lines = 1;
    for (size_t d = 1; d + 1 < dims; ++d) lines *= y(d);
    return lines;
  }
  int64_t lines() const { return lines_of_place() * depth; }
  /// Items that share a tile: each takes some lines.
  int64_t shares() const { return std::clamp<int64_t>(items_of_group / tiles_of_group, 1, lines()); }
  int items() const { return static_cast<int>(groups_for(tiles_of_group * shares(), 32) * 32); }

  Box of_y() const {
    Box box = one_image(conv.y);
    if (dims > 1) cut_last(box, depth, y(dims - 1) % depth != 0);
    return box;
  }
  Box of_x() const {
    Box box = one_image(conv.x);
    for (size_t d = 0; d < dims; ++d) {
      const int64_t reach = (kernel(d) - 1) * dilation(d) + 1, there = box.sizes[d];
      const auto covered = [&](int64_t places) { return (places - 1) * stride(d) + reach; };
      box.low[d] = conv.attributes.pad_low[d];
      box.sizes[d] = covered(y(d));
      box.beyond[d] = box.low[d] > 0 || box.sizes[d] - box.low[d] > there;
      if (d > 0 && d + 1 == dims) cut_last(box, covered(depth), box.beyond[d] || y(d) % depth != 0);
    }
    return box;
  }

  const Convolution& conv;
  size_t dims;
  int64_t taps, rows;  // of the weights: along dim 0, and rows of these for one output channel
  int64_t channels;    // output channels of an item
  int64_t tiles;       // what one item owns: `rows` beside each other, for each block of channels
  int64_t tiles_of_group;
  int64_t depth = 1;   // of a strip along the last spatial dim; of one dim all is one strip
  int64_t strips = 1;  // of an image
  int64_t turns = 1;   // strips of a group
  int64_t parts = 1;

 private:
  void cut_last(Box& box, int64_t size, bool beyond) const {
    box.sizes[dims - 1] = size;
    box.beyond[dims - 1] = beyond;
  }
  Box one_image(int32_t value) const {
    Box box = Box::of(conv.view(value));
    box.sizes.back() = 1;
    return box;
  }
  /// A divisor, so that no item has channels that are none. 0: an item cannot own its taps.
  int64_t channels_of_item() const {
    int64_t most = std::min({most_sums / taps, most_channels, out()});
    while (most > 1 && out() % most != 0) --most;
    return most;
  }
  void take_depth() {
    if (dims == 1) return;
    const int64_t all = y(dims - 1);
    for (depth = all; depth > 1 && bytes() > shared_bytes_;) depth = groups_for(depth, 2);
    strips = groups_for(all, depth);
    depth = groups_for(all, strips);
  }
  int64_t bytes() const {
    const int64_t sums = shares() > 1 ? taps * items() : 0;
    return (of_x().room() + of_y().room() + sums) * static_cast<int64_t>(bytes_of(conv.compute())) + 64;
  }
  /// As many as fill a device, whose sums are no more than what they are made from.
  int64_t wanted_parts() const {
    const int64_t elements = conv.view(conv.x).count() + conv.view(conv.y).count();
    return std::min(most_groups / chunks(), elements / weights());
  }

  const int64_t shared_bytes_;
};

/// How parts become one in the launch that makes them: of neighbours, as few as keep an item's loads under way at once,
/// the last that comes adds up what they have, in order, and so on with what these sums are.
struct Steps {
  std::vector<int64_t> counts;  // of parts, of sums of these, ..., 1
  int64_t each = 1;             // neighbours

  explicit Steps(int64_t parts) : counts{parts} {
    constexpr double most = 12;
    const double steps = std::ceil(std::log(static_cast<double>(std::max<int64_t>(parts, 2))) / std::log(most));
    while (std::pow(static_cast<double>(each), steps) < static_cast<double>(parts)) ++each;
    while (counts.back() > 1) counts.push_back(groups_for(counts.back(), each));
  }
  /// Of so many sums; those of the last step are results.
  int64_t waiting() const {
    int64_t count = 0;
    for (size_t i = 0; i + 1 < counts.size(); ++i) count += counts[i];
    return count;
  }
};

class StripWriter {
 public:
  StripWriter(const Cut& cut, LaunchBuffer partial)
      : cut_(cut), w_("convolution_strips", cut.items(), cut.conv.index()), x_(w_, cut.conv, cut.conv.x, cut.of_x()),
        y_(w_, cut.conv, cut.conv.y, cut.of_y()), partial_(w_.buffer(cut.conv.storage(), partial)) {}

  /// Adds up the parts too. `counters`: of each step and chunk as many as it makes sums.
  void add_up(const Steps& steps, LaunchBuffer counters) {
    steps_ = &steps;
    counters_ = w_.buffer(DType::Int32, counters);
  }

  Launch write() {
    const Term group = w_.group(0), chunks = w_.index(cut_.chunks());
    part_ = group / chunks;
    first_tile_ = (group - part_ * chunks) * cut_.tiles_of_group;
    for (int64_t i = 0; i < cut_.channels * cut_.taps; ++i) {
      sums_.push_back(w_.variable(w_.literal(cut_.conv.compute(), 0)));
    }
    const Tile tile = own_tile();
    const Term first = part_ * w_.number(cut_.turns), all = w_.number(cut_.all_strips());
    w_.loop(first, min(first + w_.number(cut_.turns), all), w_.index(1), [&](Term strip) {
      const Term strips = w_.index(cut_.strips), image = strip / strips, along = (strip - image * strips) * cut_.depth;
      w_.barrier();  // what was there is read
      x_.fill(begin(along * cut_.stride(cut_.dims - 1), image));
      y_.fill(begin(along, image));
      w_.barrier();
      add_lines(tile, along);
    });
    store_sums();
    if (steps_) {
      const ArrayTerm result(w_, cut_.conv.layout, cut_.conv.node);
      add_up_from(0, part_, w_.index(0), w_.index(0), group - part_ * chunks, result);
    }
    return w_.finish(cut_.parts * cut_.chunks());
  }

 private:
  /// What an item owns: where its row and its channels begin in the strips, and which of the items that share it is.
  struct Tile {
    Term x, y, share;
  };

  /// Where a strip begins: along the last spatial dim, and of all images.
  std::vector<Term> begin(Term along, Term image) const {
    std::vector<Term> from(cut_.dims + 2);
    if (cut_.dims > 1) from[cut_.dims - 1] = along;
    from.back() = image;
    return from;
  }

  /// (Items without one do what another does, of no lines.)
  Tile own_tile() {
    const Term of_group = w_.index(cut_.tiles_of_group), share = w_.item() / of_group;
    const Term number = min(first_tile_ + w_.item() - share * of_group, w_.index(cut_.tiles - 1));
    const Term block = number / cut_.rows;
    Term rest = number - block * cut_.rows, x = w_.index(0);
    for (size_t d = 1; d < cut_.dims; ++d) {
      const Term next = rest / cut_.kernel(d);
      x = x + (rest - next * cut_.kernel(d)) * (cut_.dilation(d) * x_.stride(d));
      rest = next;
    }
    return {x + rest * x_.stride(cut_.dims), block * (cut_.channels * y_.stride(cut_.dims)), share};
  }

  /// Of the strip that begins at place `along` of the last dim.
  void add_lines(const Tile& tile, Term along) {
    Term end = w_.index(cut_.lines());
    if (cut_.dims > 1) end = min(end, (w_.index(cut_.y(cut_.dims - 1)) - along) * cut_.lines_of_place());
    const Term begin = w_.select(tile.share < cut_.shares(), tile.share, end);
    w_.loop(begin, end, w_.index(cut_.shares()), [&](Term line) {
      Term x = tile.x, rest = line;
      for (size_t d = 1; d < cut_.dims; ++d) {
        const Term next = d + 1 == cut_.dims ? w_.index(0) : rest / cut_.y(d);
        const Term at = d + 1 == cut_.dims ? rest : rest - next * cut_.y(d);
        x = x + at * (cut_.stride(d) * x_.stride(d));
        rest = next;
      }
      add_line(x, tile.y + line * y_.stride(1));
    });
  }

  void add_line(Term x, Term y) {
    const int64_t columns = cut_.y(0), step = balanced(columns, most_step);
    const int64_t whole = columns / step * step;
    w_.loop(w_.index(0), w_.index(whole), w_.index(step),
            [&](Term column) { add_columns(x + column * cut_.stride(0), y + column, step); });
    if (whole < columns) add_columns(x + whole * cut_.stride(0), y + whole, columns - whole);
  }

  void add_columns(Term x, Term y, int64_t count) {
    std::map<int64_t, Term> known;  // of x
    for (int64_t column = 0; column < count; ++column) {
      std::vector<Term> slopes;
      for (int64_t c = 0; c < cut_.channels; ++c) slopes.push_back(y_.load(y + (column + c * y_.stride(cut_.dims))));
      for (int64_t tap = 0; tap < cut_.taps; ++tap) {
        const int64_t at = column * cut_.stride(0) + tap * cut_.dilation(0);
        const auto [value, fresh] = known.try_emplace(at);
        if (fresh) value->second = x_.load(x + at);
        for (int64_t c = 0; c < cut_.channels; ++c)
          add_product(sum(c, tap), value->second, slopes[static_cast<size_t>(c)]);
      }
    }
  }
  Term sum(int64_t channel, int64_t tap) const { return sums_[static_cast<size_t>(channel * cut_.taps + tap)]; }

  /// Adds up what items have that share a tile, in order, and leaves it in the part.
  void store_sums() {
    const int64_t shares = cut_.shares(), items = w_.items(), tiles = cut_.tiles_of_group;
    const int shared = w_.shared(cut_.conv.compute(), static_cast<int>(cut_.taps * items));
    for (int64_t c = 0; c < cut_.channels; ++c) {
      if (c > 0) w_.barrier();
      for (int64_t tap = 0; tap < cut_.taps; ++tap) w_.shared_store(shared, w_.item() + tap * items, sum(c, tap));
      w_.barrier();
      w_.loop(w_.item(), w_.index(tiles * cut_.taps), w_.index(items), [&](Term number) {
        const Term tile = number / cut_.taps, tap = number - tile * cut_.taps, own = first_tile_ + tile;
        const Term from = tap * items + tile;
        w_.when(own < cut_.tiles, [&] {
          const Term total = w_.variable(w_.shared_load(shared, from));
          w_.loop(w_.index(1), w_.index(shares), w_.index(1),
                  [&](Term share) { w_.assign(total, total + w_.shared_load(shared, from + share * tiles)); });
          w_.store(partial_, part_ * w_.index(cut_.weights()) + place(w_.index(c), own, tap), total);
        });
      });
    }
  }

  /// Where the tap of a tile stands among the weights, in its channel `c`.
  Term place(Term c, Term tile, Term tap) const {
    const Term block = tile / cut_.rows, row = tile - block * cut_.rows;
    return ((block * cut_.channels + c) * cut_.rows + row) * cut_.taps + tap;
  }

  /// This group has made sum number `sum` of step `step`, of its chunk. Sums of the step begin at number `from` of all
  /// that wait, and its counters behind `counted`.
  void add_up_from(size_t step, Term sum, Term from, Term counted, Term chunk, const ArrayTerm& result) {
    if (step + 1 == steps_->counts.size()) return;
    const Term count = w_.number(steps_->counts[step]), sums = w_.number(steps_->counts[step + 1]);
    const Term each = w_.index(steps_->each), next = sum / each, first = next * each;
    const Term last = w_.arrive(counters_, counted + chunk * sums + next, min(each, count - first));
    w_.when(last, [&] {
      const Term behind = from + count;
      const bool whole = step + 2 == steps_->counts.size();
      add_neighbours(from + first, min(each, count - first), [&](Term at, Term total) {
        if (whole) store_weight(result, at, total);
        else w_.store(partial_, (behind + next) * w_.index(cut_.weights()) + at, total);
      });
      add_up_from(step + 1, next, behind, counted + sums * cut_.chunks(), chunk, result);
    });
  }

  /// store(place, total) for all weights of the chunk: of `count` sums from number `first` on.
  template <class F> void add_neighbours(Term first, Term count, F&& store) {
    constexpr int64_t most_at_once = 4;
    const int64_t results = cut_.tiles_of_group * cut_.channels * cut_.taps, items = w_.items();
    const int64_t at_once = std::min(most_at_once, groups_for(results, items));
    w_.loop(w_.item(), w_.index(results), w_.index(items * at_once), [&](Term begin) {
      std::vector<Term> places, there;
      for (int64_t i = 0; i < at_once; ++i) {
        const Term number = begin + i * items, of_channel = number / (cut_.tiles_of_group * cut_.taps);
        const Term rest = number - of_channel * (cut_.tiles_of_group * cut_.taps), tile = rest / cut_.taps;
        there.push_back(number < results && first_tile_ + tile < cut_.tiles);
        places.push_back(
            w_.select(there.back(), place(of_channel, first_tile_ + tile, rest - tile * cut_.taps), w_.index(0)));
      }
      const std::vector<Term> totals = sums_of_neighbours(first, count, places);
      for (size_t i = 0; i < places.size(); ++i) w_.when(there[i], [&] { store(places[i], totals[i]); });
    });
  }

  /// All loads first: nobody waits for memory twice.
  std::vector<Term> sums_of_neighbours(Term first, Term count, std::span<const Term> places) {
    const Term weights = w_.index(cut_.weights());
    std::vector<std::vector<Term>> found;
    for (int64_t i = 0; i < steps_->each; ++i) {
      const Term number = first + min(w_.index(i), count - 1);
      std::vector<Term>& values = found.emplace_back();
      for (const Term& at : places) values.push_back(w_.load(partial_, number * weights + at));
    }
    std::vector<Term> totals = found[0];
    for (size_t i = 1; i < found.size(); ++i) {
      const Term counts = w_.index(static_cast<int64_t>(i)) < count;
      for (size_t k = 0; k < totals.size(); ++k) totals[k] = w_.select(counts, totals[k] + found[i][k], totals[k]);
    }
    return totals;
  }

  void store_weight(const ArrayTerm& result, Term number, Term sum) {
    std::vector<Term> at = w_.coordinates(number, size_terms(w_, cut_.conv.layout, cut_.conv.node));
    for (size_t d = 0; d < cut_.dims && cut_.conv.attributes.flipped != 0; ++d)
      at[d] = w_.index(cut_.kernel(d) - 1) - at[d];
    result.store(at, sum);
  }

  const Cut& cut_;
  KernelWriter w_;
  Strip x_, y_;
  int partial_;
  const Steps* steps_ = nullptr;
  int counters_ = -1;
  Term part_{}, first_tile_{};
  std::vector<Term> sums_;
};

/// Adds up the parts of 32 neighbouring weights in a group: each line of items some parts, then these in order.
Launch of_parts(const Cut& cut, LaunchBuffer partial) {
  constexpr int64_t columns = 32, lines = items_of_group / columns;
  const Convolution& conv = cut.conv;
  KernelWriter w("convolution_parts", items_of_group, conv.index());
  const int from = w.buffer(conv.storage(), partial);
  const ArrayTerm to(w, conv.layout, conv.node);
  const Term weights = w.number(cut.weights()), parts = w.number(cut.parts);
  const Term line = w.item() / columns, number = w.group(0) * columns + (w.item() - line * columns);
  const Term sum = w.variable(w.literal(conv.compute(), 0)), there = number < weights;
  w.loop(line, w.select(there, parts, w.index(0)), w.index(lines),
         [&](Term part) { w.assign(sum, sum + w.load(from, part * weights + number)); });
  const int shared = w.shared(conv.compute(), items_of_group);
  w.shared_store(shared, w.item(), sum);
  w.barrier();
  w.when(line == 0 && there, [&] {
    for (int64_t i = 1; i < lines; ++i) w.assign(sum, sum + w.shared_load(shared, w.item() + i * columns));
    std::vector<Term> at = w.coordinates(number, size_terms(w, conv.layout, conv.node));
    for (size_t d = 0; d < cut.dims && conv.attributes.flipped != 0; ++d) at[d] = w.index(cut.kernel(d) - 1) - at[d];
    to.store(at, sum);
  });
  return w.finish(groups_for(cut.weights(), columns));
}

/// How strips are cut where these kernels compute the node.
std::optional<Cut> cut_of(const Convolution& conv, const Abilities& device) {
  const bool sums = conv.what == Contraction::convolution_weights && is_float(conv.compute());
  const bool some = conv.view(conv.node).count() > 0 && conv.view(conv.y).count() > 0;
  if (!sums || !some || conv.mode() == MathMode::exact || conv.groups() != 1) return std::nullopt;
  const Cut cut(conv, device.shared_bytes);
  return cut.good() ? std::optional(cut) : std::nullopt;
}

}  // namespace

bool write_by_strips(const Convolution& conv, LaunchList& list) {
  const std::optional<Cut> cut = cut_of(conv, list.device);
  if (!cut) return false;
  const Steps steps(cut->parts);
  const bool once = list.device.arrivals && cut->parts > 1;
  const int64_t sums = once ? steps.waiting() : cut->parts;
  const LaunchBuffer partial{-1, list.scratch(sums * cut->weights() * int64_t{bytes_of(conv.compute())})};
  StripWriter writer(*cut, partial);
  if (once) writer.add_up(steps, {-1, list.counters(cut->chunks() * (sums - cut->parts + 1))});
  list.launches.push_back(writer.write());
  if (!once) list.launches.push_back(of_parts(*cut, partial));
  return true;
}

bool strips_beat_libraries(const Convolution& conv, const Abilities& device) {
  constexpr int64_t enough_groups = 128;
  const std::optional<Cut> cut = cut_of(conv, device);
  return cut && cut->parts * cut->chunks() >= enough_groups && conv.has_few_products();
}

}  // namespace rosin::kernels
