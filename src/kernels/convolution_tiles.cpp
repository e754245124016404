// Convolutions of floats, forward and by data, from tiles in shared memory. A group brings a part of some images and
// the weights that meet it to shared memory, some channels at a time. An item owns a few places along dim 1 in a few
// channels: what it reads of a column serves all of them, and neighbouring items own neighbours along dim 0. By data is
// the same from dy with the weights turned, where windows stand one element apart. Sizes of images and kernels are
// literals, so that loops and places are known when a kernel is compiled.
// Read first: strip.hpp. Read next: convolution_strips.cpp (by weights), convolution.cpp (all others).
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "kernels/body.hpp"
#include "kernels/strip.hpp"
#include "kernels/sum.hpp"
#include "plan/describe.hpp"

namespace rosin::kernels {
namespace {

constexpr int64_t most_sums = 64, most_places = 8, most_channels = 8, most_products = 512;  // of an item
constexpr int64_t most_blocks = 8;   // of an item's channels, in a group
constexpr int64_t few_channels = 4;  // at a time: with fewer a group waits for memory too often
constexpr int64_t enough_groups = 256;

/// A convolution as a sum: `to` (spatial..., own channels, batch) from `from` (spatial..., summed channels, batch).
struct Gathering {
  explicit Gathering(const Convolution& c)
      : conv(c), by_data(c.what == Contraction::convolution_data), dims(static_cast<size_t>(c.spatial())) {}

  int32_t source() const { return by_data ? conv.y : conv.x; }
  const View& from() const { return conv.view(source()); }
  const View& to() const { return conv.view(conv.node); }
  int64_t own() const { return to().sizes[dims]; }
  int64_t summed() const { return from().sizes[dims]; }
  int64_t images() const { return to().sizes[dims + 1]; }
  int64_t kernel(size_t d) const { return conv.view(conv.weights).sizes[d]; }
  int64_t stride(size_t d) const { return by_data ? 1 : conv.attributes.stride[d]; }
  int64_t dilation(size_t d) const { return conv.attributes.dilation[d]; }
  /// Elements of the first window that lie before the image.
  int64_t low(size_t d) const {
    const int64_t pad = conv.attributes.pad_low[d];
    return by_data ? (kernel(d) - 1) * dilation(d) - pad : pad;
  }
  /// Elements that the windows of neighbouring places meet.
  int64_t covered(size_t d, int64_t places) const {
    return (places - 1) * stride(d) + (kernel(d) - 1) * dilation(d) + 1;
  }
  /// Whether the last tap of the weights meets the first element of a window.
  bool turned() const { return by_data != (conv.attributes.flipped != 0); }
  int64_t taps() const {
    int64_t count = 1;
    for (size_t d = 0; d < dims; ++d) count *= kernel(d);
    return count;
  }

  const Convolution& conv;
  bool by_data;
  size_t dims;
};

/// What a group computes.
class Tiling {
 public:
  Tiling(const Gathering& gathering, const Abilities& device)
      : g(gathering), places(balanced(g.to().sizes[1], most_places)), channels(channels_of_item()),
        lanes(device.matrix_types != 0 && g.conv.compute() == ScalarType::float32 ? 4 : 1),
        blocks(std::min(all_blocks(), most_blocks)), depth(g.summed()),
        shared_bytes_(std::min(device.shared_bytes, most_shared)) {
    for (size_t d = 0; d < g.dims; ++d) extents.push_back(positions(d));
    while (units() > items_of_group && narrow()) {}
    take_images();
    while (bytes() > shared_bytes_ && lessen()) {}
  }

  bool good() const {
    const bool fits = units() <= items_of_group && bytes() <= shared_bytes_;
    return fits && places * channels * g.kernel(1) <= most_products && groups() >= least_groups;
  }

