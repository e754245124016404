// Chain: see rosin/chain.hpp.
#include <rosin/chain.hpp>

#include <algorithm>

#include <rosin/error.hpp>

#include "model/locate.hpp"

namespace rosin {
namespace {

/// From layer `at` on with several arrays.
template <class List> Arrays through(const List& layers, size_t at, Arrays values) {
  for (; at < layers.size(); ++at) values = layers[at](std::span<const Array>(values));
  return values;
}

size_t counted(int64_t index, int64_t size) {
  return static_cast<size_t>(std::clamp(index < 0 ? index + size : index, int64_t{0}, size));
}

}  // namespace

Chain::Chain(Layer a, Layer b, Layer c, Layer d, Layer e, Layer f, Layer g, Layer h, Layer i, Layer j, Layer k, Layer l,
             Layer m, Layer n, Layer o, Layer p) {
  Layer* const all[] = {&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l, &m, &n, &o, &p};
  layers_.reserve(static_cast<size_t>(std::count_if(all, all + 16, [](Layer* layer) { return !layer->is_empty(); })));
  for (Layer* layer : all) {
    if (!layer->is_empty()) layers_.push_back(std::move(*layer));
  }
}

Chain::Chain(std::span<const Layer> layers) : layers_(layers.begin(), layers.end()) {}

Chain::Chain(std::span<const NamedLayer> layers) {
  for (const NamedLayer& named : layers) {
    const Name name(named.name);
    if (name.empty() || name == "layers" || std::count(names_.begin(), names_.end(), name) > 0) {
      throw Error(ErrorKind::argument,
                  "Chain: names of layers must be different, not empty and not \"layers\"; got \"" +
                      std::string(named.name) + "\"; choose another name");
    }
    names_.push_back(name);
    layers_.push_back(named.layer);
  }
}

Array Chain::operator()(const Array& x) const {
  return located(*this, [&] {
    Array y = x;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].maps_lists()) return reflect::only_array(through(layers_, i, {y}), "Chain");
      y = layers_[i](y);
    }
    return y;
  });
}

Arrays Chain::operator()(std::span<const Array> inputs) const {
  return located(*this, [&]() -> Arrays { return through(layers_, 0, Arrays(inputs.begin(), inputs.end())); });
}

bool Chain::maps_lists() const {
  return std::any_of(layers_.begin(), layers_.end(), [](const Layer& layer) { return layer.maps_lists(); });
}

Chain Chain::slice(int64_t start, int64_t stop) const {
  const size_t first = counted(start, size()), last = std::max(first, counted(stop, size()));
  Chain part;
  const auto at = [](size_t i) { return static_cast<ptrdiff_t>(i); };
  part.layers_.assign(layers_.begin() + at(first), layers_.begin() + at(last));
  if (!names_.empty()) part.names_.assign(names_.begin() + at(first), names_.begin() + at(last));
  return part;
}

std::string_view Chain::name(int64_t index) const {
  const size_t at = place(index);
  return names_.empty() ? std::string_view() : std::string_view(names_[at]);
}

size_t Chain::place(int64_t index) const {
  const int64_t at = index < 0 ? index + size() : index;
  if (at >= 0 && at < size()) return static_cast<size_t>(at);
  throw Error(ErrorKind::argument, "Chain: an index must be below the number of layers; got " + std::to_string(index) +
                                       " for " + std::to_string(size()) +
                                       " layers; count from 0, or from the end with -1");
}

size_t Chain::place(std::string_view name) const {
  std::string known;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (std::string_view(names_[i]) == name) return i;
    known += (known.empty() ? "" : ", ") + std::string(names_[i]);
  }
  throw Error(ErrorKind::argument, "Chain: no layer has that name; got \"" + std::string(name) + "\"; " +
                                       (known.empty() ? "this chain has no names" : "the names are " + known));
}

template <class Self, class Visitor> void Chain::walk_layers(Self& self, Visitor& visitor, const ModelPath& path) {
  const ModelPath layers = path.field("layers");
  for (size_t i = 0; i < self.layers_.size(); ++i) {
    const bool named = !self.names_.empty();
    const ModelPath step =
        named ? layers.field(std::string_view(self.names_[i])) : layers.item(static_cast<int64_t>(i));
    self.layers_[i].rosin_visit(visitor, step);
  }
}

template <class Self, class Visitor> void Chain::walk(Self& self, Visitor& visitor, const ModelPath& path) {
  const ModelPart part = reflect::part_of(self, PartKind::fields, self.size());
  if (!visitor.enter(part, path)) return;
  walk_layers(self, visitor, path);
  visitor.leave(part, path);
}

void Chain::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const { walk(*this, visitor, path); }
void Chain::rosin_visit(ModelEditor& editor, const ModelPath& path) { walk(*this, editor, path); }
void Chain::visit_layers(ModelVisitor& visitor, const ModelPath& path) const { walk_layers(*this, visitor, path); }
void Chain::visit_layers(ModelEditor& editor, const ModelPath& path) { walk_layers(*this, editor, path); }

Arrays activations(const Chain& chain, const Array& x) {
  Arrays values;
  for (const Layer& layer : chain) values.push_back(layer(values.empty() ? x : values.back()));
  return values;
}

}  // namespace rosin
