// Ties: which places of one model hold one parameter. Two places do when they hold copies of an array marked by tied(),
// or are the same object reached through two shared pointers.
#pragma once

#include <string>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/path.hpp>

namespace rosin {

/// What one walk has seen. Costs nothing for arrays that are not tied.
class Ties {
 public:
  struct First {
    const Array* place;
    Array value;      // what the place held when it was seen
    size_t position;  // as given
    std::string path;
  };
  /// The first place of the parameter at this place; null when this is the first one, which is then remembered.
  const First* find_or_add(const Array& x, const ModelPath& path, size_t position = 0);

 private:
  std::vector<First> firsts_;
};

/// x marked as tied, with no other place: where more than the `own` handles hold its node, a fresh identity of it.
Array tied_alone(Array x, uint32_t own = 1);

}  // namespace rosin
