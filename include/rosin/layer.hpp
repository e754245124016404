// Layer: any layer behind one type, so that containers hold a list of them. A value: copying it copies what it holds.
// Read next: chain.hpp, dense.hpp (a typical layer).
#pragma once

#include <concepts>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <rosin/activation_value.hpp>
#include <rosin/array.hpp>
#include <rosin/copy.hpp>
#include <rosin/free_list.hpp>
#include <rosin/known_parts.hpp>
#include <rosin/walk.hpp>

namespace rosin {

/// Whether a layer in this mode trains now: as the mode says, and where it is automatic inside gradient calls only.
ROSIN_API bool is_training(LayerMode mode) noexcept;

/// Several arrays that go from layer to layer together.
using Arrays = std::vector<Array>;

namespace reflect {

template <class L>
concept MapsOne = std::is_invocable_r_v<Array, const L&, const Array&>;
template <class L>
concept MapsTwo = std::is_invocable_r_v<Array, const L&, const Array&, const Array&>;
template <class L>
concept MapsThree = std::is_invocable_r_v<Array, const L&, const Array&, const Array&, const Array&>;
template <class L>
concept MapsList = std::is_invocable_r_v<Arrays, const L&, std::span<const Array>>;

/// Throws Error (argument): the layer does not take that many arrays.
[[noreturn]] ROSIN_API void refuse_inputs(std::string_view layer, size_t count);
/// The one array of a list; Error (argument) when there are more.
ROSIN_API Array only_array(const Arrays& list, std::string_view layer);

}  // namespace reflect

/// What may be a layer: a class that maps one, two or three arrays to one, or a list of arrays to a list.
template <class L>
concept LayerLike = reflect::MapsOne<L> || reflect::MapsTwo<L> || reflect::MapsThree<L> || reflect::MapsList<L>;

/// A function of the library as a layer; prints its name.
struct ROSIN_API FunctionLayer {
  UnaryFunction function;

  Array operator()(const Array& x) const { return function(x); }
  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;
  void rosin_visit(ModelEditor& editor, const ModelPath& path);
};

/// Holds one layer of any class. The walk goes through it as if it were not there.
class ROSIN_API Layer {
 public:
  /// No layer: maps every array to itself.
  Layer() noexcept = default;
  Layer(UnaryFunction function) : Layer(FunctionLayer{function}) {}
  template <class L>
    requires(!std::same_as<L, Layer> && LayerLike<L>)
  Layer(L layer) : table_(&table_of<L>), object_(detail::take_block(sizeof(L))) {
    static_assert(alignof(L) <= alignof(std::max_align_t), "rosin: a layer with extended alignment");
    static_assert(reflect::check_parts<L>());
    ::new (object_) L(static_cast<L&&>(layer));
  }
  Layer(const Layer& other) : table_(other.table_) {
    if (table_) object_ = table_->copy(other.object_);
  }
  Layer(Layer&& other) noexcept : table_(other.table_), object_(other.object_) {
    other.table_ = nullptr;
    other.object_ = nullptr;
  }
  Layer& operator=(Layer other) noexcept {
    std::swap(table_, other.table_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Layer() {
    if (table_) table_->destroy(object_);
  }

  Array operator()(const Array& x) const;
  /// Error (argument): the layer does not take that many arrays.
  Arrays operator()(std::span<const Array> inputs) const;
  /// Whether the layer itself maps lists, so that several arrays may come out of it.
  bool maps_lists() const { return table_ && table_->maps_lists(object_); }
  bool is_empty() const noexcept { return table_ == nullptr; }

  /// The layer inside, or null when it is of another class: `chain[0].get_if<Dense>()->weight`.
  template <class L> const L* get_if() const noexcept {
    const bool same = table_ && table_->size == sizeof(L) && table_->type == reflect::spelled_type<L>();
    return same ? static_cast<const L*>(object_) : nullptr;
  }
  template <class L> L* get_if() noexcept { return const_cast<L*>(static_cast<const Layer*>(this)->get_if<L>()); }

  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const {
    if (table_) table_->visit(object_, visitor, path);
  }
  void rosin_visit(ModelEditor& editor, const ModelPath& path) {
    if (table_) table_->edit(object_, editor, path);
  }

 private:
  struct Table {
    size_t size;
    std::string_view type;
    bool (*maps_lists)(const void* object);
    Array (*call)(const void* object, const Array& x);
    Arrays (*call_list)(const void* object, std::span<const Array> inputs);
    void* (*copy)(const void* object);
    void (*destroy)(void* object) noexcept;
    void (*visit)(const void* object, ModelVisitor& visitor, const ModelPath& path);
    void (*edit)(void* object, ModelEditor& editor, const ModelPath& path);
  };

  template <class L> static Array call(const void* object, const Array& x) {
    const L& layer = *static_cast<const L*>(object);
    if constexpr (reflect::MapsOne<L>) return layer(x);
    else return reflect::only_array(call_list<L>(object, {&x, 1}), reflect::type_name<L>);
  }
  template <class L> static Arrays call_list(const void* object, std::span<const Array> in) {
    const L& layer = *static_cast<const L*>(object);
    if constexpr (reflect::MapsList<L>) return layer(in);
    if constexpr (reflect::MapsOne<L>) {
      if (in.size() == 1) return {layer(in[0])};
    }
    if constexpr (reflect::MapsTwo<L>) {
      if (in.size() == 2) return {layer(in[0], in[1])};
    }
    if constexpr (reflect::MapsThree<L>) {
      if (in.size() == 3) return {layer(in[0], in[1], in[2])};
    }
    reflect::refuse_inputs(reflect::type_name<L>, in.size());
  }
  template <class L> static bool lists(const void* object) {
    if constexpr (requires(const L& layer) { layer.maps_lists(); }) return static_cast<const L*>(object)->maps_lists();
    else return reflect::MapsList<L>;
  }
  template <class L> static void* copy(const void* object) {
    void* block = detail::take_block(sizeof(L));
    return ::new (block) L(reflect::copy_parts(*static_cast<const L*>(object)));
  }
  template <class L> static void destroy(void* object) noexcept {
    static_cast<L*>(object)->~L();
    detail::give_block(object, sizeof(L));
  }
  template <class L> static void visit(const void* object, ModelVisitor& visitor, const ModelPath& path) {
    reflect::walk(*static_cast<const L*>(object), visitor, path);
  }
  template <class L> static void edit(void* object, ModelEditor& editor, const ModelPath& path) {
    reflect::walk(*static_cast<L*>(object), editor, path);
  }
  template <class L>
  static constexpr Table table_of{
      sizeof(L), reflect::spelled_type<L>(), lists<L>, call<L>, call_list<L>, copy<L>, destroy<L>, visit<L>, edit<L>};

  const Table* table_ = nullptr;
  void* object_ = nullptr;
};

}  // namespace rosin
