// Rows taken from a table and added to one, against loops written out here: narrow and wide rows, repeated places,
// any number of threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

constexpr DType moved_types[] = {UInt8, Int8,   Int16,   UInt16,   Int32,   UInt32,
                                 Int64, UInt64, Float16, BFloat16, Float32, Float64};

std::vector<double> drawn(int64_t count, int64_t numbers) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i * 7919 % 1009 % numbers));
  return values;
}

/// Of a table of `size` rows; some are negative, which count from the end.
std::vector<int32_t> places(int64_t count, int64_t size) {
  std::vector<int32_t> result;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = i * i % 10007 % size;
    result.push_back(static_cast<int32_t>(i % 5 == 0 ? place - size : place));
  }
  return result;
}

struct Case {
  int64_t inner, size, count;
};
constexpr Case cases[] = {{1, 1, 3},       {1, 1000, 5000},  {3, 7, 0},       {16, 1, 9000},    {16, 4096, 5001},
                          {17, 501, 9001}, {64, 3000, 2000}, {65, 900, 1200}, {300, 200, 1000}, {257, 1500, 900}};

size_t row_of(int32_t place, int64_t size) { return static_cast<size_t>(place < 0 ? place + size : place); }

TEST(RowMoves, RowsAreTakenAddedAndWritten) {
  for (const Case& c : cases) {
    const auto table = drawn(c.inner * c.size, 3), updates = drawn(c.inner * c.count, 2);
    const auto at = places(c.count, c.size);
    const auto inner = static_cast<size_t>(c.inner);
    auto added = table, written = table;
    std::vector<double> taken;
    for (size_t k = 0; k < at.size(); ++k) {
      const size_t row = row_of(at[k], c.size) * inner;
      for (size_t i = 0; i < inner; ++i) {
        added[row + i] += updates[k * inner + i];
        written[row + i] = updates[k * inner + i];
        taken.push_back(table[row + i]);
      }
    }
    for (const DType type : moved_types) {
      const Array x = cast(reshape(Array(table, {c.inner * c.size}), {c.inner, c.size}), type);
      const Array u = cast(reshape(Array(updates, {c.inner * c.count}), {c.inner, c.count}), type);
      const Array indices(at, {c.count});
      const std::string about = std::string(to_string(type)) + ' ' + std::to_string(c.inner);
      EXPECT_EQ(gather(x, indices).to_vector<double>(), taken) << about;
      EXPECT_EQ(scatter(x, indices, u).to_vector<double>(), written) << about;
      const bool holds = size_of(type) > 1 && (type != BFloat16 || c.size > 1000) && (type != Float16 || c.size > 100);
      if (!holds) continue;
      EXPECT_EQ(scatter_add(x, indices, u).to_vector<double>(), added) << about;
    }
  }
}

TEST(RowMoves, RowsOfEachMatrixOfABatch) {
  const auto table = drawn(int64_t{33} * 50 * 4, 1000);
  const auto at = places(700, 50);
  const Array x = reshape(Array(table, {33 * 50 * 4}), {33, 50, 4});
  const auto got = gather(x, Array(at, {700}), 1).to_vector<double>();
  for (size_t o = 0; o < 4; ++o) {
    for (size_t k = 0; k < 700; ++k) {
      for (size_t i = 0; i < 33; ++i) {
        ASSERT_EQ(got[(o * 700 + k) * 33 + i], table[(o * 50 + row_of(at[k], 50)) * 33 + i]);
      }
    }
  }
}

TEST(RowMoves, RowsOfEachTableOfABatchAreAddedToOneNumberEverywhere) {
  const int64_t inner = 48, size = 1100, count = 300, outer = 3;
  const auto updates = drawn(inner * count * outer, 100);
  const auto at = places(count, size);
  std::vector<double> added(static_cast<size_t>(inner * size * outer), 2.5), written = added;
  for (size_t o = 0; o < 3; ++o) {
    for (size_t k = 0; k < at.size(); ++k) {
      for (size_t i = 0; i < 48; ++i) {
        const size_t to = (o * 1100 + row_of(at[k], size)) * 48 + i, from = (o * 300 + k) * 48 + i;
        added[to] += updates[from];
        written[to] = updates[from];
      }
    }
  }
  const Array u = reshape(Array(updates, {inner * count * outer}), {inner, count, outer}), indices(at, {count});
  const auto target = [&](DType type) { return full({inner, size, outer}, 2.5, type); };
  EXPECT_EQ(scatter_add(target(Float64), indices, u, 1).to_vector<double>(), added);
  EXPECT_EQ(scatter_add(target(Float16), indices, cast(u, Float16), 1).to_vector<double>(), added);
  EXPECT_EQ(scatter(target(Float64), indices, u, 1).to_vector<double>(), written);
  const Array held = target(Float64);
  EXPECT_EQ(scatter_add(held, indices, u, 1).to_vector<double>(), added) << "which is an array of its own too";
  EXPECT_EQ(held.to_vector<double>(), std::vector<double>(added.size(), 2.5));
}

