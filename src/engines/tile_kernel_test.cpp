// The kernels of every kind of processor that this one is, against each other and the plain definition.
#include "engines/tile_kernel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/instruction_set.hpp"
#include "engines/plain.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

std::vector<const TileKernels*> kernels_of_this_processor() {
  std::vector<const TileKernels*> kernels{&portable_tile_kernels};
#if defined(__x86_64__)
  if (best_instruction_set() != InstructionSet::baseline) kernels.push_back(&fma_tile_kernels);
  if (best_instruction_set() == InstructionSet::widest) kernels.push_back(&wide_tile_kernels);
#endif
  return kernels;
}

/// What an epilogue gives, by its definition.
template <class T> T ended(T sum, const T* bias, const T* residual, bool relu, T most) {
  if (bias) sum += *bias;
  if (residual) sum += *residual;
  if (!relu) return sum;
  return sum < T(0) ? T(0) : sum > most ? most : sum;
}

template <class T> void compare_epilogues(const EpilogueRun<T>& of, const TypedKernels<T>& kernels, const char* name) {
  const auto count = static_cast<size_t>(of.count);
  const T* const given = of.c;
  for (size_t first : {size_t{0}, size_t{1}}) {
    std::vector<T> result(given, given + count);
    kernels.epilogue(
        {result.data() + first, of.bias, of.residual, of.count - static_cast<int64_t>(first), of.relu, of.most});
    for (size_t i = first; i < count; ++i) {
      const size_t k = i - first;
      const T wanted =
          ended(given[i], of.bias ? of.bias + k : nullptr, of.residual ? of.residual + k : nullptr, of.relu, of.most);
      EXPECT_TRUE(std::isnan(wanted) ? std::isnan(result[i])
                                     : result[i] == wanted && std::signbit(result[i]) == std::signbit(wanted))
          << name << ", " << count << " elements, number " << i << ": " << result[i] << ", not " << wanted;
    }
  }
}

template <class T> void compare_epilogues(const TypedKernels<T>& kernels, const char* name) {
  for (const int64_t count : {1, 7, 16, 33, 100}) {
    auto c = converted<T>(random_values(count));
    const auto bias = converted<T>(random_values(count)), residual = converted<T>(random_values(count));
    c[0] = T(-0.0);
    c[static_cast<size_t>(count) - 1] = std::numeric_limits<T>::quiet_NaN();
    c[static_cast<size_t>(count) / 2] = -std::numeric_limits<T>::infinity();
    for (int parts = 0; parts < 8; ++parts) {
      EpilogueRun<T> run{.c = c.data(), .count = count, .relu = (parts & 4) != 0};
      if ((parts & 1) != 0) run.bias = bias.data();
      if ((parts & 2) != 0) run.residual = residual.data();
      compare_epilogues<T>(run, kernels, name);
      run.most = T(0.25);
      compare_epilogues<T>(run, kernels, name);
    }
  }
}

TEST(TileKernels, EpiloguesHaveTheBitsOfTheirDefinitionInEveryKernelOfThisProcessor) {
  for (const TileKernels* kernel : kernels_of_this_processor()) {
    compare_epilogues(kernel->floats, kernel->name);
    compare_epilogues(kernel->doubles, kernel->name);
  }
}

TEST(TileKernels, PoolingIsBitEqualInEveryKernelOfThisProcessor) {
  constexpr int64_t channels = 37, windows = 5, taps = 3;
  const int64_t offsets[taps] = {0, channels, 3 * channels};
  const auto x = converted<float>(random_values(channels * 12)),
             dy = converted<float>(random_values(channels * windows));
  std::vector<std::vector<float>> expected;
  for (const TileKernels* kernel : kernels_of_this_processor()) {
    std::vector<float> largest(channels * windows), mean(channels * windows), routed(x.size()), spread(x.size());
    PoolRun<float> run{x.data(), 2 * channels, channels,       offsets,   taps,
                       channels, windows,      largest.data(), dy.data(), nullptr};
    run.share = 1.0f / taps;
    kernel->floats.max_forward(run);
    run.dx = routed.data();
    kernel->floats.max_backward(run);
    run.dx = spread.data();
    kernel->floats.mean_backward(run);
    run.y = mean.data();
    kernel->floats.mean_forward(run);
    const std::vector<std::vector<float>> results{largest, routed, spread, mean};
    if (expected.empty()) expected = results;
    EXPECT_EQ(results, expected) << kernel->name;
  }
}

