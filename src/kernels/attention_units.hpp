// Attention by the matrix units of a device, for halves: four warps own 16 or 32 queries (or keys) each and walk over
// blocks of the others in shared memory. Logits and weights stay in registers: what one product leaves in the lanes of
// a warp is what the next one takes. Weights are rounded to the type of the operands, sums are Float32. The units take
// what is summed over in any order that both operands have, so an item's words of two steps are neighbours.
// Read first: attention.hpp, matrix_units.cpp, include/rosin/backend.h (MULTIPLY_MATRICES). Read next:
// attention_units.cpp, attention_units_backward.cpp.
// Source: Dao: FlashAttention-2 (2023).
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/bit_terms.hpp"

namespace rosin::kernels::units {

inline constexpr int warps = 4, items = warps * 32;
inline constexpr int strip_rows = 16;  // of the units; a warp has one or two strips
inline constexpr int halves_of_vector = 8, words_of_vector = 4;
inline constexpr double log2_of_e = std::numbers::log2e, infinity = std::numeric_limits<double>::infinity();

using Words = std::vector<Term>;
/// A part of a warp's rows, 8 columns wide: 4 numbers of each item.
using Tile = std::vector<Term>;
using Strips = std::vector<std::vector<Tile>>;  // tiles of each of the warp's strips

/// Features with those that fill up the last step of the units.
inline int whole_steps(int64_t features) { return static_cast<int>((features + 15) / 16 * 16); }
/// Words between two rows of so many halves in shared memory: an odd multiple of 16, so that two neighbouring rows,
/// which are read at a time, fill all banks.
inline int pitch_of(int halves) { return (halves / 2 + 15) / 32 * 32 + 16; }

/// Vectors of one head at places of one item of the batch, in memory.
class Sequence {
 public:
  Sequence(KernelWriter& writer, const Attention& attention, int32_t value, int64_t features)
      : w_(writer), array_(writer, attention.step.layout, value, DType::UInt32,
                           {attention.step.layout.views[static_cast<size_t>(value)].root, -1}),
        features_(static_cast<int>(features)) {}

  int features() const { return features_; }
  /// Words from `word` of the head on, of places before `end`; zeros elsewhere.
  Words load_words(Term head, Term word, int count, Term place, Term item, Term end) const {
    Words words;
    for (int i = 0; i < count; ++i) words.push_back(w_.variable(w_.bits(ScalarType::uint32, 0)));
    w_.when(place < end && word < features_ / 2, [&] {
      const Term at = array_.at(std::array{head * features_ + word * 2, place, item});
      const Words found = w_.load_vector(array_.buffer(), shifted_right(at, 1), count, 4 * count);
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
  UnitsKernel(const Attention& attention, Owned owned, int strips, int walked, const std::string& name)
      : a_(attention), owned_(owned), strips_(strips), walked_(walked), w_(name, items, attention.index()),
        q_(w_, a_, a_.query(), a_.features()), k_(w_, a_, a_.key(), a_.features()),
        v_(w_, a_, a_.value(), a_.value_features()), logits_(w_, a_, log2_of_e) {
    item_ = w_.item();
    lane_ = bits_and(item_, 31);
    g_ = shifted_right(lane_, 2);
    t_ = bits_and(lane_, 3);
    warp_row_ = shifted_right(item_, 5) * (strip_rows * strips_);
  }

 protected:
  Term number(double value) { return w_.literal(ScalarType::float32, value); }
  Tile zeros() {
    Tile tile;
    for (int i = 0; i < 4; ++i) tile.push_back(w_.variable(number(0)));
    return tile;
  }
  /// So many tiles of each strip.
  Strips zeros(int tiles) {
    Strips made(static_cast<size_t>(strips_));
    for (std::vector<Tile>& strip : made) {
      for (int i = 0; i < tiles; ++i) strip.push_back(zeros());
    }
    return made;
  }
  Term exp2(Term x) {
    static const Op& op = *find_op("exp2");
    return function(a_, op, x);
  }

  int64_t begin() {
    const bool of_keys = owned_ == Owned::keys;
    const int64_t blocks = groups_for(of_keys ? a_.keys() : a_.queries(), own_rows());
    const int64_t heads = of_keys ? a_.how.kv_heads : a_.how.heads;
    const std::vector<Term> at =
        w_.coordinates(w_.group(0), std::array{w_.number(blocks), w_.index(heads), w_.number(a_.batch())});
    first_ = at[0] * own_rows();
    owned_head_ = at[1];
    batch_item_ = at[2];
    return blocks * heads * a_.batch();
  }
  int own_rows() const { return warps * strip_rows * strips_; }
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
      const Words words =
          x.load_words(head, vector * words_of_vector, words_of_vector, first + row, batch_item_, places);
      w_.shared_store_vector(matrix.array, row * matrix.pitch + vector * words_of_vector, words);
    });
  }
  /// The same with a row for each feature, in which neighbouring places are words, in the order of accumulate().
  void fill_turned(const Matrix& matrix, const Sequence& x, int rows, Term head, Term first, Term places) {
    const int vectors = whole_steps(x.features()) / halves_of_vector, pairs = rows / 2;
    each_share(pairs * vectors, [&](Term number) {
      const Term vector = number / pairs, pair = number - vector * pairs, place = first + pair * 2;
      const Words low = x.load_words(head, vector * words_of_vector, words_of_vector, place, batch_item_, places);
      const Words high = x.load_words(head, vector * words_of_vector, words_of_vector, place + 1, batch_item_, places);
      const Term step = shifted_right(pair, 3), of_item = bits_and(pair, 3);
      const Term at =
          shifted_right(step, 1) * 16 + of_item * 4 + bits_and(step, 1) * 2 + bits_and(shifted_right(pair, 2), 1);
      for (int i = 0; i < words_of_vector; ++i) {
        const Term a = low[static_cast<size_t>(i)], b = high[static_cast<size_t>(i)];
        const Term row = vector * halves_of_vector + 2 * i;
        w_.shared_store(matrix.array, row * matrix.pitch + at, bits_or(bits_and(a, 0xffff), shifted_left(b, 16)));
        w_.shared_store(matrix.array, (row + 1) * matrix.pitch + at,
                        bits_or(shifted_right(a, 16), bits_and(b, 0xffff0000)));
      }
    });
  }

