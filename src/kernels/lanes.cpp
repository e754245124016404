// See lanes.hpp.
#include "kernels/lanes.hpp"

#include <bit>

namespace rosin::kernels {

Term Combiner::combine(const Reducer& reducer, Term value, Term lane, Term lanes) {
  const bool whole_warps = warp_ > 1 && items_of_group % warp_ == 0;
  return whole_warps ? in_warps(reducer, value, lane, lanes) : in_shared_memory(reducer, value, lane, lanes);
}

int Combiner::array_of(ScalarType type) {
  int& array = arrays_[static_cast<size_t>(shared_type(type))];
  if (array < 0) array = w_.shared(shared_type(type), items_of_group);
  return array;
}

/// Item `lane` takes what item lane + half has, for half = lanes / 2, ..., 1.
Term Combiner::in_shared_memory(const Reducer& reducer, Term value, Term lane, Term lanes) {
  const int shared = array_of(value.type);
  const Term item = w_.item();
  const ScalarType travels = shared_type(value.type);
  w_.barrier();  // what was read before is read
  w_.shared_store(shared, item, w_.convert(value, travels));
  constexpr int halvings = std::bit_width(static_cast<unsigned>(items_of_group)) - 1;
  w_.loop(w_.index(halvings), [&](Term step) {
    const Term half = w_.apply(Primitive::shift_right, step.type, {w_.index(items_of_group / 2), step});
    w_.barrier();
    w_.when(lane < half && half < lanes, [&] {
      const Term other = w_.convert(w_.shared_load(shared, item + w_.convert(half, item.type)), value.type);
      const Term own = w_.convert(w_.shared_load(shared, item), value.type);
      w_.shared_store(shared, item, w_.convert(w_.combine(reducer.body, own, other), travels));
    });
  });
  w_.barrier();
  return w_.convert(w_.shared_load(shared, item - lane), value.type);
}

/// The same tree: its first levels, over more items than a warp has, by way of shared memory. What items beyond `lanes`
/// and those that no level asks any more compute along is looked at by nobody.
Term Combiner::in_warps(const Reducer& reducer, Term value, Term lane, Term lanes) {
  const ScalarType travels = shared_type(value.type);
  const Term place = w_.apply(Primitive::bit_and, lane.type, {w_.item(), w_.index(warp_ - 1)});
  const Term begun = w_.variable(w_.convert(value, travels));
  w_.when(w_.index(warp_) < lanes,
          [&] { w_.assign(begun, w_.convert(across_warps(reducer, value, lane, lanes), travels)); });
  Term sum = w_.convert(begun, value.type);
  const auto of_item = [&](Term at) {
    return w_.convert(w_.shuffle(w_.convert(sum, travels), w_.convert(at, ScalarType::int32)), value.type);
  };
  for (int half = warp_ / 2; half > 0; half /= 2) {
    const Term other = of_item(w_.apply(Primitive::bit_and, place.type, {place + half, w_.index(warp_ - 1)}));
    sum = w_.select(w_.index(half) < lanes, w_.combine(reducer.body, sum, other), sum);
  }
  return of_item(place - w_.apply(Primitive::bit_and, lane.type, {lane, w_.index(warp_ - 1)}));
}

/// Every warp of the items computes all of these levels, so that none waits for another's result.
Term Combiner::across_warps(const Reducer& reducer, Term value, Term lane, Term lanes) {
  const int shared = array_of(value.type);
  const Term item = w_.item();
  w_.barrier();  // what was read before is read
  w_.shared_store(shared, item, w_.convert(value, shared_type(value.type)));
  w_.barrier();
  const Term in_warp = w_.apply(Primitive::bit_and, lane.type, {lane, w_.index(warp_ - 1)});
  const Term begin = item - lane + in_warp;
  std::vector<Term> parts;
  for (int first = 0; first < items_of_group; first += warp_) {
    const Term at = w_.apply(Primitive::bit_and, item.type, {begin + first, w_.index(items_of_group - 1)});
    parts.push_back(w_.convert(w_.shared_load(shared, at), value.type));
  }
  for (size_t half = parts.size() / 2; half > 0; half /= 2) {
    const Term counts = w_.index(static_cast<int64_t>(half) * warp_) < lanes;
    for (size_t k = 0; k < half; ++k) {
      parts[k] = w_.select(counts, w_.combine(reducer.body, parts[k], parts[k + half]), parts[k]);
    }
  }
  return parts[0];
}

}  // namespace rosin::kernels