/// Windows of 2 x 2 elements, side by side in two rows of images in CWHN; a column of the images is behind the last
/// one.
struct SmallWindows {
  SmallWindows(int64_t channel_count, int64_t window_count, int64_t nan_at)
      : channels(channel_count), windows(window_count), row((2 * windows + 1) * channels),
        offsets{0, channels, row, row + channels}, x(converted<float>(random_values(2 * row))),
        dy(converted<float>(random_values(channels * windows))) {
    if (nan_at >= 0) x[static_cast<size_t>(nan_at % (2 * row))] = std::nanf("");
  }

  /// The definition: elements of y (`largest`, or means), and of dx, where -7 stands for what no window has.
  void define(bool largest, std::vector<float>& y, std::vector<float>& dx) const {
    y.clear();
    dx.assign(x.size(), -7);
    for (int64_t i = 0; i < windows * channels; ++i) {
      const int64_t corner = i / channels * 2 * channels + i % channels;
      const auto at = [&](int64_t tap) { return x[static_cast<size_t>(corner + offsets[tap])]; };
      int64_t first = 0;  // of the largest, or of the NaNs
      for (int64_t t = 1; t < 4; ++t) {
        if (!std::isnan(at(first)) && (at(t) > at(first) || std::isnan(at(t)))) first = t;
      }
      y.push_back(largest ? at(first) : (((at(0) + at(1)) + at(2)) + at(3)) * 0.25f);
      for (int64_t t = 0; t < 4; ++t) {
        const float given = dy[static_cast<size_t>(i)];
        dx[static_cast<size_t>(corner + offsets[t])] = largest ? (t == first ? given : 0) : given * 0.25f;
      }
    }
    y.push_back(-7);
  }

  int64_t channels, windows, row, offsets[4];
  std::vector<float> x, dy;
};

void expect_same_floats(const std::vector<float>& got, const std::vector<float>& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted[i])) ASSERT_TRUE(std::isnan(got[i])) << what << " at " << i;
    else ASSERT_EQ(got[i], wanted[i]) << what << " at " << i;
  }
}

void expect_small_windows(const TileKernels& kernel, const SmallWindows& given) {
  const std::string what = std::string(kernel.name) + ", " + std::to_string(given.channels) + " channels, " +
                           std::to_string(given.windows) + " windows";
  for (const bool largest : {true, false}) {
    std::vector<float> y, dx;
    given.define(largest, y, dx);
    std::vector<float> made(y.size(), -7), routed(dx.size(), -7);
    PoolRun<float> run{given.x.data(), 2 * given.channels, given.channels, given.offsets,   4,
                       given.channels, given.windows,      made.data(),    given.dy.data(), routed.data()};
    run.overlaps = false;
    run.tiles = true;
    run.share = 0.25f;
    run.least = -std::numeric_limits<float>::infinity();
    (largest ? kernel.floats.max_forward : kernel.floats.mean_forward)(run);
    expect_same_floats(made, y, what);
    (largest ? kernel.floats.max_backward : kernel.floats.mean_backward)(run);
    expect_same_floats(routed, dx, what);
  }
}

TEST(TileKernels, WindowsOfFewChannelsReachBehindThemAndLeaveWhatIsNotTheirs) {
  for (const TileKernels* kernel : kernels_of_this_processor()) {
    for (const int64_t channels : {1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 17, 33}) {
      for (const int64_t windows : {1, 2, 3, 4, 9, 20}) {
        for (const int64_t nan_at : {-1, 0, 13, 71}) {
          expect_small_windows(*kernel, SmallWindows(channels, windows, nan_at));
        }
      }
    }
  }
}

TEST(TileKernels, DistancesAgreeWithTheDefinitionInEveryKernelAndSayWhetherTheyAreSure) {
  for (const TileKernels* kernel : kernels_of_this_processor()) {
    const int64_t rows = kernel->row_vectors * kernel->lanes<float>();
    for (const int64_t features : {1, 15, 16, 17, 50}) {
      for (const int64_t columns : {1, 3, 4, 5, 6, 7, 12}) {
        std::vector<double> a = random_values(rows * features);
        for (double& x : a) x += 5;  // no point is one of b
        const std::vector<double> b = random_values(columns * features);
        const std::vector<float> fa = converted<float>(a), fb = converted<float>(b);
        std::vector<float> found(static_cast<size_t>(rows * columns) + 1, 9.0f);
        const DistanceTile tile{fa.data(), fb.data(), found.data(), rows, columns, features};
        EXPECT_TRUE(kernel->distances(tile));
        EXPECT_EQ(found.back(), 9) << kernel->name << " wrote behind the last column";
        for (int64_t i = 0; i < rows * columns; ++i) {
          double sum = 0;
          for (int64_t k = 0; k < features; ++k) {
            const auto here = static_cast<size_t>(k * rows + i % rows),
                       there = static_cast<size_t>(i / rows * features + k);
            sum += (a[here] - b[there]) * (a[here] - b[there]);
          }
          ASSERT_NEAR(found[static_cast<size_t>(i)], std::sqrt(sum), 2e-7 * std::sqrt(sum)) << kernel->name;
        }
        for (const float large : {1e30f, std::nanf("")}) {
          std::vector<float> spoiled = fb;
          spoiled.back() = large;
          const DistanceTile unsure{fa.data(), spoiled.data(), found.data(), rows, columns, features};
          EXPECT_FALSE(kernel->distances(unsure)) << kernel->name;
        }
      }
    }
  }
}

