// Gather and scatter by an index for each of several dims; see rosin/rearrange.hpp. Those dims are taken as one.
#include <rosin/rearrange.hpp>

#include <limits>
#include <span>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

/// x with its first dims as one.
Array joined(const Array& x, size_t dims) {
  std::vector<int64_t> sizes = {1};
  for (int d = 0; d < x.rank(); ++d) {
    if (static_cast<size_t>(d) < dims) sizes[0] *= x.size(d);
    else sizes.push_back(x.size(d));
  }
  return reshape(x, sizes);
}

/// Int32 where it holds all indices and the number of places that they choose from.
DType place_type(const Array& x, std::span<const Array> indices) {
  int64_t places = 1;
  bool narrow = true;
  for (size_t d = 0; d < indices.size(); ++d) {
    places *= x.size(static_cast<int>(d));
    narrow = narrow && size_of(indices[d].dtype()) <= 4 && indices[d].dtype() != UInt32;
  }
  return narrow && places <= std::numeric_limits<int32_t>::max() ? Int32 : Int64;
}

/// The places in that dim. What is outside its own dim is outside that one, so that the kernels find it.
Array places_of(std::string_view op, const Array& x, std::span<const Array> indices) {
  if (indices.empty() || indices.size() > static_cast<size_t>(x.rank())) {
    refuse(ErrorKind::shape, op, "there is an array of indices for each of the first dims",
           std::to_string(indices.size()) + " for " + to_string(x.shape()), "give one to as many as there are dims");
  }
  Array place = 0, wrong = false;
  const DType type = place_type(x, indices);
  int64_t stride = 1;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!is_integer(indices[d].dtype())) {
      refuse(ErrorKind::dtype, op, "indices are integers", to_string(indices[d].dtype()),
             "cast them, or write masked_select for masks");
    }
    const int64_t size = x.size(static_cast<int>(d));
    const Array given = cast(indices[d], type), at = where(lt(given, 0), given + size, given);
    const Array outside = logical_or(lt(at, 0), ge(at, size));
    place = d == 0 ? at : place + at * stride;
    wrong = d == 0 ? outside : logical_or(wrong, outside);
    stride *= size;
  }
  return where(wrong, stride, place);
}

using Scatter = Array (*)(const Array&, const Array&, const Array&, int);

Array scattered(std::string_view op, Scatter f, const Array& target, std::span<const Array> indices,
                const Array& updates) {
  const DeviceScope scope(*target.node());
  const Array place = places_of(op, target, indices), whole = joined(target, indices.size());
  const Shape wanted = with_dims(whole.shape(), 0, 1, sizes_of(place.shape()));
  const Array fitting = updates.shape() == wanted ? updates : expand(updates, wanted);
  return reshape(f(whole, place, fitting, 0), target.shape());
}

}  // namespace

Array gather_nd(const Array& x, std::span<const Array> indices) {
  const DeviceScope scope(*x.node());
  return gather(joined(x, indices.size()), places_of("gather_nd", x, indices), 0);
}

Array scatter_nd(const Array& target, std::span<const Array> indices, const Array& updates) {
  return scattered("scatter_nd", scatter, target, indices, updates);
}

Array scatter_nd_add(const Array& target, std::span<const Array> indices, const Array& updates) {
  return scattered("scatter_nd_add", scatter_add, target, indices, updates);
}

}  // namespace rosin
