// Whether the walk knows every class inside a model: asked where a model is trained, so that no parameter is left out
// in silence. Read first: walk.hpp.
#pragma once

#include <rosin/walk.hpp>

namespace rosin::reflect {

template <class T> struct Type {};

/// Whether f(Type<member>) holds for all members that are fields.
template <class T, class F, auto... members>
constexpr bool all_fields(const ListedFields<fields<members...>>&, [[maybe_unused]] F f) {
  return (f(Type<std::remove_cvref_t<decltype(std::declval<T&>().*members)>>()) && ...);
}
template <class T, class F, int n> constexpr bool all_fields(const BoundFields<T, n>&, [[maybe_unused]] F f) {
  if constexpr (n == 0) return true;
  else
    return bind_members<n>(subject<T>(),
                           [&](auto&... member) { return (f(Type<std::remove_cvref_t<decltype(member)>>()) && ...); });
}
template <class F, template <class...> class List, class... T>
constexpr bool all_types(Type<List<T...>>, [[maybe_unused]] F f) {
  return (f(Type<std::remove_cvref_t<T>>()) && ...);
}
template <class T, class F, int... i>
constexpr bool all_elements([[maybe_unused]] F f, std::integer_sequence<int, i...>) {
  return (f(Type<std::remove_cvref_t<std::tuple_element_t<i, T>>>()) && ...);
}

/// Whether f(Type<part>) holds for the classes that T is made of.
template <class T, class F> constexpr bool all_parts([[maybe_unused]] F f) {
  if constexpr (is_visited<T> || is_leaf<T> || WalksItself<T, ModelEditor> || WalksItself<const T, ModelVisitor>) {
    return true;
  } else if constexpr (HasFields<T> && (Adapted<T> || !Container<T>)) {
    return all_fields<T>(FieldsOf<T>(), f);
  } else if constexpr (PointerLike<T>) {
    return f(Type<std::remove_cv_t<typename T::element_type>>());
  } else if constexpr (MapLike<T>) {
    return f(Type<typename T::mapped_type>());
  } else if constexpr (SequenceLike<T> || OptionalLike<T>) {
    return f(Type<typename T::value_type>());
  } else if constexpr (TupleLike<T>) {
    return all_elements<T>(f, std::make_integer_sequence<int, static_cast<int>(std::tuple_size<T>::value)>());
  } else if constexpr (alternatives<T> > 0) {
    return all_types(Type<T>(), f);
  } else {
    return true;
  }
}

/// Whether there may be arrays in a T. `Around` are the classes that T is part of.
template <class T, class... Around> constexpr bool holds_arrays() {
  if constexpr ((std::is_same_v<T, Around> || ...)) {
    return false;
  } else if constexpr (is_visited<T>) {
    return !std::is_same_v<T, Rng>;
  } else if constexpr (WalksItself<T, ModelEditor> || WalksItself<const T, ModelVisitor>) {
    return true;
  } else {
    return !all_parts<T>([]<class Part>(Type<Part>) { return !holds_arrays<Part, T, Around...>(); });
  }
}

/// True, or a message of the compiler about the class that the walk does not know.
template <class T, class... Around> constexpr bool check_parts() {
  if constexpr ((std::is_same_v<T, Around> || ...)) {
    return true;
  } else {
    refuse_unknown<T>();
    if constexpr (std::is_pointer_v<T>) {
      using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
      if constexpr (std::is_class_v<Element> && !std::is_const_v<std::remove_pointer_t<T>>) {
        if constexpr (requires { sizeof(Element); }) {
          static_assert(!Walked<Element> || !holds_arrays<Element>(),
                        "rosin: what a plain pointer leads to is not trained; hold the object by value or by "
                        "shared_ptr");
        }
      }
      return true;
    } else {
      return all_parts<T>([]<class Part>(Type<Part>) { return check_parts<Part, T, Around...>(); });
    }
  }
}

}  // namespace rosin::reflect
