// Attention by the matrix units of a device, for halves: four warps own 16 queries (or keys) each and walk over blocks
// of the others in shared memory. Logits and weights stay in registers: what one product leaves in the lanes of a warp
// is what the next one takes. Weights are rounded to the type of the operands, sums are Float32.
// Read first: attention.cpp, matrix_units.cpp, include/rosin/backend.h (MULTIPLY_MATRICES).
// Source: Dao: FlashAttention-2 (2023).
#include <algorithm>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/attention.hpp"

namespace rosin::kernels {
namespace {

constexpr int warps = 4, rows_of_warp = 16, items = warps * 32, own_rows = warps * rows_of_warp;
constexpr int walked_forward = 64, walked_backward = 32;
constexpr int halves_of_vector = 8, words_of_vector = 4;
constexpr double log2_of_e = std::numbers::log2e;

using Words = std::vector<Term>;
/// A part of a warp's rows, 8 columns wide: 4 numbers of each item.
using Tile = std::vector<Term>;

Term shifted_right(Term x, int by) { return x.writer->apply(Primitive::shift_right_zero, x.type, {x, like(x, by)}); }
Term bits_and(Term x, int64_t mask) { return x.writer->apply(Primitive::bit_and, x.type, {x, like(x, mask)}); }
Term bits_or(Term x, Term y) { return x.writer->apply(Primitive::bit_or, x.type, {x, y}); }
Term shifted_left(Term x, int by) { return x.writer->apply(Primitive::shift_left, x.type, {x, like(x, by)}); }

/// Features with those that fill up the last step of the units.
int whole_steps(int64_t features) { return static_cast<int>((features + 15) / 16 * 16); }
/// Words between two rows of so many halves in shared memory: rows that warps read together lie in other banks.
int pitch_of(int halves) { return halves / 2 + words_of_vector; }

/// Vectors of one head at places of one item of the batch, in memory.
class Sequence {
 public:
  Sequence(KernelWriter& writer, const Attention& attention, int32_t value, int64_t features)
      : w_(writer), array_(writer, attention.step.layout, value, DType::UInt32,
                           {attention.step.layout.views[static_cast<size_t>(value)].root, -1}),
        features_(static_cast<int>(features)) {}

  int features() const { return features_; }
  /// Halves from feature 8 * `vector` on; zeros where `inside` does not hold.
  Words load(Term head, Term vector, Term place, Term item, Term inside) const {
    Words words;
    for (int i = 0; i < words_of_vector; ++i) words.push_back(w_.variable(w_.bits(ScalarType::uint32, 0)));
    w_.when(inside, [&] {
      const Term at = array_.at(std::array{head * features_ + vector * halves_of_vector, place, item});
      const Words found = w_.load_vector(array_.buffer(), shifted_right(at, 1), words_of_vector, 16);
      for (size_t i = 0; i < words.size(); ++i) w_.assign(words[i], found[i]);
    });
    return words;
  }
  /// Two neighbouring features.
  void store(Term head, Term feature, Term place, Term item, Term word) const {
    w_.store(array_.buffer(), shifted_right(array_.at(std::array{head * features_ + feature, place, item}), 1), word);
  }

 private:
  KernelWriter& w_;
  ArrayTerm array_;
  int features_;
};

/// A matrix of halves in shared memory: rows with words of two neighbours each.
struct Matrix {
  int array = -1, pitch = 0;
};

class UnitsKernel {
 public:
  UnitsKernel(const Attention& attention, Owned owned, int walked, const std::string& name)
      : a_(attention), owned_(owned), walked_(walked), w_(name, items, attention.index()),
        q_(w_, a_, a_.query(), a_.features()), k_(w_, a_, a_.key(), a_.features()),
        v_(w_, a_, a_.value(), a_.value_features()), logits_(w_, a_, log2_of_e) {
    item_ = w_.item();
    lane_ = bits_and(item_, 31);
    g_ = shifted_right(lane_, 2);
    t_ = bits_and(lane_, 3);
    warp_row_ = shifted_right(item_, 5) * rows_of_warp;
  }

