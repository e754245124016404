// See strips.hpp.
#include "kernels/strips.hpp"

#include <algorithm>

namespace rosin::kernels {
namespace {

constexpr int most_lanes = 8;
constexpr size_t short_body = 12;  // primitives

}  // namespace

Strips::Strips(KernelWriter& writer, KernelBody& body, const Abilities& device, const std::vector<size_t>& stores,
               const std::vector<int>& buffers)
    : w_(writer), body_(body), device_(device), stores_(stores), buffers_(buffers), lanes_(widest()) {}

/// As many of the narrowest floats as a vector holds, where loads and stores can be vectors of that length.
int Strips::widest() const {
  const size_t primitives = body_.primitives();
  size_t narrowest = 8;
  const auto look = [&](DType type) {
    if (is_float(type) && size_of(type) <= 4) narrowest = std::min(narrowest, size_of(type));
  };
  for (const int buffer : buffers_) look(w_.element_of_buffer(buffer));
  body_.each_load([&](const KernelBody::Moves& load) { look(load.type); });
  for (size_t i = 0; i < body_.kernel().instrs.size(); ++i) {
    if (body_.is_needed(i) && body_.kernel().instrs[i].row) return 1;
  }
  if (narrowest == 8) return 1;
  // Of short bodies more: what a strip costs beside its elements counts.
  bool more = primitives <= short_body;
  body_.each_load(
      [&](const KernelBody::Moves& load) { more = more && (!load.along_first || load.is_vector(most_lanes)); });
  const int of_vector = device_.vector_bytes / static_cast<int>(narrowest);
  int lanes = std::min(more && of_vector > 1 ? most_lanes : of_vector, most_lanes);
  while (lanes > 1 && (!fits(lanes) || primitives * static_cast<size_t>(lanes) > most_primitives)) lanes /= 2;
  return std::max(lanes, 1);
}

/// Strips lie within the first dim, or all operands run along with the elements. At least one load, or all stores where
/// there is none, is a vector.
bool Strips::fits(int lanes) const {
  bool any = false, none = true;
  body_.each_load([&](const KernelBody::Moves& load) {
    none = none && !load.along_first;
    any = any || (load.along_first && load.is_vector(lanes));
  });
  return (any || none) && (is_flat() || body_.sizes().sizes[0] % lanes == 0);
}

/// Whether strips may go on from one line of the first dim into the next: nobody asks for more than a number.
bool Strips::is_flat() const {
  bool flat = true;
  body_.each_load([&](const KernelBody::Moves& load) { flat = flat && load.contiguous; });
  return flat || body_.sizes().dims <= 1;
}

void Strips::write(Term count, std::span<const Term> sizes) const {
  const Term first = w_.global() * lanes_;
  if (!is_flat()) return w_.when(first < count, [&] { whole(first, sizes); });  // all are whole
  const Term fits = first + lanes_ <= count;
  w_.when(fits, [&] { whole(first, sizes); });
  w_.when(!fits, [&] { rest(first, count, sizes); });
}

/// All values first: a store may take over the memory of a load.
void Strips::whole(Term first, std::span<const Term> sizes) const {
  const std::vector<Term> begin = w_.coordinates(first, sizes);
  body_.load_strip({first, begin}, lanes_, device_.vector_bytes);
  std::vector<std::vector<Term>> values(stores_.size());
  for (int lane = 0; lane < lanes_; ++lane) {
    Spot spot{first + lane, begin};
    if (!begin.empty()) spot.coordinates[0] = begin[0] + lane;
    body_.go_to_lane(lane);
    for (size_t i = 0; i < stores_.size(); ++i) {
      values[i].push_back(body_.element(body_.definition(stores_[i], 0), spot));
    }
  }
  body_.leave();
  for (size_t i = 0; i < stores_.size(); ++i) {
    if (size_of(w_.element_of_buffer(buffers_[i])) <= 4) {
      w_.store_vector(buffers_[i], first, values[i], device_.vector_bytes);
    } else {
      for (int lane = 0; lane < lanes_; ++lane) {
        w_.store(buffers_[i], first + lane, values[i][static_cast<size_t>(lane)]);
      }
    }
  }
}

/// The last elements, one by one.
void Strips::rest(Term first, Term count, std::span<const Term> sizes) const {
  w_.loop(first, count, w_.index(1), [&](Term at) {
    const Spot spot{at, w_.coordinates(at, sizes)};
    std::vector<Term> values;
    for (const size_t store : stores_) values.push_back(body_.element(body_.definition(store, 0), spot));
    for (size_t i = 0; i < stores_.size(); ++i) w_.store(buffers_[i], at, values[i]);
  });
  body_.leave();
}

}  // namespace rosin::kernels
