// Pooling of images in logical order, by planes and by turning some of them, against the definition, written here in
// Float64, and bit by bit against pooling of the same images with channels side by side.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rosin/half.hpp>

#include "engines/tile.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

struct Dim {
  int64_t in, kernel, stride = 1, low = 0, high = 0, dilation = 1;
};

PoolSpec spec_of(int64_t batch, int64_t channels, const std::vector<Dim>& dims) {
  PoolSpec spec;
  spec.spatial = static_cast<int>(dims.size());
  spec.batch = batch;
  spec.channels = channels;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Dim& s = dims[d];
    spec.in[d] = s.in, spec.kernel[d] = s.kernel, spec.stride[d] = s.stride, spec.dilation[d] = s.dilation;
    spec.pad_low[d] = s.low;
    spec.out[d] = (s.in + s.low + s.high - (s.kernel - 1) * s.dilation - 1) / s.stride + 1;
  }
  return spec;
}

/// Rows shorter and longer than a vector, blocks of many rows, windows that overlap in one dim or both, that leave gaps
/// between them and elements behind the last one, and that lie in the padding; images one element wide.
std::vector<PoolSpec> specs() {
  return {spec_of(2, 3, {{112, 3, 2, 1, 1}, {112, 3, 2, 1, 1}}),
          spec_of(2, 5, {{32, 2, 2}, {32, 2, 2}}),
          spec_of(1, 2, {{113, 3, 1, 1, 1}, {117, 3, 1, 1, 1}}),
          spec_of(1, 1, {{300, 5, 2, 2, 2}, {90, 5, 3, 2, 2}}),
          spec_of(3, 4, {{7, 7, 7}, {7, 7, 7}}),
          spec_of(2, 3, {{8, 3, 2}, {8, 3, 2}}),
          spec_of(2, 3, {{33, 2, 3, 1, 1}, {40, 1, 4}}),
          spec_of(2, 2, {{40, 3, 5}, {21, 3, 2, 0, 0, 3}}),
          spec_of(2, 2, {{21, 4, 3, 2, 2, 2}, {23, 2, 5, 1, 1}}),
          spec_of(1, 2, {{3, 2, 1, 2, 1}, {2, 2, 2, 3, 3}}),
          spec_of(2, 2, {{1, 1}, {1, 1}}),
          spec_of(2, 3, {{1, 3, 2, 1, 1}, {117, 3, 1, 1, 1}}),
          spec_of(2, 2, {{1, 1}, {90, 5, 3, 2, 2}, {5, 2, 2}}),
          spec_of(2, 3, {{64, 1, 2}, {64, 1, 2}}),
          spec_of(3, 2, {{200, 3, 2, 1, 1}}),
          spec_of(3, 2, {{50, 4, 3}}),
          spec_of(2, 40, {{5, 2, 2}, {6, 3, 1, 1, 1}, {4, 2, 2}})};
}

/// With ties, and numbers that are not finite or the lowest.
std::vector<double> values_of(int64_t count, bool wild) {
  std::vector<double> values = random_values(count);
  if (!wild) return values;
  constexpr double odd[] = {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::infinity(), -0.0, -0.0};
  for (size_t i = 0; i < values.size(); i += 7) values[i] = odd[i / 7 % std::size(odd)];
  for (size_t i = 0; i < values.size() / 3; ++i) values[i] = -std::numeric_limits<double>::infinity();
  return values;
}

struct Results {
  std::vector<double> y, dx;
};

/// Of one plane.
Results defined(const PoolSpec& s, bool maximum, const double* x, const double* dy) {
  const int64_t taps = count_of(s.kernel);
  Results results{{}, std::vector<double>(static_cast<size_t>(count_of(s.in)))};
  for (int64_t out = 0; out < count_of(s.out); ++out) {
    double best = maximum ? -std::numeric_limits<double>::infinity() : 0;
    int64_t first = -1;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t place = place_of(s, out, tap);
      if (place < 0) continue;
      if (!maximum) {
        best += x[place] / static_cast<double>(taps);
        results.dx[static_cast<size_t>(place)] += dy[out] / static_cast<double>(taps);
      } else if (first < 0 || x[place] > best) {
        best = x[place];
        first = place;
      }
    }
    if (first >= 0) results.dx[static_cast<size_t>(first)] += dy[out];
    results.y.push_back(maximum && first < 0 ? -1e300 : best);
  }
  return results;
}

/// What prepare_plane_pool takes as it stands: images one element wide are turned before.
bool goes_by_planes(const PoolSpec& spec) { return spec.spatial <= 2 && spec.stride[0] <= 2 && spec.in[0] > 1; }

/// The engine that prepare_pool chooses, or planes.
enum class Way { best, planes };

template <class T> std::unique_ptr<VendorCall> prepared(const PoolSpec& spec, Way way) {
  if constexpr (sizeof(T) >= sizeof(float)) {
    if (way == Way::planes) return prepare_plane_pool<T>(spec, std::numeric_limits<T>::lowest());
  }
  return prepare_pool(spec);
}

/// y and dx, of images in logical order or with channels first.
template <class T>
std::pair<std::vector<T>, std::vector<T>> pooled(PoolSpec spec, bool maximum, const std::vector<T>& x,
                                                 const std::vector<T>& dy, Way way = Way::best) {
  std::vector<T> y(dy.size(), T(7.0f)), dx(x.size(), T(7.0f));
  spec.kind = maximum ? PoolKind::max_forward : PoolKind::mean_forward;
  execute(*prepared<T>(spec, way), {x.data(), nullptr, nullptr, y.data(), nullptr}, 2);
  spec.kind = maximum ? PoolKind::max_backward : PoolKind::mean_backward;
  const std::unique_ptr<VendorCall> backward = prepared<T>(spec, way);
  if (maximum) execute(*backward, {x.data(), y.data(), dy.data(), dx.data(), nullptr}, 2);
  else execute(*backward, {dy.data(), nullptr, nullptr, dx.data(), nullptr}, 2);
  return {std::move(y), std::move(dx)};
}

