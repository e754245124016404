// From two generic lambdas, combine(x, y) and neutral(x) (of x's type), to a CombineBody: loops, compiled for three
// instruction sets (the same text, so the same bits), and the scalar code.
// Read first: combine.hpp, make_body.hpp. Read next: ops/reducers.cpp.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "scalar/combine.hpp"
#include "scalar/make_body.hpp"

namespace rosin {

/// How much combining is: one instruction, a few, or a long text, which is not written out several times.
enum class Weight : uint8_t { light, medium, heavy };

/// The texts of the loops on one type: T is the element, F combines, N is neutral.
template <class F, class N, class T, Weight weight> struct CombineText {
  using Element = Stored<T>;
  static constexpr int lanes = std::same_as<T, bool> ? 64 : 16;  // the order of Bools changes nothing
  static constexpr int64_t few = 24;  // elements of a row that are joined one by one, where that changes nothing
  /// Rows that are reduced, and lines that run, side by side: floats wait for each other.
  static constexpr int rows_together = std::is_floating_point_v<T> && weight == Weight::light ? 4 : 1;
  static constexpr int lines_together = std::is_floating_point_v<T> && weight != Weight::heavy ? 4 : 1;

  [[gnu::always_inline]] static inline T neutral() { return N{}(scalar::Num<T>{}).v; }
  [[gnu::always_inline]] static inline T combine(T a, T b) { return F{}(scalar::Num<T>{a}, scalar::Num<T>{b}).v; }

  /// lane[from + j] = combine(lane[from + j], x[j]) for `width` of them.
  template <int width> [[gnu::always_inline]] static inline void take(Element* lane, const Element* x) {
    for (int j = 0; j < width; ++j) lane[j] = combine(static_cast<T>(lane[j]), static_cast<T>(x[j]));
  }

  /// The last half of the lanes with the first, until one is left.
  template <int half> [[gnu::always_inline]] static inline void join_lanes(Element* lane) {
    for (int j = 0; j < half; ++j) lane[j] = combine(static_cast<T>(lane[j]), static_cast<T>(lane[j + half]));
    if constexpr (half > 1) join_lanes<half / 2>(lane);
  }

  [[gnu::always_inline]] static inline void fill_lanes(Element* lane) {
    for (int j = 0; j < lanes; ++j) lane[j] = neutral();
  }

  /// The first `whole` elements of some rows. Of light combinations the lanes stay in registers, since no index of them
  /// is counted; of others the compiler would make single numbers.
  template <int rows>
  [[gnu::always_inline]] static inline void begin_rows(Element (&lane)[rows][lanes], const Element* x, int64_t count,
                                                       int64_t whole) {
    if constexpr (weight == Weight::light) {
      [&]<size_t... r>(std::index_sequence<r...>) {
        Element turn[rows][lanes];
        (fill_lanes(turn[r]), ...);
        for (int64_t i = 0; i < whole; i += lanes) {
          (take<lanes>(turn[r], x + static_cast<int64_t>(r) * count + i), ...);
          asm volatile("");  // g++ would else take sixteen turns at once, in which those of a row wait for each other
        }
        (std::copy_n(turn[r], lanes, lane[r]), ...);
      }(std::make_index_sequence<rows>());
    } else {
      for (int r = 0; r < rows; ++r) fill_lanes(lane[r]);
      for (int64_t i = 0; i < whole; i += lanes) {
        for (int r = 0; r < rows; ++r) take<lanes>(lane[r], x + r * count + i);
      }
    }
  }

  /// What is left of a row, fewer elements than lanes: as many as half of the lanes, if there are, and so on.
  template <int half>
  [[gnu::always_inline]] static inline void take_rest(Element* lane, const Element* x, int64_t count) {
    if (count & half) take<half>(lane, x), lane += half, x += half;
    if constexpr (half > 1) take_rest<half / 2>(lane, x, count);
  }

  /// One row of few elements, whose order changes nothing.
  [[gnu::always_inline]] static inline void reduce_short(Element* result, const Element* x, int64_t count) {
    T all = neutral();
    for (int64_t i = 0; i < count; ++i) all = combine(all, static_cast<T>(x[i]));
    *result = static_cast<Element>(all);
  }

  /// Some rows side by side: the lanes of one wait for each other.
  template <int rows>
  [[gnu::always_inline]] static inline void reduce_some(Element* result, const Element* x, int64_t count) {
    if constexpr (std::same_as<T, bool>) {
      if (count < few) return reduce_short(result, x, count);
    }
    alignas(64) Element lane[rows][lanes];
    const int64_t whole = count / lanes * lanes;
    begin_rows(lane, x, count, whole);
    for (int r = 0; r < rows; ++r) {
      take_rest<lanes / 2>(lane[r], x + r * count + whole, count);
      join_lanes<lanes / 2>(lane[r]);
      result[r] = lane[r][0];
    }
  }

  template <int together>
  [[gnu::always_inline]] static inline void reduce(void* result, const void* source, int64_t count, int64_t rows) {
    auto* out = static_cast<Element*>(result);
    const auto* x = static_cast<const Element*>(source);
    int64_t r = 0;
    for (; together > 1 && r + together <= rows; r += together) reduce_some<together>(out + r, x + r * count, count);
    for (; r < rows; ++r) reduce_some<1>(out + r, x + r * count, count);
  }

  [[gnu::always_inline]] static inline void join(void* into, const void* source, int64_t count) {
    auto* a = static_cast<Element*>(into);
    const auto* x = static_cast<const Element*>(source);
    for (int64_t i = 0; i < count; ++i) a[i] = combine(static_cast<T>(a[i]), static_cast<T>(x[i]));
  }

  /// Some lines, `line` elements apart: the elements of one wait for each other.
  template <int lines>
  [[gnu::always_inline]] static inline void run_lines(Element* out, const Element* x, Element* totals, int64_t size,
                                                      int64_t step, int64_t line) {
    T total[lines];
    for (int l = 0; l < lines; ++l) total[l] = static_cast<T>(totals[l]);
    for (int64_t j = 0; j < size; ++j) {
      for (int l = 0; l < lines; ++l) {
        total[l] = combine(total[l], static_cast<T>(x[j * step + l * line]));
        out[j * step + l * line] = total[l];
      }
    }
    for (int l = 0; l < lines; ++l) totals[l] = total[l];
  }

  /// The same for any number of lines, some of them beside each other: one text for all.
  [[gnu::always_inline]] static inline void run_in_turn(Element* out, const Element* x, Element* totals, int64_t count,
                                                        int64_t size, int64_t step, int64_t line) {
    constexpr int64_t width = 64;
    for (int64_t j = 0; j < size; ++j) {
      for (int64_t first = 0; first < count; first += width) {
        const int64_t here = count - first < width ? count - first : width, at = j * step + first * line;
        Element row[width];
        for (int64_t l = 0; l < here; ++l) row[l] = x[at + l * line];
        for (int64_t l = 0; l < here; ++l) {
          totals[first + l] = combine(static_cast<T>(totals[first + l]), static_cast<T>(row[l]));
        }
        for (int64_t l = 0; l < here; ++l) out[at + l * line] = totals[first + l];
      }
    }
  }

  [[gnu::always_inline]] static inline void run(void* result, const void* source, void* state, int64_t count,
                                                int64_t size, int64_t step, int64_t line) {
    auto* out = static_cast<Element*>(result);
    const auto* x = static_cast<const Element*>(source);
    auto* totals = static_cast<Element*>(state);
    if constexpr (weight == Weight::heavy) {
      run_in_turn(out, x, totals, count, size, step, line);
      return;
    }
    if (line != 1 || count == 1) {
      int64_t l = 0;
      for (; l + lines_together <= count; l += lines_together) {
        run_lines<lines_together>(out + l * line, x + l * line, totals + l, size, step, line);
      }
      for (; l < count; ++l) run_lines<1>(out + l * line, x + l * line, totals + l, size, step, line);
      return;
    }
    for (int64_t j = 0; j < size; ++j, out += step, x += step) {
      for (int64_t i = 0; i < count; ++i) {
        totals[i] = combine(static_cast<T>(totals[i]), static_cast<T>(x[i]));
        out[i] = totals[i];
      }
    }
  }

  static void fill(void* into, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<Element*>(into)[i] = neutral();
  }
};

/// The same texts as functions of one instruction set each.
template <class Text> struct CombineFunctions {
#ifdef __x86_64__
  static constexpr int baseline_rows = 1;  // processors that have no more are old
#else
  static constexpr int baseline_rows = Text::rows_together;
#endif
  [[gnu::flatten]] static void reduce(void* result, const void* x, int64_t count, int64_t rows) {
    Text::template reduce<baseline_rows>(result, x, count, rows);
  }
  [[gnu::flatten]] static void join(void* into, const void* x, int64_t count) { Text::join(into, x, count); }
  [[gnu::flatten]] static void run(void* out, const void* x, void* totals, int64_t count, int64_t size, int64_t step,
                                   int64_t line) {
    Text::run(out, x, totals, count, size, step, line);
  }

#ifdef __x86_64__
  [[gnu::flatten, gnu::target("arch=x86-64-v3")]] static void reduce_wide(void* result, const void* x, int64_t count,
                                                                          int64_t rows) {
    Text::template reduce<Text::rows_together>(result, x, count, rows);
  }
  [[gnu::flatten, gnu::target("arch=x86-64-v3")]] static void join_wide(void* into, const void* x, int64_t count) {
    Text::join(into, x, count);
  }
  [[gnu::flatten, gnu::target("arch=x86-64-v3")]] static void run_wide(void* out, const void* x, void* totals,
                                                                       int64_t count, int64_t size, int64_t step,
                                                                       int64_t line) {
    Text::run(out, x, totals, count, size, step, line);
  }

  // clang does not know the wish for long vectors.
#ifdef __clang__
  [[gnu::target("arch=x86-64-v4")]]
#else
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]]
#endif
  [[gnu::flatten]] static void
  reduce_widest(void* result, const void* x, int64_t count, int64_t rows) {
    Text::template reduce<Text::rows_together>(result, x, count, rows);
  }
