// Attention by matrix units, forward; and when kernels of units are taken. Read first: attention_units.hpp.
#include "kernels/attention_units.hpp"

#include <algorithm>
#include <optional>

namespace rosin::kernels {
namespace units {
namespace {

constexpr int places_of_block = 64;

class ForwardUnits : UnitsKernel {
 public:
  ForwardUnits(const Attention& attention, int strips)
      : UnitsKernel(attention, Owned::queries, strips, places_of_block, "attention_units"),
        keys_(rows_of(walked_, a_.features())), values_(turned_of(walked_, a_.value_features())) {}

  Launch write() {
    const int64_t groups = begin();
    for (int i = 0; i < 2 * strips_; ++i) {
      highest_.push_back(w_.variable(number(-infinity)));
      totals_.push_back(w_.variable(number(0)));
    }
    Strips sums = zeros(tiles_of(a_.value_features()));
    load_queries();
    const Own own = [this](int strip, int pair, int) {
      return queries_[static_cast<size_t>(strip)][static_cast<size_t>(pair)];
    };
    w_.loop(w_.index(0), logits_.end_of_keys(first_, own_rows()), w_.index(walked_), [&](Term key) {
      const Term head = kv_head(owned_head_);
      fill(keys_, k_, walked_, head, key, logits_.keys());
      fill_turned(values_, v_, walked_, head, key, logits_.keys());
      w_.barrier();
      Strips weights = products(own, keys_, a_.features());
      find_logits(weights, key, owned_head_);
      for (int strip = 0; strip < strips_; ++strip) {
        for (int half = 0; half < 2; ++half) weigh(weights, sums, strip, half, key);
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
      std::vector<std::array<Words, 2>>& pairs = queries_.emplace_back();
      for (int pair = 0; 2 * pair < steps; ++pair) {
        const int words = 2 * pair + 1 < steps ? 4 : 2;
        std::array<Words, 2>& rows = pairs.emplace_back();
        for (int half = 0; half < 2; ++half) {
          const Term place = row(strip, 2 * half), word = t_ * words + 16 * pair;
          rows[static_cast<size_t>(half)] =
              q_.load_words(owned_head_, word, words, place, batch_item_, logits_.queries());
        }
      }
    }
  }

  /// What the four items of a row have, combined.
  template <class F> Term of_row(Term x, F&& combine) {
    for (const int other : {1, 2}) {
      const Term lane = w_.convert(lane_, ScalarType::int32);
      x = combine(x, w_.shuffle(x, w_.apply(Primitive::bit_xor, ScalarType::int32, {lane, like(lane, other)})));
    }
    return x;
  }

  /// Logits of a row become weights by the highest so far, and earlier sums what they are by it.
  void weigh(Strips& weights, Strips& sums, int strip, int half, Term key) {
    const auto at = static_cast<size_t>(2 * strip + half);
    std::vector<Tile>& tiles = weights[static_cast<size_t>(strip)];
    Term best = highest_[at];
    of_half(tiles, half, [&](Term x, int, int) { best = max(best, x); });
    best = of_row(best, [](Term x, Term y) { return max(x, y); });
    // (Of a query that has seen no key yet all weights are 0.)
    const Term base = w_.select(best == number(-infinity), number(0), best), before = exp2(highest_[at] - base);
    Term total = number(0);
    of_half(tiles, half, [&](Term x, int tile, int n) {
      const Term weight = exp2(x - base);
      total = total + weight;
      w_.assign(x, logits_.drops() ? weight * logits_.kept(place(strip, tile, n, key, owned_head_)) : weight);
    });
    w_.assign(highest_[at], best);
    w_.assign(totals_[at], totals_[at] * before + total);
    of_half(sums[static_cast<size_t>(strip)], half, [&](Term x, int, int) { w_.assign(x, x * before); });
  }

  /// f(number, tile, n) for the numbers of one of an item's two rows.
  template <class F> static void of_half(std::vector<Tile>& tiles, int half, F&& f) {
    for (size_t tile = 0; tile < tiles.size(); ++tile) {
      for (int n = 2 * half; n < 2 * half + 2; ++n) f(tiles[tile][static_cast<size_t>(n)], static_cast<int>(tile), n);
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
      const Term query = row(static_cast<int>(i / 2), static_cast<int>(2 * (i % 2)));
      if (!state) continue;
      w_.when(query < logits_.queries() && t_ == 0, [&] {
        state->store(std::array{query, owned_head_, batch_item_},
                     highest_[i] * number(1 / log2_of_e) + function(a_, log, total));
      });
    }
    if (a_.result(0) < 0) return;
    store(sums, Sequence(w_, a_, a_.result(0), a_.value_features()), logits_.queries(),
          [&](int strip, int half) { return factors[static_cast<size_t>(2 * strip + half)]; });
  }

  Matrix keys_, values_;
  std::vector<std::vector<std::array<Words, 2>>> queries_;  // of each strip and pair of steps
  Words highest_, totals_;                                  // of the item's rows, two a strip; totals_ are its own part
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
  constexpr int64_t most_features = 128, least_places = 16;
  if (a.type() == DType::Float32 || !device.multiplies(a.type()) || a.step.value.mode == MathMode::exact) return false;
  for (const int64_t features : {a.features(), a.value_features()}) {
    if (features % halves_of_vector != 0 || features > most_features) return false;
  }
  if (a.queries() < least_places || a.keys() < least_places) return false;
  const auto aligned = [&](int32_t value) { return is_aligned(a, value); };
  const auto written = [&](int32_t value) { return value < 0 || aligned(value); };
  return aligned(a.query()) && aligned(a.key()) && aligned(a.value()) &&
         (!a.backward || (aligned(a.slope()) && std::all_of(a.call.results.begin(), a.call.results.end(), written)));
}

/// Of a warp: two read what is in shared memory half as often, where registers hold them and groups keep a device busy.
int strips_of(const Attention& a, Owned owned) {
  constexpr int64_t groups_of_device = 64, rows_of_two = 2 * warps * strip_rows, most_features = 64;
  const int64_t own = owned == Owned::keys ? a.keys() : a.queries();
  const int64_t heads = (owned == Owned::keys ? a.how.kv_heads : a.how.heads) * a.batch();
  const bool two = std::max(a.features(), a.value_features()) <= most_features && own > rows_of_two / 2 &&
                   groups_for(own, rows_of_two) * heads >= groups_of_device;
  return two ? 2 : 1;
}

/// write(strips) with as many strips as it can have, or nothing where not even one fits shared memory.
template <class F> std::optional<Launch> as_it_fits(int strips, const Abilities& device, F&& write) {
  for (; strips > 0; --strips) {
    Launch launch = write(strips);
    if (launch.code.shared_bytes() <= device.shared_bytes) return launch;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Launch> forward_by_units(const Attention& attention, const Abilities& device) {
  if (!takes(attention, device)) return std::nullopt;
  return as_it_fits(strips_of(attention, Owned::queries), device,
                    [&](int strips) { return units::ForwardUnits(attention, strips).write(); });
}

std::optional<Launch> backward_by_units(const Attention& attention, Owned owned, int32_t dots,
                                        const Abilities& device) {
  if (!takes(attention, device)) return std::nullopt;
  return as_it_fits(strips_of(attention, owned), device,
                    [&](int strips) { return units::backward(attention, owned, strips, dots); });
}

}  // namespace rosin::kernels