PoolSpec as_planes(PoolSpec spec) {
  spec.batch *= spec.channels;
  spec.channels = 1;
  return spec;
}

void check(const PoolSpec& spec, bool maximum, Way way) {
  const int64_t planes = spec.batch * spec.channels, in = count_of(spec.in), out = count_of(spec.out);
  const std::vector<double> x = values_of(planes * in, false), dy = values_of(planes * out, false);
  const auto [y, dx] = pooled(as_planes(spec), maximum, x, dy, way);
  const std::string name = std::to_string(spec.in[0]) + " maximum " + std::to_string(maximum);
  for (int64_t plane = 0; plane < planes; ++plane) {
    const Results wanted =
        defined(spec, maximum, &x[static_cast<size_t>(plane * in)], &dy[static_cast<size_t>(plane * out)]);
    for (int64_t i = 0; i < out; ++i) {
      const double expected = wanted.y[static_cast<size_t>(i)], got = y[static_cast<size_t>(plane * out + i)];
      if (expected < -1e299) EXPECT_EQ(got, std::numeric_limits<double>::lowest()) << name;
      else EXPECT_NEAR(got, expected, 1e-14) << name << ", " << i;
    }
    for (int64_t i = 0; i < in; ++i)
      EXPECT_NEAR(dx[static_cast<size_t>(plane * in + i)], wanted.dx[static_cast<size_t>(i)], 1e-13) << name;
  }
}

TEST(PlanePool, AllKindsAgreeWithTheDefinition) {
  for (PoolSpec spec : specs()) {
    spec.type = DType::Float64;
    for (const bool maximum : {true, false}) {
      check(spec, maximum, Way::best);
      if (goes_by_planes(spec)) check(spec, maximum, Way::planes);
    }
  }
}

template <class T> void expect_bits_of_channels(const PoolSpec& spec, bool maximum, bool wild, Way way) {
  const int64_t in = count_of(spec.in), out = count_of(spec.out), planes = spec.batch * spec.channels;
  std::vector<double> tenths = values_of(planes * out, false);
  for (double& value : tenths) value *= 0.1;  // whose sums are rounded
  const std::vector<T> x = converted<T>(values_of(planes * in, wild)), dy = converted<T>(tenths);
  const auto alone = pooled(as_planes(spec), maximum, x, dy, way);
  const auto beside = pooled(spec, maximum, turned(x, in, spec.channels), turned(dy, out, spec.channels));
  const std::vector<T> y = turned(alone.first, out, spec.channels), dx = turned(alone.second, in, spec.channels);
  const std::string name = std::to_string(spec.in[0]) + " maximum " + std::to_string(maximum);
  EXPECT_EQ(std::memcmp(y.data(), beside.first.data(), y.size() * sizeof(T)), 0) << name;
  EXPECT_EQ(std::memcmp(dx.data(), beside.second.data(), dx.size() * sizeof(T)), 0) << name;
}

TEST(PlanePool, ResultsHaveTheBitsOfImagesWithChannelsFirst) {
  for (PoolSpec spec : specs()) {
    spec.channels += 1;  // never one
    for (const auto& [maximum, wild] : {std::pair(true, false), {true, true}, {false, false}, {false, true}}) {
      for (const Way way : {Way::best, Way::planes}) {
        if (way == Way::planes && !goes_by_planes(spec)) continue;
        spec.type = DType::Float32;
        expect_bits_of_channels<float>(spec, maximum, wild, way);
        spec.type = DType::Float64;
        expect_bits_of_channels<double>(spec, maximum, wild, way);
      }
      spec.type = DType::Float16;
      expect_bits_of_channels<Half>(spec, maximum, wild, Way::best);
      spec.type = DType::BFloat16;
      expect_bits_of_channels<BFloat>(spec, maximum, wild, Way::best);
    }
  }
}

/// (Their bits are among those above.)
TEST(PlanePool, OneImageInCwhnIsSharedOutByRows) {
  PoolSpec spec = spec_of(1, 64, {{56, 3, 2, 1, 1}, {56, 3, 2, 1, 1}});
  EXPECT_GT(prepare_pool(spec)->chunks(), 1);
  spec.kind = PoolKind::max_backward;  // rows share elements
  EXPECT_EQ(prepare_pool(spec)->chunks(), 1);
  EXPECT_EQ(prepare_pool(spec_of(1, 4, {{8, 2, 2}, {8, 2, 2}}))->chunks(), 1);  // worth no second thread
  EXPECT_EQ(prepare_pool(spec_of(0, 64, {{56, 3, 2, 1, 1}, {56, 3, 2, 1, 1}}))->chunks(), 0);
}

TEST(PlanePool, WideRowsGoByPlanes) {
  const auto engine = [](const std::vector<Dim>& dims) {
    return std::string(prepare_pool(spec_of(40, 1, dims))->engine());
  };
  EXPECT_EQ(engine({{112, 3, 2, 1, 1}, {112, 3, 2, 1, 1}}), "planes");
  EXPECT_EQ(engine({{28, 2, 2}, {28, 2, 2}}), "tile");
  EXPECT_EQ(engine({{112, 3, 3}, {112, 3, 3}}), "tile");
}

}  // namespace
}  // namespace rosin::engines
