// Infinities and NaN in windows and reductions, one at each place: they reach the results whose definition reads that
// place, and no others. The definitions are written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), quiet = std::numeric_limits<double>::quiet_NaN();

using Doubles = std::vector<double>;

Doubles drawn(int64_t count) {
  Doubles values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<double>(i * 7 % 11 - 5) / 2;
  return values;
}

void expect_agree(const Array& found, const Doubles& expected, const std::string& name) {
  const Doubles values = found.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const bool both_nan = std::isnan(values[i]) && std::isnan(expected[i]);
    ASSERT_TRUE(both_nan || values[i] == expected[i] ||
                std::abs(values[i] - expected[i]) <= 1e-2 * (1 + std::abs(expected[i])))
        << name << ", element " << i << ": " << values[i] << ", not " << expected[i];
  }
}

/// Images of 6 x 5 with 2 channels, 2 of them; windows of 3 x 2, steps of 2 x 1; padded by (1, 0) in dim 0, or not.
struct Pooling {
  bool padded;
  static constexpr int64_t w = 6, h = 5, planes = 4;
  int64_t out_w() const { return padded ? 3 : 2; }
  static constexpr int64_t out_h = 4;
  int64_t results() const { return out_w() * out_h * planes; }
  static Extents steps() { return {2, 1}; }
  Extents pads() const { return padded ? Extents{1, 0, 0, 0} : Extents(0); }

  /// Calls visit(place in the image) for the window of result `r`.
  template <class Visit> void each(int64_t r, Visit visit) const {
    const int64_t ow = r % out_w(), oh = r / out_w() % out_h, plane = r / out_w() / out_h;
    for (int64_t j = 0; j < 2; ++j) {
      for (int64_t i = 0; i < 3; ++i) {
        const int64_t at = ow * 2 + i - (padded ? 1 : 0);
        if (at >= 0 && at < w) visit((plane * h + oh + j) * w + at);
      }
    }
  }
  bool touches_padding(int64_t r) const { return padded && r % out_w() == 0; }

  /// The place of the largest element of window `r`, the first of equal ones or of NaN; -1 where the padding wins.
  int64_t largest(const Doubles& x, int64_t r, double lowest) const {
    int64_t found = -1;
    each(r, [&](int64_t place) {
      const double value = x[static_cast<size_t>(place)];
      const double best = found >= 0 ? x[static_cast<size_t>(found)] : 0;
      const bool candidate = found < 0 && (!touches_padding(r) || !(value < lowest));
      if (candidate || (found >= 0 && (value > best || (std::isnan(value) && !std::isnan(best))))) found = place;
    });
    return found;
  }
};

class NotFiniteArrays : public testing::TestWithParam<DType> {
 protected:
  Array array(const Doubles& values, const Shape& shape) const { return cast(Array(values, shape), GetParam()); }
  double lowest() const {
    return GetParam() == DType::Float64   ? std::numeric_limits<double>::lowest()
           : GetParam() == DType::Float32 ? std::numeric_limits<float>::lowest()
                                          : -65504.0;
  }
};

TEST_P(NotFiniteArrays, PoolsAndTheirGradientsReadTheirWindowsOnly) {
  for (const bool padded : {false, true}) {
    const Pooling pool{padded};
    const int64_t count = Pooling::w * Pooling::h * Pooling::planes;
    for (int64_t bad = -1; bad < count; ++bad) {
      for (const double value : {inf, -inf, quiet}) {
        Doubles x = bad < 0 ? Doubles(static_cast<size_t>(count), value) : drawn(count);
        if (bad >= 0) x[static_cast<size_t>(bad)] = value;
        Doubles largest, mean, by_largest(static_cast<size_t>(count));
        const Doubles dy = drawn(pool.results());
        for (int64_t r = 0; r < pool.results(); ++r) {
          const int64_t place = pool.largest(x, r, lowest());
          largest.push_back(place < 0 ? lowest() : x[static_cast<size_t>(place)]);
          if (place >= 0) by_largest[static_cast<size_t>(place)] += dy[static_cast<size_t>(r)];
          double sum = 0;
          pool.each(r, [&](int64_t i) { sum += x[static_cast<size_t>(i)]; });
          mean.push_back(sum / 6);
        }
        const std::string name = std::to_string(value) + " at " + std::to_string(bad) + (padded ? ", padded" : "");
        const Array image = array(x, {6, 5, 2, 2}), factors = array(dy, {pool.out_w(), 4, 2, 2});
        expect_agree(maxpool(image, {3, 2}, Pooling::steps(), pool.pads()), largest, "maxpool of " + name);
        expect_agree(meanpool(image, {3, 2}, Pooling::steps(), pool.pads()), mean, "meanpool of " + name);
        const auto dot = [&](const Array& i) {
          return sum(maxpool(i, {3, 2}, Pooling::steps(), pool.pads()) * factors);
        };
        expect_agree(gradient(dot, image), by_largest, "gradient of maxpool of " + name);
      }
    }
  }
}

