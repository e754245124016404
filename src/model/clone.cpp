// Copies of single arrays.
#include "model/clone.hpp"

#include <cstring>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/transfer.hpp"

namespace rosin {
namespace {

template <class T> Array copied_scalar(const Array& x) {
  T value;
  x.copy_to(std::span<T>(&value, 1));
  return Array(std::span<const T>(&value, 1), {});
}

}  // namespace

Array cloned(const Array& x) {
  if (x.is_nothing()) return x;
  if (is_scalar(*x.node())) {
    if (x.dtype() == Bool) return copied_scalar<bool>(x);
    if (x.dtype() == Int32) return copied_scalar<int32_t>(x);
    return x.dtype() == Int64 ? copied_scalar<int64_t>(x) : copied_scalar<float>(x);
  }
  eval(x);
  const Node& node = *x.node();
  if (node.device != 0) return transferred(transferred(x, 0), node.device);
  Array made = fresh_leaf(node.dtype, node.shape());
  const size_t bytes = bytes_of(node.dtype, node.shape());
  if (bytes > 0) std::memcpy(made.node()->data(), node.data(), bytes);
  return made;
}

}  // namespace rosin