TEST(TileKernels, SumsAlongMemoryAreBitEqualInEveryKernelThatFusesAndAgreeWithTheDefinition) {
  for (const int64_t steps : {1, 15, 16, 17, 300}) {
    for (const int64_t rows : {1, 2, 4, 5, 9}) {
      for (const int64_t columns : {1, 3, 4, 7, 11}) {
        MatmulSpec spec = matmul(DType::Float64, rows, columns, steps, true, false);
        const auto a = random_values(rows * steps), b = random_values(columns * steps);
        const std::vector<float> fa = converted<float>(a), fb = converted<float>(b);
        std::vector<double> expected(static_cast<size_t>(rows * columns));
        plain_matmul<double>(spec, 0, 1, 0, columns, a.data(), b.data(), nullptr, expected.data());
        std::vector<float> fused;
        for (const TileKernels* kernel : kernels_of_this_processor()) {
          std::vector<float> result(expected.size() + 1, 9.0f);
          DotProduct<float> dots;
          dots.a = fa.data();
          dots.b = fb.data();
          dots.a_row = dots.b_column = dots.steps = steps;
          dots.c = result.data();
          dots.rows = dots.c_column = rows;
          dots.columns = columns;
          kernel->floats.dots(dots);
          EXPECT_EQ(result.back(), 9.0f) << "written beyond the result";
          result.pop_back();
          expect_close(result, expected, 1e-6, kernel->name);
          if (kernel == &portable_tile_kernels) continue;
          if (fused.empty()) fused = result;
          EXPECT_EQ(result, fused) << kernel->name;
        }
      }
    }
  }
}

/// The product of column-major A and B, in Float64.
std::vector<double> by_definition(int64_t rows, int64_t columns, int64_t steps, bool a_transposed,
                                  const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> product(static_cast<size_t>(rows * columns));
  plain_matmul<double>(matmul(DType::Float64, rows, columns, steps, a_transposed, false), 0, 1, 0, columns, a.data(),
                       b.data(), nullptr, product.data());
  return product;
}

/// The larger operand is of halves, as it lies.
template <class H> void check_half_kernels(const HalfKernels<H>& kernels, const char* name) {
  const int64_t few = 2, lines = 21, steps = 37;
  const auto a = random_values(lines * steps), b = random_values(few * steps);
  const std::vector<H> ha = converted<H>(a);
  const std::vector<float> fb = converted<float>(b);
  const std::vector<double> expected = by_definition(lines, few, steps, true, a, b);
  std::vector<float> result(expected.size());
  kernels.dots({.a = ha.data(),
                .a_row = steps,
                .b = fb.data(),
                .b_column = steps,
                .c = result.data(),
                .c_column = lines,
                .rows = lines,
                .columns = few,
                .steps = steps});
  expect_close(result, expected, 1e-6, name);
}

TEST(TileKernels, SumsOfHalvesAlongMemoryAgreeWithTheDefinition) {
  for (const TileKernels* kernel : kernels_of_this_processor()) {
    check_half_kernels(kernel->halves, kernel->name);
    check_half_kernels(kernel->bfloats, kernel->name);
  }
}

template <class A>
void check_sweep(void (*sweep)(const Sweep<A>&), int64_t rows, int64_t columns, int64_t steps, const char* name) {
  const auto a = random_values(rows * steps), b = random_values(columns * steps);
  const std::vector<A> ta = converted<A>(a), tb = converted<A>(b);
  const std::vector<double> expected = by_definition(rows, columns, steps, false, a, b);
  std::vector<WideOf<A>> sums(expected.size() + 1, 9);
  sweep({.a = ta.data(),
         .a_step = rows,
         .b = tb.data(),
         .b_step = 1,
         .b_column = steps,
         .sums = sums.data(),
         .sums_column = rows,
         .rows = rows,
         .columns = columns,
         .steps = steps});
  EXPECT_EQ(sums.back(), 9) << "written beyond the result";
  sums.pop_back();
  expect_close(sums, expected, 1e-6, name);
}

