// Layers made of layers: see rosin/combine_layers.hpp.
#include <rosin/combine_layers.hpp>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>

#include "model/locate.hpp"

namespace rosin {
namespace {

std::string_view connection_name(BinaryFunction function) {
  if (function == BinaryFunction{add} || function == BinaryFunction{operator+}) return "+";
  if (function == BinaryFunction{mul} || function == BinaryFunction{operator*}) return "*";
  if (function == BinaryFunction{sub} || function == BinaryFunction{operator-}) return "-";
  if (function == BinaryFunction{max}) return "max";
  if (function == BinaryFunction{min}) return "min";
  return "function";
}

ModelPart part_named(std::string_view name, const void* object) {
  ModelPart part;
  part.type = name;
  part.object = object;
  return part;
}

/// Inputs for each of the layers: one for all, or one for each.
Arrays inputs_for(const char* name, const Chain& layers, std::span<const Array> inputs) {
  const auto count = static_cast<size_t>(layers.size());
  if (inputs.size() == 1) return Arrays(count, inputs[0]);
  if (inputs.size() == count) return Arrays(inputs.begin(), inputs.end());
  const std::string n = std::to_string(count);
  throw Error(ErrorKind::argument, std::string(name) + ": " + n + " sub-layers can take one input or " + n +
                                       " inputs; got " + std::to_string(inputs.size()) +
                                       " inputs; give one for each layer");
}

void check_layers(const char* name, const Chain& layers) {
  if (layers.size() > 0) return;
  throw Error(ErrorKind::argument, std::string(name) + ": it needs a layer; got none; give one or more");
}

}  // namespace

Array Connection::operator()(std::span<const Array> arrays) const {
  if (!function_) return reflect::only_array(callable_(arrays), "connection");
  Array joined = arrays[0];
  for (const Array& next : arrays.subspan(1)) joined = function_(joined, next);
  return joined;
}

Array Connection::operator()(const Array& a, const Array& b) const {
  if (function_) return function_(a, b);
  const Array both[] = {a, b};
  return (*this)(std::span<const Array>(both));
}

void Connection::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const {
  if (function_) visitor.leaf(part_named(connection_name(function_), this), path);
  else callable_.rosin_visit(visitor, path);
}
void Connection::rosin_visit(ModelEditor& editor, const ModelPath& path) {
  if (function_) editor.leaf(part_named(connection_name(function_), this), path);
  else callable_.rosin_visit(editor, path);
}

// The steps are elements of the fields, so that Flux's printing without names of these fields follows.

SkipConnection::SkipConnection(Layer layer, Connection connection)
    : layer_(std::move(layer)), connection_(std::move(connection)) {}

Array SkipConnection::operator()(const Array& x) const {
  return located(*this, [&] { return connection_(layer_(x), x); });
}

template <class Self, class Visitor> void SkipConnection::walk(Self& self, Visitor& visitor, const ModelPath& path) {
  const ModelPart part = reflect::part_of(self, PartKind::fields, 2);
  if (!visitor.enter(part, path)) return;
  const ModelPath layers = path.field("layers"), connection = path.field("connection");
  self.layer_.rosin_visit(visitor, layers.item(0));
  self.connection_.rosin_visit(visitor, connection.item(0));
  visitor.leave(part, path);
}

void SkipConnection::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const { walk(*this, visitor, path); }
void SkipConnection::rosin_visit(ModelEditor& editor, const ModelPath& path) { walk(*this, editor, path); }

Parallel::Parallel(Connection connection, Chain layers)
    : connection_(std::move(connection)), layers_(std::move(layers)) {
  check_layers("Parallel", layers_);
}

Array Parallel::operator()(const Array& x) const { return (*this)(std::span<const Array>(&x, 1)).front(); }

Arrays Parallel::operator()(std::span<const Array> inputs) const {
  return located(*this, [&]() -> Arrays {
    Arrays results;
    if (layers_.size() == 1) {
      for (const Array& x : inputs) results.push_back(layers_[0](x));
    } else {
      const Arrays given = inputs_for("Parallel", layers_, inputs);
      for (const Layer& layer : layers_) results.push_back(layer(given[results.size()]));
    }
    return {connection_(std::span<const Array>(results))};
  });
}

template <class Self, class Visitor> void Parallel::walk(Self& self, Visitor& visitor, const ModelPath& path) {
  const ModelPart part = reflect::part_of(self, PartKind::fields, self.layers_.size() + 1);
  if (!visitor.enter(part, path)) return;
  const ModelPath connection = path.field("connection");
  self.connection_.rosin_visit(visitor, connection.item(0));
  self.layers_.visit_layers(visitor, path);
  visitor.leave(part, path);
}

void Parallel::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const { walk(*this, visitor, path); }
void Parallel::rosin_visit(ModelEditor& editor, const ModelPath& path) { walk(*this, editor, path); }

PairwiseFusion::PairwiseFusion(Connection connection, Chain layers)
    : connection_(std::move(connection)), layers_(std::move(layers)) {
  check_layers("PairwiseFusion", layers_);
}

Arrays PairwiseFusion::operator()(std::span<const Array> inputs) const {
  return located(*this, [&]() -> Arrays {
    const Arrays given = inputs_for("PairwiseFusion", layers_, inputs);
    Arrays results;
    for (const Layer& layer : layers_) {
      const Array& x = given[results.size()];
      results.push_back(layer(results.empty() ? x : connection_(results.back(), x)));
    }
    return results;
  });
}

template <class Self, class Visitor> void PairwiseFusion::walk(Self& self, Visitor& visitor, const ModelPath& path) {
  const ModelPart part = reflect::part_of(self, PartKind::fields, self.layers_.size() + 1);
  if (!visitor.enter(part, path)) return;
  const ModelPath connection = path.field("connection");
  self.connection_.rosin_visit(visitor, connection.item(0));
  self.layers_.visit_layers(visitor, path);
  visitor.leave(part, path);
}

void PairwiseFusion::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const { walk(*this, visitor, path); }
void PairwiseFusion::rosin_visit(ModelEditor& editor, const ModelPath& path) { walk(*this, editor, path); }

Maxout::Maxout(Chain layers) : layers_(std::move(layers)) { check_layers("Maxout", layers_); }

Array Maxout::operator()(const Array& x) const {
  return located(*this, [&] {
    Array largest;
    for (const Layer& layer : layers_) {
      const Array y = layer(x);
      largest = largest.is_nothing() ? y : max(largest, y);
    }
    return largest;
  });
}

template <class Self, class Visitor> void Maxout::walk(Self& self, Visitor& visitor, const ModelPath& path) {
  const ModelPart part = reflect::part_of(self, PartKind::fields, self.layers_.size());
  if (!visitor.enter(part, path)) return;
  self.layers_.visit_layers(visitor, path);
  visitor.leave(part, path);
}

void Maxout::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const { walk(*this, visitor, path); }
void Maxout::rosin_visit(ModelEditor& editor, const ModelPath& path) { walk(*this, editor, path); }

}  // namespace rosin