 protected:
  Term number(double value) { return w_.literal(ScalarType::float32, value); }
  Tile zeros() {
    Tile tile;
    for (int i = 0; i < 4; ++i) tile.push_back(w_.variable(number(0)));
    return tile;
  }
  std::vector<Tile> zeros(int tiles) {
    std::vector<Tile> made;
    for (int i = 0; i < tiles; ++i) made.push_back(zeros());
    return made;
  }
  Term exp2(Term x) {
    static const Op& op = *find_op("exp2");
    return function(a_, op, x);
  }

  int64_t begin() {
    const bool of_keys = owned_ == Owned::keys;
    const int64_t blocks = groups_for(of_keys ? a_.keys() : a_.queries(), own_rows);
    const int64_t heads = of_keys ? a_.how.kv_heads : a_.how.heads;
    const std::vector<Term> at =
        w_.coordinates(w_.group(0), std::array{w_.number(blocks), w_.index(heads), w_.number(a_.batch())});
    first_ = at[0] * own_rows;
    owned_head_ = at[1];
    batch_item_ = at[2];
    return blocks * heads * a_.batch();
  }
  Term kv_head(Term head) const { return head / (a_.how.heads / a_.how.kv_heads); }

  Matrix rows_of(int rows, int64_t features) {
    const int pitch = pitch_of(whole_steps(features));
    return {w_.shared(ScalarType::uint32, rows * pitch), pitch};
  }
  /// With a row for each feature.
  Matrix turned_of(int places, int64_t features) {
    const int pitch = pitch_of(places);
    return {w_.shared(ScalarType::uint32, whole_steps(features) * pitch), pitch};
  }

  /// `rows` vectors from place `first` on, as rows.
  void fill(const Matrix& matrix, const Sequence& x, int rows, Term head, Term first, Term places) {
    const int vectors = whole_steps(x.features()) / halves_of_vector;
    each_share(rows * vectors, [&](Term number) {
      const Term row = number / vectors, vector = number - row * vectors;
      const Words words = x.load(head, vector, first + row, batch_item_, inside(x, vector, first + row, places));
      w_.shared_store_vector(matrix.array, row * matrix.pitch + vector * words_of_vector, words);
    });
  }
  /// The same with a row for each feature, in which neighbouring places are words.
  void fill_turned(const Matrix& matrix, const Sequence& x, int rows, Term head, Term first, Term places) {
    const int vectors = whole_steps(x.features()) / halves_of_vector, pairs = rows / 2;
    each_share(pairs * vectors, [&](Term number) {
      const Term vector = number / pairs, pair = number - vector * pairs, place = first + pair * 2;
      const Words low = x.load(head, vector, place, batch_item_, inside(x, vector, place, places));
      const Words high = x.load(head, vector, place + 1, batch_item_, inside(x, vector, place + 1, places));
      for (int i = 0; i < words_of_vector; ++i) {
        const Term a = low[static_cast<size_t>(i)], b = high[static_cast<size_t>(i)];
        const Term row = vector * halves_of_vector + 2 * i;
        w_.shared_store(matrix.array, row * matrix.pitch + pair, bits_or(bits_and(a, 0xffff), shifted_left(b, 16)));
        w_.shared_store(matrix.array, (row + 1) * matrix.pitch + pair,
                        bits_or(shifted_right(a, 16), bits_and(b, 0xffff0000)));
      }
    });
  }