  // Items own positions of the result: some places along dim 1, single ones along the others.
  int64_t width(size_t d) const { return d == 1 ? places : 1; }
  int64_t positions(size_t d) const { return groups_for(g.to().sizes[d], width(d)); }
  int64_t tile(size_t d) const { return extents[d] * width(d); }
  int64_t tiles(size_t d) const { return groups_for(positions(d), extents[d]); }
  int64_t all_blocks() const { return groups_for(g.own(), channels); }
  int64_t block_groups() const { return groups_for(all_blocks(), blocks); }
  int64_t units() const {
    return std::accumulate(extents.begin(), extents.end(), images * blocks, std::multiplies<>());
  }
  int items() const { return static_cast<int>(groups_for(units(), 32) * 32); }
  int64_t groups() const {
    int64_t count = block_groups() * groups_for(g.images(), images);
    for (size_t d = 0; d < g.dims; ++d) count *= tiles(d);
    return count;
  }
  /// Whether the last tile along dim d of the result, or the last images, have fewer elements than the others.
  bool is_ragged(size_t d) const {
    if (d == g.dims) return block_groups() * blocks * channels != g.own();
    return d < g.dims ? tiles(d) * tile(d) != g.to().sizes[d] : g.images() % images != 0;
  }

  Box box() const {
    Box box = Box::of(g.from());
    for (size_t d = 0; d < g.dims; ++d) {
      box.sizes[d] = g.covered(d, tile(d));
      box.low[d] = g.low(d);
      box.beyond[d] = g.low(d) > 0 || g.covered(d, tile(d) * tiles(d)) - g.low(d) > g.from().sizes[d];
    }
    box.sizes[g.dims] = depth;
    box.beyond[g.dims] = g.summed() % depth != 0;
    box.sizes[g.dims + 1] = images;
    box.beyond[g.dims + 1] = is_ragged(g.dims + 1);
    return box;
  }

  // Weights in shared memory: lines of the taps along dim 1 of an item's channels, for each of the other taps, of the
  // summed channels, of the blocks.
  int64_t line() const { return groups_for(g.kernel(1) * channels, lanes) * lanes; }
  int64_t lines() const { return g.taps() / g.kernel(1); }
  int64_t weights() const { return line() * lines() * depth * blocks; }

  const Gathering& g;
  int64_t places, channels;      // of an item
  int64_t lanes;                 // of vectors of weights
  std::vector<int64_t> extents;  // of a tile, in positions
  int64_t blocks, images = 1;    // of a group
  int64_t depth;                 // summed channels at a time

 private:
  /// Those with the least to compute and to read for all channels.
  int64_t channels_of_item() const {
    const auto cost = [&](int64_t count) {
      return groups_for(g.own(), count) * (places * count + 2 * (places + count));
    };
    int64_t best = 1;
    for (int64_t count = 2; count <= std::min({most_channels, most_sums / places, g.own()}); ++count) {
      if (cost(count) <= cost(best)) best = count;
    }
    return best;
  }
  /// Halves the tile along the last dim that has something to halve.
  bool narrow() {
    for (size_t d = g.dims; d-- > 0;) {
      if (extents[d] == 1) continue;
      extents[d] = balanced(positions(d), groups_for(extents[d], 2));
      return true;
    }
    return false;
  }
  /// Those that leave the fewest items idle, while there are groups for a device.
  void take_images() {
    const int64_t each = units();
    const int64_t most = std::min(items_of_group / each, groups() / enough_groups);
    const auto busy = [&](int64_t count) {
      return static_cast<double>(each * count) / static_cast<double>(groups_for(each * count, 32) * 32);
    };
    for (int64_t count = 2; count <= std::min(most, g.images()); ++count) {
      if (busy(count) >= busy(images)) images = count;
    }
  }
  /// Takes less shared memory.
  bool lessen() {
    if (depth > few_channels) depth = balanced(g.summed(), groups_for(depth, 2));
    else if (images > 1) images /= 2;
    else if (depth > 1) depth = groups_for(depth, 2);
    else return narrow();
    return true;
  }
  int64_t bytes() const { return (box().room() + weights()) * static_cast<int64_t>(bytes_of(g.conv.compute())) + 64; }

