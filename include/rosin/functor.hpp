// functor_of: a model taken apart into a tuple of named references, and a function that puts it together again; arrays
// by their path; fmap over several models in step. Read first: model.hpp (fmap over one).
#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include <rosin/model.hpp>

namespace rosin {

/// A field of a model: its name and a reference to it.
template <class T> struct NamedReference {
  std::string_view name;
  const T& value;
};

namespace reflect {

template <class T> const T& value_in(const NamedReference<T>& field) { return field.value; }
template <class T> const T& value_in(const T& field) { return field; }

template <class List> struct TupleOfFields;
template <auto... members> struct TupleOfFields<ListedFields<fields<members...>>> {
  template <class M> static auto make(const M& x) {
    return std::tuple<NamedReference<std::remove_cvref_t<decltype(x.*members)>>...>{{name_of<members>, x.*members}...};
  }
};
template <class T, int n> struct TupleOfFields<BoundFields<T, n>> {
  static auto make(const T& x) { return make(x, std::make_integer_sequence<int, n>()); }
  template <int... i> static auto make(const T& x, std::integer_sequence<int, i...>) {
    return bind_members<n>(x, [](const auto&... member) {
      return std::tuple<NamedReference<std::remove_cvref_t<decltype(member)>>...>{
          {BoundFields<T, n>::template name<i>, member}...};
    });
  }
};

/// Puts values in place of the fields of a copy.
template <class M> struct Rebuild {
  const M* model;

  template <class... Field> M operator()(const std::tuple<Field...>& values) const {
    static_assert(sizeof...(Field) == FieldsOf<M>::count,
                  "rosin: rebuild needs one value for each field of functor_of");
    M copy = copy_of(*model);
    set_fields(copy, values, std::make_integer_sequence<int, sizeof...(Field)>());
    return copy;
  }

 private:
  template <class Values, int... i>
  static void set_fields(M& copy, const Values& values, std::integer_sequence<int, i...>) {
    (set_field<i>(copy, values), ...);
  }
  template <int i, class Values> static void set_field(M& copy, const Values& values) {
    int position = 0;
    FieldsOf<M>::each(copy, [&](std::string_view, auto& member) {
      if constexpr (requires { member = value_in(std::get<i>(values)); }) {
        if (position == i) member = value_in(std::get<i>(values));
      }
      ++position;
    });
  }
};

}  // namespace reflect

/// A model's fields in order, and rebuild(tuple) which gives a model with these values; what is no field stays.
template <class M> struct Functor {
  decltype(reflect::TupleOfFields<reflect::FieldsOf<M>>::make(std::declval<const M&>())) fields;
  reflect::Rebuild<M> rebuild;
};

/// `auto [fields, rebuild] = functor_of(m);`. Both refer to m, which must live as long. rebuild takes a tuple of
/// values, or of the named references themselves.
template <class M> Functor<M> functor_of(const M& model) {
  return {reflect::TupleOfFields<reflect::FieldsOf<M>>::make(model), {&model}};
}

// --- Arrays by path: "layers[0].weight" as in messages, or "layers.0.weight" as in files.

/// Whether there is a place for an array at the path (it may hold nothing).
ROSIN_API bool haskeypath(ModelView model, std::string_view path);
/// The array at the path. Error (argument): no such path; names the nearest.
ROSIN_API Array getkeypath(ModelView model, std::string_view path);
/// Puts an array there, whatever its shape. Error (argument): no such path; names the nearest.
ROSIN_API void setkeypath(ModelEdit model, std::string_view path, const Array& value);

// --- Several models in step.

namespace detail {

/// The arrays of a model by path, for a walk through another one.
class ROSIN_API ArraysByPath {
 public:
  explicit ArraysByPath(ModelView model);
  /// Error (argument): there is no such place. `tree` counts the models from 1, for the message.
  const Array& at(const ModelPath& path, int tree) const;

 private:
  struct Place {
    uint64_t path;  // ModelPath::hash
    Array value;
  };
  std::vector<Place> places_;  // in the order of `path`
};

}  // namespace detail

/// f applied to the arrays that stand at the same path of several models: f(x, y, ...) for each x that is not nothing.
/// The result has the structure and the ties of the first model. The others may hold more, and nothing (an absent
/// gradient, say). Error (argument): one of them lacks a path of the first.
template <class F, class M, Walkable... More>
  requires(Walkable<M> && sizeof...(More) > 0)
M fmap(F f, const M& model, const More&... more) {
  const detail::ArraysByPath beside[] = {detail::ArraysByPath(more)...};
  const auto call = [&]<int... i>(const ModelPath& path, const Array& x, std::integer_sequence<int, i...>) {
    return f(x, beside[i].at(path, i + 1)...);
  };
  return fmap([&](const ModelPath& path,
                  const Array& x) { return call(path, x, std::make_integer_sequence<int, int{sizeof...(More)}>()); },
              model);
}

}  // namespace rosin
