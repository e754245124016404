// Gated units and transformer layers: see rosin/transformer.hpp.
#include <rosin/transformer.hpp>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "model/locate.hpp"

namespace rosin {
namespace {

LayerNorm norm_of(int64_t features, const TransformerOptions& options) {
  return LayerNorm(features, {}, {.eps = options.eps});
}

MultiHeadAttention attention_of(int64_t features, int64_t heads, const TransformerOptions& options) {
  return MultiHeadAttention(features, {.nheads = heads, .bias = options.bias, .dropout_prob = options.dropout});
}

/// x and what `part` makes of it, with the normalisation where it belongs.
template <class Layer, class Part>
Array added(const Layer& layer, const LayerNorm& norm, const Array& x, const Part& part) {
  if (layer.norm_first) return x + layer.dropout(part(norm(x)));
  return norm(x + layer.dropout(part(x)));
}

template <class Layer> Array fed_forward(const Layer& layer, const LayerNorm& norm, const Array& x) {
  return added(layer, norm, x, [&](const Array& in) { return layer.linear2(layer.dropout(layer.linear1(in))); });
}

}  // namespace

Array glu(const Array& x, int dim, const Activation& act) {
  const int rank = x.rank(), at = dim < 0 ? dim + rank : dim;
  if (at < 0 || at >= rank || x.size(at) % 2 != 0) {
    throw Error(ErrorKind::shape, "glu: the dim has an even size; got " + to_string(x.shape()) + " and dim " +
                                      std::to_string(dim) + "; choose another dim");
  }
  const int64_t half = x.size(at) / 2;
  return slice(x, at, 0, half) * act(slice(x, at, half, 2 * half));
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t features, int64_t heads, int64_t hidden,
                                                 const TransformerOptions& options)
    : self_attn(attention_of(features, heads, options)), linear1(features, hidden, options.act, {.bias = options.bias}),
      linear2(hidden, features, {.bias = options.bias}), norm1(norm_of(features, options)),
      norm2(norm_of(features, options)), dropout(options.dropout), norm_first(options.norm_first) {}

namespace {

/// The encoder's layer with an attention of one's own.
template <class Attend> Array encoded(const TransformerEncoderLayer& layer, const Array& x, const Attend& attend) {
  return located(layer, [&] { return fed_forward(layer, layer.norm2, added(layer, layer.norm1, x, attend)); });
}

/// The decoder's.
template <class Attend>
Array decoded(const TransformerDecoderLayer& layer, const Array& x, const Array& memory,
              const AttentionOptions& of_memory, const Attend& attend) {
  return located(layer, [&] {
    const Array y = added(layer, layer.norm1, x, attend);
    const Array z = added(layer, layer.norm2, y,
                          [&](const Array& in) { return layer.multihead_attn(in, memory, memory, of_memory); });
    return fed_forward(layer, layer.norm3, z);
  });
}

}  // namespace

Array TransformerEncoderLayer::operator()(const Array& x, const AttentionOptions& how) const {
  return encoded(*this, x, [&](const Array& in) { return self_attn(in, how); });
}

Array TransformerEncoderLayer::next(const Array& x, KeyValueCache& cache) const {
  return encoded(*this, x, [&](const Array& in) { return self_attn.next(in, cache); });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t features, int64_t heads, int64_t hidden,
                                                 const TransformerOptions& options)
    : self_attn(attention_of(features, heads, options)), multihead_attn(attention_of(features, heads, options)),
      linear1(features, hidden, options.act, {.bias = options.bias}), linear2(hidden, features, {.bias = options.bias}),
      norm1(norm_of(features, options)), norm2(norm_of(features, options)), norm3(norm_of(features, options)),
      dropout(options.dropout), norm_first(options.norm_first) {}

Array TransformerDecoderLayer::operator()(const Array& x, const Array& memory, const AttentionOptions& how,
                                          const AttentionOptions& of_memory) const {
  return decoded(*this, x, memory, of_memory, [&](const Array& in) { return self_attn(in, how); });
}

Array TransformerDecoderLayer::next(const Array& x, const Array& memory, KeyValueCache& cache,
                                    const AttentionOptions& of_memory) const {
  return decoded(*this, x, memory, of_memory, [&](const Array& in) { return self_attn.next(in, cache); });
}

}  // namespace rosin
