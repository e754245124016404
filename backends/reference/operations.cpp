// The primitives on all items of a group; their meaning stands in rosin/backend.h. Values of items that do not take
// part are computed too where they lie between items that do: nobody looks at them.
#include <limits>

#include "steps.hpp"
#include "types.hpp"

namespace rosin::reference {
namespace {

/// Integers are computed unsigned, where wrapping around is defined.
template <class T> struct UnsignedOf {
  using Type = T;
};
template <Integer T> struct UnsignedOf<T> {
  using Type = std::make_unsigned_t<T>;
};
template <class T> using Wrapping = typename UnsignedOf<T>::Type;

template <Integer T> T shift_count(T y) { return y & static_cast<T>(sizeof(T) * 8 - 1); }

struct Add {
  template <Number T> static T of(T x, T y) { return static_cast<T>(Wrapping<T>(x) + Wrapping<T>(y)); }
};
struct Subtract {
  template <Number T> static T of(T x, T y) { return static_cast<T>(Wrapping<T>(x) - Wrapping<T>(y)); }
};
struct Multiply {
  template <Number T> static T of(T x, T y) { return static_cast<T>(Wrapping<T>(x) * Wrapping<T>(y)); }
};
struct Negate {
  template <Float T> static T of(T x) { return -x; }
  template <Integer T> static T of(T x) { return static_cast<T>(Wrapping<T>{0} - Wrapping<T>(x)); }
};
struct Divide {
  template <Float T> static T of(T x, T y) { return x / y; }
  template <Integer T> static T of(T x, T y) {
    if (y == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (y == -1) return Negate::of(x);
    return x / y;
  }
};
struct Absolute {
  template <Float T> static T of(T x) { return std::fabs(x); }
  template <Integer T> static T of(T x) { return x < T{0} ? Negate::of(x) : x; }
};
struct Minimum {
  template <Number T> static T of(T x, T y) { return x < y || x != x ? x : y; }
};
struct Maximum {
  template <Number T> static T of(T x, T y) { return x > y || x != x ? x : y; }
};
struct Floor {
  template <Float T> static T of(T x) { return std::floor(x); }
};
struct Ceil {
  template <Float T> static T of(T x) { return std::ceil(x); }
};
struct Trunc {
  template <Float T> static T of(T x) { return std::trunc(x); }
};
struct RoundEven {
  template <Float T> static T of(T x) { return std::nearbyint(x); }
};
struct Sqrt {
  template <Float T> static T of(T x) { return std::sqrt(x); }
};
struct Fma {
  template <Float T> static T of(T x, T y, T z) { return std::fma(x, y, z); }
};
struct Less {
  template <class T> static Bool of(T x, T y) { return x < y; }
};
struct LessEqual {
  template <class T> static Bool of(T x, T y) { return x <= y; }
};
struct Equal {
  template <class T> static Bool of(T x, T y) { return x == y; }
};
struct NotEqual {
  template <class T> static Bool of(T x, T y) { return x != y; }
};
struct LogicalAnd {
  template <std::same_as<Bool> T> static T of(T x, T y) { return x & y; }
};
struct LogicalOr {
  template <std::same_as<Bool> T> static T of(T x, T y) { return x | y; }
};
struct LogicalNot {
  template <std::same_as<Bool> T> static T of(T x) { return x ^ 1; }
};
struct BitAnd {
  template <Integer T> static T of(T x, T y) { return x & y; }
};
struct BitOr {
  template <Integer T> static T of(T x, T y) { return x | y; }
};
struct BitXor {
  template <Integer T> static T of(T x, T y) { return x ^ y; }
};
struct ShiftLeft {
  template <Integer T> static T of(T x, T y) { return static_cast<T>(Wrapping<T>(x) << shift_count(y)); }
};
struct ShiftRight {
  template <Integer T> static T of(T x, T y) { return x >> shift_count(y); }
};
struct ShiftRightZero {
  template <Integer T> static T of(T x, T y) { return static_cast<T>(Wrapping<T>(x) >> shift_count(y)); }
};

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

struct MultiplyHigh {
  template <Integer T> static T of(T x, T y) {
    using Product = std::conditional_t<std::is_signed_v<T>, Wide, UnsignedWide>;
    return static_cast<T>((Product{x} * Product{y}) >> (sizeof(T) * 8));
  }
};
struct Exp2Approximate {
  template <std::same_as<float> T> static T of(T x) { return std::exp2(x); }
};
struct ReciprocalApproximate {
  template <std::same_as<float> T> static T of(T x) { return 1 / x; }
};
struct TanhApproximate {
  template <std::same_as<float> T> static T of(T x) { return std::tanh(x); }
};

template <class F, class T> void unary(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  auto* __restrict out = frame.at<decltype(F::of(T{}))>(step.out);
  const T* x = frame.at<T>(step.operands[0]);
  for (int i = lanes.first; i < lanes.last; ++i) out[i] = F::of(x[i]);
}

template <class F, class T> void binary(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  auto* __restrict out = frame.at<decltype(F::of(T{}, T{}))>(step.out);
  const T *x = frame.at<T>(step.operands[0]), *y = frame.at<T>(step.operands[1]);
  for (int i = lanes.first; i < lanes.last; ++i) out[i] = F::of(x[i], y[i]);
}

template <class F, class T> void ternary(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  T* __restrict out = frame.at<T>(step.out);
  const T *x = frame.at<T>(step.operands[0]), *y = frame.at<T>(step.operands[1]), *z = frame.at<T>(step.operands[2]);
  for (int i = lanes.first; i < lanes.last; ++i) out[i] = F::of(x[i], y[i], z[i]);
}

template <class T> void select(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  T* __restrict out = frame.at<T>(step.out);
  const Bool* mask = frame.at<Bool>(step.operands[0]);
  const T *x = frame.at<T>(step.operands[1]), *y = frame.at<T>(step.operands[2]);
  for (int i = lanes.first; i < lanes.last; ++i) out[i] = mask[i] ? x[i] : y[i];
}

/// The loop of primitive F for operands of a type; null where F has no meaning for it.
template <class F> Run loop_of(int type) {
  return with_scalar(type, Run{}, []<class Tag>(Tag) -> Run {
    using T = typename Tag::Type;
    if constexpr (requires(T x) { F::of(x); }) return &unary<F, T>;
    else if constexpr (requires(T x) { F::of(x, x); }) return &binary<F, T>;
    else if constexpr (requires(T x) { F::of(x, x, x); }) return &ternary<F, T>;
    else return nullptr;
  });
}

template <class To, class From> To converted(From x) {
  if constexpr (std::same_as<To, Bool>) {
    return x != From{0};
  } else if constexpr (Float<From> && Integer<To>) {
    // Both bounds are exact in From: 2 to the power of the bits, and the lowest number.
    constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    constexpr From lowest = static_cast<From>(std::numeric_limits<To>::min());
    if (x >= above) return std::numeric_limits<To>::max();
    if (x < lowest) return std::numeric_limits<To>::min();
    return x == x ? static_cast<To>(x) : To{0};
  } else if constexpr (std::same_as<From, Bool>) {
    return static_cast<To>(x & 1);
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From> void convert(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  To* __restrict out = frame.at<To>(step.out);
  const From* x = frame.at<From>(step.operands[0]);
  for (int i = lanes.first; i < lanes.last; ++i) out[i] = converted<To>(x[i]);
}

template <class To, class From> void reinterpret(Frame& frame, const Step& step) {
  const Lanes lanes = frame.active();
  To* __restrict out = frame.at<To>(step.out);
  const From* x = frame.at<From>(step.operands[0]);
  for (int i = lanes.first; i < lanes.last; ++i) out[i] = std::bit_cast<To>(x[i]);
}

Run convert_loop(int type, int in) {
  return with_scalar(type, Run{}, [in]<class To>(To) {
    return with_scalar(in, Run{},
                       []<class From>(From) -> Run { return &convert<typename To::Type, typename From::Type>; });
  });
}

Run reinterpret_loop(int type, int in) {
  if (type == ROSIN_SCALAR_FLOAT32 && in == ROSIN_SCALAR_INT32) return &reinterpret<float, int32_t>;
  if (type == ROSIN_SCALAR_INT32 && in == ROSIN_SCALAR_FLOAT32) return &reinterpret<int32_t, float>;
  if (type == ROSIN_SCALAR_FLOAT64 && in == ROSIN_SCALAR_INT64) return &reinterpret<double, int64_t>;
  if (type == ROSIN_SCALAR_INT64 && in == ROSIN_SCALAR_FLOAT64) return &reinterpret<int64_t, double>;
  return nullptr;
}

template <class T> void fill(Frame& frame, size_t out, T value) {
  for (int i = 0; i < frame.items; ++i) frame.at<T>(out)[i] = value;
}

template <class T> void literal(Frame& frame, const Step& step) {
  if constexpr (std::same_as<T, float>) {
    fill(frame, step.out, std::bit_cast<float>(static_cast<uint32_t>(step.immediate)));
  } else if constexpr (std::same_as<T, double>) {
    fill(frame, step.out, std::bit_cast<double>(step.immediate));
  } else {
    fill(frame, step.out, static_cast<T>(step.immediate));
  }
}

template <class T> void parameter(Frame& frame, const Step& step) {
  const rosin_number& number = frame.parameters[step.immediate];
  if constexpr (std::same_as<T, int32_t>) fill(frame, step.out, number.int32);
  else if constexpr (std::same_as<T, uint32_t>) fill(frame, step.out, number.uint32);
  else if constexpr (Integer<T>) fill(frame, step.out, static_cast<T>(number.int64));
  else if constexpr (std::same_as<T, float>) fill(frame, step.out, number.float32);
  else if constexpr (std::same_as<T, double>) fill(frame, step.out, number.float64);
}

template <class T> void group(Frame& frame, const Step& step) {
  fill(frame, step.out, static_cast<T>(frame.group[step.immediate]));
}

void item(Frame& frame, const Step& step) {
  for (int i = 0; i < frame.items; ++i) frame.at<int32_t>(step.out)[i] = i;
}

}  // namespace

Run primitive(int operation, int type, int in) {
  switch (operation) {
    case ROSIN_ADD: return loop_of<Add>(in);
    case ROSIN_SUBTRACT: return loop_of<Subtract>(in);
    case ROSIN_MULTIPLY: return loop_of<Multiply>(in);
    case ROSIN_DIVIDE: return loop_of<Divide>(in);
    case ROSIN_NEGATE: return loop_of<Negate>(in);
    case ROSIN_ABSOLUTE: return loop_of<Absolute>(in);
    case ROSIN_MINIMUM: return loop_of<Minimum>(in);
    case ROSIN_MAXIMUM: return loop_of<Maximum>(in);
    case ROSIN_FLOOR: return loop_of<Floor>(in);
    case ROSIN_CEIL: return loop_of<Ceil>(in);
    case ROSIN_TRUNC: return loop_of<Trunc>(in);
    case ROSIN_ROUND_EVEN: return loop_of<RoundEven>(in);
    case ROSIN_SQRT: return loop_of<Sqrt>(in);
    case ROSIN_FMA: return loop_of<Fma>(in);
    case ROSIN_LESS: return loop_of<Less>(in);
    case ROSIN_LESS_EQUAL: return loop_of<LessEqual>(in);
    case ROSIN_EQUAL: return loop_of<Equal>(in);
    case ROSIN_NOT_EQUAL: return loop_of<NotEqual>(in);
    case ROSIN_LOGICAL_AND: return loop_of<LogicalAnd>(in);
    case ROSIN_LOGICAL_OR: return loop_of<LogicalOr>(in);
    case ROSIN_LOGICAL_NOT: return loop_of<LogicalNot>(in);
    case ROSIN_BIT_AND: return loop_of<BitAnd>(in);
    case ROSIN_BIT_OR: return loop_of<BitOr>(in);
    case ROSIN_BIT_XOR: return loop_of<BitXor>(in);
    case ROSIN_SHIFT_LEFT: return loop_of<ShiftLeft>(in);
    case ROSIN_SHIFT_RIGHT: return loop_of<ShiftRight>(in);
    case ROSIN_SHIFT_RIGHT_ZERO: return loop_of<ShiftRightZero>(in);
    case ROSIN_MULTIPLY_HIGH: return loop_of<MultiplyHigh>(in);
    case ROSIN_EXP2_APPROXIMATE: return loop_of<Exp2Approximate>(in);
    case ROSIN_RECIPROCAL_APPROXIMATE: return loop_of<ReciprocalApproximate>(in);
    case ROSIN_TANH_APPROXIMATE: return loop_of<TanhApproximate>(in);
    case ROSIN_SELECT: return with_scalar(in, Run{}, []<class Tag>(Tag) -> Run { return &select<typename Tag::Type>; });
    case ROSIN_REINTERPRET: return reinterpret_loop(type, in);
    case ROSIN_CONVERT: return convert_loop(type, in);
    default: return nullptr;
  }
}

Run constant(int operation, int type) {
  if (operation == ROSIN_ITEM) return type == ROSIN_SCALAR_INT32 ? &item : nullptr;
  return with_scalar(type, Run{}, [operation]<class Tag>(Tag) -> Run {
    using T = typename Tag::Type;
    if (operation == ROSIN_LITERAL) return &literal<T>;
    if constexpr (!std::same_as<T, Bool>)
      if (operation == ROSIN_PARAMETER) return &parameter<T>;
    if constexpr (std::same_as<T, int32_t> || std::same_as<T, int64_t>)
      if (operation == ROSIN_GROUP) return &group<T>;
    return nullptr;
  });
}

}  // namespace rosin::reference