  /// The warp's rows of `a`, 16 columns from 16 * step on.
  Words left(const Matrix& a, int step) {
    Words words;
    for (int n = 0; n < 4; ++n) {
      const Term row = warp_row_ + g_ + 8 * (n % 2);
      words.push_back(w_.shared_load(a.array, row * a.pitch + t_ + (8 * step + 4 * (n / 2))));
    }
    return words;
  }
  /// 8 rows of `b` from 8 * tile on, as columns, 16 of their elements from 16 * step on.
  Words right(const Matrix& b, int tile, int step) {
    Words words;
    for (int n = 0; n < 2; ++n) {
      words.push_back(w_.shared_load(b.array, (g_ + 8 * tile) * b.pitch + t_ + (8 * step + 4 * n)));
    }
    return words;
  }
  void add_product(Tile& sums, const Words& x, const Words& y) {
    const Tile made = w_.multiply_matrices(a_.type(), x, y, sums);
    for (size_t i = 0; i < sums.size(); ++i) w_.assign(sums[i], made[i]);
  }
  /// Products of the warp's rows of `a` with the rows of `b`, which are the block's places.
  std::vector<Tile> products(const Matrix& a, const Matrix& b, int64_t features) {
    std::vector<Tile> tiles = zeros(walked_ / 8);
    for (int step = 0; step < whole_steps(features) / 16; ++step) {
      const Words x = left(a, step);
      for (int tile = 0; tile < walked_ / 8; ++tile) {
        add_product(tiles[static_cast<size_t>(tile)], x, right(b, tile, step));
      }
    }
    return tiles;
  }
  /// sums += the warp's rows of numbers, a column for each place of the block, times the turned matrix.
  void accumulate(std::vector<Tile>& sums, const std::vector<Tile>& numbers, const Matrix& turned) {
    for (int step = 0; step < walked_ / 16; ++step) {
      Words x;
      for (int n = 0; n < 4; ++n) {
        const Tile& from = numbers[static_cast<size_t>(2 * step + n / 2)];
        const auto at = static_cast<size_t>(2 * (n % 2));
        x.push_back(w_.pack(a_.type(), from[at], from[at + 1]));
      }
      for (size_t tile = 0; tile < sums.size(); ++tile) {
        add_product(sums[tile], x, right(turned, static_cast<int>(tile), step));
      }
    }
  }

  /// Row (of those the warp owns) and column (of the block) of number `n` of a tile.
  Term row(int n) const { return first_ + warp_row_ + g_ + 8 * (n / 2); }
  Term column(int tile, int n) const { return t_ * 2 + (8 * tile + n % 2); }
  LogitPlace place(int tile, int n, Term other, Term head) const {
    const Term own = row(n), walked = other + column(tile, n);
    return owned_ == Owned::keys ? LogitPlace{walked, own, head, batch_item_}
                                 : LogitPlace{own, walked, head, batch_item_};
  }
  /// Products of queries and keys become logits, times log2(e).
  void find_logits(std::vector<Tile>& tiles, Term other, Term head) {
    const bool of_keys = owned_ == Owned::keys;
    const Term whole = of_keys ? logits_.all_seen(other, walked_, first_, own_rows)
                               : logits_.all_seen(first_, own_rows, other, walked_);
    const auto each = [&](auto&& f) {
      for (int tile = 0; tile < walked_ / 8; ++tile) {
        for (int n = 0; n < 4; ++n) f(tiles[static_cast<size_t>(tile)][static_cast<size_t>(n)], tile, n);
      }
    };
    const auto with_care = [&] {
      each([&](Term x, int tile, int n) { w_.assign(x, logits_.of(x, place(tile, n, other, head))); });
    };
    if (logits_.has_more()) return with_care();
    w_.when(whole, [&] { each([&](Term x, int, int) { w_.assign(x, logits_.unmasked(x)); }); });
    w_.when(!whole, with_care);
  }

  /// Halves of the warp's rows, times a factor for each of an item's two.
  void store(const std::vector<Tile>& sums, const Sequence& out, Term places, std::span<const Term> factors) {
    for (size_t tile = 0; tile < sums.size(); ++tile) {
      const Term feature = t_ * 2 + static_cast<int64_t>(8 * tile);
      for (int half = 0; half < 2; ++half) {
        const auto at = static_cast<size_t>(2 * half);
        const Term factor = factors[static_cast<size_t>(half)], own = row(2 * half);
        w_.when(own < places && feature < out.features(), [&] {
          out.store(owned_head_, feature, own, batch_item_,
                    w_.pack(a_.type(), sums[tile][at] * factor, sums[tile][at + 1] * factor));
        });
      }
    }
  }
  static int tiles_of(int64_t features) { return whole_steps(features) / 8; }

