// Attention by matrix units, forward; and when kernels of units are taken. Read first: attention_units.hpp.
#include "kernels/attention_units.hpp"

#include <algorithm>
#include <optional>

namespace rosin::kernels {
namespace units {
namespace {

class ForwardUnits : UnitsKernel {
 public:
  ForwardUnits(const Attention& attention, const Shape& shape, const Work& work)
      : UnitsKernel(attention, shape, Owned::queries, work.strips, work.places, "attention_units"),
        keys_(rows_of(walked_, a_.features())), values_(turned_of(walked_, a_.value_features())) {}

  Launch write() {
    const int64_t groups = begin();
    for (int i = 0; i < shape_.lines * strips_; ++i) {
      highest_.push_back(w_.variable(number(-infinity)));
      totals_.push_back(w_.variable(number(0)));
    }
    Strips sums = zeros(tiles_of(a_.value_features()));
    load_queries();
    const Own own = [this](int strip, int round, int) {
      return queries_[static_cast<size_t>(strip)][static_cast<size_t>(round)];
    };
    w_.loop(w_.index(0), logits_.end_of_keys(first_, own_rows()), w_.index(walked_), [&](Term key) {
      const Term head = kv_head(owned_head_);
      fill(keys_, k_, walked_, head, key, logits_.keys());
      fill_turned(values_, v_, walked_, head, key, logits_.keys());
      w_.barrier();
      Strips weights = products(own, keys_, a_.features());
      find_logits(weights, key, owned_head_);
      for (int strip = 0; strip < strips_; ++strip) {
        for (int line = 0; line < shape_.lines; ++line) weigh(weights, sums, strip, line, key);
      }
      accumulate(sums, weights, values_);
      w_.barrier();
    });
    finish(sums);
    return w_.finish(groups);
  }

 private:
  /// Queries stay in registers, in the order of words_of().
  void load_queries() {
    const int steps = whole_steps(a_.features()) / 16;
    for (int strip = 0; strip < strips_; ++strip) {
      std::vector<Rows>& rounds = queries_.emplace_back();
      for (int round = 0; round < shape_.rounds(steps); ++round) {
        Rows& rows = rounds.emplace_back();
        for (int line = 0; line < shape_.lines; ++line) {
          const Term place = row(strip, shape_.next * line), word = word_of(round, steps);
          Words& words = rows.emplace_back();
          for (int done = 0; done < count_of(round, steps); done += words_of_vector) {
            const int count = std::min(count_of(round, steps) - done, words_of_vector);
            const Words more = q_.load_words(owned_head_, done == 0 ? word : word + done, count, place, batch_item_,
                                             logits_.queries());
            words.insert(words.end(), more.begin(), more.end());
          }
        }
      }
    }
  }

  /// What the items of a row have, combined.
  template <class F> Term of_row(Term x, F&& combine) {
    const int first = shape_.square ? 16 : 1, end = shape_.square ? shape_.warp : 4;
    for (int other = first; other < end; other *= 2) {
      const Term lane = w_.convert(lane_, ScalarType::int32);
      x = combine(x, w_.shuffle(x, w_.apply(Primitive::bit_xor, ScalarType::int32, {lane, like(lane, other)})));
    }
    return x;
  }

  /// Logits of a row become weights by the highest so far, and earlier sums what they are by it.
  void weigh(Strips& weights, Strips& sums, int strip, int line, Term key) {
    const auto at = static_cast<size_t>(shape_.lines * strip + line);
    std::vector<Tile>& tiles = weights[static_cast<size_t>(strip)];
    Term best = highest_[at];
    of_line(tiles, line, [&](Term x, int, int) { best = max(best, x); });
    best = of_row(best, [](Term x, Term y) { return max(x, y); });
    // (Of a query that has seen no key yet all weights are 0.)
    const Term base = w_.select(best == number(-infinity), number(0), best), before = exp2(highest_[at] - base);
    Term total = number(0);
    of_line(tiles, line, [&](Term x, int tile, int n) {
      const Term weight = exp2(x - base);
      total = total + weight;
      w_.assign(x, logits_.drops() ? weight * logits_.kept(place(strip, tile, n, key, owned_head_)) : weight);
    });
    w_.assign(highest_[at], best);
    w_.assign(totals_[at], totals_[at] * before + total);
    of_line(sums[static_cast<size_t>(strip)], line, [&](Term x, int, int) { w_.assign(x, x * before); });
  }

  /// f(number, tile, n) for the numbers of one of an item's rows.
  template <class F> void of_line(std::vector<Tile>& tiles, int line, F&& f) {
    const int next = shape_.next;
    for (size_t tile = 0; tile < tiles.size(); ++tile) {
      for (int n = next * line; n < next * line + next; ++n)
        f(tiles[tile][static_cast<size_t>(n)], static_cast<int>(tile), n);
    }
  }

  /// The result, and the state.
  void finish(const Strips& sums) {
    static const Op& log = *find_op("log");
    std::optional<ArrayTerm> state;
    if (a_.result(1) >= 0) state.emplace(w_, a_.step.layout, a_.result(1));
    Words factors;
    for (size_t i = 0; i < totals_.size(); ++i) {
      const Term total = of_row(totals_[i], [](Term x, Term y) { return x + y; });
      factors.push_back(number(1) / total);
      const int lines = shape_.lines, line = static_cast<int>(i);
      const Term query = row(line / lines, shape_.next * (line % lines));
      if (!state) continue;
      w_.when(query < logits_.queries() && t_ == 0, [&] {
        state->store(std::array{query, owned_head_, batch_item_},
                     highest_[i] * number(1 / log2_of_e) + function(a_, log, total));
      });
    }
    if (a_.result(0) < 0) return;
    store(sums, Sequence(w_, a_, a_.result(0), a_.value_features()), logits_.queries(),
          [&](int strip, int line) { return factors[static_cast<size_t>(shape_.lines * strip + line)]; });
  }

