// Chain: layers one after another.
// Read first: layer.hpp. Read next: combine_layers.hpp (other ways to put layers together).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/layer.hpp>

namespace rosin {

/// A layer with its name: `Chain({{"encoder", Dense(784, 32)}, {"decoder", Dense(32, 784)}})`.
struct NamedLayer {
  std::string_view name;
  Layer layer;
};

/// Applies its layers in order; an empty one is the identity. Indices count from 0, negative ones from the end.
/// Paths: "layers[0].weight", or "layers.encoder.weight" with names. Source: Flux.Chain.
class ROSIN_API Chain {
 public:
  Chain() noexcept = default;
  /// Up to sixteen layers; a list or vector takes more.
  explicit Chain(Layer a, Layer b = {}, Layer c = {}, Layer d = {}, Layer e = {}, Layer f = {}, Layer g = {},
                 Layer h = {}, Layer i = {}, Layer j = {}, Layer k = {}, Layer l = {}, Layer m = {}, Layer n = {},
                 Layer o = {}, Layer p = {});
  Chain(std::initializer_list<Layer> layers) : Chain(std::span<const Layer>(layers.begin(), layers.size())) {}
  explicit Chain(std::span<const Layer> layers);
  explicit Chain(const std::vector<Layer>& layers) : Chain(std::span<const Layer>(layers)) {}
  /// Error (argument): a name is empty, taken twice, or "layers".
  Chain(std::initializer_list<NamedLayer> layers) : Chain(std::span<const NamedLayer>(layers.begin(), layers.size())) {}
  explicit Chain(std::span<const NamedLayer> layers);

  Array operator()(const Array& x) const;
  Arrays operator()(std::span<const Array> inputs) const;

  /// Whether several arrays may come out of one of its layers.
  bool maps_lists() const;
  int64_t size() const noexcept { return static_cast<int64_t>(layers_.size()); }
  /// Error (argument): there is no such layer.
  Layer& operator[](int64_t index) { return layers_[place(index)]; }
  const Layer& operator[](int64_t index) const { return layers_[place(index)]; }
  Layer& operator[](std::string_view name) { return layers_[place(name)]; }
  const Layer& operator[](std::string_view name) const { return layers_[place(name)]; }
  /// The layers start .. stop - 1, with their names; negative numbers count from the end.
  Chain slice(int64_t start, int64_t stop) const;
  /// Name of a layer, empty where the chain has none.
  std::string_view name(int64_t index) const;

  auto begin() const noexcept { return layers_.begin(); }
  auto end() const noexcept { return layers_.end(); }

  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;
  void rosin_visit(ModelEditor& editor, const ModelPath& path);
  /// The layers alone, for containers that hold a chain as their list; `path` is that of the container.
  void visit_layers(ModelVisitor& visitor, const ModelPath& path) const;
  void visit_layers(ModelEditor& editor, const ModelPath& path);

 private:
  using Name = std::basic_string<char, std::char_traits<char>, detail::FreeListAllocator<char>>;
  size_t place(int64_t index) const;
  size_t place(std::string_view name) const;
  template <class Self, class Visitor> static void walk(Self& self, Visitor& visitor, const ModelPath& path);
  template <class Self, class Visitor> static void walk_layers(Self& self, Visitor& visitor, const ModelPath& path);

  std::vector<Layer, detail::FreeListAllocator<Layer>> layers_;
  std::vector<Name, detail::FreeListAllocator<Name>> names_;  // empty, or one per layer
};

/// What each layer of the chain gives: the last one is chain(x). Source: Flux.activations.
ROSIN_API Arrays activations(const Chain& chain, const Array& x);

}  // namespace rosin
