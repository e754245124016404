// Views that turn dims over, made contiguous, against the place of each element written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

constexpr DType turned_types[] = {Bool,  UInt8,  Int8,    Int16,    UInt16,  Int32,  UInt32,
                                  Int64, UInt64, Float16, BFloat16, Float32, Float64};

/// Small numbers that every type holds, in an order without a pattern.
std::vector<float> drawn_numbers(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 7919 % 127));
  return values;
}

/// x of these sizes with dim d of the result being dim order[d] of x.
std::vector<float> permuted(const std::vector<float>& x, const std::vector<int64_t>& sizes,
                            const std::vector<int>& order) {
  std::vector<float> result(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    std::vector<int64_t> at;
    int64_t rest = static_cast<int64_t>(i);
    for (const int64_t size : sizes) {
      at.push_back(rest % size);
      rest /= size;
    }
    int64_t place = 0, stride = 1;
    for (const int d : order) {
      place += at[static_cast<size_t>(d)] * stride;
      stride *= sizes[static_cast<size_t>(d)];
    }
    result[static_cast<size_t>(place)] = x[i];
  }
  return result;
}

/// The same elements as numbers of the type that was asked for; Bool: not zero.
std::vector<float> as_type(std::vector<float> values, DType type) {
  if (type == Bool) {
    for (float& value : values) value = value != 0 ? 1 : 0;
  }
  return values;
}

void expect_turned(const std::vector<int64_t>& sizes, const std::vector<int>& order) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const std::vector<float> values = drawn_numbers(count);
  const Array x(values, Shape(std::span<const int64_t>(sizes)));
  for (const DType type : turned_types) {
    const std::vector<float> wanted = as_type(permuted(values, sizes, order), type);
    for (const int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      const Array made = reshape(permute(cast(x, type), order), {count});
      EXPECT_EQ(cast(made, Float32).to_vector(), wanted) << to_string(type) << ", threads " << threads;
    }
  }
  set_num_threads(0);
}

TEST(TurnedViews, MatricesOfAnySizes) {
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{1, 1}, {1, 17}, {7, 3}, {61, 67}, {127, 521}, {2, 509}}) {
    expect_turned(sizes, {1, 0});
  }
}

TEST(TurnedViews, DimsInAnyOrder) {
  for (const std::vector<int>& order : {std::vector<int>{2, 0, 1}, {1, 2, 0}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    expect_turned({13, 31, 37}, order);
    expect_turned({3, 1, 41}, order);
  }
}

TEST(TurnedViews, ImagesToChannelsFirstAndBack) {
  expect_turned({11, 13, 3, 5}, {2, 0, 1, 3});
  expect_turned({19, 11, 13, 5}, {1, 2, 0, 3});
}

/// Arrays (sizes..., column-major) put together along dim `dim`.
std::vector<float> put_together(const std::vector<std::vector<float>>& parts, std::vector<std::vector<int64_t>> sizes,
                                size_t dim) {
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < sizes[0].size(); ++d) (d < dim ? inner : outer) *= d == dim ? 1 : sizes[0][d];
  std::vector<float> all;
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t p = 0; p < parts.size(); ++p) {
      const int64_t row = inner * sizes[p][dim];
      all.insert(all.end(), parts[p].begin() + o * row, parts[p].begin() + (o + 1) * row);
    }
  }
  return all;
}

/// Arrays of 20 x 9 x 33 x 2 with `longer` more elements along the joined dim, of which `turned` (a bit for each) come
/// with their channels first.
void expect_joined(size_t dim, unsigned turned, DType type) {
  const std::vector<int> order{1, 2, 0, 3};  // channels, width, height, images
  std::vector<std::vector<float>> parts;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<Array> arrays;
  for (unsigned i = 0; i < 3; ++i) {
    std::vector<int64_t> size{20, 9, 33, 2};
    size[dim] += 5 * i;
    const std::vector<int64_t> first{size[2], size[0], size[1], size[3]};
    const std::vector<float> values = drawn_numbers(size[0] * size[1] * size[2] * size[3]);
    const bool turns = (turned >> i & 1u) != 0;
    const Array x(values, Shape(std::span<const int64_t>(turns ? first : size)));
    arrays.push_back(turns ? permute(cast(x, type), order) : cast(x, type));
    parts.push_back(turns ? permuted(values, first, order) : values);
    sizes.push_back(size);
  }
  const std::vector<float> wanted = as_type(put_together(parts, sizes, dim), type);
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    const Array made = concat(std::span<const Array>(arrays), static_cast<int>(dim));
    EXPECT_EQ(cast(made, Float32).to_vector(), wanted) << "dim " << dim << ", turned " << turned << to_string(type);
  }
}

