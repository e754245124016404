// What one does with a whole model: map its arrays, count, list and load them, change their precision.
// Models are plain structs (fields.hpp says which); show.hpp prints them, functor.hpp takes them apart and goes through
// several in step.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include <rosin/copy.hpp>
#include <rosin/error.hpp>
#include <rosin/tied.hpp>
#include <rosin/walk.hpp>

namespace rosin {

/// An array with its path as in files, e.g. "layers.0.weight".
struct NamedArray {
  std::string name;
  Array value;
};

// --- Lists, in the order of the walk.

/// Every array of the model, buffers too, tied ones each time; nothing is left out.
ROSIN_API std::vector<Array> fleaves(ModelView model);
/// The arrays that are trained: floating point or complex, in places that are not excluded; tied ones once.
ROSIN_API std::vector<Array> trainables(ModelView model);
/// The same with their paths.
ROSIN_API std::vector<NamedArray> named_trainables(ModelView model);
/// Number of trained elements.
ROSIN_API int64_t parameter_count(ModelView model);
/// Every array and buffer with its path, tied ones once, then every generator (as generator_state gives it): what is
/// saved.
ROSIN_API std::vector<NamedArray> state(ModelView model);

namespace detail {

/// For compiled code: one place of a model, in a list to go through several models in step (model, gradient,
/// optimiser state): the i-th place of one is the i-th place of the other when the paths' hashes agree.
template <class ArrayPointer> struct ArrayPlace {
  ArrayPointer array;  // valid while the model is not changed but by writing to its arrays
  uint64_t path;       // ModelPath::hash
  int first;           // position of the first place of the same tied or shared array, else the own one
  bool trainable;      // a trained place that holds a floating-point or complex array
  bool buffer;
};

/// Fills `places` with all arrays, also nothing. The vector keeps its memory: a list that is kept
/// costs no allocation.
ROSIN_API void list_arrays(ModelEdit model, std::vector<ArrayPlace<Array*>>& places);
ROSIN_API void list_arrays(ModelView model, std::vector<ArrayPlace<const Array*>>& places);
/// The path of the place at a position of such a list, as text; for messages.
ROSIN_API std::string path_at(ModelView model, size_t position);

}  // namespace detail

// --- Values.

namespace detail {

ROSIN_API void eval_arrays(ModelView model);

}  // namespace detail

/// As eval(), and makes sure that all arrays of models have their values, and of tuples, lists and gradients:
/// eval(loss, model, gradient). Empty handles stay empty.
template <class... M>
  requires((Walkable<M> && ...) && !(std::same_as<M, Array> && ...))
void eval(const M&... parts) {
  (detail::eval_arrays(parts), ...);
}

// --- Maps.

namespace detail {

/// A function on arrays as compiled code sees it.
struct ArrayMap {
  void* function;
  Array (*call)(void* function, const Array& x, const ModelPath& path);
  void* exclude = nullptr;
  bool (*excludes)(void* exclude, const Array& x, const ModelPath& path) = nullptr;
};
/// Replaces each array of the model, tied ones together; nothing stays.
ROSIN_API void map_arrays(ModelEdit model, const ArrayMap& map);

}  // namespace detail

namespace reflect {

template <class F> Array call_on_array(void* function, const Array& x, const ModelPath& path) {
  F& f = *static_cast<F*>(function);
  if constexpr (std::is_invocable_v<F&, const ModelPath&, const Array&>) return f(path, x);
  else return f(x);
}
template <class E> bool excludes_array(void* exclude, const Array& x, const ModelPath& path) {
  E& e = *static_cast<E*>(exclude);
  if constexpr (std::is_invocable_v<E&, const ModelPath&>) return e(path);
  else return e(x);
}

}  // namespace reflect

/// A model with f applied to each array and buffer; all else is copied. f takes (x) or (path, x). A class that cannot
/// be walked comes back unchanged, with a warning.
template <class F, class M> M fmap(F f, const M& model) {
  M copy = copy_of(model);
  if constexpr (Walkable<M>) detail::map_arrays(copy, {&f, reflect::call_on_array<F>});
  else detail::warn_unwalked(reflect::type_name<M>, {});
  return copy;
}
/// The same, so that the name of an overloaded function may be given.
template <class M> M fmap(Array (*f)(const Array&), const M& model) {
  return fmap([f](const Array& x) { return f(x); }, model);
}
/// The same, but for arrays that `exclude` holds for; it takes an array or a path.
template <class F, class M, class E>
  requires(!Walkable<E>)
M fmap(F f, const M& model, E exclude) {
  M copy = copy_of(model);
  if constexpr (Walkable<M>)
    detail::map_arrays(copy, {&f, reflect::call_on_array<F>, &exclude, reflect::excludes_array<E>});
  else detail::warn_unwalked(reflect::type_name<M>, {});
  return copy;
}

namespace detail {

/// Copies the values of every array into arrays of their own.
ROSIN_API void clone_arrays(ModelEdit model);

}  // namespace detail

/// A copy of a model (or an array) that shares no array with it; ties inside it stay.
template <Walkable M> M clone(const M& model) {
  M copy = copy_of(model);
  detail::clone_arrays(copy);
  return copy;
}

namespace detail {

/// Converts every floating-point array to another float type; Buffers to Float32 where that is a half.
ROSIN_API void convert_floats(ModelEdit model, DType type);

}  // namespace detail

template <Walkable M> M with_floats(const M& model, DType type) {
  M copy = copy_of(model);
  detail::convert_floats(copy, type);
  return copy;
}
/// The model with all floating-point arrays in one type, running statistics as above; integers, Bool, complex stay.
template <Walkable M> M f16(const M& model) { return with_floats(model, Float16); }
template <Walkable M> M bf16(const M& model) { return with_floats(model, BFloat16); }
template <Walkable M> M f32(const M& model) { return with_floats(model, Float32); }
template <Walkable M> M f64(const M& model) { return with_floats(model, Float64); }

// --- Calling.

namespace detail {

/// Called where an error passes a layer, a container of layers, or who was given a whole model. The first one is the
/// layer in which it arose; each one after it that has that layer as a part puts the part's path before the text.
ROSIN_API void locate(Error& error, ModelView whole);

/// While it lives, what this thread records belongs to a call with this model: errors that come later, such as those of
/// indices, have a path too.
class ROSIN_API CallOf {
 public:
  explicit CallOf(ModelView whole) noexcept;
  CallOf(const CallOf&) = delete;
  CallOf& operator=(const CallOf&) = delete;
  ~CallOf();