TEST(TileKernels, SweepsAgreeWithTheDefinition) {
  for (const TileKernels* kernel : kernels_of_this_processor()) {
    for (const int64_t rows : {1, 7, 16, 33, 4100}) {
      for (const int64_t steps : {1, 8, 13}) {
        for (int64_t columns = 1; columns <= most_swept; ++columns) {
          check_sweep(kernel->floats.sweep, rows, columns, steps, kernel->name);
          check_sweep(kernel->doubles.sweep, rows, columns, steps, kernel->name);
          check_sweep(kernel->halves.sweep, rows, columns, steps, kernel->name);
          check_sweep(kernel->bfloats.sweep, rows, columns, steps, kernel->name);
        }
      }
    }
  }
}

/// Rows of all lengths around those of vectors, of others, some of which do not count.
template <class T> void expect_weighed_rows(const TileKernels& kernel, int64_t taps) {
  constexpr int64_t rows = 5, others = 7;
  std::vector<int32_t> places;
  std::vector<T> weights = converted<T>(random_values(rows * taps));
  for (int64_t i = 0; i < rows * taps; ++i) {
    places.push_back(static_cast<int32_t>(i * i % others));
    if (i / taps == 3 || i % (i / taps + 2) == 1) weights[static_cast<size_t>(i)] = 0;
  }
  for (const int64_t count : {1, 7, 16, 33}) {
    std::vector<T> from = converted<T>(random_values(others * count)), to(rows * static_cast<size_t>(count) + 1, T(7));
    std::vector<T> expected = to;
    for (int64_t j = 0; j < rows; ++j) {
      for (int64_t i = 0; i < count; ++i) {
        T sum = T(-0.0);
        for (int64_t entry = j * taps; entry < (j + 1) * taps; ++entry) {
          const auto at = static_cast<size_t>(entry);
          if (weights[at] != 0) sum += weights[at] * from[static_cast<size_t>(places[at] * count + i)];
        }
        expected[static_cast<size_t>(j * count + i)] = sum;
      }
    }
    kernel.of<T>().weigh_rows({from.data(), 0, to.data(), count, rows, places.data(), weights.data(), taps});
    EXPECT_EQ(to, expected) << kernel.name << ' ' << count;
  }
}

/// A table of taps for each register of a line's results; some results have fewer taps, and one none.
template <class T> std::vector<LaneTap<T>> taps_of_lines(const WeighedLines<T>& run, int64_t lanes) {
  std::vector<LaneTap<T>> table(static_cast<size_t>((run.out + lanes - 1) / lanes * run.taps_each));
  const std::vector<T> weights = converted<T>(random_values(run.out * run.taps_each));
  for (size_t i = 0; i < table.size(); ++i) {
    const int64_t group = static_cast<int64_t>(i) / run.taps_each, tap = static_cast<int64_t>(i) % run.taps_each;
    const int64_t first = run.begin_of(group * lanes, lanes);
    table[i].begin = static_cast<int32_t>(std::min(first / 2, std::max<int64_t>(0, run.in - lanes)));
    for (int64_t l = 0; l < lanes; ++l) {
      const bool counts = first + l < run.out && (first + l + tap) % 4 != 1 && first + l != 2;
      table[i].lanes[l] = counts ? static_cast<int32_t>(((first + l) * 5 + tap) % std::min(run.in, lanes)) : -1;
      table[i].weights[l] = counts ? weights[static_cast<size_t>((first + l) * run.taps_each + tap)] : T(-0.0);
    }
  }
  return table;
}

/// Result `at` of a line.
template <class T> T sum_of_line(const WeighedLines<T>& run, int64_t lanes, const T* from, int64_t at) {
  const int64_t l = at - run.begin_of(at / lanes * lanes, lanes);
  T sum = T(-0.0);
  for (int64_t tap = 0; tap < run.taps_each; ++tap) {
    const LaneTap<T>& one = run.taps[at / lanes * run.taps_each + tap];
    if (one.lanes[l] >= 0) sum += one.weights[l] * from[one.begin + one.lanes[l]];
  }
  return sum;
}