  const Attention& a_;
  Owned owned_;
  int walked_;  // places of a block
  KernelWriter w_;
  Sequence q_, k_, v_;
  Logits logits_;
  Term item_{}, lane_{}, g_{}, t_{}, warp_row_{};  // backend.h's g and t; the first row of the warp
  Term first_{}, owned_head_{}, batch_item_{};

 private:
  /// body(i) for i below the count, shared out among the items.
  template <class F> void each_share(int count, F&& body) {
    for (int done = 0; done < count; done += items) {
      const Term number = item_ + done;
      if (done + items <= count) body(number);
      else w_.when(number < count, [&] { body(number); });
    }
  }
  Term inside(const Sequence& x, Term vector, Term place, Term places) {
    const Term there = place < places;
    return x.features() % 16 == 0 ? there : there && vector < x.features() / halves_of_vector;
  }
};

class ForwardUnits : UnitsKernel {
 public:
  explicit ForwardUnits(const Attention& attention)
      : UnitsKernel(attention, Owned::queries, walked_forward, "attention_units"),
        queries_(rows_of(own_rows, a_.features())), keys_(rows_of(walked_, a_.features())),
        values_(turned_of(walked_, a_.value_features())) {}

  Launch write() {
    const int64_t groups = begin();
    for (int i = 0; i < 2; ++i) {
      highest_.push_back(w_.variable(number(-std::numeric_limits<double>::infinity())));
      totals_.push_back(w_.variable(number(0)));
    }
    std::vector<Tile> sums = zeros(tiles_of(a_.value_features()));
    fill(queries_, q_, own_rows, owned_head_, first_, logits_.queries());
    w_.loop(w_.index(0), logits_.end_of_keys(first_, own_rows), w_.index(walked_), [&](Term key) {
      const Term head = kv_head(owned_head_);
      fill(keys_, k_, walked_, head, key, logits_.keys());
      fill_turned(values_, v_, walked_, head, key, logits_.keys());
      w_.barrier();
      std::vector<Tile> weights = products(queries_, keys_, a_.features());
      find_logits(weights, key, owned_head_);
      weigh(weights, sums, key);
      accumulate(sums, weights, values_);
      w_.barrier();
    });
    finish(sums);
    return w_.finish(groups);
  }

 private:
  /// What the four items of a row have, combined.
  template <class F> Term of_row(Term x, F&& combine) {
    for (const int other : {1, 2}) {
      const Term lane = w_.convert(lane_, ScalarType::int32);
      x = combine(x, w_.shuffle(x, w_.apply(Primitive::bit_xor, ScalarType::int32, {lane, like(lane, other)})));
    }
    return x;
  }

  /// Logits become weights by the highest so far, and earlier sums what they are by it.
  void weigh(std::vector<Tile>& tiles, std::vector<Tile>& sums, Term key) {
    for (int half = 0; half < 2; ++half) {
      const auto at = static_cast<size_t>(half);
      Term best = highest_[at];
      each(tiles, half, [&](Term x, int, int) { best = max(best, x); });
      best = of_row(best, [](Term x, Term y) { return max(x, y); });
      // (Of a query that has seen no key yet all weights are 0.)
      const Term base = w_.select(best == number(-std::numeric_limits<double>::infinity()), number(0), best);
      const Term before = exp2(highest_[at] - base);
      Term total = number(0);
      each(tiles, half, [&](Term x, int tile, int n) {
        const Term weight = exp2(x - base);
        total = total + weight;
        w_.assign(x, logits_.drops() ? weight * logits_.kept(place(tile, n, key, owned_head_)) : weight);
      });
      w_.assign(highest_[at], best);
      w_.assign(totals_[at], totals_[at] * before + total);
      each(sums, half, [&](Term x, int, int) { w_.assign(x, x * before); });
    }
  }

