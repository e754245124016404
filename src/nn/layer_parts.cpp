// Parts of layers: see layer_parts.hpp.
#include "nn/layer_parts.hpp"

#include <algorithm>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/log.hpp>
#include <rosin/movement.hpp>

#include "graph/autocast.hpp"
#include "model/number_text.hpp"

namespace rosin {

Array bias_for(std::string_view layer, const Array& wanted, const Array& weight, const Shape& shape) {
  if (wanted.is_nothing()) return {};
  Array bias = wanted;
  if (wanted.rank() == 0 && wanted.dtype() == Bool) {
    if (!wanted.item<bool>()) return {};
    bias = zeros(shape, weight.dtype());
  }
  if (is_complex(bias.dtype()) && !is_complex(weight.dtype())) {
    throw Error(ErrorKind::dtype, std::string(layer) + ": a complex bias needs a complex weight; got " + summary(bias) +
                                      " beside " + summary(weight) + "; give real(bias), or a complex weight");
  }
  if (bias.shape() != shape) {
    throw Error(ErrorKind::shape, std::string(layer) + ": expected bias of size " + to_string(shape) + "; got size " +
                                      to_string(bias.shape()) + "; give true, false or an array of that size");
  }
  if (bias.dtype() != weight.dtype()) bias = cast(bias, weight.dtype());
  eval(bias);
  return bias;
}

void refuse_complex(const std::string& layer, const Array& x) {
  throw Error(ErrorKind::dtype, "layer " + layer + ": not defined for complex numbers; got " + summary(x) +
                                    "; give it real(x) or abs(x), or both parts as reals with view_as_real(x)");
}

Array converted_input(const Array& x, const Array& parameter, const std::string& layer) {
  const DType type = parameter.is_nothing() ? Float32 : parameter.dtype();
  if (is_complex(x.dtype())) refuse_complex(layer, x);
  if (is_complex(type)) refuse_complex(layer, parameter);
  if (!is_float(x.dtype())) return cast(x, type);
  if (is_autocast() && x.dtype() != Float64 && type != Float64) return x;
  const std::string what =
      "layer " + layer + " with " + to_string(type) + " parameters got " + to_string(x.dtype()) + " input; ";
  const std::string cure = std::string("convert the data once with cast(x, ") + to_string(type) + ")";
  if (is_strict()) throw Error(ErrorKind::dtype, what + cure);
  warn_once("layer-input-type", what + "it is converted, but earlier layers may be slow; " + cure, layer);
  return cast(x, type);
}

Array along_dim(const Array& vector, int dim, int rank) {
  if (dim == 0) return vector;
  int64_t sizes[Shape::max_rank];
  std::fill_n(sizes, rank, 1);
  sizes[dim] = vector.count();
  return reshape(vector, Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank))));
}

std::string activation_text(const Activation& act) { return act.is_identity() ? "" : ", " + std::string(act.name()); }

std::string summary(const Array& x) { return heading_text(x.shape(), x.dtype()); }

std::string tuple_text(const int64_t* values, int count) {
  std::string text = "(";
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + (count == 1 ? ",)" : ")");
}

std::string compact_text(const int64_t* values, int count) {
  const bool equal = std::all_of(values, values + count, [&](int64_t value) { return value == values[0]; });
  return equal ? std::to_string(values[0]) : tuple_text(values, count);
}

void refuse_input(const std::string& layer, const std::string& rule, const Array& x, std::string_view cure) {
  throw Error(ErrorKind::shape, "layer " + layer + " " + rule + ", but got " + summary(x) + "; " + std::string(cure));
}

}  // namespace rosin
