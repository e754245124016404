// Copies of whole models, also of those with unique_ptr in them. Arrays are shared (they never change), objects are
// not.
#pragma once

#include <rosin/walk.hpp>

namespace rosin::reflect {

template <class T, class... Around> consteval bool copies_plainly();

template <class T, class... Around, int... i> consteval bool elements_copy_plainly(std::integer_sequence<int, i...>) {
  return (copies_plainly<std::tuple_element_t<i, T>, Around...>() && ...);
}
template <class... Around, template <class...> class V, class... T>
consteval bool alternatives_copy_plainly(const V<T...>*) {
  return (copies_plainly<T, Around...>() && ...);
}

/// Whether the copy constructor of T does: no unique_ptr inside. (std::vector<std::unique_ptr<T>> claims to have one.)
/// `Around` are the classes that T is part of, as a class may hold a vector of its own kind.
template <class T, class... Around> consteval bool copies_plainly() {
  if constexpr (std::is_same_v<T, Array> || std::is_same_v<T, Buffer> || is_leaf<T> || WalksItself<T, ModelEditor> ||
                (std::is_same_v<T, Around> || ...)) {
    return true;
  } else if constexpr (PointerLike<T>) {
    return SharedPointerLike<T>;
  } else if constexpr (MapLike<T>) {
    return copies_plainly<typename T::mapped_type, Around...>();
  } else if constexpr (SequenceLike<T> || OptionalLike<T>) {
    return copies_plainly<typename T::value_type, Around...>();
  } else if constexpr (TupleLike<T>) {
    constexpr int count = static_cast<int>(std::tuple_size<T>::value);
    return elements_copy_plainly<T, Around...>(std::make_integer_sequence<int, count>());
  } else if constexpr (alternatives<T> > 0) {
    return alternatives_copy_plainly<Around...>(static_cast<const T*>(nullptr));
  } else if constexpr (Aggregate<T> && !Adapted<T> && !StatesList<T> && FieldsOf<T>::count > 0) {
    return bind_members<FieldsOf<T>::count>(subject<T>(), [](auto&... member) {
      return (copies_plainly<std::remove_cvref_t<decltype(member)>, T, Around...>() && ...);
    });
  } else {
    return std::is_copy_constructible_v<T>;
  }
}

template <class T> T copy_parts(const T& x);

/// All members of an aggregate: its list of fields may name a few of them only.
template <class T> consteval int members_of() {
  if constexpr (StatesList<T> || Adapted<T>) return count_aggregate<T>();
  else return FieldsOf<T>::count;
}

template <class T, int... i> T copy_elements(const T& x, std::integer_sequence<int, i...>) {
  if constexpr (SequenceLike<T>) return T{copy_parts(x[i])...};
  else return T(copy_parts(get<i>(x))...);
}

template <int i, class T> T copy_alternative(const T& x) {
  if constexpr (i + 1 < alternatives<T>) {
    if (!get_if<i>(&x)) return copy_alternative<i + 1>(x);
  }
  return T(std::in_place_index<i>, copy_parts(*get_if<i>(&x)));
}

template <class T> T copy_parts(const T& x) {
  if constexpr (copies_plainly<T>()) {
    return T(x);
  } else if constexpr (PointerLike<T>) {
    using Element = typename T::element_type;
    static_assert(!std::is_polymorphic_v<Element>,
                  "rosin: a model with a pointer to a polymorphic class cannot be copied; hold "
                  "the object by value or as a Layer");
    return x ? T(new Element(copy_parts(*x))) : T();
  } else if constexpr (MapLike<T>) {
    T copy;
    for (const auto& entry : x) copy.emplace(entry.first, copy_parts(entry.second));
    return copy;
  } else if constexpr (TupleLike<T> || (SequenceLike<T> && requires { std::tuple_size<T>::value; })) {
    return copy_elements(x, std::make_integer_sequence<int, static_cast<int>(std::tuple_size<T>::value)>());
  } else if constexpr (SequenceLike<T>) {
    T copy;
    for (const auto& element : x) copy.push_back(copy_parts(element));
    return copy;
  } else if constexpr (OptionalLike<T>) {
    return x.has_value() ? T(copy_parts(*x)) : T();
  } else if constexpr (alternatives<T> > 0) {
    return copy_alternative<0>(x);
  } else {
    static_assert(Aggregate<T>, "rosin: a model of this class cannot be copied; give it a copy constructor");
    return bind_members<members_of<T>()>(x, [](auto&... member) { return T{copy_parts(member)...}; });
  }
}

}  // namespace rosin::reflect

namespace rosin {

namespace detail {

/// Gives the shared pointers of a fresh copy objects of their own.
ROSIN_API void separate_shared(ModelEdit copy);

}  // namespace detail

/// A model that is independent of `model`: changing one leaves the other as it is. Arrays are the same handles.
template <class M> M copy_of(const M& model) {
  M copy = reflect::copy_parts(model);
  if constexpr (Walkable<M>) detail::separate_shared(copy);
  return copy;
}

}  // namespace rosin
