// The walk over models: one template that flattens any struct, container or pointer into calls of a visitor.
// Everything that is done with a model (moving, counting, saving, printing, training) is compiled code behind it.
// Read next: fields.hpp (how members are found), model.hpp (what stands on the walk).
#pragma once

#include <rosin/array.hpp>
#include <rosin/buffer.hpp>
#include <rosin/fields.hpp>
#include <rosin/path.hpp>
#include <rosin/visitor.hpp>

namespace rosin::reflect {

template <class T> consteval std::string_view spelled_type() { return __PRETTY_FUNCTION__; }
/// "Dense" of "... spelled_type() [with T = ns::Dense<int>; ...]" and of clang's "... [T = ns::Dense<int>]".
consteval std::string_view short_type(std::string_view text) {
  text.remove_prefix(text.find("T = ") + 4);
  size_t begin = 0, end = 0;
  int depth = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (depth == 0 && (c == ';' || c == ']')) break;
    if (c == '(' || c == '{' || c == '<' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == '>' || c == ']') --depth;
    if (c == ':' && depth == 0) begin = end + 1;
  }
  text = text.substr(begin, end - begin);
  text = text.substr(0, text.find('<'));
  const bool lambda = text.empty() || text.substr(0, 7) == "(lambda";
  return lambda ? std::string_view("lambda") : text;
}
template <class T> inline constexpr std::string_view type_name = short_type(spelled_type<T>());

// Containers are recognised by what they can do, so that no header of theirs is included.
template <class T>
concept StringLike = requires(const T& x) {
  typename T::traits_type;
  x.data();
  x.size();
};
template <class T>
concept SequenceLike = !StringLike<T> && !requires { typename T::key_type; } && requires(T& x) {
  typename T::value_type;
  x.begin();
  x.end();
  x.size();
  x[0];
};
template <class T>
concept MapLike = requires(T& x) {
  typename T::key_type;
  typename T::mapped_type;
  x.begin()->first;
  x.begin()->second;
  x.size();
};
template <class T>
concept OptionalLike = requires(T& x) {
  typename T::value_type;
  x.has_value();
  *x;
  x.reset();
};
template <class T>
concept PointerLike = requires(T& x) {
  typename T::element_type;
  x.get();
  *x;
  x.reset();
};
template <class T>
concept SharedPointerLike = PointerLike<T> && requires(T& x) { x.use_count(); };
template <class T>
concept TupleLike = !SequenceLike<T> && requires { std::tuple_size<T>::value; };
template <class T>
concept FunctionLike = requires(const T& x) { x.target_type(); };

template <class T> inline constexpr int alternatives = 0;
template <template <class...> class V, class... T>
  requires requires(const V<T...>& x) { x.valueless_by_exception(); }
inline constexpr int alternatives<V<T...>> = sizeof...(T);

template <class T, class V>
concept WalksItself = requires(T& x, V& visitor, const ModelPath& path) { x.rosin_visit(visitor, path); };
template <class T>
concept StatesLeaf = requires { T::rosin_leaf; };
template <class T>
concept ShowsItself = requires(const T& x) { x.rosin_show(); };

template <class T> consteval bool is_function() {
  if constexpr (std::is_pointer_v<T>) return std::is_function_v<std::remove_pointer_t<T>>;
  else return std::is_member_pointer_v<T> || FunctionLike<T> || type_name<T> == "lambda";
}
/// Engines of <random>: as members of a model they would draw the same numbers in each gradient call.
template <class T>
concept RandomEngine = requires(T& x) {
  typename T::result_type;
  T::min();
  T::max();
  x.discard(1);
};
/// Whether the name of the type begins so, such as with a namespace.
template <class T> consteval bool is_named_from(std::string_view begin) {
  constexpr std::string_view text = spelled_type<T>();
  return text.substr(text.find("T = ") + 4).starts_with(begin);
}
/// Times, paths, locks and other classes of the standard library that hold nothing of a user's.
template <class T> consteval bool is_standard_value() {
  if constexpr (!std::is_class_v<T> || !is_named_from<T>("std::") || RandomEngine<T>) return false;
  else if constexpr (
      requires { typename T::element_type; } || requires { typename T::type; })
    return false;
  else if constexpr (requires { typename T::value_type; }) return std::is_arithmetic_v<typename T::value_type>;
  else return type_name<T> != "any";
}
/// Things that hold no arrays by their nature.
template <class T>
inline constexpr bool is_leaf =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || StringLike<T> || StatesLeaf<T> || std::is_same_v<T, Shape> ||
    std::is_same_v<T, const char*> || std::is_null_pointer_v<T> || is_function<T>();