  /// An item's words of a row in memory that is shared, for steps 2 * pair and, where there is one, the next.
  Words words_of(const Matrix& matrix, Term row, int pair, int steps) {
    const int count = 2 * pair + 1 < steps ? 4 : 2;
    return w_.shared_load_vector(matrix.array, row * matrix.pitch + t_ * count + 16 * pair, count);
  }
  /// The words of rows g and g + 8 as the units take them, of the first or the second step.
  static Words left(const Words& row, const Words& other, int step) {
    const auto at = static_cast<size_t>(2 * step);
    return {row[at], other[at], row[at + 1], other[at + 1]};
  }
  void add_product(Tile& sums, const Words& x, std::span<const Term> y) {
    const Tile made = w_.multiply_matrices(a_.type(), x, y, sums);
    for (size_t i = 0; i < sums.size(); ++i) w_.assign(sums[i], made[i]);
  }
  /// What the warp owns: the words of rows g and g + 8 of a strip, for two steps.
  using Own = std::function<std::array<Words, 2>(int strip, int pair, int steps)>;
  Own own_in(const Matrix& matrix) {
    return [this, matrix](int strip, int pair, int steps) {
      const Term row = warp_row_ + g_ + strip * strip_rows;
      return std::array{words_of(matrix, row, pair, steps), words_of(matrix, row + 8, pair, steps)};
    };
  }
  /// Products of what the warp owns with the rows of `b`, which are the block's places.
  Strips products(const Own& own, const Matrix& b, int64_t features) {
    Strips sums = zeros(walked_ / 8);
    const int steps = whole_steps(features) / 16;
    for (int pair = 0; 2 * pair < steps; ++pair) {
      std::vector<std::array<Words, 2>> x;
      for (int strip = 0; strip < strips_; ++strip) x.push_back(own(strip, pair, steps));
      for (int tile = 0; tile < walked_ / 8; ++tile) {
        const Words y = words_of(b, g_ + 8 * tile, pair, steps);
        each_step(pair, steps, [&](int step) {
          for (size_t strip = 0; strip < x.size(); ++strip) {
            add_product(sums[strip][static_cast<size_t>(tile)], left(x[strip][0], x[strip][1], step),
                        std::span(y).subspan(static_cast<size_t>(2 * step), 2));
          }
        });
      }
    }
    return sums;
  }
  /// sums += the warp's rows of numbers, a column for each place of the block, times the turned matrix.
  void accumulate(Strips& sums, const Strips& numbers, const Matrix& turned) {
    const int steps = walked_ / 16;
    for (int pair = 0; 2 * pair < steps; ++pair) {
      std::vector<std::array<Words, 2>> x(static_cast<size_t>(strips_));
      for (size_t strip = 0; strip < x.size(); ++strip) {
        each_step(pair, steps,
                  [&](int step) { x[strip][static_cast<size_t>(step)] = packed(numbers[strip], 2 * pair + step); });
      }
      for (size_t tile = 0; tile < sums[0].size(); ++tile) {
        const Words y = words_of(turned, g_ + static_cast<int64_t>(8 * tile), pair, steps);
        each_step(pair, steps, [&](int step) {
          for (size_t strip = 0; strip < x.size(); ++strip) {
            add_product(sums[strip][tile], x[strip][static_cast<size_t>(step)],
                        std::span(y).subspan(static_cast<size_t>(2 * step), 2));
          }
        });
      }
    }
  }