  /// f(number, tile, n) for the numbers of one of the item's two rows.
  template <class F> static void each(std::vector<Tile>& tiles, int half, F&& f) {
    for (size_t tile = 0; tile < tiles.size(); ++tile) {
      for (int n = 2 * half; n < 2 * half + 2; ++n) f(tiles[tile][static_cast<size_t>(n)], static_cast<int>(tile), n);
    }
  }

  void finish(const std::vector<Tile>& sums) {
    static const Op& log = *find_op("log");
    Words factors;
    for (size_t half = 0; half < 2; ++half) {
      const Term total = of_row(totals_[half], [](Term x, Term y) { return x + y; });
      factors.push_back(number(1) / total);
      if (a_.result(1) < 0) continue;
      const ArrayTerm state(w_, a_.step.layout, a_.result(1));
      const Term query = row(static_cast<int>(2 * half));
      w_.when(query < logits_.queries() && t_ == 0, [&] {
        state.store(std::array{query, owned_head_, batch_item_},
                    highest_[half] * number(1 / log2_of_e) + function(a_, log, total));
      });
    }
    if (a_.result(0) < 0) return;
    store(sums, Sequence(w_, a_, a_.result(0), a_.value_features()), logits_.queries(), factors);
  }

  Matrix queries_, keys_, values_;
  Words highest_, totals_;  // of the item's two rows; totals_ are its own part
};

class BackwardUnits : UnitsKernel {
 public:
  BackwardUnits(const Attention& attention, Owned owned, int32_t dots)
      : UnitsKernel(attention, owned, walked_backward,
                    owned == Owned::keys ? "attention_keys_units" : "attention_queries_units"),
        slope_(w_, a_, a_.slope(), a_.value_features()), state_(w_, a_.step.layout, a_.state()),
        dots_(w_.buffer(DType::Float32, {-1, dots})), own_(rows_of(own_rows, a_.features())),
        own_values_(rows_of(own_rows, a_.value_features())), walked_rows_(rows_of(walked_, a_.features())),
        walked_values_(rows_of(walked_, a_.value_features())), turned_(turned_of(walked_, a_.features())) {}

  Launch write_queries() {
    const int64_t groups = begin();
    std::vector<Tile> sums = zeros(tiles_of(a_.features()));
    fill(own_, q_, own_rows, owned_head_, first_, logits_.queries());
    fill(own_values_, slope_, own_rows, owned_head_, first_, logits_.queries());
    w_.loop(w_.index(0), logits_.end_of_keys(first_, own_rows), w_.index(walked_), [&](Term key) {
      const Term head = kv_head(owned_head_);
      fill(walked_rows_, k_, walked_, head, key, logits_.keys());
      fill(walked_values_, v_, walked_, head, key, logits_.keys());
      fill_turned(turned_, k_, walked_, head, key, logits_.keys());
      w_.barrier();
      accumulate(sums, find_slopes(key, owned_head_).slopes, turned_);
      w_.barrier();
    });
    const Term scale = number(a_.how.scale);
    store(sums, Sequence(w_, a_, a_.result(0), a_.features()), logits_.queries(), std::array{scale, scale});
    return w_.finish(groups);
  }