template <class T>
concept Container =
    SequenceLike<T> || MapLike<T> || OptionalLike<T> || PointerLike<T> || TupleLike<T> || (alternatives<T> > 0);
/// What a walk hands to its visitor as such.
template <class T>
inline constexpr bool is_visited = std::is_same_v<T, Array> || std::is_same_v<T, Buffer> || std::is_same_v<T, Rng>;
template <class T>
concept Walked = is_visited<T> || WalksItself<T, ModelEditor> || WalksItself<const T, ModelVisitor> ||
                 (!is_leaf<T> && (Container<T> || HasFields<T>));
/// Classes whose members cannot be found and that do not say that they hold no arrays.
template <class T>
concept UnknownClass = std::is_class_v<T> && !Walked<T> && !is_leaf<T> && !is_standard_value<T>();

/// Refuses such a class, saying what its author may do.
template <class T> consteval void refuse_unknown() {
  static_assert(!UnknownClass<T> || !std::is_polymorphic_v<T>,
                "rosin: a polymorphic class cannot be walked; hold layers of different classes as rosin::Layer");
  static_assert(!UnknownClass<T> || !RandomEngine<T>,
                "rosin: an engine of <random> in a model draws the same numbers in each gradient call; hold a "
                "rosin::Rng: mutable Rng rng{7};");
  static_assert(!UnknownClass<T> || std::is_polymorphic_v<T> || RandomEngine<T>,
                "rosin: the members of a class with constructors cannot be found; state their number inside it: "
                "static constexpr int rosin_fields = 2; or list them: static constexpr auto rosin_fields = "
                "rosin::fields<&T::a, &T::b>{}; or say that it holds no arrays: static constexpr bool rosin_leaf = "
                "true;");
}

template <class T> ModelPart part_of(const T& x, PartKind kind, int64_t count = 0) {
  ModelPart part;
  part.kind = kind;
  part.type = type_name<T>;
  part.object = &x;
  part.count = count;
  if constexpr (ShowsItself<T>) {
    part.show = [](const void* object) { return static_cast<const T*>(object)->rosin_show(); };
  }
  return part;
}

template <class T> ModelPart leaf_part(const T& x) {
  if constexpr (std::is_same_v<T, bool>) {
    ModelPart part = part_of(x, PartKind::boolean);
    part.integer = x;
    return part;
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    ModelPart part = part_of(x, std::is_enum_v<T> ? PartKind::other : PartKind::integer);
    part.integer = static_cast<int64_t>(x);
    return part;
  } else if constexpr (std::is_floating_point_v<T>) {
    ModelPart part = part_of(x, PartKind::real);
    part.real = static_cast<double>(x);
    return part;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view> && !std::is_pointer_v<T>) {
    ModelPart part = part_of(x, PartKind::text);
    part.text = x;
    return part;
  } else {
    ModelPart part = part_of(x, PartKind::other);
    if constexpr (is_function<T>() && std::is_pointer_v<T>) part.type = "function";
    return part;
  }
}

template <class M, class V> void walk(M& x, V& visitor, const ModelPath& path);

template <class M, class V> void walk_fields(M& x, V& visitor, const ModelPath& path) {
  using T = std::remove_const_t<M>;
  using Fields = FieldsOf<T>;
  const ModelPart part = part_of(x, PartKind::fields, Fields::count);
  if (!visitor.enter(part, path)) return;
  Fields::each(x, [&](std::string_view name, auto& member) {
    walk(member, visitor, path.field(name, is_trainable_field<T>(name)));
  });
  visitor.leave(part, path);
}

/// The bytes of numbers that an editor may overwrite.
template <class V, class T>
  requires std::is_same_v<V, ModelEditor> && std::is_arithmetic_v<T> && (!std::is_const_v<T>)
std::span<std::byte> overwritten(T* numbers, size_t count) {
  return std::as_writable_bytes(std::span(numbers, count));
}