#ifdef __clang__
  [[gnu::target("arch=x86-64-v4")]]
#else
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]]
#endif
  [[gnu::flatten]] static void
  join_widest(void* into, const void* x, int64_t count) {
    Text::join(into, x, count);
  }
#endif

  static CombineLoops choose([[maybe_unused]] InstructionSet set) {
#ifdef __x86_64__
    // Running totals wait for each other: longer vectors than wide ones gain nothing.
    if (set == InstructionSet::widest) return {reduce_widest, join_widest, Text::fill, run_wide};
    if (set == InstructionSet::wide) return {reduce_wide, join_wide, Text::fill, run_wide};
#endif
    return {reduce, join, Text::fill, run};
  }

  static CombineLoops chosen() { return choose(best_instruction_set()); }
};

/// The bits of a value as an instruction's immediate: integers sign-extended, floats as their own bits.
template <class T> int64_t immediate_of(T value) {
  if constexpr (std::same_as<T, float>) return std::bit_cast<int32_t>(value);
  else if constexpr (std::same_as<T, double>) return std::bit_cast<int64_t>(value);
  else return static_cast<int64_t>(value);
}

/// `combine` is associative, with `neutral` as its neutral element; both give the type of their operands.
template <Weight weight = Weight::light, class F, class N, ScalarType... types>
CombineBody make_combine(F, N, TypeSet<types...>) {
  CombineBody body;
  const auto add = [&]<ScalarType type>() {
    using T = typename ElementOf<type>::Type;
    static_assert(std::same_as<typename LoopOn<F, Operands::alike, 2, type>::Result, T>);
    body.loops[static_cast<int>(type)] = CombineFunctions<CombineText<F, N, T, weight>>::chosen();
    body.neutral[static_cast<int>(type)] = immediate_of(CombineText<F, N, T, weight>::neutral());
  };
  (add.template operator()<types>(), ...);
  body.code = [](ScalarType type, ScalarCode& code) {
    ((type == types ? LoopOn<F, Operands::alike, 2, types>::write(code) : void()), ...);
  };
  return body;
}

}  // namespace rosin
