// See tiles.hpp.
#include "kernels/tiles.hpp"

#include <utility>

namespace rosin::kernels {
namespace {

constexpr int64_t most_shared = 16384;  // bytes, which every device has
constexpr int rows_at_once = items_of_group / 32;

}  // namespace

Tiles::Tiles(KernelWriter& writer, KernelBody& body, const std::vector<size_t>& stores, const std::vector<int>& buffers)
    : w_(writer), body_(body), sizes_(body.sizes()), stores_(stores), buffers_(buffers) {
  int64_t bytes = 0;
  for (size_t load = 0; load < body.kernel().loads.size(); ++load) {
    const int dim = body.crossing_dim(load);
    if (dim == 0 || (dim_ != 0 && dim != dim_) || sizes_.sizes[0] < side || sizes_.sizes[dim] < side) continue;
    const ScalarType type = body.type_of_load(load);
    bytes += side * (side + 1) * (type == ScalarType::boolean ? 1 : bytes_of(type));
    if (bytes > most_shared) break;
    dim_ = dim;
    loads_.push_back(load);
  }
}

int64_t Tiles::count() const {
  int64_t tiles = 1;
  for (int d = 0; d < sizes_.dims; ++d) {
    tiles *= d == 0 || d == dim_ ? groups_for(sizes_.sizes[d], side) : sizes_.sizes[d];
  }
  return tiles;
}

/// Where the group's tile begins.
std::vector<Term> Tiles::corner() const {
  std::vector<Term> counts;
  for (int d = 0; d < sizes_.dims; ++d) {
    const bool tiled = d == 0 || d == dim_;
    counts.push_back(tiled ? w_.number(groups_for(sizes_.sizes[d], side)) : lengths_[static_cast<size_t>(d)]);
  }
  std::vector<Term> at = w_.coordinates(w_.group(0), counts);
  for (const int d : {0, dim_}) at[static_cast<size_t>(d)] = at[static_cast<size_t>(d)] * side;
  return at;
}

Spot Tiles::spot_at(std::vector<Term> at, Term inner, Term outer) const {
  at[0] = at[0] + inner;
  at[static_cast<size_t>(dim_)] = at[static_cast<size_t>(dim_)] + outer;
  Term linear = at.back();
  for (size_t d = at.size() - 1; d-- > 0;) linear = linear * lengths_[d] + at[d];
  return {linear, std::move(at), {}, {}};
}

Term Tiles::inside(const Spot& spot) const {
  const auto dim = static_cast<size_t>(dim_);
  return spot.coordinates[0] < lengths_[0] && spot.coordinates[dim] < lengths_[dim];
}

/// Neighbouring items load neighbours along the other dim.
void Tiles::fill(const std::vector<Term>& corner) {
  const Term item = w_.item(), row = item / side, column = item - row * side;
  for (int first = 0; first < side; first += rows_at_once) {
    const Spot spot = spot_at(corner, row + first, column);
    const Term place = (row + first) * (side + 1) + column;
    w_.when(inside(spot), [&] {
      for (size_t i = 0; i < loads_.size(); ++i) {
        w_.shared_store(arrays_[i], place, body_.load_at(loads_[i], spot));
      }
    });
  }
}

void Tiles::write() {
  for (int d = 0; d < sizes_.dims; ++d) lengths_.push_back(w_.number(sizes_.sizes[d]));
  for (const size_t load : loads_) arrays_.push_back(w_.shared(body_.type_of_load(load), side * (side + 1)));
  const std::vector<Term> from = corner();
  fill(from);
  w_.barrier();
  const Term item = w_.item(), row = item / side, column = item - row * side;
  for (int first = 0; first < side; first += rows_at_once) {
    const Spot spot = spot_at(from, column, row + first);
    const Term place = column * (side + 1) + row + first;
    body_.go_to_lane(0);
    w_.when(inside(spot), [&] {
      for (size_t i = 0; i < loads_.size(); ++i) body_.set_strip(loads_[i], {w_.shared_load(arrays_[i], place)});
      // All values first: a store may take over the memory of a load.
      std::vector<Term> values;
      for (const size_t store : stores_) values.push_back(body_.element(body_.definition(store, 0), spot));
      for (size_t i = 0; i < stores_.size(); ++i) w_.store(buffers_[i], spot.linear, values[i]);
    });
  }
  body_.leave();
}

}  // namespace rosin::kernels
