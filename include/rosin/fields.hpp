// Fields of a class: names and references, found in aggregates by structured bindings, in other classes by a list they
// state. Read next: walk.hpp, which goes through a model by these.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

namespace rosin {

/// A list of public or private members, in the order in which they are walked. Stated inside a class with private
/// members, or for a subset: `static constexpr auto rosin_fields = rosin::fields<&A::actor>{};` (`rosin_trainable` in
/// the same form says which of them are trained); a class with constructors and public members only counts them:
/// `static constexpr int rosin_fields = 3;`. Aggregates need nothing.
template <auto... members> struct fields {};

/// Adapts a class that cannot be changed: `template <> struct rosin::functor<T> : rosin::fields<&T::a, &T::b> {};`.
template <class T> struct functor;

}  // namespace rosin

namespace rosin::reflect {

inline constexpr int max_fields = 32;

/// Stands for a member of any type where initialisation is tried. Never converted; a body is there as clang may look at
/// it.
struct AnyValue {
  template <class T> operator T() const { __builtin_unreachable(); }
};
/// The same for members that are references.
struct AnyReference {
  template <class T> operator T&() const { __builtin_unreachable(); }
};
/// Stands for a base class of T only.
template <class T> struct AnyBaseOf {
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
  operator U() const {
    __builtin_unreachable();
  }
};
template <class T> struct AnyEmptyBaseOf {
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T> && std::is_empty_v<U>)
  operator U() const {
    __builtin_unreachable();
  }
};

template <class Value, class T, int... i> constexpr bool takes(std::integer_sequence<int, i...>) {
  return requires { T{(static_cast<void>(i), Value{})...}; };
}
/// Whether T{value, value, ...} with n values is valid.
template <class Value, class T, int n>
inline constexpr bool takes_values = takes<Value, T>(std::make_integer_sequence<int, n>());

template <class First, class T, int... i, int... j>
constexpr bool takes_then(std::integer_sequence<int, i...>, std::integer_sequence<int, j...>) {
  return requires { T{(static_cast<void>(i), First{})..., (static_cast<void>(j), AnyValue{})...}; };
}

/// The largest n for which T{value x n} is valid, at most one above max_fields; -1 where there is none.
template <class Value, class T, int n = 0, bool found = false> constexpr int count_values() {
  if constexpr (n > max_fields + 1) {
    return found ? max_fields + 1 : -1;
  } else if constexpr (takes_values<Value, T, n>) {
    return count_values<Value, T, n + 1, true>();
  } else if constexpr (found) {
    return n - 1;
  } else {
    return count_values<Value, T, n + 1, false>();
  }
}

/// Bases that initialisation of the aggregate T begins with, out of n values.
template <template <class> class Base, class T, int n, int k = 0> constexpr int count_bases() {
  if constexpr (k < n) {
    if constexpr (takes_then<Base<T>, T>(std::make_integer_sequence<int, k + 1>(),
                                         std::make_integer_sequence<int, n - k - 1>())) {
      return count_bases<Base, T, n, k + 1>();
    } else {
      return k;
    }
  } else {
    return k;
  }
}

// A member that is an array of several takes that many values of a flat list, but one pair of braces. First empty
// braces are tried, which need a default constructor; then a value in braces, which some classes read as a list.
template <class T, int... i, int... j>
constexpr bool takes_empty_braces(std::integer_sequence<int, i...>, std::integer_sequence<int, j...>) {
  return requires { T{(static_cast<void>(i), AnyValue{})..., {}, (static_cast<void>(j), AnyValue{})...}; };
}
template <class T, int... i, int... j>
constexpr bool takes_filled_braces(std::integer_sequence<int, i...>, std::integer_sequence<int, j...>) {
  return requires { T{(static_cast<void>(i), AnyValue{})..., {AnyValue{}}, (static_cast<void>(j), AnyValue{})...}; };
}
template <class T, int at, int rest>
inline constexpr bool empty_braces =
    takes_empty_braces<T>(std::make_integer_sequence<int, at>(), std::make_integer_sequence<int, rest>());
template <class T, int at, int rest>
inline constexpr bool filled_braces =
    takes_filled_braces<T>(std::make_integer_sequence<int, at>(), std::make_integer_sequence<int, rest>());

/// Whether a longer list of values can follow a pair of braces only when that stands for several values.
template <class T, int at, int rest> constexpr bool several_in_braces() {
  if constexpr (rest < 0) return false;
  else if constexpr (empty_braces<T, at, rest> || filled_braces<T, at, rest>) return true;
  else return several_in_braces<T, at, rest - 1>();
}
/// Whether a member that begins at value `at` out of n is an array of two or more.
template <class T, int n, int at> constexpr bool array_starts_at() {
  if constexpr (empty_braces<T, at, n - at - 1>) return false;
  else if constexpr (takes_values<AnyValue, T, at> && empty_braces<T, at, 0>) return true;
  else if constexpr (filled_braces<T, at, n - at - 1>) return false;
  else return several_in_braces<T, at, n - at - 2>();
}
template <class T, int n, int at = 0> constexpr bool has_long_array() {
  if constexpr (at >= n) return false;
  else if constexpr (array_starts_at<T, n, at>()) return true;
  else return has_long_array<T, n, at + 1>();
}

