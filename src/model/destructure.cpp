// See rosin/destructure.hpp.
#include <rosin/destructure.hpp>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "model/ties.hpp"

namespace rosin {
namespace {

/// A float type that holds both.
DType wider(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) return a == ComplexF64 || b == ComplexF64 ? ComplexF64 : ComplexF32;
  if (a == Float64 || b == Float64) return Float64;
  return Float32;  // also of Float16 and BFloat16
}

}  // namespace

Array detail::trained_elements(ModelView model) {
  const std::vector<Array> arrays = trainables(model);
  if (arrays.empty()) return zeros({0});
  DType type = arrays.front().dtype();
  for (const Array& x : arrays) type = wider(type, x.dtype());
  std::vector<Array> parts;
  for (const Array& x : arrays) {
    const Array flat = reshape(x, {x.count()});
    parts.push_back(x.dtype() == type ? flat : cast(flat, type));
  }
  return concat(parts, 0);
}

void detail::set_trained_elements(ModelEdit model, const Array& flat) {
  std::vector<detail::ArrayPlace<Array*>> places;
  detail::list_arrays(model, places);
  int64_t length = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].trainable && places[i].first == static_cast<int>(i)) length += places[i].array->count();
  }
  if (flat.rank() != 1 || flat.count() != length) {
    throw Error(ErrorKind::shape, "Restructure: Rebuild expected a vector of length " + std::to_string(length) +
                                      ", got " + to_string(flat.shape()) +
                                      "; take the vector that destructure gives for such a model");
  }
  int64_t at = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i].trainable) continue;
    Array& x = *places[i].array;
    if (places[i].first != static_cast<int>(i)) {
      x = *places[static_cast<size_t>(places[i].first)].array;
      continue;
    }
    // Beside complex arrays the vector is complex; of the places of a real one its real parts count.
    const Array piece = reshape(slice(flat, 0, at, at + x.count()), x.shape());
    const Array part = is_complex(x.dtype()) ? piece : real(piece);
    at += x.count();
    const bool tie = is_tied(x);
    Array value = part.dtype() == x.dtype() ? part : cast(part, x.dtype());
    x = tie ? tied_alone(std::move(value)) : value;
  }
}

}  // namespace rosin
