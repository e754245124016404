// Attention by the matrix units of a device, for halves: four warps own 16 or 32 queries (or keys) each and walk over
// blocks of the others in shared memory. Logits and weights stay in registers: what one product leaves in the lanes of
// a warp is what the next one takes. Weights are rounded to the type of the operands, sums are Float32. The units take
// what is summed over in any order that both operands have, so an item's words of two steps are neighbours.
// Units of square matrices take what a warp owns as the right operand and have its rows in columns, as then again an
// item leaves what it takes next: neighbours along the other side, of one of the warp's rows.
// Read first: attention.hpp, matrix_units.cpp, matrix_layout.hpp, include/rosin/backend.h (MULTIPLY_MATRICES). Read
// next: attention_units.cpp, attention_units_backward.cpp.
// Source: Dao: FlashAttention-2 (2023).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/bit_terms.hpp"

namespace rosin::kernels::units {

inline constexpr int warps = 4;
inline constexpr int strip_rows = 16;  // of the units; a warp has one or two strips
inline constexpr int halves_of_vector = 8, words_of_vector = 4;
inline constexpr double log2_of_e = std::numbers::log2e, infinity = std::numeric_limits<double>::infinity();

using Words = std::vector<Term>;
/// A part of a warp's rows, 8 columns wide: 4 numbers of each item; or 16 wide, as many as its SquareLayout says.
using Tile = std::vector<Term>;
using Strips = std::vector<std::vector<Tile>>;  // tiles of each of the warp's strips

/// Features with those that fill up the last step of the units.
inline int whole_steps(int64_t features) { return static_cast<int>((features + 15) / 16 * 16); }

/// What an item has of a strip: numbers of so many of its rows, of each so many neighbours in a tile.
struct Shape {
  bool square;
  SquareLayout layout;  // of a square one
  int warp;             // items
  int width;            // of a tile
  int lines, next;      // rows; neighbours
  int at_once;          // steps of which an item's words are read together

  explicit Shape(MatrixLayout of)
      : square(of != MatrixLayout::none), layout(square_layout(of)), warp(square ? layout.warp : 32),
        width(square ? SquareLayout::side : 8), lines(square ? 1 : 2), next(square ? layout.sums : 2),
        at_once(square ? 1 : 2) {}

  /// Waves of 32 items have twice the numbers of a square in as many registers of an item.
  bool is_full() const { return square && layout.sums > 4; }
  int rounds(int steps) const { return (steps + at_once - 1) / at_once; }
  /// Words between two rows of so many halves in shared memory. Two neighbouring rows, which are read at a time, fill
  /// all banks by an odd multiple of 16; where eight and more are read at a time, by one of 4.
  int pitch(int halves) const { return square ? halves / 2 + 4 : (halves / 2 + 15) / 32 * 32 + 16; }
};

/// Vectors of one head at places of one item of the batch, in memory.
class Sequence {
 public:
  Sequence(KernelWriter& writer, const Attention& attention, int32_t value, int64_t features)
      : w_(writer), array_(writer, attention.step.layout, value, DType::UInt32,
                           {attention.step.layout.views[static_cast<size_t>(value)].root, -1}),
        features_(static_cast<int>(features)) {}

  int features() const { return features_; }
  /// Words from `word` of the head on, which are a vector or a part of one, of places before `end`; zeros elsewhere.
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
  UnitsKernel(const Attention& attention, const Shape& shape, Owned owned, int strips, int walked,
              const std::string& name)
      : a_(attention), shape_(shape), owned_(owned), strips_(strips), walked_(walked),
        w_(name, warps * shape.warp, attention.index()), q_(w_, a_, a_.query(), a_.features()),
        k_(w_, a_, a_.key(), a_.features()), v_(w_, a_, a_.value(), a_.value_features()), logits_(w_, a_, log2_of_e) {
    item_ = w_.item();
    lane_ = bits_and(item_, shape_.warp - 1);
    g_ = shape_.square ? bits_and(lane_, 15) : shifted_right(lane_, 2);
    t_ = shape_.square ? shifted_right(lane_, 4) : bits_and(lane_, 3);
    warp_row_ = shifted_right(item_, std::countr_zero(static_cast<unsigned>(shape_.warp))) * (strip_rows * strips_);
    other_row_ = shape_.square && shape_.layout.next_sum > 1 ? neighbours_row() : g_;
  }

