// See weighed_taps.hpp. The gradient is the same op with the tables of the way back.
#include "ops/weighed_taps.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>

#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>

#include "base/of_thread.hpp"
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

/// Of neighbouring dims, as many as one op takes: there and back.
struct Tables {
  WeighedAttributes how;
  std::vector<int64_t> out;
  Array places, weights;
};

Tables tables_of(std::span<const WeighedTaps> taps, DType type) {
  Tables made;
  made.how.dims = static_cast<int32_t>(taps.size());
  std::vector<int32_t> places;
  std::vector<double> weights;
  for (size_t d = 0; d < taps.size(); ++d) {
    made.out.push_back(taps[d].out());
    made.how.taps[0][d] = taps[d].most();
    taps[d].append(made.how.taps[0][d], places, weights);
  }
  for (size_t d = 0; d < taps.size(); ++d) {
    made.how.taps[1][d] = taps[d].most_back();
    taps[d].append_back(made.how.taps[1][d], places, weights);
  }
  const Shape shape{static_cast<int64_t>(places.size())};
  made.places = table(Array(places, shape));
  made.weights =
      table(type == Float32 ? Array(std::vector<float>(weights.begin(), weights.end()), shape) : Array(weights, shape));
  return made;
}

std::vector<Tables> all_tables(std::span<const WeighedTaps> taps, DType type) {
  constexpr size_t most = WeighedAttributes::most_dims;
  std::vector<Tables> all;
  for (size_t d = 0; d < taps.size(); d += most) {
    all.push_back(tables_of(taps.subspan(d, std::min(most, taps.size() - d)), type));
  }
  return all;
}

/// The tables that a thread has asked for last.
class LastTables {
 public:
  static LastTables& of_thread() { return rosin::of_thread<LastTables>(); }

  const std::vector<Tables>* find(const TapsKey& key) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
    if (found == kept_.end()) return nullptr;
    std::rotate(found, found + 1, kept_.end());
    return &kept_.back().tables;
  }
  void keep(const TapsKey& key, const std::vector<Tables>& tables) {
    constexpr size_t most = 32;
    constexpr int64_t most_elements = int64_t{1} << 22;
    kept_.push_back({key, tables});
    while (kept_.size() > most || (kept_.size() > 1 && elements() > most_elements)) kept_.erase(kept_.begin());
  }

 private:
  struct Kept {
    TapsKey key;
    std::vector<Tables> tables;

    int64_t elements() const {
      return std::accumulate(tables.begin(), tables.end(), int64_t{0},
                             [](int64_t sum, const Tables& one) { return sum + one.places.count(); });
    }
  };
  int64_t elements() const {
    return std::accumulate(kept_.begin(), kept_.end(), int64_t{0},
                           [](int64_t sum, const Kept& kept) { return sum + kept.elements(); });
  }

  std::vector<Kept> kept_;  // the ones used last come last
};

std::vector<Tables> kept_tables(const TapsKey& given, DType type,
                                const std::function<std::vector<WeighedTaps>()>& make) {
  TapsKey key = given;
  key.add(static_cast<int64_t>(type)).add(int64_t{Context::current().device});
  if (const std::vector<Tables>* kept = LastTables::of_thread().find(key)) return *kept;
  std::vector<Tables> tables = all_tables(make(), type);
  LastTables::of_thread().keep(key, tables);
  return tables;
}

/// x with dims from `dim` on made by the tables that `tables` gives for a type, on the device of x.
template <class Find> Array made_by(const Array& x, int dim, const Find& tables) {
  if (is_half(x.dtype())) return narrow(made_by(wide(x), dim, tables), x);
  if (is_complex(x.dtype())) return view_as_complex(made_by(view_as_real(x), dim + 1, tables));
  const DeviceScope scope(*x.node());
  Array y = x;
  for (const Tables& one : tables(x.dtype())) {
    WeighedAttributes how = one.how;
    how.dim = dim;
    Shape shape = y.shape();
    for (const int64_t out : one.out) shape = with_size(shape, dim++, out);
    y = record_weighed(y, one.places, one.weights, shape, how);
  }
  return y;
}

bool takes_weights(DType type) { return is_float(type) || is_complex(type); }

std::vector<WeighedTaps> taps_at(const Array& x, int dim, std::span<const std::vector<int64_t>> places) {
  std::vector<WeighedTaps> taps;
  for (size_t d = 0; d < places.size(); ++d) {
    taps.emplace_back(x.size(dim + static_cast<int>(d)));
    for (const int64_t place : places[d]) {
      taps.back().add(place, 1);
      taps.back().end_element();
    }
  }
  return taps;
}

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
  return made_by(x, dim, [&](DType type) { return all_tables(taps, type); });
}

Array weighed(const Array& x, int dim, const TapsKey& key, const std::function<std::vector<WeighedTaps>()>& make) {
  return made_by(x, dim, [&](DType type) { return kept_tables(key, type, make); });
}

Array picked(const Array& x, int dim, std::span<const std::vector<int64_t>> places) {
  if (takes_weights(x.dtype())) return weighed(x, dim, taps_at(x, dim, places));
  const DeviceScope scope(*x.node());
  Array y = x;
  for (size_t d = 0; d < places.size(); ++d) {
    const auto count = static_cast<int64_t>(places[d].size());
    y = gather(y, table(Array(places[d], {count})), dim + static_cast<int>(d));
  }
  return y;
}

Array picked(const Array& x, int dim, const TapsKey& key,
             const std::function<std::vector<std::vector<int64_t>>()>& make) {
  if (!takes_weights(x.dtype())) return picked(x, dim, make());
  return weighed(x, dim, key, [&] { return taps_at(x, dim, make()); });
}

}  // namespace rosin
