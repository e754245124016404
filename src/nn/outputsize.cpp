// Sizes without values: see rosin/outputsize.hpp.
#include <rosin/outputsize.hpp>

#include <algorithm>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

namespace rosin {

Array detail::size_only(const Shape& shape, bool padbatch, DType type) {
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  if (padbatch) sizes.push_back(1);
  return expand(zeros(Shape{}, type), Shape(sizes));
}

Chain autosize(const Shape& shape, std::span<const SizedLayer> layers) {
  std::vector<Layer> made;
  Array x = detail::size_only(shape, false, Float32);
  for (const SizedLayer& layer : layers) {
    const int rank = x.rank();
    made.push_back(layer(rank == 0 ? 1 : x.size(std::max(rank - 2, 0))));
    x = made.back()(x);
  }
  return Chain(made);
}

}  // namespace rosin