  const int64_t shared_bytes_;
};

class TileWriter {
 public:
  /// `step`: whose epilogue is computed too.
  TileWriter(const Tiling& tiling, const Step* step, const Abilities& device)
      : t_(tiling), g_(tiling.g), w_(g_.by_data ? "convolution_data_tiles" : "convolution_tiles", t_.items(), index()),
        x_(w_, g_.conv, g_.source(), t_.box()), weights_(w_, g_.conv.layout, g_.conv.weights),
        to_(w_, g_.conv.layout, step ? step->result : g_.conv.node), vector_bytes_(device.vector_bytes),
        shared_weights_(w_.shared(g_.conv.compute(), static_cast<int>(t_.weights()))) {
    if (!step) return;
    activation_ = step->epilogue.activation;
    if (step->epilogue.bias) bias_.emplace(w_, g_.conv.layout, step->bias);
  }

  Launch write() {
    begin_ = begin_of_group();
    const Unit unit = own_unit();
    for (int64_t i = 0; i < t_.places * t_.channels; ++i) {
      sums_.push_back(w_.variable(w_.literal(g_.conv.compute(), 0)));
    }
    w_.loop(w_.index(0), w_.index(g_.summed()), w_.index(t_.depth), [&](Term first) {
      w_.barrier();  // what was there is read
      x_.fill(begin_of_source(first));
      fill_weights(first);
      w_.barrier();
      add_channels(unit);
    });
    w_.when(w_.item() < t_.units(), [&] { store(unit); });
    return w_.finish(t_.groups());
  }

 private:
  /// What an item owns: its position in the tile along each spatial dim, its block and image; and where its part of the
  /// image and its weights begin.
  struct Unit {
    std::vector<Term> at;
    Term block, image, x, weights;
  };

  ScalarType index() const { return g_.conv.index(); }
  size_t dims() const { return g_.dims; }

  /// The first place along each spatial dim of the result, the first block and the first image of the group.
  std::vector<Term> begin_of_group() {
    std::vector<Term> sizes;
    for (size_t d = 0; d < dims(); ++d) sizes.push_back(w_.index(t_.tiles(d)));
    sizes.push_back(w_.index(t_.block_groups()));
    sizes.push_back(w_.index(0));
    std::vector<Term> begin = w_.coordinates(w_.group(0), sizes);
    for (size_t d = 0; d < dims(); ++d) begin[d] = begin[d] * t_.tile(d);
    begin[dims()] = begin[dims()] * t_.blocks;
    begin[dims() + 1] = begin[dims() + 1] * t_.images;
    return begin;
  }

  std::vector<Term> begin_of_source(Term first_channel) {
    std::vector<Term> from = begin_;
    for (size_t d = 0; d < dims(); ++d) from[d] = begin_[d] * g_.stride(d);
    from[dims()] = first_channel;
    return from;
  }

  /// (Items without one do what the last does, and store nothing.)
  Unit own_unit() {
    std::vector<Term> sizes;
    for (const int64_t extent : t_.extents) sizes.push_back(w_.index(extent));
    sizes.push_back(w_.index(t_.images));
    sizes.push_back(w_.index(t_.blocks));
    Unit unit{w_.coordinates(min(w_.item(), w_.index(t_.units() - 1)), sizes), {}, {}, {}, {}};
    unit.block = unit.at.back();
    unit.image = unit.at[dims()];
    unit.at.resize(dims());
    unit.x = unit.image * x_.stride(dims() + 1);
    for (size_t d = 0; d < dims(); ++d) {
      unit.x = unit.x + unit.at[d] * (t_.width(d) * g_.stride(d) * x_.stride(d));
    }
    unit.weights = unit.block * (t_.depth * t_.lines() * t_.line());
    return unit;
  }

