// See lanes.hpp.
#include "kernels/lanes.hpp"

#include <bit>

namespace rosin::kernels {

Term Combiner::combine(const Reducer& reducer, Term value, Term lane, Term lanes) {
  const Partial only{&reducer, value};
  return combine(std::span(&only, 1), lane, lanes).front();
}

std::vector<Term> Combiner::combine(std::span<const Partial> partials, Term lane, Term lanes) {
  if (warp_ > 1 && items_of_group % warp_ == 0) return in_warps(partials, lane, lanes);
  std::vector<Term> sums;
  for (const Partial& each : partials) sums.push_back(in_shared_memory(*each.reducer, each.value, lane, lanes));
  return sums;
}

int Combiner::array_of(ScalarType type, size_t number) {
  std::vector<int>& arrays = arrays_[static_cast<size_t>(shared_type(type))];
  while (arrays.size() <= number) arrays.push_back(w_.shared(shared_type(type), items_of_group));
  return arrays[number];
}

/// An array for each.
std::vector<int> Combiner::arrays_of(std::span<const Partial> partials) {
  size_t used[scalar_type_count] = {};
  std::vector<int> arrays;
  for (const Partial& each : partials) {
    const ScalarType travels = shared_type(each.value.type);
    if (own_arrays_) arrays.push_back(w_.shared(travels, items_of_group));
    else arrays.push_back(array_of(travels, used[static_cast<size_t>(travels)]++));
  }
  return arrays;
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
std::vector<Term> Combiner::in_warps(std::span<const Partial> partials, Term lane, Term lanes) {
  const Term place = w_.apply(Primitive::bit_and, lane.type, {w_.item(), w_.index(warp_ - 1)});
  const auto of_warp = [&](Term at) {
    return w_.convert(w_.apply(Primitive::bit_and, place.type, {at, w_.index(warp_ - 1)}), ScalarType::int32);
  };
  std::vector<Term> begun, sums;
  for (const Partial& each : partials)
    begun.push_back(w_.variable(w_.convert(each.value, shared_type(each.value.type))));
  w_.when(w_.index(warp_) < lanes, [&] {
    const std::vector<Term> made = across_warps(partials, lane, lanes);
    for (size_t i = 0; i < made.size(); ++i) w_.assign(begun[i], w_.convert(made[i], begun[i].type));
  });
  for (size_t i = 0; i < begun.size(); ++i) sums.push_back(w_.convert(begun[i], partials[i].value.type));
  const auto of_item = [&](Term sum, Term at) {
    return w_.convert(w_.shuffle(w_.convert(sum, shared_type(sum.type)), at), sum.type);
  };
  for (int half = warp_ / 2; half > 0; half /= 2) {
    const Term from = of_warp(place + half), counts = w_.index(half) < lanes;
    for (size_t i = 0; i < sums.size(); ++i) {
      const Term both = w_.combine(partials[i].reducer->body, sums[i], of_item(sums[i], from));
      sums[i] = w_.select(counts, both, sums[i]);
    }
  }
  const Term first = of_warp(place - w_.apply(Primitive::bit_and, lane.type, {lane, w_.index(warp_ - 1)}));
  for (Term& sum : sums) sum = of_item(sum, first);
  return sums;
}

/// Every warp of the items computes all of these levels, so that none waits for another's result.
std::vector<Term> Combiner::across_warps(std::span<const Partial> partials, Term lane, Term lanes) {
  const std::vector<int> arrays = arrays_of(partials);
  const Term item = w_.item();
  if (!own_arrays_) w_.barrier();  // what was read before is read
  for (size_t i = 0; i < partials.size(); ++i) {
    const Term value = partials[i].value;
    w_.shared_store(arrays[i], item, w_.convert(value, shared_type(value.type)));
  }
  w_.barrier();
  const Term in_warp = w_.apply(Primitive::bit_and, lane.type, {lane, w_.index(warp_ - 1)});
  const Term begin = item - lane + in_warp;
  std::vector<Term> places, sums;
  for (int first = 0; first < items_of_group; first += warp_)
    places.push_back(w_.apply(Primitive::bit_and, item.type, {begin + first, w_.index(items_of_group - 1)}));
  for (size_t i = 0; i < partials.size(); ++i) {
    std::vector<Term> parts;
    for (const Term at : places) parts.push_back(w_.convert(w_.shared_load(arrays[i], at), partials[i].value.type));
    for (size_t half = parts.size() / 2; half > 0; half /= 2) {
      const Term counts = w_.index(static_cast<int64_t>(half) * warp_) < lanes;
      for (size_t k = 0; k < half; ++k) {
        parts[k] = w_.select(counts, w_.combine(partials[i].reducer->body, parts[k], parts[k + half]), parts[k]);
      }
    }
    sums.push_back(parts[0]);
  }
  return sums;
}

}  // namespace rosin::kernels
