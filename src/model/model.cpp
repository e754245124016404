// Lists of a model's arrays and functions over all of them.
#include <rosin/model.hpp>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/generator_state.hpp>

#include "model/clone.hpp"
#include "model/ties.hpp"

namespace rosin {
namespace {

bool is_parameter(const Array& x, const ModelPath& path) {
  return path.trainable() && !x.is_nothing() && (is_float(x.dtype()) || is_complex(x.dtype()));
}

/// Calls f(x, path, trainable) for every array that is not nothing; tied ones once when `once`.
template <class F> class EachArray : public ModelVisitor {
 public:
  EachArray(F f, bool once) : f_(f), once_(once) {}
  void array(const Array& x, const ModelPath& path) override {
    if (x.is_nothing() || (once_ && ties_.find_or_add(x, path))) return;
    f_(x, path, is_parameter(x, path));
  }

 private:
  F f_;
  bool once_;
  Ties ties_;
};

class ListGenerators : public ModelVisitor {
 public:
  ListGenerators(std::vector<NamedArray>& found) : found_(found) {}
  void array(const Array&, const ModelPath&) override {}
  void rng(const Rng& x, const ModelPath& path) override { found_.push_back({path.file_text(), generator_state(x)}); }

 private:
  std::vector<NamedArray>& found_;
};

template <class F> void each_array(ModelView model, bool once, F f) {
  EachArray<F> visitor(f, once);
  model.visit_with(visitor);
}

}  // namespace

std::vector<Array> fleaves(ModelView model) {
  std::vector<Array> leaves;
  each_array(model, false, [&](const Array& x, const ModelPath&, bool) { leaves.push_back(x); });
  return leaves;
}

void detail::eval_arrays(ModelView model) {
  for (const Array& x : fleaves(model)) {
    if (!x.is_nothing()) eval(x);
  }
}

std::vector<Array> trainables(ModelView model) {
  std::vector<Array> found;
  each_array(model, true, [&](const Array& x, const ModelPath&, bool trained) {
    if (trained) found.push_back(x);
  });
  return found;
}

std::vector<NamedArray> named_trainables(ModelView model) {
  std::vector<NamedArray> found;
  each_array(model, true, [&](const Array& x, const ModelPath& path, bool trained) {
    if (trained) found.push_back({path.file_text(), x});
  });
  return found;
}

int64_t parameter_count(ModelView model) {
  int64_t count = 0;
  each_array(model, true, [&](const Array& x, const ModelPath&, bool trained) { count += trained ? x.count() : 0; });
  return count;
}

std::vector<NamedArray> state(ModelView model) {
  std::vector<NamedArray> found;
  each_array(model, true, [&](const Array& x, const ModelPath& path, bool) { found.push_back({path.file_text(), x}); });
  ListGenerators generators(found);
  model.visit_with(generators);
  return found;
}

namespace {

class Mapper : public ModelEditor {
 public:
  Mapper(const detail::ArrayMap& map) : map_(map) {}
  void array(Array& x, const ModelPath& path) override {
    if (x.is_nothing() || (map_.excludes && map_.excludes(map_.exclude, x, path))) return;
    if (const Ties::First* first = ties_.find_or_add(x, path, mapped_.size())) {
      x = mapped_[first->position];
      return;
    }
    const bool was_tied = is_tied(x);
    x = map_.call(map_.function, x, path);
    if (was_tied && !x.is_nothing() && !is_tied(x)) x = tied_alone(std::move(x));
    if (was_tied || path.shared()) mapped_.push_back(x);
  }

 private:
  const detail::ArrayMap& map_;
  Ties ties_;
  std::vector<Array> mapped_;  // results for the first places, in the order of their positions
};

template <class F> void map_each(ModelEdit model, F f) {
  detail::map_arrays(
      model, {&f, [](void* function, const Array& x, const ModelPath&) { return (*static_cast<F*>(function))(x); }});
}

class Separate : public ModelEditor {
 public:
  void array(Array&, const ModelPath&) override {}
  detail::SharedCopies* copies() override { return &copies_; }

 private:
  detail::SharedCopies copies_;
};

/// Parameters become floats of one type, running statistics of another.
class ConvertFloats : public ModelEditor {
 public:
  ConvertFloats(DType parameters, DType statistics) : types_{parameters, statistics} {}
  void array(Array& x, const ModelPath& path) override { parameters_.array(x, path); }
  void buffer(Buffer& x, const ModelPath& path) override { statistics_.array(x.stored(), path); }

 private:
  static Array converted(void* type, const Array& x, const ModelPath&) {
    const DType wanted = *static_cast<const DType*>(type);
    return is_float(x.dtype()) && x.dtype() != wanted ? cast(x, wanted) : x;
  }

  DType types_[2];
  detail::ArrayMap maps_[2] = {{&types_[0], converted}, {&types_[1], converted}};
  Mapper parameters_{maps_[0]};
  Mapper statistics_{maps_[1]};
};

class SetModes : public ModelEditor {
 public:
  SetModes(LayerMode mode) : mode_(mode) {}
  void array(Array&, const ModelPath&) override {}
  void mode(LayerMode& mode, const ModelPath&) override { mode = mode_; }

 private:
  LayerMode mode_;
};

void set_modes(ModelEdit model, LayerMode mode) {
  SetModes editor(mode);
  model.edit_with(editor);
}

}  // namespace

void detail::map_arrays(ModelEdit model, const detail::ArrayMap& map) {
  Mapper mapper(map);
  model.edit_with(mapper);
}

void detail::clone_arrays(ModelEdit model) { map_each(model, cloned); }

void detail::convert_floats(ModelEdit model, DType type) {
  if (!is_float(type)) {
    throw Error(ErrorKind::dtype, std::string("convert_floats: the target must be a floating-point type; got ") +
                                      to_string(type) + "; use cast for single arrays");
  }
  const bool is_half = type == Float16 || type == BFloat16;
  ConvertFloats editor(type, is_half ? Float32 : type);
  model.edit_with(editor);
}

void detail::separate_shared(ModelEdit copy) {
  Separate editor;
  copy.edit_with(editor);
}

void testmode(ModelEdit model, bool on) { set_modes(model, on ? LayerMode::test : LayerMode::train); }
void trainmode(ModelEdit model, bool on) { set_modes(model, on ? LayerMode::train : LayerMode::test); }
void automode(ModelEdit model) { set_modes(model, LayerMode::automatic); }

}  // namespace rosin