template <class M, class V> void walk_sequence(M& x, V& visitor, const ModelPath& path) {
  using T = std::remove_const_t<M>;
  if constexpr (is_leaf<typename T::value_type>) {
    const ModelPart part = part_of(x, PartKind::other, static_cast<int64_t>(x.size()));
    if constexpr (requires { overwritten<V>(x.data(), x.size()); }) {
      visitor.numbers(overwritten<V>(x.data(), x.size()), part, path);
    } else {
      visitor.leaf(part, path);
    }
  } else {
    const ModelPart part = part_of(x, PartKind::sequence, static_cast<int64_t>(x.size()));
    if (!visitor.enter(part, path)) return;
    int64_t index = 0;
    for (auto& element : x) walk(element, visitor, path.item(index++));
    visitor.leave(part, path);
  }
}

template <class M, class V> void walk_map(M& x, V& visitor, const ModelPath& path) {
  using Key = typename M::key_type;
  const ModelPart part = part_of(x, PartKind::map, static_cast<int64_t>(x.size()));
  if (!visitor.enter(part, path)) return;
  for (auto& entry : x) {
    if constexpr (std::is_convertible_v<const Key&, std::string_view>) {
      walk(entry.second, visitor, path.field(entry.first));
    } else {
      static_assert(
          std::is_integral_v<Key> || std::is_enum_v<Key>,
          "rosin: a map in a model needs keys that are strings, integers or enums, as they are part of paths");
      walk(entry.second, visitor, path.item(static_cast<int64_t>(entry.first)));
    }
  }
  visitor.leave(part, path);
}

template <class M, class V, int... i>
void walk_tuple(M& x, V& visitor, const ModelPath& path, std::integer_sequence<int, i...>) {
  const ModelPart part = part_of(x, PartKind::tuple, sizeof...(i));
  if (!visitor.enter(part, path)) return;
  (walk(get<i>(x), visitor, path.item(i)), ...);
  visitor.leave(part, path);
}

template <int i, class M, class V> void walk_alternative(M& x, V& visitor, const ModelPath& path) {
  if constexpr (i < alternatives<std::remove_const_t<M>>) {
    if (auto* held = get_if<i>(&x)) walk(*held, visitor, path);
    else walk_alternative<i + 1>(x, visitor, path);
  }
}

/// Replaces a shared pointer of a copied model by one to a copy of its object.
template <class P> void separate(P& pointer, detail::SharedCopies& copies, const ModelPath& path) {
  using Element = typename P::element_type;
  const void* original = pointer.get();
  if (const void* copied = copies.find(original, type_name<P>)) {
    pointer = *static_cast<const P*>(copied);
  } else if constexpr (std::is_copy_constructible_v<Element> && !std::is_polymorphic_v<Element>) {
    pointer = P(new Element(*pointer));
    copies.remember(original, type_name<P>, &pointer);
  } else {
    detail::refuse_copy(type_name<Element>, path);
  }
}

template <class M, class V> void walk_pointer(M& x, V& visitor, const ModelPath& path) {
  using Element = typename M::element_type;
  constexpr bool shared = SharedPointerLike<std::remove_const_t<M>>;
  if (!x) return;
  if constexpr (std::is_const_v<Element> && std::is_same_v<V, ModelEditor>) {
    detail::warn_unwalked(type_name<std::remove_const_t<M>>, path);
  } else {
    using Seen = std::conditional_t<std::is_const_v<M>, const Element, Element>;
    if constexpr (shared && std::is_same_v<V, ModelEditor>) {
      if (detail::SharedCopies* copies = visitor.copies()) separate(x, *copies, path);
    }
    walk(static_cast<Seen&>(*x), visitor, shared ? path.through_pointer() : path);
  }
}

