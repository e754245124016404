// SmallFunction: any callable with a fixed form, copied by value, kept in the library's free lists.
// Activation and Init stand on it.
#pragma once

#include <concepts>
#include <new>
#include <type_traits>
#include <utility>

#include <rosin/free_list.hpp>

namespace rosin {

template <class Form> class SmallFunction;

/// Holds a callable that maps Argument... to Result without changing itself; or nothing.
template <class Result, class... Argument> class SmallFunction<Result(Argument...)> {
 public:
  SmallFunction() noexcept = default;
  template <class F>
    requires(!std::same_as<F, SmallFunction> && std::is_invocable_r_v<Result, const F&, Argument...>)
  explicit SmallFunction(F callable) : table_(&table_of<F>), object_(detail::take_block(sizeof(F))) {
    static_assert(alignof(F) <= alignof(std::max_align_t), "rosin: a callable with extended alignment");
    ::new (object_) F(std::move(callable));
  }
  SmallFunction(const SmallFunction& other) : table_(other.table_) {
    if (table_) object_ = table_->copy(other.object_);
  }
  SmallFunction(SmallFunction&& other) noexcept : table_(other.table_), object_(other.object_) {
    other.table_ = nullptr;
    other.object_ = nullptr;
  }
  SmallFunction& operator=(SmallFunction other) noexcept {
    std::swap(table_, other.table_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~SmallFunction() {
    if (table_) table_->destroy(object_);
  }

  bool is_empty() const noexcept { return table_ == nullptr; }
  /// Not for an empty one.
  Result operator()(Argument... argument) const { return table_->call(object_, argument...); }

 private:
  struct Table {
    Result (*call)(const void* object, Argument... argument);
    void* (*copy)(const void* object);
    void (*destroy)(void* object) noexcept;
  };
  template <class F> static void* copy(const void* object) {
    void* block = detail::take_block(sizeof(F));
    return ::new (block) F(*static_cast<const F*>(object));
  }
  template <class F> static void destroy(void* object) noexcept {
    static_cast<F*>(object)->~F();
    detail::give_block(object, sizeof(F));
  }
  template <class F> static Result call(const void* object, Argument... argument) {
    return (*static_cast<const F*>(object))(argument...);
  }
  template <class F> static constexpr Table table_of{call<F>, copy<F>, destroy<F>};

  const Table* table_ = nullptr;
  void* object_ = nullptr;
};

}  // namespace rosin
