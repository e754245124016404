// Whether a type of ours is that of somebody else's header. Read next: cuda.cpp, cublaslt.cpp.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace same {

/// Whether a function that expects A can be given B: numbers of one size, pointers to such, handles of any name.
template <class A, class B> constexpr bool like() {
  using From = std::remove_cv_t<A>;
  using To = std::remove_cv_t<B>;
  if constexpr (std::is_pointer_v<From> != std::is_pointer_v<To>) return false;
  else if constexpr (std::is_pointer_v<From>) return like<std::remove_pointer_t<From>, std::remove_pointer_t<To>>();
  else if constexpr (std::is_void_v<From> || std::is_void_v<To>) return true;
  else if constexpr (std::is_class_v<From> && std::is_class_v<To>) return true;
  else return std::is_class_v<From> == std::is_class_v<To> && sizeof(From) == sizeof(To);
}

template <class A, class B> struct Same;
template <class R, class... Ps, class S, class... Qs> struct Same<R (*)(Ps...), S (*)(Qs...)> {
  template <class... As> struct List {};
  template <class... As, class... Bs> static constexpr bool all(List<As...>, List<Bs...>) {
    if constexpr (sizeof...(As) != sizeof...(Bs)) return false;
    else return (like<As, Bs>() && ...);
  }
  static constexpr bool value = like<R, S>() && all(List<Ps...>{}, List<Qs...>{});
};
template <class A, class B> constexpr bool same_call = Same<std::remove_cvref_t<A>, std::remove_cvref_t<B>>::value;

}  // namespace same

#define SAME_PLACE(Ours, field, Theirs, theirs)                      \
  static_assert(offsetof(Ours, field) == offsetof(Theirs, theirs) && \
                sizeof(std::declval<Ours>().field) == sizeof(std::declval<Theirs>().theirs))
#define STARTS_AT(Ours, field, Theirs, theirs) static_assert(offsetof(Ours, field) == offsetof(Theirs, theirs))
#define SAME_NUMBER(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
