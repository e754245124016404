// Layers made of layers that are not a chain: SkipConnection, Parallel, PairwiseFusion, Maxout.
// Read first: layer.hpp, chain.hpp.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include <rosin/chain.hpp>
#include <rosin/layer.hpp>

namespace rosin {

/// A function of two arrays, such as add, mul or max.
using BinaryFunction = Array (*)(const Array& a, const Array& b);

/// How results are joined: a function of two arrays (more are joined from the left), or any callable that takes as many
/// arrays as there are, or a span of them. Prints as Flux does: add is `+`.
class ROSIN_API Connection {
 public:
  Connection(BinaryFunction function) noexcept : function_(function) {}
  template <class F>
    requires(!std::same_as<F, Connection> && LayerLike<F>)
  Connection(F callable) : callable_(std::move(callable)) {}

  Array operator()(std::span<const Array> arrays) const;
  Array operator()(const Array& a, const Array& b) const;

  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;
  void rosin_visit(ModelEditor& editor, const ModelPath& path);

 private:
  BinaryFunction function_ = nullptr;
  Layer callable_;
};

/// connection(layer(x), x). Source: Flux.SkipConnection.
class ROSIN_API SkipConnection {
 public:
  SkipConnection(Layer layer, Connection connection);

  Array operator()(const Array& x) const;
  const Layer& layer() const noexcept { return layer_; }

  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;
  void rosin_visit(ModelEditor& editor, const ModelPath& path);

 private:
  template <class Self, class Visitor> static void walk(Self& self, Visitor& visitor, const ModelPath& path);
  Layer layer_;
  Connection connection_;
};

/// Layers side by side, whose results the connection joins. One array goes to all layers, as many arrays as layers one
/// to each, several arrays to a single layer one after another. Source: Flux.Parallel.
class ROSIN_API Parallel {
 public:
  /// `layers` as a chain, whose indices and names they keep: Parallel(add, Chain(a, b)).
  Parallel(Connection connection, Chain layers);
  Parallel(Connection connection, std::initializer_list<Layer> layers)
      : Parallel(std::move(connection), Chain(layers)) {}
  Parallel(Connection connection, std::initializer_list<NamedLayer> layers)
      : Parallel(std::move(connection), Chain(layers)) {}

  Array operator()(const Array& x) const;
  /// Error (argument): neither one array nor as many as layers.
  Arrays operator()(std::span<const Array> inputs) const;
  /// It gives one array, so that it needs no list in a chain unless it is given one.
  bool maps_lists() const noexcept { return false; }
  const Chain& layers() const noexcept { return layers_; }

  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;
  void rosin_visit(ModelEditor& editor, const ModelPath& path);

 private:
  template <class Self, class Visitor> static void walk(Self& self, Visitor& visitor, const ModelPath& path);
  Connection connection_;
  Chain layers_;
};

/// y0 = layer0(x0), then yi = layer_i(connection(y_{i-1}, xi)); gives all yi. One array stands for every xi.
/// Source: Flux.PairwiseFusion.
class ROSIN_API PairwiseFusion {
 public:
  PairwiseFusion(Connection connection, Chain layers);
  PairwiseFusion(Connection connection, std::initializer_list<Layer> layers)
      : PairwiseFusion(std::move(connection), Chain(layers)) {}

  /// Error (argument): neither one array nor as many as layers.
  Arrays operator()(std::span<const Array> inputs) const;

  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;
  void rosin_visit(ModelEditor& editor, const ModelPath& path);

 private:
  template <class Self, class Visitor> static void walk(Self& self, Visitor& visitor, const ModelPath& path);
  Connection connection_;
  Chain layers_;
};

/// The elementwise maximum of what the layers give. Source: Flux.Maxout; Goodfellow et al. (2013).
class ROSIN_API Maxout {
 public:
  explicit Maxout(Chain layers);
  Maxout(std::initializer_list<Layer> layers) : Maxout(Chain(layers)) {}

  Array operator()(const Array& x) const;

  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;
  void rosin_visit(ModelEditor& editor, const ModelPath& path);

 private:
  template <class Self, class Visitor> static void walk(Self& self, Visitor& visitor, const ModelPath& path);
  Chain layers_;
};

}  // namespace rosin