/// Lines of all lengths around those of registers.
template <class T> void expect_weighed_lines(const TileKernels& kernel, int64_t taps) {
  const int64_t lanes = kernel.lanes<T>();
  for (const int64_t in : {int64_t{1}, int64_t{3}, lanes, lanes + 1, 3 * lanes}) {
    for (const int64_t out : {int64_t{1}, lanes - 1, lanes, 2 * lanes + 1}) {
      WeighedLines<T> run{.lines = 19, .in = in, .out = out, .taps_each = taps};
      const std::vector<T> from = converted<T>(random_values(run.lines * in));
      std::vector<T> to(static_cast<size_t>(run.lines * out) + 1, T(7)), expected = to;
      const auto table = taps_of_lines(run, lanes);
      run.from = from.data(), run.to = to.data(), run.taps = table.data();
      for (int64_t i = 0; i < run.lines * out; ++i)
        expected[static_cast<size_t>(i)] = sum_of_line(run, lanes, run.from + i / out * in, i % out);
      kernel.of<T>().weigh_lines(run);
      EXPECT_EQ(to, expected) << kernel.name << ' ' << in << " to " << out;
    }
  }
}

/// Planes of which each line of the result is a weighed row, more of them than stay in the cache together.
template <class T> void expect_weighed_planes(const TileKernels& kernel) {
  const int64_t lanes = kernel.lanes<T>(), rows = 5;
  for (const int64_t in : {lanes - 1, 2 * lanes + 3}) {
    for (const int64_t out : {lanes - 1, 40 * lanes + 1}) {
      WeighedLines<T> run{.lines = 18, .in = in, .out = out, .planes = 3, .plane = rows * in};
      const std::vector<T> from = converted<T>(random_values(run.planes * run.plane));
      std::vector<T> weights = converted<T>(random_values(run.lines));
      std::vector<T> to(static_cast<size_t>(run.planes * run.lines * out) + 1, T(7)), expected = to;
      std::vector<int32_t> places;
      for (int32_t i = 0; i < run.lines; ++i) places.push_back(i * 3 % rows);
      weights[4] = 0;
      const auto table = taps_of_lines(run, lanes);
      run.from = from.data(), run.to = to.data(), run.taps = table.data();
      run.rows = places.data(), run.row_weights = weights.data();
      for (int64_t i = 0; i < run.planes * run.lines * out; ++i) {
        const int64_t plane = i / out / run.lines, j = i / out % run.lines;
        const T sum = sum_of_line(run, lanes, run.from + plane * run.plane + run.rows[j] * in, i % out);
        expected[static_cast<size_t>(i)] = run.row_weights[j] == 0 ? T(-0.0) : run.row_weights[j] * sum;
      }
      kernel.of<T>().weigh_lines(run);
      EXPECT_EQ(to, expected) << kernel.name << ' ' << in << " to " << out;
    }
  }
}

template <class T> void expect_weighed(const TileKernels& kernel) {
  for (const int64_t taps : {1, 2, 11}) {
    expect_weighed_rows<T>(kernel, taps);
    expect_weighed_lines<T>(kernel, taps);
  }
  expect_weighed_planes<T>(kernel);
}

TEST(TileKernels, WeighedRowsLinesAndPlanesHaveTheBitsOfTheDefinitionInEveryKernel) {
  for (const TileKernels* kernel : kernels_of_this_processor()) {
    expect_weighed<float>(*kernel);
    expect_weighed<double>(*kernel);
  }
}

TEST(TileKernels, EveryKernelOfThisProcessorAgrees) {
  for (const TileKernels* kernel : kernels_of_this_processor()) {
    for (int64_t rows : {1, 3, 8, 15, 16, 17, 33}) {
      for (int64_t columns : {1, 2, 5, 6, 7, 12, 13, 29}) {
        for (bool transposed : {false, true}) {
          MatmulSpec spec = matmul(DType::Float64, rows, columns, 11, false, transposed);
          const auto a = random_values(rows * 11), b = random_values(columns * 11);
          const std::vector<float> fa = converted<float>(a), fb = converted<float>(b);
          std::vector<double> expected(static_cast<size_t>(rows * columns));
          std::vector<float> result(expected.size() + 1, 9.0f);
          plain_matmul<double>(spec, 0, 1, 0, columns, a.data(), b.data(), nullptr, expected.data());
          const int64_t offset = 0;
          TileProduct<float> tile;
          tile.a = fa.data();
          tile.a_inner = rows;
          tile.b = fb.data();
          tile.b_offsets = &offset;
          tile.b_inner = transposed ? columns : 1;
          tile.b_column = transposed ? 1 : 11;
          tile.c = result.data();
          tile.rows = tile.c_column = rows;
          tile.columns = columns;
          tile.inner = 11;
          kernel->floats.multiply(tile);
          EXPECT_EQ(result.back(), 9.0f) << "written beyond the result";
          result.pop_back();
          expect_close(result, expected, 1e-6, kernel->name);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rosin::engines