  /// The row (of those the group owns) and the column (of the block) of number `n` of a tile.
  Term row(int strip, int n) const { return first_ + warp_row_ + g_ + (strip * strip_rows + 8 * (n / 2)); }
  LogitPlace place(int strip, int tile, int n, Term other, Term head) const {
    const Term own = row(strip, n), walked = other + (t_ * 2 + (8 * tile + n % 2));
    return owned_ == Owned::keys ? LogitPlace{walked, own, head, batch_item_}
                                 : LogitPlace{own, walked, head, batch_item_};
  }
  /// f(number, strip, tile, n) for all numbers.
  template <class F> static void each(Strips& strips, F&& f) {
    for (size_t strip = 0; strip < strips.size(); ++strip) {
      for (size_t tile = 0; tile < strips[strip].size(); ++tile) {
        for (int n = 0; n < 4; ++n) {
          f(strips[strip][tile][static_cast<size_t>(n)], static_cast<int>(strip), static_cast<int>(tile), n);
        }
      }
    }
  }
  /// Products of queries and keys become logits, times log2(e).
  void find_logits(Strips& strips, Term other, Term head) {
    const bool of_keys = owned_ == Owned::keys;
    const Term whole = of_keys ? logits_.all_seen(other, walked_, first_, own_rows())
                               : logits_.all_seen(first_, own_rows(), other, walked_);
    const auto with_care = [&] {
      each(strips, [&](Term x, int strip, int tile, int n) {
        w_.assign(x, logits_.of(x, place(strip, tile, n, other, head)));
      });
    };
    if (logits_.has_more()) return with_care();
    w_.when(whole, [&] { each(strips, [&](Term x, int, int, int) { w_.assign(x, logits_.unmasked(x)); }); });
    w_.when(!whole, with_care);
  }

  /// Halves of what the group owns, times factor(strip, half) for each of a strip's two rows of an item.
  template <class F> void store(const Strips& sums, const Sequence& out, Term places, F&& factor) {
    for (int strip = 0; strip < strips_; ++strip) {
      const std::vector<Tile>& tiles = sums[static_cast<size_t>(strip)];
      for (int half = 0; half < 2; ++half) {
        const auto at = static_cast<size_t>(2 * half);
        const Term by = factor(strip, half), own = row(strip, 2 * half);
        for (size_t tile = 0; tile < tiles.size(); ++tile) {
          const Term feature = t_ * 2 + static_cast<int64_t>(8 * tile);
          w_.when(own < places && feature < out.features(), [&] {
            const Term word = w_.pack(a_.type(), tiles[tile][at] * by, tiles[tile][at + 1] * by);
            out.store(owned_head_, feature, own, batch_item_, word);
          });
        }
      }
    }
  }
  static int tiles_of(int64_t features) { return whole_steps(features) / 8; }

  const Attention& a_;
  Owned owned_;
  int strips_, walked_;  // of a warp; places of a block
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
  template <class F> static void each_step(int pair, int steps, F&& f) {
    for (int step = 0; step < 2 && 2 * pair + step < steps; ++step) f(step);
  }
  /// Numbers of two neighbouring tiles as the left operand of a step.
  Words packed(const std::vector<Tile>& tiles, int step) {
    Words words;
    for (int n = 0; n < 4; ++n) {
      const Tile& from = tiles[static_cast<size_t>(2 * step + n / 2)];
      const auto at = static_cast<size_t>(2 * (n % 2));
      words.push_back(w_.pack(a_.type(), from[at], from[at + 1]));
    }
    return words;
  }
};

/// The launch of the gradient's kernel.
Launch backward(const Attention& attention, Owned owned, int strips, int32_t dots);

}  // namespace rosin::kernels::units