TEST(RowMoves, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<float> updates;
  for (int64_t i = 0; i < 32 * 9000; ++i)
    updates.push_back(0.1f * static_cast<float>(i % 37) - 1.0f / static_cast<float>(i + 1));
  const Array u = reshape(Array(updates, {32 * 9000}), {32, 9000}), indices(places(9000, 700), {9000});
  const Array target = zeros({32, 700});
  set_num_threads(1);
  const auto wanted = scatter_add(target, indices, u).to_vector();
  const auto halves = scatter_add(cast(target, Float16), indices, cast(u, Float16)).to_vector();
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(scatter_add(target, indices, u).to_vector(), wanted) << threads;
    EXPECT_EQ(scatter_add(cast(target, Float16), indices, cast(u, Float16)).to_vector(), halves) << threads;
  }
  set_num_threads(0);
}

struct AlongCase {
  int64_t inner, size, outer, taken;
};
constexpr AlongCase along_cases[] = {{1, 7, 1, 3},      {1, 100, 700, 1},  {1, 100, 3, 1500}, {1, 600, 40, 513},
                                     {5, 9, 300, 2},    {700, 30, 2, 3},   {33, 40, 3, 50},   {2, 100, 7, 1000},
                                     {513, 20, 1, 513}, {1, 127, 2000, 7}, {3, 1, 5, 4}};

/// Of x (inner, size, outer) where indices (inner, taken, outer) say.
std::vector<double> taken_along(const AlongCase& c, const std::vector<double>& x, const std::vector<int32_t>& at) {
  std::vector<double> found;
  for (int64_t o = 0; o < c.outer; ++o) {
    for (int64_t k = 0; k < c.taken; ++k) {
      for (int64_t i = 0; i < c.inner; ++i) {
        const int64_t row = static_cast<int64_t>(row_of(at[found.size()], c.size));
        found.push_back(x[static_cast<size_t>((o * c.size + row) * c.inner + i)]);
      }
    }
  }
  return found;
}

TEST(RowMoves, ElementsAreTakenAlongADim) {
  for (const AlongCase& c : along_cases) {
    const int64_t count = c.inner * c.taken * c.outer;
    const auto values = drawn(c.inner * c.size * c.outer, 100);
    const auto at = places(count, c.size);
    const auto wanted = taken_along(c, values, at);
    const Array indices = reshape(Array(at, {count}), {c.inner, c.taken, c.outer});
    for (const DType type : moved_types) {
      const Array x = cast(reshape(Array(values, {c.inner * c.size * c.outer}), {c.inner, c.size, c.outer}), type);
      EXPECT_EQ(take_along(x, indices, 1).to_vector<double>(), wanted) << to_string(type) << ' ' << c.inner;
      EXPECT_EQ(take_along(x, cast(indices, Int64), 1).to_vector<double>(), wanted)
          << to_string(type) << ' ' << c.inner;
    }
    const Array x = reshape(Array(values, {c.inner * c.size * c.outer}), {c.inner, c.size, c.outer});
    if (c.size <= 127) {
      EXPECT_EQ(take_along(x, cast(indices, Int8), 1).to_vector<double>(), wanted) << c.inner;
    }
    const Array line = slice(reshape(indices, {count}), 0, 0, std::min<int64_t>(count, c.taken));
    const Array columns = expand(reshape(line, {1, -1, 1}), {c.inner, line.size(0), c.outer});
    EXPECT_EQ(gather(x, line, 1).to_vector<double>(), take_along(x, columns, 1).to_vector<double>()) << c.inner;
  }
}

/// Zeros (inner, size, outer) with w (inner, taken, outer) added where indices say.
std::vector<double> added_along(const AlongCase& c, const std::vector<double>& w, const std::vector<int32_t>& at) {
  std::vector<double> sums(static_cast<size_t>(c.inner * c.size * c.outer));
  size_t next = 0;
  for (int64_t o = 0; o < c.outer; ++o) {
    for (int64_t k = 0; k < c.taken; ++k) {
      for (int64_t i = 0; i < c.inner; ++i, ++next) {
        const int64_t row = static_cast<int64_t>(row_of(at[next], c.size));
        sums[static_cast<size_t>((o * c.size + row) * c.inner + i)] += w[next];
      }
    }
  }
  return sums;
}