template <class T>
concept StatesCount = std::is_convertible_v<decltype(T::rosin_fields), int>;
template <class T>
concept StatesList = requires { T::rosin_fields; } && !StatesCount<T>;
template <class T>
concept Adapted = requires { sizeof(functor<T>); };
template <class T>
concept Aggregate = std::is_aggregate_v<T> && std::is_class_v<T>;
/// Classes whose fields are known.
template <class T>
concept HasFields = Adapted<T> || StatesCount<T> || StatesList<T> || Aggregate<T>;

/// Number of fields of an aggregate, with a message where the walk cannot take it.
template <class T> constexpr int count_aggregate() {
  if constexpr (std::is_empty_v<T>) {
    return 0;
  } else {
    constexpr int n = count_values<AnyValue, T>();
    if constexpr (n < 1) {
      static_assert(count_values<AnyReference, T>() < 1,
                    "rosin: a member that is a reference cannot be walked; hold the object by value or by shared_ptr");
      static_assert(n > 0,
                    "rosin: the members of this class cannot be found; state them inside it: static constexpr auto "
                    "rosin_fields = rosin::fields<&T::a, &T::b>{};");
      return 0;
    } else {
      static_assert(n <= max_fields,
                    "rosin: a class may have at most 32 fields to be walked; group some of them in a struct, "
                    "or list them: static constexpr auto rosin_fields = rosin::fields<&T::a>{};");
      if constexpr (n <= max_fields) {
        constexpr int bases = count_bases<AnyBaseOf, T, n>();
        static_assert(bases == count_bases<AnyEmptyBaseOf, T, n>(),
                      "rosin: a base class with data cannot be walked; make it a member, or list the members: static "
                      "constexpr auto rosin_fields = rosin::fields<&T::a, &T::b>{};");
        constexpr bool array = has_long_array<T, n>();
        static_assert(!array, "rosin: a C array cannot be walked; write std::array or std::vector");
        return bases == count_bases<AnyEmptyBaseOf, T, n>() && !array ? n - bases : 0;
      } else {
        return 0;
      }
    }
  }
}

/// Named so that a compiler's own message about a wrong count says what to do.
struct SetRosinFieldsToTheNumberOfPublicMembersAndUseNoBitFields {};

/// then(a, b, ...) with references to the n members of the object.
template <int count, class Cure, class Object, class Then>
constexpr decltype(auto) bind_few(Object& object, Then&& then) {
  if constexpr (count == 1) {
    auto& [a] = object;
    return then(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = object;
    return then(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = object;
    return then(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = object;
    return then(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = object;
    return then(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = object;
    return then(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return then(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return then(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return then(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return then(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}
template <int count, class Cure, class Object, class Then>
constexpr decltype(auto) bind_many(Object& object, Then&& then) {
  if constexpr (count == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (count == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  } else if constexpr (count == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  } else if constexpr (count == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  } else if constexpr (count == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
  } else if constexpr (count == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
  } else if constexpr (count == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  } else if constexpr (count == 24) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
  } else if constexpr (count == 25) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y);
  } else if constexpr (count == 26) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z);
  } else if constexpr (count == 27) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A);
  } else if constexpr (count == 28) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B);
  } else if constexpr (count == 29) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C);
  } else if constexpr (count == 30) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D);
  } else if constexpr (count == 31) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E);
  } else if constexpr (count == 32) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F] = object;
    return then(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F);
  }
}
template <int count, class Cure = SetRosinFieldsToTheNumberOfPublicMembersAndUseNoBitFields, class Object, class Then>
constexpr decltype(auto) bind_members(Object& object, Then&& then) {
  if constexpr (count <= 16) return bind_few<count, Cure>(object, then);
  else return bind_many<count, Cure>(object, then);
}

// Names: a pointer to a member of an object that is declared only, as a template argument, is spelled by the compiler
// with the member's name at its end.
template <class T> struct Holder {
  T value;
};
// Declared, never defined and never used but for the spelling of its address; clang warns of that.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T> extern const Holder<T> declared;
template <class T> constexpr const T& subject() { return declared<T>.value; }
#ifdef __clang__
#pragma clang diagnostic pop
#endif

template <class P> struct Spot {
  P pointer;
};
template <class P> Spot(P) -> Spot<P>;