TEST_P(NotFiniteArrays, GradientsOfMeanpoolsReachTheirWindowOnly) {
  const Pooling pool{true};
  for (int64_t bad = 0; bad < pool.results(); ++bad) {
    Doubles dy = drawn(pool.results()), dx(120);
    dy[static_cast<size_t>(bad)] = inf;
    for (int64_t r = 0; r < pool.results(); ++r) {
      pool.each(r, [&](int64_t i) { dx[static_cast<size_t>(i)] += dy[static_cast<size_t>(r)] / 6; });
    }
    const Array factors = array(dy, {3, 4, 2, 2});
    const auto dot = [&](const Array& i) { return sum(meanpool(i, {3, 2}, Pooling::steps(), pool.pads()) * factors); };
    expect_agree(gradient(dot, array(drawn(120), {6, 5, 2, 2})), dx, std::to_string(bad));
  }
}

TEST_P(NotFiniteArrays, ReductionsReadTheirElementsOnly) {
  struct Reduction {
    const char* name;
    std::function<Array(const Array&, const Dims&)> run;
    std::function<double(double, double)> combine;
    double start;
  };
  const auto larger = [](double a, double b) { return std::isnan(a) || std::isnan(b) ? quiet : std::max(a, b); };
  const auto smaller = [](double a, double b) { return std::isnan(a) || std::isnan(b) ? quiet : std::min(a, b); };
  const std::vector<Reduction> reductions = {
      {"sum", [](const Array& x, const Dims& d) { return sum(x, d); }, std::plus<double>(), 0},
      {"prod", [](const Array& x, const Dims& d) { return prod(x, d); }, std::multiplies<double>(), 1},
      {"maximum", [](const Array& x, const Dims& d) { return maximum(x, d); }, larger, -inf},
      {"minimum", [](const Array& x, const Dims& d) { return minimum(x, d); }, smaller, inf}};
  const int64_t sizes[3] = {3, 4, 2};
  for (int64_t bad = 0; bad < 24; ++bad) {
    for (const double value : {inf, -inf, quiet}) {
      Doubles x = drawn(24);
      for (double& element : x) element = element == 0 ? 1 : element;
      x[static_cast<size_t>(bad)] = value;
      const Array all = array(x, {3, 4, 2});
      for (unsigned set = 1; set < 8; ++set) {
        std::vector<int> dims;
        for (int d = 0; d < 3; ++d) {
          if (set >> d & 1) dims.push_back(d);
        }
        for (const Reduction& reduction : reductions) {
          Doubles expected;
          for (int64_t i = 0; i < 24; ++i) {
            int64_t to = 0, pitch = 1, rest = i;
            for (int d = 0; d < 3; rest /= sizes[d], ++d) {
              if (set >> d & 1) continue;
              to += rest % sizes[d] * pitch;
              pitch *= sizes[d];
            }
            expected.resize(static_cast<size_t>(pitch), reduction.start);
            double& total = expected[static_cast<size_t>(to)];
            total = reduction.combine(total, x[static_cast<size_t>(i)]);
          }
          expect_agree(reduction.run(all, Dims(dims)), expected,
                       std::string(reduction.name) + " of " + std::to_string(value) + " at " + std::to_string(bad));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NotFiniteArrays, testing::Values(DType::Float32, DType::Float64, DType::Float16),
                         [](const auto& type) { return std::string(to_string(type.param)); });

}  // namespace
}  // namespace rosin