 protected:
  Term number(double value) { return w_.literal(ScalarType::float32, value); }
  Tile zeros() {
    Tile tile;
    for (int i = 0; i < shape_.lines * shape_.next; ++i) tile.push_back(w_.variable(number(0)));
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
    const int pitch = shape_.pitch(whole_steps(features));
    return {w_.shared(ScalarType::uint32, rows * pitch), pitch};
  }
  /// With a row for each feature.
  Matrix turned_of(int places, int64_t features) {
    const int pitch = shape_.pitch(places);
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
      const Term at = shape_.square ? pair : place_of_pair(pair);
      for (int i = 0; i < words_of_vector; ++i) {
        const Term a = low[static_cast<size_t>(i)], b = high[static_cast<size_t>(i)];
        const Term row = vector * halves_of_vector + 2 * i;
        w_.shared_store(matrix.array, row * matrix.pitch + at, bits_or(bits_and(a, 0xffff), shifted_left(b, 16)));
        w_.shared_store(matrix.array, (row + 1) * matrix.pitch + at,
                        bits_or(shifted_right(a, 16), bits_and(b, 0xffff0000)));
      }
    });
  }

  /// How many words of a row an item has in a round, and the first of them.
  int count_of(int round, int steps) const {
    if (shape_.square) return shape_.layout.words;
    return 2 * round + 1 < steps ? 4 : 2;
  }
  Term word_of(int round, int steps) {
    if (!shape_.square) return t_ * count_of(round, steps) + 16 * round;
    const int first = SquareLayout::words_of_row * round;
    return shape_.layout.parts() > 1 ? t_ * shape_.layout.words + first : like(t_, first);
  }
  /// An item's words of a row in memory that is shared, for the steps of a round.
  Words words_of(const Matrix& matrix, Term row, int round, int steps) {
    const int count = count_of(round, steps);
    if (!shape_.square) {
      return w_.shared_load_vector(matrix.array, row * matrix.pitch + t_ * count + 16 * round, count);
    }
    const Term at = row * matrix.pitch + word_of(round, steps);
    Words words = w_.shared_load_vector(matrix.array, at, std::min(count, words_of_vector));
    for (int more = words_of_vector; more < count; more += words_of_vector) {
      const Words next = w_.shared_load_vector(matrix.array, at + more, words_of_vector);
      words.insert(words.end(), next.begin(), next.end());
    }
    return words;
  }
  /// sums += own * other, in which a step of a round counts.
  void add_product(Tile& sums, const Words& own, std::span<const Term> other, int step) {
    const Tile made = shape_.square
                          ? w_.multiply_matrices(a_.type(), other, own, sums)
                          : w_.multiply_matrices(a_.type(), own, other.subspan(static_cast<size_t>(2 * step), 2), sums);
    for (size_t i = 0; i < sums.size(); ++i) w_.assign(sums[i], made[i]);
  }
  /// An item's words of what the warp owns, of each of its rows in a strip, for the steps of a round.
  using Rows = std::vector<Words>;
  using Own = std::function<Rows(int strip, int round, int steps)>;
  Own own_in(const Matrix& matrix) {
    return [this, matrix](int strip, int round, int steps) {
      const Term row = warp_row_ + g_ + strip * strip_rows;
      Rows rows{words_of(matrix, row, round, steps)};
      if (shape_.lines == 2) rows.push_back(words_of(matrix, row + 8, round, steps));
      return rows;
    };
  }
  /// The words of the rows as the units take them, of one step of a round.
  static Words of_step(const Rows& rows, int step) {
    if (rows.size() == 1) return rows[0];
    const auto at = static_cast<size_t>(2 * step);
    return {rows[0][at], rows[1][at], rows[0][at + 1], rows[1][at + 1]};
  }
  /// Where an item reads the other operand: a row of tile number `tile`.
  Term other_row(int tile) { return other_row_ + static_cast<int64_t>(shape_.width * tile); }

  /// Products of what the warp owns with the rows of `b`, which are the block's places.
  Strips products(const Own& own, const Matrix& b, int64_t features) {
    Strips sums = zeros(walked_ / shape_.width);
    const int steps = whole_steps(features) / 16;
    for (int round = 0; round < shape_.rounds(steps); ++round) {
      std::vector<Rows> x;
      for (int strip = 0; strip < strips_; ++strip) x.push_back(own(strip, round, steps));
      for (int tile = 0; tile < walked_ / shape_.width; ++tile) {
        const Words y = words_of(b, other_row(tile), round, steps);
        each_step(round, steps, [&](int step) {
          for (size_t strip = 0; strip < x.size(); ++strip) {
            add_product(sums[strip][static_cast<size_t>(tile)], of_step(x[strip], step), y, step);
          }
        });
      }
    }
    return sums;
  }
  /// sums += the warp's rows of numbers, a column for each place of the block, times the turned matrix.
  void accumulate(Strips& sums, const Strips& numbers, const Matrix& turned) {
    const int steps = walked_ / 16;
    for (int round = 0; round < shape_.rounds(steps); ++round) {
      std::vector<std::array<Words, 2>> x(static_cast<size_t>(strips_));
      for (size_t strip = 0; strip < x.size(); ++strip) {
        each_step(round, steps, [&](int step) {
          x[strip][static_cast<size_t>(step)] = packed(numbers[strip], shape_.at_once * round + step);
        });
      }
      for (size_t tile = 0; tile < sums[0].size(); ++tile) {
        const Words y = words_of(turned, other_row(static_cast<int>(tile)), round, steps);
        each_step(round, steps, [&](int step) {
          for (size_t strip = 0; strip < x.size(); ++strip) {
            add_product(sums[strip][tile], x[strip][static_cast<size_t>(step)], y, step);
          }
        });
      }
    }
  }

  /// The row (of those the group owns) and the column (of the block) of number `n` of a tile.
  Term row(int strip, int n) const { return first_ + warp_row_ + g_ + (strip * strip_rows + 8 * (n / shape_.next)); }
  LogitPlace place(int strip, int tile, int n, Term other, Term head) const {
    const int next = shape_.next;
    const Term own = row(strip, n), walked = other + (t_ * next + (shape_.width * tile + n % next));
    return owned_ == Owned::keys ? LogitPlace{walked, own, head, batch_item_}
                                 : LogitPlace{own, walked, head, batch_item_};
  }
  /// f(number, strip, tile, n) for all numbers.
  template <class F> static void each(Strips& strips, F&& f) {
    for (size_t strip = 0; strip < strips.size(); ++strip) {
      for (size_t tile = 0; tile < strips[strip].size(); ++tile) {
        for (size_t n = 0; n < strips[strip][tile].size(); ++n) {
          f(strips[strip][tile][n], static_cast<int>(strip), static_cast<int>(tile), static_cast<int>(n));
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

  /// Halves of what the group owns, times factor(strip, line) for each of an item's rows of a strip.
  template <class F> void store(const Strips& sums, const Sequence& out, Term places, F&& factor) {
    for (int strip = 0; strip < strips_; ++strip) {
      const std::vector<Tile>& tiles = sums[static_cast<size_t>(strip)];
      for (int line = 0; line < shape_.lines; ++line) {
        const Term by = factor(strip, line), own = row(strip, shape_.next * line);
        for (size_t tile = 0; tile < tiles.size(); ++tile) {
          const Term feature = t_ * shape_.next + static_cast<int64_t>(tile) * shape_.width;
          w_.when(own < places && feature < out.features(), [&] {
            for (int i = 0; i < shape_.next; i += 2) {
              const auto at = static_cast<size_t>(shape_.next * line + i);
              const Term word = w_.pack(a_.type(), tiles[tile][at] * by, tiles[tile][at + 1] * by);
              out.store(owned_head_, i == 0 ? feature : feature + i, own, batch_item_, word);
            }
          });
        }
      }
    }
  }
  int tiles_of(int64_t features) const { return whole_steps(features) / shape_.width; }

  const Attention& a_;
  const Shape shape_;
  Owned owned_;
  int strips_, walked_;  // of a warp; places of a block
  KernelWriter w_;
  Sequence q_, k_, v_;
  Logits logits_;
  Term item_{}, lane_{}, g_{}, t_{}, warp_row_{};  // backend.h's g and t; the first row of the warp
  Term other_row_{};                               // of a tile of the other operand
  Term first_{}, owned_head_{}, batch_item_{};

 private:
  /// body(i) for i below the count, shared out among the items.
  template <class F> void each_share(int count, F&& body) {
    const int all = w_.items();
    for (int done = 0; done < count; done += all) {
      const Term number = item_ + done;
      if (done + all <= count) body(number);
      else w_.when(number < count, [&] { body(number); });
    }
  }
  template <class F> void each_step(int round, int steps, F&& f) {
    for (int step = 0; step < shape_.at_once && shape_.at_once * round + step < steps; ++step) f(step);
  }
  /// Of a tile's rows the one that an item reads, so that those whose sums it gets are neighbours.
  Term neighbours_row() {
    static_assert(square_layout(MatrixLayout::wmma11).next_sum == 2 &&
                  square_layout(MatrixLayout::wmma11).next_part == 1);
    return bits_and(g_, 1) * shape_.layout.sums + shifted_right(g_, 1);
  }
  /// Where a pair of neighbouring places stands in a turned row, for words_of().
  static Term place_of_pair(Term pair) {
    const Term step = shifted_right(pair, 3), of_item = bits_and(pair, 3);
    return shifted_right(step, 1) * 16 + of_item * 4 + bits_and(step, 1) * 2 + bits_and(shifted_right(pair, 2), 1);
  }
  /// Numbers of neighbouring tiles as the operand of a step.
  Words packed(const std::vector<Tile>& tiles, int step) {
    Words words;
    if (shape_.square) {
      const Tile& from = tiles[static_cast<size_t>(step)];
      for (size_t n = 0; n < from.size(); n += 2) words.push_back(w_.pack(a_.type(), from[n], from[n + 1]));
      return shape_.layout.parts() > 1 ? words : of_both_halves(words);
    }
    for (int n = 0; n < 4; ++n) {
      const Tile& from = tiles[static_cast<size_t>(2 * step + n / 2)];
      const auto at = static_cast<size_t>(2 * (n % 2));
      words.push_back(w_.pack(a_.type(), from[at], from[at + 1]));
    }
    return words;
  }
  /// What items i and i + 16 have, for both: first that of the former.
  Words of_both_halves(const Words& own) {
    const Term lane = w_.convert(lane_, ScalarType::int32);
    const Term other = w_.apply(Primitive::bit_xor, ScalarType::int32, {lane, like(lane, 16)}),
               lower = t_ == like(t_, 0);
    Words first, second;
    for (const Term& word : own) {
      const Term theirs = w_.shuffle(word, other);
      first.push_back(w_.select(lower, word, theirs));
      second.push_back(w_.select(lower, theirs, word));
    }
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
};

/// How much of it a kernel does.
struct Work {
  int strips, places;    // of a warp; of a block
  int only = all_of_it;  // number of the attention's one result that is computed

  static constexpr int all_of_it = -1;
};

/// The launch of the gradient's kernel.
Launch backward(const Attention& attention, const Shape& shape, Owned owned, const Work& work, int32_t dots);

}  // namespace rosin::kernels::units