  void fill_weights(Term first_channel) {
    const int64_t own = t_.blocks * t_.channels;
    std::vector<Term> sizes;
    for (size_t d = 0; d < dims(); ++d) sizes.push_back(w_.index(g_.kernel(d)));
    const size_t owns = dims() + (g_.by_data ? 0 : 1), sums = dims() + (g_.by_data ? 1 : 0);
    sizes.resize(dims() + 2);
    sizes[owns] = w_.index(own);
    sizes[sums] = w_.index(t_.depth);
    w_.loop(w_.item(), w_.index(g_.taps() * own * t_.depth), w_.index(w_.items()), [&](Term number) {
      std::vector<Term> at = w_.coordinates(number, sizes);
      const Term channel = at[owns], summed = at[sums], block = channel / t_.channels;
      Term line = at[0];
      for (size_t d = 2; d < dims(); ++d) line = at[d] + line * g_.kernel(d);
      line = (block * t_.depth + summed) * t_.lines() + line;
      const Term place = line * t_.line() + at[1] * t_.channels + (channel - block * t_.channels);
      at[owns] = begin_[dims()] * t_.channels + channel;
      at[sums] = first_channel + summed;
      for (size_t d = 0; d < dims() && g_.turned(); ++d) at[d] = w_.index(g_.kernel(d) - 1) - at[d];
      const Term value = w_.variable(w_.literal(w_.type_of_buffer(weights_.buffer()), 0));
      const Term there = at[owns] < g_.own() && at[sums] < g_.summed();
      w_.when(there, [&] { w_.assign(value, weights_.load(at)); });
      w_.shared_store(shared_weights_, place, value);
    });
  }

  void add_channels(const Unit& unit) {
    w_.loop(w_.index(t_.depth), [&](Term channel) {
      w_.loop(w_.index(t_.lines()), [&](Term line) {
        Term x = unit.x + channel * x_.stride(dims()), rest = line;
        for (size_t d = dims(); d-- > 2;) {
          const Term next = rest / g_.kernel(d);
          x = x + (rest - next * g_.kernel(d)) * (g_.dilation(d) * x_.stride(d));
          rest = next;
        }
        x = x + rest * g_.dilation(0);
        add_column(x, unit.weights + (channel * t_.lines() + line) * t_.line());
      });
    });
  }

  void add_column(Term x, Term from) {
    const std::vector<Term> weights = line_of_weights(from);
    std::map<int64_t, Term> known;
    for (int64_t place = 0; place < t_.places; ++place) {
      for (int64_t tap = 0; tap < g_.kernel(1); ++tap) {
        const int64_t at = place * g_.stride(1) + tap * g_.dilation(1);
        const auto [value, fresh] = known.try_emplace(at);
        if (fresh) value->second = x_.load(x + at * x_.stride(1));
        for (int64_t c = 0; c < t_.channels; ++c) {
          add_product(sum(place, c), value->second, weights[static_cast<size_t>(tap * t_.channels + c)]);
        }
      }
    }
  }
  Term sum(int64_t place, int64_t channel) const { return sums_[static_cast<size_t>(place * t_.channels + channel)]; }

  std::vector<Term> line_of_weights(Term from) {
    std::vector<Term> all;
    for (int64_t i = 0; i < t_.line(); i += t_.lanes) {
      if (t_.lanes == 1) all.push_back(w_.shared_load(shared_weights_, from + i));
      else
        for (const Term& one : w_.shared_load_vector(shared_weights_, from + i, static_cast<int>(t_.lanes))) {
          all.push_back(one);
        }
    }
    return all;
  }

  void store(const Unit& unit) {
    std::vector<Term> at(dims() + 2);
    for (size_t d = 0; d < dims(); ++d) at[d] = begin_[d] + unit.at[d] * t_.width(d);
    at[dims()] = (begin_[dims()] + unit.block) * t_.channels;
    at[dims() + 1] = begin_[dims() + 1] + unit.image;
    Term there = w_.literal(ScalarType::boolean, 1);
    for (size_t d = 0; d < at.size(); ++d) {
      if (d != 1 && d != dims() && t_.is_ragged(d)) there = there && at[d] < g_.to().sizes[d];
    }
    w_.when(there, [&] {
      for (int64_t place = 0; place < t_.places; ++place) {
        std::vector<Term> here = at;
        here[1] = at[1] + place;
        if (!t_.is_ragged(1)) store_channels(here, place);
        else w_.when(here[1] < g_.to().sizes[1], [&] { store_channels(here, place); });
      }
    });
  }