TEST(TurnedViews, ArePutTogetherWithOthers) {
  for (const size_t dim : {0, 1, 2, 3}) {
    for (unsigned turned = 0; turned < 8; ++turned) {
      for (const DType type : {UInt8, BFloat16, Float32, Float64}) expect_joined(dim, turned, type);
    }
  }
  set_num_threads(0);
}

TEST(TurnedViews, ElementsKeepTheirBits) {
  const std::vector<float> values = {1, -0.0F, std::numeric_limits<float>::quiet_NaN(),
                                     std::numeric_limits<float>::infinity(), std::numeric_limits<float>::denorm_min()};
  std::vector<float> many;
  for (int i = 0; i < 20; ++i) many.insert(many.end(), values.begin(), values.end());
  const std::vector<float> found = reshape(transpose(Array(many, {5, 20})), {100}).to_vector();
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 20; ++j) {
      EXPECT_EQ(std::bit_cast<uint32_t>(found[i * 20 + j]), std::bit_cast<uint32_t>(values[i]));
    }
  }
}

TEST(TurnedViews, SlicesThatStepAreTurnedToo) {
  const std::vector<float> values = drawn_numbers(97 * 89);
  const Array x(values, {97, 89});
  const Array made = reshape(transpose(slice(slice(x, 0, 3, 91, 2), 1, 1, 80, 3)), {27 * 44});
  const std::vector<float> found = made.to_vector();
  for (size_t i = 0; i < 44; ++i) {
    for (size_t j = 0; j < 27; ++j) ASSERT_EQ(found[i * 27 + j], values[(3 + 2 * i) + 97 * (1 + 3 * j)]);
  }
}

/// Numbers of many sizes, so that another order of adding would give other bits.
Array spread(int64_t rows, int64_t columns, DType type) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * columns; ++i) {
    values.push_back(std::sin(static_cast<float>(i)) * (i % 37 == 0 ? 100.0f : 0.01f));
  }
  return cast(Array(values, Shape{rows, columns}), type);
}

TEST(TurnedViews, AreComputedWithAsTheirCopiesAre) {
  // The first is walked element by element; the columns of the others are turned some at a time, with a rest, also of
  // one thread's part; the last are too long for many at a time.
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{300, 700}, {600, 513}, {1000, 1027}, {3, 4097}, {9, 140000}};
  for (const auto& [columns, rows] : sizes) {
    for (DType type : {Float32, Float64, Float16, Int16}) {
      const Array x = spread(columns, rows, type), copy = permute(x, {1, 0});
      eval(copy);
      const auto expect_equal = [&](const Array& turned, const Array& straight) {
        EXPECT_EQ(turned.to_vector<double>(), straight.to_vector<double>())
            << rows << " " << columns << " " << to_string(type);
      };
      const auto turned = [&] { return permute(x, {1, 0}); };
      expect_equal(sum(turned()), sum(copy));
      expect_equal(sum(turned() * turned(), 0), sum(copy * copy, 0));
      expect_equal(sum(turned(), 1), sum(copy, 1));
      expect_equal(maximum(turned()), maximum(copy));
      expect_equal(abs(turned()) + copy, abs(copy) + copy);
      expect_equal(sum(slice(turned(), 1, 1, columns - 1)), sum(slice(copy, 1, 1, columns - 1)));
    }
  }
}

}  // namespace
}  // namespace rosin
