// From two generic lambdas, combine(x, y) and neutral(x) (of x's type), to a CombineBody: loops, compiled for three
// instruction sets (the same text, so the same bits), and the scalar code.
// Read first: combine.hpp, make_body.hpp. Read next: ops/reducers.cpp.
#pragma once

#include <bit>

#include "scalar/combine.hpp"
#include "scalar/make_body.hpp"

namespace rosin {

/// The texts of the loops on one type: T is the element, F combines, N is neutral.
template <class F, class N, class T> struct CombineText {
  using Element = Stored<T>;
  static constexpr int lanes = 16;

  [[gnu::always_inline]] static inline T neutral() { return N{}(scalar::Num<T>{}).v; }
  [[gnu::always_inline]] static inline T combine(T a, T b) { return F{}(scalar::Num<T>{a}, scalar::Num<T>{b}).v; }

  [[gnu::always_inline]] static inline void reduce(void* result, const void* source, int64_t count) {
    const auto* x = static_cast<const Element*>(source);
    T lane[lanes];
    for (int j = 0; j < lanes; ++j) lane[j] = neutral();
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      for (int j = 0; j < lanes; ++j) lane[j] = combine(lane[j], static_cast<T>(x[i + j]));
    }
    for (int j = 0; i < count; ++i, ++j) lane[j] = combine(lane[j], static_cast<T>(x[i]));
    for (int half = lanes / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) lane[j] = combine(lane[j], lane[j + half]);
    }
    *static_cast<Element*>(result) = lane[0];
  }

  [[gnu::always_inline]] static inline void join(void* into, const void* source, int64_t count) {
    auto* a = static_cast<Element*>(into);
    const auto* x = static_cast<const Element*>(source);
    for (int64_t i = 0; i < count; ++i) a[i] = combine(static_cast<T>(a[i]), static_cast<T>(x[i]));
  }

  [[gnu::always_inline]] static inline void run(void* result, const void* source, void* state, int64_t count,
                                                int64_t size, int64_t step) {
    auto* out = static_cast<Element*>(result);
    const auto* x = static_cast<const Element*>(source);
    auto* totals = static_cast<Element*>(state);
    if (count == 1) {
      T total = static_cast<T>(*totals);
      for (int64_t j = 0; j < size; ++j) {
        total = combine(total, static_cast<T>(x[j * step]));
        out[j * step] = total;
      }
      *totals = total;
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
  [[gnu::flatten]] static void reduce(void* result, const void* x, int64_t count) { Text::reduce(result, x, count); }
  [[gnu::flatten]] static void join(void* into, const void* x, int64_t count) { Text::join(into, x, count); }
  [[gnu::flatten]] static void run(void* out, const void* x, void* totals, int64_t count, int64_t size, int64_t step) {
    Text::run(out, x, totals, count, size, step);
  }

#ifdef __x86_64__
  [[gnu::flatten, gnu::target("arch=x86-64-v3")]] static void reduce_wide(void* result, const void* x, int64_t count) {
    Text::reduce(result, x, count);
  }
  [[gnu::flatten, gnu::target("arch=x86-64-v3")]] static void join_wide(void* into, const void* x, int64_t count) {
    Text::join(into, x, count);
  }
  [[gnu::flatten, gnu::target("arch=x86-64-v3")]] static void run_wide(void* out, const void* x, void* totals,
                                                                       int64_t count, int64_t size, int64_t step) {
    Text::run(out, x, totals, count, size, step);
  }

  // clang does not know the wish for long vectors.
#ifdef __clang__
  [[gnu::target("arch=x86-64-v4")]]
#else
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]]
#endif
  [[gnu::flatten]] static void
  reduce_widest(void* result, const void* x, int64_t count) {
    Text::reduce(result, x, count);
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
template <class F, class N, ScalarType... types> CombineBody make_combine(F, N, TypeSet<types...>) {
  CombineBody body;
  const auto add = [&]<ScalarType type>() {
    using T = typename ElementOf<type>::Type;
    static_assert(std::same_as<typename LoopOn<F, Operands::alike, 2, type>::Result, T>);
    body.loops[static_cast<int>(type)] = CombineFunctions<CombineText<F, N, T>>::chosen();
    body.neutral[static_cast<int>(type)] = immediate_of(CombineText<F, N, T>::neutral());
  };
  (add.template operator()<types>(), ...);
  body.code = [](ScalarType type, ScalarCode& code) {
    ((type == types ? LoopOn<F, Operands::alike, 2, types>::write(code) : void()), ...);
  };
  return body;
}

}  // namespace rosin