TEST(RowMoves, GradientsOfTakenElementsAreAddedAlongADim) {
  for (const AlongCase& c : along_cases) {
    const int64_t count = c.inner * c.taken * c.outer;
    const auto weights = drawn(count, 4);
    const auto at = places(count, c.size);
    const auto wanted = added_along(c, weights, at);
    const Array indices = reshape(Array(at, {count}), {c.inner, c.taken, c.outer});
    for (const DType type : {Float16, BFloat16, Float32, Float64}) {
      const Array w = cast(reshape(Array(weights, {count}), indices.shape()), type);
      const auto loss = [&](const Array& x) { return sum(cast(take_along(x, indices, 1) * w, Float32)); };
      const Array slope = gradient(loss, zeros({c.inner, c.size, c.outer}, type));
      EXPECT_EQ(slope.to_vector<double>(), wanted) << to_string(type) << ' ' << c.inner << ' ' << c.size;
    }
  }
}

/// Rows of a few elements: padded, joined, cut, turned round and repeated, of elements of every size.
TEST(RowMoves, ShortRowsAreCopied) {
  for (const DType type : {UInt8, Int16, Int32, Float64}) {
    for (int64_t row = 1; row <= 18; ++row) {
      constexpr int64_t rows = 700;
      const auto values = drawn(row * rows, 100);
      const Array x = cast(Array(values, {row, rows}), type), y = x + 1;
      eval();
      const auto at = [&](int64_t i, int64_t r) { return values[static_cast<size_t>(r * row + i)]; };
      std::vector<double> padded, joined, cut, turned, stood, shifted;
      for (int64_t r = 0; r < rows; ++r) {
        padded.push_back(7);
        for (int64_t i = 0; i < row; ++i) padded.push_back(at(i, r)), joined.push_back(at(i, r));
        for (int64_t i = 0; i < row; ++i) joined.push_back(at(i, r) + 1);
        padded.insert(padded.end(), 2, 7);
        for (int64_t i = 1; i < row; ++i) cut.push_back(at(i, r) + 1);
        for (int64_t i = row; i-- > 0;) turned.push_back(at(i, r) + 1);
        for (int64_t i = 0; i < row; ++i) stood.push_back(at(i, r) + at(0, r));
        for (int64_t i = 0; i < row; ++i) shifted.push_back(at((i + row - 1) % row, r));
      }
      const auto is = [&](const Array& got, const std::vector<double>& wanted) {
        EXPECT_EQ(cast(got, Float64).to_vector<double>(), wanted) << to_string(type) << ", rows of " << row;
      };
      is(pad(x, 0, 1, 2, 7), padded);
      is(concat({x, y}, 0), joined);
      is(slice(x, 0, 1, row) + 1, cut);
      is(flip(x, 0) + 1, turned);
      is(x + slice(x, 0, 0, 1), stood);
      is(roll(x, 1, 0), shifted);
    }
  }
}

TEST(RowMoves, APlaceOutsideOfALineIsRefused) {
  for (const int32_t place : {100, -101, 1 << 30, -(1 << 30)}) {
    std::vector<int32_t> at = places(6000, 100);
    at[5432] = place;
    const Array lines = zeros({100, 20}), columns = zeros({20, 100});
    EXPECT_THROW(eval(gather(lines, Array(at, {6000}), 0)), Error) << place;
    EXPECT_THROW(eval(take_along(lines, Array(at, {300, 20}), 0)), Error) << place;
    EXPECT_THROW(eval(take_along(columns, Array(at, {20, 300}), 1)), Error) << place;
    const auto slope = [&](const Array& x, const Shape& shape, int dim) {
      return gradient([&](const Array& v) { return sum(square(take_along(v, Array(at, shape), dim))); }, x);
    };
    EXPECT_THROW(eval(slope(lines, {300, 20}, 0)), Error) << place;
    EXPECT_THROW(eval(slope(columns, {20, 300}, 1)), Error) << place;
  }
}

TEST(RowMoves, APlaceOutsideIsRefused) {
  for (const int32_t place : {4096, -4097}) {
    std::vector<int32_t> at = places(5000, 4096);
    at[4321] = place;
    const Array table = zeros({64, 4096}), indices(at, {5000}), u = zeros({64, 5000});
    EXPECT_THROW(eval(gather(table, indices)), Error);
    EXPECT_THROW(eval(scatter_add(table, indices, u)), Error);
  }
}

}  // namespace
}  // namespace rosin