  void store_channels(std::vector<Term> at, int64_t place) {
    const int64_t lanes = lanes_of_result();
    const Term first = at[dims()];
    for (int64_t c = 0; c < t_.channels; c += lanes) {
      at[dims()] = first + c;
      std::vector<Term> values;
      for (int64_t i = 0; i < lanes; ++i) values.push_back(ended(sum(place, c + i), at[dims()] + i));
      if (lanes > 1) w_.store_vector(to_.buffer(), to_.at(at), values, vector_bytes_);
      else if (!t_.is_ragged(dims())) to_.store(at, values[0]);
      else w_.when(at[dims()] < g_.own(), [&] { to_.store(at, values[0]); });
    }
  }

  /// Channels that are stored together: where they are neighbours in memory, and all of them exist.
  int64_t lanes_of_result() const {
    const View& view = g_.to();
    if (view.strides[dims()] != 1 || t_.is_ragged(dims())) return 1;
    for (int64_t lanes = vector_bytes_ / static_cast<int>(size_of(g_.conv.dtype())); lanes > 1; lanes /= 2) {
      bool aligned = t_.channels % lanes == 0 && view.offset % lanes == 0;
      for (size_t d = 0; d < dims() + 2; ++d) aligned = aligned && (d == dims() || view.strides[d] % lanes == 0);
      if (aligned) return lanes;
    }
    return 1;
  }

  Term ended(Term value, Term channel) {
    if (bias_) {
      const Term own = t_.is_ragged(dims()) ? min(channel, w_.index(g_.own() - 1)) : channel;
      value = value + bias_->load(std::vector<Term>(static_cast<size_t>(bias_->rank()), own));
    }
    if (activation_ == plan::Activation::none) return value;
    return apply_op(w_, plan::op_of(activation_), value.type, allowed(g_.conv.mode(), false), {&value, 1});
  }

  const Tiling& t_;
  const Gathering& g_;
  KernelWriter w_;
  Strip x_;
  ArrayTerm weights_, to_;
  std::optional<ArrayTerm> bias_;
  plan::Activation activation_ = plan::Activation::none;
  int vector_bytes_;
  int shared_weights_;
  std::vector<Term> begin_, sums_;
};

/// Whether tiles are for a convolution at all.
bool has_tiles(const Convolution& conv) {
  if (conv.what == Contraction::convolution_weights || !is_float(conv.compute())) return false;
  if (conv.mode() == MathMode::exact || conv.groups() != 1 || conv.spatial() < 2) return false;
  const bool some =
      conv.view(conv.x).count() > 0 && conv.view(conv.y).count() > 0 && conv.view(conv.weights).count() > 0;
  const auto& strides = conv.attributes.stride;
  const bool dense = std::all_of(strides, strides + conv.spatial(), [](int64_t stride) { return stride == 1; });
  return some && (dense || conv.what == Contraction::convolution);
}

}  // namespace

bool tiles_take_epilogue(const Convolution& conv, const Step& step) {
  const plan::Epilogue& end = step.epilogue;
  const bool more = end.scaled || end.residual || end.auxiliary || end.bias_gradient;
  return !more && !plan::is_gradient(end.activation) && size_of(conv.dtype()) >= 4;  // (halves are rounded between)
}

bool write_by_tiles(const Convolution& conv, const Step& step, LaunchList& list) {
  if (!has_tiles(conv)) return false;
  const Gathering gathering(conv);
  const Tiling tiling(gathering, list.device);
  if (!tiling.good()) return false;
  const bool whole = tiles_take_epilogue(conv, step);
  list.launches.push_back(TileWriter(tiling, whole ? &step : nullptr, list.device).write());
  return true;
}

bool tiles_beat_libraries(const Convolution& conv, const Step& step, const Abilities& device) {
  constexpr int64_t few_own = 16;  // libraries compute tens together
  if (!has_tiles(conv) || !conv.has_few_products() || !tiles_take_epilogue(conv, step)) return false;
  const Gathering gathering(conv);
  const Tiling tiling(gathering, device);
  return tiling.good() && tiling.groups() >= enough_groups && gathering.own() <= few_own;
}

}  // namespace rosin::kernels