template <auto spot> consteval std::string_view spelled() { return __PRETTY_FUNCTION__; }

/// The last identifier of a spelled template argument.
consteval std::string_view last_identifier(std::string_view text) {
  // g++ appends "; std::string_view = ..." to its list of template arguments.
  size_t end = text.find(';');
  if (end == std::string_view::npos) end = text.size();
  while (end > 0 && (text[end - 1] == ')' || text[end - 1] == ']' || text[end - 1] == '}')) --end;
  size_t begin = end;
  while (begin > 0) {
    const char c = text[begin - 1];
    const bool ascii = (c & 0x80) == 0;  // other letters take several bytes
    const bool part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || !ascii;
    if (!part) break;
    --begin;
  }
  return text.substr(begin, end - begin);
}

template <auto spot> inline constexpr std::string_view name_of = last_identifier(spelled<spot>());

/// The i-th of several pointers.
template <int i, class First, class... Rest> constexpr auto pointer_at(const First* first, const Rest*... rest) {
  if constexpr (i == 0) return Spot{first};
  else return pointer_at<i - 1>(rest...);
}
template <class T, int n, int i> constexpr auto spot_of() {
  return bind_members<n>(subject<T>(), [](const auto&... member) { return pointer_at<i>(&member...); });
}

template <auto spot> struct SpotArgument;
/// A member that is a reference lies elsewhere, so its address is no template argument.
template <class T, int n, int i>
concept OwnMember = requires { typename SpotArgument<spot_of<T, n, i>()>; };

template <class T, int n, int i> consteval std::string_view bound_name() {
  static_assert(OwnMember<T, n, i>,
                "rosin: a member that is a reference cannot be walked; hold the object by value or by shared_ptr");
  if constexpr (OwnMember<T, n, i>) return name_of<spot_of<T, n, i>()>;
  else return {};
}

/// The fields of an aggregate, or of a class that states their number.
template <class T, int n> struct BoundFields {
  static constexpr int count = n;
  template <int i> static constexpr std::string_view name = bound_name<T, n, i>();
  static constexpr bool has(std::string_view wanted) { return has(wanted, std::make_integer_sequence<int, n>()); }
  template <int... i> static constexpr bool has(std::string_view wanted, std::integer_sequence<int, i...>) {
    return ((name<i> == wanted) || ...);
  }
  template <class M, class F> static constexpr void each(M& x, F&& f) {
    each_of(x, f, std::make_integer_sequence<int, n>());
  }
  template <class M, class F, int... i> static constexpr void each_of(M& x, F&& f, std::integer_sequence<int, i...>) {
    if constexpr (n > 0) bind_members<n>(x, [&](auto&... member) { (f(name<i>, member), ...); });
  }
};

/// The fields of a class that lists them.
template <class List> struct ListedFields;
template <auto... members> struct ListedFields<fields<members...>> {
  static constexpr int count = sizeof...(members);
  static constexpr bool has(std::string_view wanted) { return ((name_of<members> == wanted) || ...); }
  template <class M, class F> static constexpr void each(M& x, F&& f) { (f(name_of<members>, x.*members), ...); }
};

template <auto... members> ListedFields<fields<members...>> listed(const fields<members...>&);

template <class T> constexpr auto find_fields() {
  if constexpr (Adapted<T>) return decltype(listed(std::declval<const functor<T>&>()))();
  else if constexpr (StatesList<T>) return decltype(listed(T::rosin_fields))();
  else if constexpr (StatesCount<T>) return BoundFields<T, T::rosin_fields>();
  else return BoundFields<T, count_aggregate<T>()>();
}
/// The fields of T: `count` and each(x, f), which calls f(name, member) for each in order.
template <class T> using FieldsOf = decltype(find_fields<T>());

template <class T> constexpr auto find_trainable() {
  if constexpr (requires { functor<T>::rosin_trainable; }) return decltype(listed(functor<T>::rosin_trainable))();
  else if constexpr (requires { T::rosin_trainable; }) return decltype(listed(T::rosin_trainable))();
  else return FieldsOf<T>();
}
template <class T, auto... members> constexpr bool are_fields(const ListedFields<fields<members...>>&) {
  return (FieldsOf<T>::has(name_of<members>) && ...);
}

/// Whether the field is one that is trained: all are unless the class (or its functor) lists some as rosin_trainable.
template <class T> constexpr bool is_trainable_field(std::string_view name) {
  using Trainable = decltype(find_trainable<T>());
  if constexpr (std::is_same_v<Trainable, FieldsOf<T>>) {
    return true;
  } else {
    static_assert(are_fields<T>(Trainable()), "rosin: every member in rosin_trainable must be one of the fields");
    return Trainable::has(name);
  }
}

}  // namespace rosin::reflect