/// Calls the visitor for x and everything in it, depth first, members in the order of their declaration.
template <class M, class V> void walk(M& x, V& visitor, const ModelPath& path) {
  using T = std::remove_const_t<M>;
  constexpr bool edits = std::is_same_v<V, ModelEditor>;
  static_assert(!std::is_array_v<M>, "rosin: a C array cannot be walked; write std::array or std::vector");
  if constexpr (std::is_same_v<T, Array> || std::is_same_v<T, Buffer>) {
    static_assert(!(edits && std::is_const_v<M>),
                  "rosin: a const Array member cannot be trained, moved or loaded; drop const");
    if constexpr (std::is_same_v<T, Array>) visitor.array(x, path);
    else visitor.buffer(x, path.fixed());
  } else if constexpr (std::is_same_v<T, Rng>) {
    if constexpr (!edits || !std::is_const_v<M>) visitor.rng(x, path);  // a const generator never moves on
  } else if constexpr (WalksItself<M, V>) {
    x.rosin_visit(visitor, path);
  } else if constexpr (edits && std::is_same_v<M, LayerMode>) {
    visitor.mode(x, path);
  } else if constexpr (requires { overwritten<V>(&x, 1); }) {
    visitor.numbers(overwritten<V>(&x, 1), leaf_part(x), path);
  } else if constexpr (is_leaf<T>) {
    visitor.leaf(leaf_part(x), path);
  } else if constexpr (!Adapted<T> && !Container<T> && is_standard_value<T>()) {
    visitor.leaf(part_of(x, PartKind::other), path);
  } else if constexpr (Adapted<T> || !Container<T>) {
    if constexpr (HasFields<T>) {
      walk_fields(x, visitor, path);
    } else {
      detail::warn_unwalked(type_name<T>, path);
      visitor.leaf(part_of(x, PartKind::other), path);
    }
  } else if constexpr (SequenceLike<T>) {
    walk_sequence(x, visitor, path);
  } else if constexpr (MapLike<T>) {
    walk_map(x, visitor, path);
  } else if constexpr (OptionalLike<T>) {
    if (x.has_value()) walk(*x, visitor, path);
  } else if constexpr (PointerLike<T>) {
    walk_pointer(x, visitor, path);
  } else if constexpr (TupleLike<T>) {
    walk_tuple(x, visitor, path, std::make_integer_sequence<int, static_cast<int>(std::tuple_size<T>::value)>());
  } else {
    walk_alternative<0>(x, visitor, path);
  }
}

}  // namespace rosin::reflect

namespace rosin {

/// Classes whose arrays the walk finds: Array, Buffer, layers, aggregates, classes that list their fields, and
/// containers.
template <class T>
concept Walkable = reflect::Walked<std::remove_cvref_t<T>>;

/// Visits everything in a model, depth first; `path` is where the model stands in a larger one.
template <class M> void visit(const M& model, ModelVisitor& visitor, const ModelPath& path = {}) {
  reflect::walk(model, visitor, path);
}
template <class M> void visit(M& model, ModelEditor& editor, const ModelPath& path = {}) {
  reflect::walk(model, editor, path);
}

/// A const model of any class, for compiled code. Refers to the model; made by conversion in a call.
class ModelView {
 public:
  static constexpr bool rosin_leaf = true;

  template <Walkable M>
  ModelView(const M& model)
      : model_(&model),
        walk_([](const void* object, ModelVisitor& visitor) { visit(*static_cast<const M*>(object), visitor); }) {}
  /// Not meant: says what is missing.
  template <class M>
    requires reflect::UnknownClass<M>
  ModelView(const M&) {
    reflect::refuse_unknown<M>();
  }
  void visit_with(ModelVisitor& visitor) const { walk_(model_, visitor); }

 private:
  const void* model_;
  void (*walk_)(const void*, ModelVisitor&);
};

/// A model of any class that may be changed in place, for compiled code.
class ModelEdit {
 public:
  static constexpr bool rosin_leaf = true;

  template <Walkable M>
    requires(!std::is_const_v<M>)
  ModelEdit(M& model)
      : model_(&model), walk_([](void* object, ModelEditor& editor) { visit(*static_cast<M*>(object), editor); }),
        view_(static_cast<const M&>(model)) {}
  /// Not meant: says what is missing.
  template <class M>
    requires reflect::UnknownClass<M>
  ModelEdit(M& model) : view_(model) {
    reflect::refuse_unknown<M>();
  }
  void edit_with(ModelEditor& editor) const { walk_(model_, editor); }
  const ModelView& view() const noexcept { return view_; }

 private:
  void* model_;
  void (*walk_)(void*, ModelEditor&);
  ModelView view_;
};

}  // namespace rosin
