// See weighed_taps.hpp. The gradient is the same op with the tables of the way back.
#include "ops/weighed_taps.hpp"

#include <algorithm>
#include <cstdio>

#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>

#include "graph/autocast.hpp"
#include "graph/context.hpp"
#include "graph/gather_form.hpp"
#include "graph/record.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

Array record_weighed(const Array& x, const Array& places, const Array& weights, const Shape& shape,
                     const WeighedAttributes& how);

void weighed_gradient(Backward& b) {
  auto way_back = b.attributes<WeighedAttributes>();
  way_back.back = 1 - way_back.back;
  b.give(0, record_weighed(b.gradient, b.in(1), b.in(2), b.in(0).shape(), way_back));
}

const Op& weighed_op = *register_op({.name = "weighed_sums",
                                     .kind = Kind::gather,
                                     .operands = 3,
                                     .doc = "sums of few elements along neighbouring dims, each times a weight",
                                     .type_rule = TypeRule::attribute,
                                     .attribute_words = sizeof(WeighedAttributes) / 8,
                                     .gradient = weighed_gradient});

Array record_weighed(const Array& x, const Array& places, const Array& weights, const Shape& shape,
                     const WeighedAttributes& how) {
  const Array* in[] = {&x, &places, &weights};
  return record(weighed_op, in, x.dtype(), shape, Attributes::of(how));
}

Array vector_of(const std::vector<int32_t>& places) { return Array(places, {static_cast<int64_t>(places.size())}); }

}  // namespace

void require_resizable(std::string_view op, double out) {
  constexpr double most = 1 << 24;
  if (out <= most) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", out);
  refuse(ErrorKind::argument, op, "a dim gets at most 2^24 elements", text, "resize parts, or repeat elements");
}

void WeighedTaps::add(int64_t place, double weight) {
  taps_.push_back({static_cast<int32_t>(std::clamp<int64_t>(place, 0, in_ - 1)), weight});
}

void WeighedTaps::end_element() { ends_.push_back(static_cast<int64_t>(taps_.size())); }

int32_t WeighedTaps::most() const {
  int64_t most = 1, begin = 0;
  for (const int64_t end : ends_) {
    most = std::max(most, end - begin);
    begin = end;
  }
  return static_cast<int32_t>(most);
}

std::vector<int32_t> WeighedTaps::times_used() const {
  std::vector<int32_t> times(static_cast<size_t>(in_));
  for (const Tap& tap : taps_) ++times[static_cast<size_t>(tap.place)];
  return times;
}

int32_t WeighedTaps::most_back() const {
  const std::vector<int32_t> times = times_used();
  return times.empty() ? 1 : std::max(1, *std::max_element(times.begin(), times.end()));
}

void WeighedTaps::append(int32_t count, std::vector<int32_t>& places, std::vector<double>& weights) const {
  int64_t at = 0;
  for (const int64_t end : ends_) {
    const size_t filled = places.size() + static_cast<size_t>(count);
    for (; at < end; ++at) {
      places.push_back(taps_[static_cast<size_t>(at)].place);
      weights.push_back(taps_[static_cast<size_t>(at)].weight);
    }
    places.resize(filled);
    weights.resize(filled);
  }
}

void WeighedTaps::append_back(int32_t count, std::vector<int32_t>& places, std::vector<double>& weights) const {
  const size_t begin = places.size();
  places.resize(begin + static_cast<size_t>(count * in_));
  weights.resize(places.size());
  std::vector<int32_t> filled(static_cast<size_t>(in_));
  int64_t at = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(out()); ++i) {
    for (; at < ends_[static_cast<size_t>(i)]; ++at) {
      const Tap& tap = taps_[static_cast<size_t>(at)];
      const int32_t number = filled[static_cast<size_t>(tap.place)]++;
      const size_t entry = begin + static_cast<size_t>(tap.place * count + number);
      places[entry] = i;
      weights[entry] = tap.weight;
    }
  }
}

Array weighed(const Array& x, int dim, std::span<const WeighedTaps> taps) {
  if (is_half(x.dtype())) return narrow(weighed(wide(x), dim, taps), x);
  if (is_complex(x.dtype())) return view_as_complex(weighed(view_as_real(x), dim + 1, taps));
  constexpr int most = WeighedAttributes::most_dims;
  if (taps.size() > most) return weighed(weighed(x, dim, taps.first(most)), dim + most, taps.subspan(most));
  WeighedAttributes how;
  how.dim = dim;
  how.dims = static_cast<int32_t>(taps.size());
  Shape shape = x.shape();
  std::vector<int32_t> places;
  std::vector<double> weights;
  for (int d = 0; d < how.dims; ++d) {
    const WeighedTaps& one = taps[static_cast<size_t>(d)];
    how.taps[0][d] = one.most();
    one.append(how.taps[0][d], places, weights);
    shape = with_size(shape, dim + d, one.out());
  }
  for (int d = 0; d < how.dims; ++d) {
    const WeighedTaps& one = taps[static_cast<size_t>(d)];
    how.taps[1][d] = one.most_back();
    one.append_back(how.taps[1][d], places, weights);
  }
  const DeviceScope scope(*x.node());
  const Array at = table(vector_of(places)), of = table(cast(Array(weights, at.shape()), x.dtype()));
  return record_weighed(x, at, of, shape, how);
}

Array picked(const Array& x, int dim, std::span<const std::vector<int64_t>> places) {
  if (is_float(x.dtype()) || is_complex(x.dtype())) {
    std::vector<WeighedTaps> taps;
    for (size_t d = 0; d < places.size(); ++d) {
      taps.emplace_back(x.size(dim + static_cast<int>(d)));
      for (const int64_t place : places[d]) {
        taps.back().add(place, 1);
        taps.back().end_element();
      }
    }
    return weighed(x, dim, taps);
  }
  const DeviceScope scope(*x.node());
  Array y = x;
  for (size_t d = 0; d < places.size(); ++d) {
    const auto count = static_cast<int64_t>(places[d].size());
    y = gather(y, table(Array(places[d], {count})), dim + static_cast<int>(d));
  }
  return y;
}

}  // namespace rosin