  Matrix keys_, values_;
  std::vector<std::vector<Rows>> queries_;  // of each strip and round
  Words highest_, totals_;                  // of the item's rows; totals_ are its own part
};

}  // namespace
}  // namespace units

namespace {

using units::halves_of_vector, units::strip_rows, units::warps;

/// Whether vectors of the sequence begin at multiples of eight halves, features side by side.
bool is_aligned(const Attention& a, int32_t value) {
  const View& view = a.step.view(value);
  if (view.offset % halves_of_vector != 0 || (view.sizes[0] != 1 && view.strides[0] != 1)) return false;
  for (int d = 1; d < view.rank; ++d) {
    if (view.sizes[d] != 1 && view.strides[d] % halves_of_vector != 0) return false;
  }
  return true;
}

bool takes(const Attention& a, const Abilities& device) {
  constexpr int64_t widest = 128, least_places = 16;
  if (size_of(a.type()) != 2 || !device.multiplies(a.type()) || a.step.value.mode == MathMode::exact) return false;
  for (const int64_t features : {a.features(), a.value_features()}) {
    if (features % halves_of_vector != 0 || features > widest) return false;
  }
  if (a.queries() < least_places || a.keys() < least_places) return false;
  const auto aligned = [&](int32_t value) { return is_aligned(a, value); };
  const auto written = [&](int32_t value) { return value < 0 || aligned(value); };
  return aligned(a.query()) && aligned(a.key()) && aligned(a.value()) &&
         (!a.backward || (aligned(a.slope()) && std::all_of(a.call.results.begin(), a.call.results.end(), written)));
}

constexpr int64_t usual_features = 64;

int64_t most_features(const Attention& a) { return std::max(a.features(), a.value_features()); }

/// Of a warp: two read what is in shared memory half as often, where registers hold them and groups keep a device busy.
int strips_of(const Attention& a, const units::Shape& shape, Owned owned) {
  if (shape.is_full()) return 1;
  constexpr int64_t groups_of_device = 64, rows_of_two = 2 * warps * strip_rows;
  const int64_t own = owned == Owned::keys ? a.keys() : a.queries();
  const int64_t heads = (owned == Owned::keys ? a.how.kv_heads : a.how.heads) * a.batch();
  const bool two = most_features(a) <= usual_features && own > rows_of_two / 2 &&
                   groups_for(own, rows_of_two) * heads >= groups_of_device;
  return two ? 2 : 1;
}

/// Of a block: fewer than usual where registers do not hold more.
int places_of(const Attention& a, const units::Shape& shape, int usual) {
  const bool whole_rows = shape.square && shape.layout.parts() == 1, many = most_features(a) > usual_features;
  return whole_rows || (shape.is_full() && many) ? usual / 2 : usual;
}

/// write(work) with as many strips as it can have, or nothing where not even one fits shared memory; square units then
/// try smaller blocks.
template <class F>
std::optional<Launch> as_it_fits(units::Work work, const units::Shape& shape, const Abilities& device, F&& write) {
  const auto written = [&]() -> std::optional<Launch> {
    Launch launch = write(work);
    if (launch.code.shared_bytes() > device.shared_bytes) return std::nullopt;
    return launch;
  };
  for (; work.strips > 0; --work.strips) {
    if (std::optional<Launch> launch = written()) return launch;
  }
  work.strips = 1;
  while (shape.square && work.places > SquareLayout::side) {
    work.places /= 2;
    if (std::optional<Launch> launch = written()) return launch;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Launch> forward_by_units(const Attention& attention, const Abilities& device) {
  if (!takes(attention, device)) return {};
  constexpr int usual_places = 64;
  const units::Shape shape(device.matrix_layout);
  const units::Work work{strips_of(attention, shape, Owned::queries), places_of(attention, shape, usual_places)};
  std::optional<Launch> launch = as_it_fits(work, shape, device, [&](const units::Work& fitting) {
    return units::ForwardUnits(attention, shape, fitting).write();
  });
  if (!launch) return {};
  return {*std::move(launch)};
}

/// Both results for keys and values are computed together where registers hold them.
std::vector<Launch> backward_by_units(const Attention& attention, Owned owned, int32_t dots, const Abilities& device) {
  if (!takes(attention, device)) return {};
  constexpr int usual_places = 32;
  const units::Shape shape(device.matrix_layout);
  units::Work work{strips_of(attention, shape, owned), places_of(attention, shape, usual_places)};
  const bool apart = owned == Owned::keys && shape.is_full() && most_features(attention) > usual_features &&
                     attention.result(1) >= 0 && attention.result(2) >= 0;
  std::vector<Launch> launches;
  for (const int only : apart ? std::vector{1, 2} : std::vector{units::Work::all_of_it}) {
    work.only = only;
    std::optional<Launch> launch = as_it_fits(work, shape, device, [&](const units::Work& fitting) {
      return units::backward(attention, shape, owned, fitting, dots);
    });
    if (!launch) return {};
    launches.push_back(*std::move(launch));
  }
  return launches;
}

}  // namespace rosin::kernels
