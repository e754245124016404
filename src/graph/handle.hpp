// One more handle of a node that somebody else holds as well.
#pragma once

#include "graph/node.hpp"

namespace rosin {

inline Array handle_of(Node* node) {
  add_count(node, one_user);
  return Array::adopt(node);
}

}  // namespace rosin
