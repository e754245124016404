// Reduction loops, instantiated per reducer, type and instruction set.
#include "cpu/reduce_loops.hpp"

#include <limits>
#include <type_traits>

namespace rosin::cpu {
namespace {

constexpr int lanes = 16;

struct Sum {
  template <class T> static T neutral() { return T(0); }
  template <class T> __attribute__((always_inline)) static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    else return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  }
};

struct Product {
  template <class T> static T neutral() { return T(1); }
  template <class T> __attribute__((always_inline)) static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a * b;
    else return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

struct Maximum {
  template <class T> static T neutral() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <class T> __attribute__((always_inline)) static T combine(T a, T b) { return a > b || a != a ? a : b; }
};

struct Minimum {
  template <class T> static T neutral() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class T> __attribute__((always_inline)) static T combine(T a, T b) { return a < b || a != a ? a : b; }
};

struct Any {
  template <class T> static T neutral() { return T(0); }
  template <class T> __attribute__((always_inline)) static T combine(T a, T b) { return T(a | b); }
};

struct All {
  template <class T> static T neutral() { return T(1); }
  template <class T> __attribute__((always_inline)) static T combine(T a, T b) { return T(a & b); }
};

template <class R, class T>
__attribute__((always_inline)) inline void reduce_body(void* result, const void* source, int64_t count) {
  const T* x = static_cast<const T*>(source);
  T lane[lanes];
  for (int j = 0; j < lanes; ++j) lane[j] = R::template neutral<T>();
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int j = 0; j < lanes; ++j) lane[j] = R::combine(lane[j], x[i + j]);
  }
  for (int j = 0; i < count; ++i, ++j) lane[j] = R::combine(lane[j], x[i]);
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lane[j] = R::combine(lane[j], lane[j + half]);
  }
  *static_cast<T*>(result) = lane[0];
}

template <class R, class T>
__attribute__((always_inline)) inline void combine_body(void* into, const void* source, int64_t count) {
  T* a = static_cast<T*>(into);
  const T* x = static_cast<const T*>(source);
  for (int64_t i = 0; i < count; ++i) a[i] = R::combine(a[i], x[i]);
}

template <class R, class T> void neutral(void* into, int64_t count) {
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(into)[i] = R::template neutral<T>();
}

template <class R, class T> void reduce_baseline(void* result, const void* x, int64_t count) {
  reduce_body<R, T>(result, x, count);
}
template <class R, class T> void combine_baseline(void* into, const void* x, int64_t count) {
  combine_body<R, T>(into, x, count);
}

#ifdef __x86_64__
template <class R, class T>
__attribute__((target("arch=x86-64-v3"))) void reduce_wide(void* result, const void* x, int64_t count) {
  reduce_body<R, T>(result, x, count);
}
template <class R, class T>
__attribute__((target("arch=x86-64-v3"))) void combine_wide(void* into, const void* x, int64_t count) {
  combine_body<R, T>(into, x, count);
}
template <class R, class T>
__attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))) void reduce_widest(void* r, const void* x,
                                                                                     int64_t n) {
  reduce_body<R, T>(r, x, n);
}
template <class R, class T>
__attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))) void combine_widest(void* a, const void* x,
                                                                                      int64_t n) {
  combine_body<R, T>(a, x, n);
}
#endif

template <class R, class T> ReduceLoops loops() {
#ifdef __x86_64__
  const InstructionSet set = best_instruction_set();
  if (set == InstructionSet::widest) return {reduce_widest<R, T>, combine_widest<R, T>, neutral<R, T>};
  if (set == InstructionSet::wide) return {reduce_wide<R, T>, combine_wide<R, T>, neutral<R, T>};
#endif
  return {reduce_baseline<R, T>, combine_baseline<R, T>, neutral<R, T>};
}

template <class R> ReduceLoops loops_of(ScalarType type) {
  switch (type) {
    case ScalarType::int32: return loops<R, int32_t>();
    case ScalarType::uint32: return loops<R, uint32_t>();
    case ScalarType::int64: return loops<R, int64_t>();
    case ScalarType::uint64: return loops<R, uint64_t>();
    case ScalarType::float32: return loops<R, float>();
    case ScalarType::float64: return loops<R, double>();
    case ScalarType::boolean: return loops<R, uint8_t>();
  }
  return {};
}

}  // namespace

ReduceLoops reduce_loops(Reducer reducer, ScalarType type) {
  switch (reducer) {
    case Reducer::sum: return loops_of<Sum>(type);
    case Reducer::product: return loops_of<Product>(type);
    case Reducer::maximum: return loops_of<Maximum>(type);
    case Reducer::minimum: return loops_of<Minimum>(type);
    case Reducer::any: return type == ScalarType::boolean ? loops<Any, uint8_t>() : ReduceLoops{};
    case Reducer::all: return type == ScalarType::boolean ? loops<All, uint8_t>() : ReduceLoops{};
    default: return {};
  }
}

}  // namespace rosin::cpu
