// Printing: to_string and show for arrays and models, and streaming without including any stream.
#pragma once

#include <string>

#include <rosin/array.hpp>
#include <rosin/known_parts.hpp>
#include <rosin/walk.hpp>

namespace rosin {

/// A model as Flux prints it: one line for a layer, one line for each layer of a container, parameter counts beside
/// them, the total below. Marks tied arrays and parameters that are NaN, Inf or all zero.
ROSIN_API std::string to_string(ModelView model);

/// A number as Julia prints it: shortest digits that read back to the same value, "1.0", "1.0e-8", "NaN", "Inf".
ROSIN_API std::string number_text(double value);
ROSIN_API std::string number_text(float value);

/// Text that any stream takes.
struct Shown {
  std::string text;
};

template <class Stream>
concept TextStream = requires(Stream& stream, const char* text) {
  typename Stream::char_type;
  stream.write(text, 1);
};

/// std::cout << show(model);
template <class T> Shown show(const T& x) { return {to_string(x)}; }

template <TextStream Stream> Stream& operator<<(Stream& stream, const Shown& shown) {
  stream.write(shown.text.data(), static_cast<int64_t>(shown.text.size()));
  return stream;
}
template <TextStream Stream> Stream& operator<<(Stream& stream, const Array& x) { return stream << show(x); }
template <TextStream Stream> Stream& operator<<(Stream& stream, const Shape& shape) { return stream << show(shape); }
template <TextStream Stream> Stream& operator<<(Stream& stream, DType type) { return stream << show(type); }
/// Layers and what is made of them print themselves.
template <TextStream Stream, class Layer>
  requires reflect::ShowsItself<Layer> || reflect::WalksItself<const Layer, ModelVisitor>
Stream& operator<<(Stream& stream, const Layer& layer) {
  return stream << show(layer);
}

}  // namespace rosin

// What stands here is found by `using namespace rosin;` and by lookup from inside rosin, but not by the arguments
// alone.
namespace rosin::printing {

/// Whether a class brings a way of its own to be printed.
template <class Stream, class T>
concept StreamsItself = requires(Stream& stream, const T& x) { operator<<(stream, x); };

/// std::cout << model, for structs with arrays.
template <TextStream Stream, class Model>
  requires(std::is_class_v<Model> && !std::is_convertible_v<const Model&, std::string_view> &&
           !reflect::ShowsItself<Model> && !reflect::WalksItself<const Model, ModelVisitor> &&
           !reflect::Container<Model> && !StreamsItself<Stream, Model> && reflect::HasFields<Model> &&
           reflect::holds_arrays<Model>())
Stream& operator<<(Stream& stream, const Model& model) {
  return stream << show(model);
}

}  // namespace rosin::printing

namespace rosin {
using namespace printing;  // NOLINT(google-build-using-namespace)
}  // namespace rosin
