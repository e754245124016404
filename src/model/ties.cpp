// Marks of ties on arrays, and their resolution during a walk.
#include "model/ties.hpp"

#include <rosin/error.hpp>
#include <rosin/tied.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin {

Array tied(const Array& x) {
  if (x.is_nothing()) {
    throw Error(ErrorKind::argument, "tied: the array is nothing; tie an array that has a value");
  }
  x.node()->tied = true;
  return x;
}

bool is_tied(const Array& x) noexcept { return !x.is_nothing() && x.node()->tied; }

Array tied_alone(Array x, uint32_t own) {
  if (x.node()->users() > own || is_scalar(*x.node())) x = argument(x);
  x.node()->tied = true;
  return x;
}

const Ties::First* Ties::find_or_add(const Array& x, const ModelPath& path, size_t position) {
  const bool marked = is_tied(x);
  if (!marked && !path.shared()) return nullptr;
  for (const First& first : firsts_) {
    if (first.place == &x || (marked && same(first.value, x))) return &first;
  }
  firsts_.push_back({&x, x, position, path.text()});
  return nullptr;
}

}  // namespace rosin