  Launch write_keys() {
    const int64_t groups = begin();
    const Matrix turned_slopes = turned_of(walked_, a_.value_features());
    std::vector<Tile> of_keys = zeros(tiles_of(a_.features())), of_values = zeros(tiles_of(a_.value_features()));
    fill(own_, k_, own_rows, owned_head_, first_, logits_.keys());
    fill(own_values_, v_, own_rows, owned_head_, first_, logits_.keys());
    const int each_head = a_.how.heads / a_.how.kv_heads;
    w_.loop(w_.index(each_head), [&](Term i) {
      const Term head = owned_head_ * each_head + i;
      w_.loop(logits_.begin_of_queries(first_), logits_.queries(), w_.index(walked_), [&](Term query) {
        fill(walked_rows_, q_, walked_, head, query, logits_.queries());
        fill(walked_values_, slope_, walked_, head, query, logits_.queries());
        fill_turned(turned_, q_, walked_, head, query, logits_.queries());
        fill_turned(turned_slopes, slope_, walked_, head, query, logits_.queries());
        w_.barrier();
        const Found found = find_slopes(query, head);
        if (a_.result(2) >= 0) accumulate(of_values, found.weights, turned_slopes);
        if (a_.result(1) >= 0) accumulate(of_keys, found.slopes, turned_);
        w_.barrier();
      });
    });
    const Term scale = number(a_.how.scale), one = number(1);
    if (a_.result(1) >= 0) {
      store(of_keys, Sequence(w_, a_, a_.result(1), a_.features()), logits_.keys(), std::array{scale, scale});
    }
    if (a_.result(2) >= 0) {
      store(of_values, Sequence(w_, a_, a_.result(2), a_.value_features()), logits_.keys(), std::array{one, one});
    }
    return w_.finish(groups);
  }

 private:
  struct Found {
    std::vector<Tile> weights, slopes;
  };

  /// Of a block: the weights as values are summed by them, and the slopes of logits.
  Found find_slopes(Term other, Term head) {
    Found found{products(own_, walked_rows_, a_.features()),
                products(own_values_, walked_values_, a_.value_features())};
    find_logits(found.weights, other, head);
    for (int tile = 0; tile < walked_ / 8; ++tile) {
      for (int n = 0; n < 4; ++n) {
        const LogitPlace at = place(tile, n, other, head);
        const Term state = w_.variable(number(0)), dot = w_.variable(number(0));
        w_.when(at.query < logits_.queries(), [&] {
          const Term there = state_.load(std::array{at.query, at.head, at.item});
          const Term blind = there == number(-std::numeric_limits<double>::infinity());
          w_.assign(state, w_.select(blind, number(0), there * number(log2_of_e)));
          w_.assign(dot, w_.select(blind, number(0), w_.load(dots_, logits_.line(at.query, at.head, at.item))));
        });
        const Term weight_there = found.weights[static_cast<size_t>(tile)][static_cast<size_t>(n)];
        const Term slope_there = found.slopes[static_cast<size_t>(tile)][static_cast<size_t>(n)];
        const Term weight = exp2(weight_there - state), by_drop = logits_.drops() ? logits_.kept(at) : number(1);
        w_.assign(slope_there, weight * (slope_there * by_drop - dot));
        w_.assign(weight_there, weight * by_drop);
      }
    }
    return found;
  }

  Sequence slope_;
  ArrayTerm state_;
  int dots_;
  Matrix own_, own_values_, walked_rows_, walked_values_, turned_;  // own_: of queries or keys; values: or slopes
};

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
  return aligned(a.query()) && aligned(a.key()) && aligned(a.value()) && (!a.backward || aligned(a.slope()));
}

std::optional<Launch> if_it_fits(Launch launch, const Abilities& device) {
  if (launch.code.shared_bytes() > device.shared_bytes) return std::nullopt;
  return launch;
}

}  // namespace

std::optional<Launch> forward_by_units(const Attention& attention, const Abilities& device) {
  if (!takes(attention, device)) return std::nullopt;
  return if_it_fits(ForwardUnits(attention).write(), device);
}

std::optional<Launch> backward_by_units(const Attention& attention, Owned owned, int32_t dots,
                                        const Abilities& device) {
  if (!takes(attention, device)) return std::nullopt;
  BackwardUnits kernel(attention, owned, dots);
  return if_it_fits(owned == Owned::keys ? kernel.write_keys() : kernel.write_queries(), device);
}

}  // namespace rosin::kernels
