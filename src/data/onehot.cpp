// One-hot columns, written at once in host memory.
#include <rosin/onehot.hpp>

#include <cstring>
#include <string>

#include <rosin/error.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/transfer.hpp"
#include "scalar/convert.hpp"

namespace rosin {
namespace {

void check_labels(const Array& labels, int64_t classes) {
  if (classes < 1) {
    throw Error(ErrorKind::argument,
                "onehotbatch: there must be at least one class; got " + std::to_string(classes) + " classes");
  }
  if (labels.is_nothing()) throw Error(ErrorKind::argument, "onehotbatch: the labels are nothing (an empty handle)");
  if (!is_integer(labels.dtype())) {
    throw Error(ErrorKind::dtype, std::string("onehotbatch: labels must be integers; got ") +
                                      to_string(labels.dtype()) + "; cast them, or count the classes' names from 0");
  }
  if (labels.rank() == Shape::max_rank) {
    throw Error(ErrorKind::shape, "onehotbatch: the labels have " + std::to_string(labels.rank()) +
                                      " dims already, and the classes would be one more");
  }
}

Shape with_classes(int64_t classes, const Shape& labels) {
  int64_t sizes[Shape::max_rank] = {classes};
  for (int d = 0; d < labels.rank(); ++d) sizes[d + 1] = labels[d];
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(labels.rank()) + 1));
}

}  // namespace

Array onehotbatch(const Array& labels, int64_t classes, DType type) {
  check_labels(labels, classes);
  const std::vector<int64_t> places = labels.to_vector<int64_t>();
  Array made = fresh_leaf(type, with_classes(classes, labels.shape()));
  auto* bytes = static_cast<unsigned char*>(made.node()->data());
  const size_t element = size_of(type), column = static_cast<size_t>(classes) * element;
  std::memset(bytes, 0, column * places.size());  // zero bytes are 0 in every type
  unsigned char one[16];
  const double value = 1;
  convert_elements(one, type, &value, Float64, 1);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || places[i] >= classes) {
      throw Error(ErrorKind::argument, "onehotbatch: label out of range: label " + std::to_string(places[i]) +
                                           " of observation " + std::to_string(i) + "; with " +
                                           std::to_string(classes) + " classes labels are 0 to " +
                                           std::to_string(classes - 1));
    }
    std::memcpy(bytes + i * column + static_cast<size_t>(places[i]) * element, one, element);
  }
  return transferred(made, labels.node()->device);
}

}  // namespace rosin
