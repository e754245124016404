// See strip.hpp.
#include "kernels/strip.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace rosin::kernels {

Box Box::of(const View& view) {
  const auto rank = static_cast<size_t>(view.rank);
  return {{view.sizes, view.sizes + rank}, std::vector<int64_t>(rank, 0), std::vector<char>(rank, 0)};
}

int64_t Box::stride(size_t d) const {
  if (d == 0) return 1;
  return std::accumulate(sizes.begin() + 1, sizes.begin() + static_cast<int64_t>(d), pitch(), std::multiplies<>());
}

int64_t Box::count() const { return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()); }

Strip::Strip(KernelWriter& writer, const Convolution& conv, int32_t value, Box box)
    : w_(writer), view_(conv.view(value)), array_(writer, conv.layout, value), box_(std::move(box)),
      shared_(writer.shared(conv.compute(), static_cast<int>(box_.room()))) {}

void Strip::fill(std::span<const Term> from) const {
  const std::vector<size_t> order = order_in_memory();
  std::vector<Term> sizes;
  for (const size_t d : order) sizes.push_back(w_.index(box_.sizes[d]));
  w_.loop(w_.item(), w_.index(box_.count()), w_.index(w_.items()), [&](Term number) {
    const std::vector<Term> sorted = w_.coordinates(number, sizes);
    std::vector<Term> at(order.size());
    for (size_t i = 0; i < order.size(); ++i) at[order[i]] = sorted[i];
    const Term place = place_of(at);
    const Term inside = moved(at, from);
    if (!inside.writer) return w_.shared_store(shared_, place, array_.load(at));
    const Term value = w_.variable(w_.literal(w_.type_of_buffer(array_.buffer()), 0));
    w_.when(inside, [&] { w_.assign(value, array_.load(at)); });
    w_.shared_store(shared_, place, value);
  });
}

/// Neighbouring items read neighbours. (Dims of one element come last: they take no division.)
std::vector<size_t> Strip::order_in_memory() const {
  std::vector<size_t> order(box_.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool one_a = box_.sizes[a] == 1, one_b = box_.sizes[b] == 1;
    return one_a != one_b ? one_b : view_.strides[a] < view_.strides[b];
  });
  return order;
}

Term Strip::place_of(std::span<const Term> at) const {
  Term place = at[0];
  for (size_t d = 1; d < box_.sizes.size(); ++d) {
    if (box_.sizes[d] > 1) place = place + at[d] * box_.stride(d);
  }
  return place;
}

/// From places of the part to those of the array; whether they lie in it, where they may not.
Term Strip::moved(std::vector<Term>& at, std::span<const Term> from) const {
  Term inside{};
  for (size_t d = 0; d < box_.low.size(); ++d) {
    if (box_.sizes[d] == 1) at[d] = w_.index(0);
    if (from[d].writer) at[d] = at[d] + from[d];
    if (box_.low[d] != 0) at[d] = at[d] - box_.low[d];
    if (!box_.beyond[d]) continue;
    const Term here = w_.index(0) <= at[d] && at[d] < view_.sizes[d];
    inside = inside.writer ? inside && here : here;
  }
  return inside;
}

}  // namespace rosin::kernels