 private:
  static constexpr size_t words = 4;
  alignas(void*) unsigned char call_[words * sizeof(void*)];
};

}  // namespace detail

/// model(x...), where an Error names the path of the layer in which it arose: "blocks[3].conv1: ...", also one that
/// comes when what the model recorded is evaluated (an index out of range). Gradient calls and containers of layers do
/// that by themselves; a struct that is called on its own knows no paths.
template <Walkable M, class... X>
  requires std::invocable<const M&, const X&...>
auto predict(const M& model, const X&... x) {
  const detail::CallOf call(model);
  try {
    return model(x...);
  } catch (Error& error) {
    detail::locate(error, model);
    throw;
  }
}

// --- Loading and modes, in place.

struct LoadOptions {
  bool strict = true;  // every array must be in the source, and every entry of the source in the model
};
/// Takes over the values of the source by path, all or nothing; element types, devices and absent biases of dst stay,
/// and generators that the source lacks. An absent bias in a source model sets dst's to zero. Errors (argument) name
/// the paths that do not match, (shape) the sizes, (dtype) a value that its place cannot hold: only from one
/// floating-point type to another are values rounded.
ROSIN_API void loadmodel(ModelEdit dst, const std::vector<NamedArray>& source, LoadOptions options = {});
ROSIN_API void loadmodel(ModelEdit dst, ModelView source, LoadOptions options = {});

/// Puts every LayerMode of the model into test mode; `on = false` into training mode.
ROSIN_API void testmode(ModelEdit model, bool on = true);
/// Puts every LayerMode of the model into training mode; `on = false` into test mode.
ROSIN_API void trainmode(ModelEdit model, bool on = true);
/// Back to training inside gradient calls and testing outside.
ROSIN_API void automode(ModelEdit model);

}  // namespace rosin
