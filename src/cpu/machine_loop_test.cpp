// Loops as machine code beside the compiled loops, bit for bit: rows, sums, values from outside the loop, more values
// than registers. Every elementwise body is compared in tests/elementwise_bodies_test.cpp.
#include "cpu/machine_loop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/half.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "graph/op.hpp"
#include "graph/reducer.hpp"
#include "platform/processor.hpp"

namespace rosin::cpu {
namespace {

class MachineLoop : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_code_works()) GTEST_SKIP() << "this processor has no AVX2, or ROSIN_JIT is 0";
  }
};

uint16_t add_input(LoopText& text, ScalarType type, Reads reads) {
  text.inputs.push_back({reads});
  const auto number = static_cast<int64_t>(text.inputs.size()) - 1;
  return append(text.code, {.primitive = Primitive::input, .type = type, .operands = {}, .immediate = number});
}

uint16_t add_step(LoopText& text, Primitive primitive, ScalarType type, uint16_t x, uint16_t y) {
  return append(text.code, {.primitive = primitive, .type = type, .operands = {x, y, 0}});
}

void add_output(LoopText& text, uint16_t place) { text.outputs.emplace_back().place = place; }

std::vector<float> numbers(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<float>(i + 1)) * 10;
  return values;
}

/// Values of any type that has so many bytes, some of them NaN where it is a float.
std::vector<unsigned char> samples(ScalarType type, size_t count) {
  std::vector<unsigned char> memory(count * 8);
  for (size_t i = 0; i < count; ++i) {
    const double value = i % 97 == 96 ? std::nan("") : std::sin(static_cast<double>(i) * 1.3) * 100;
    const auto put = [&](auto number) { std::memcpy(memory.data() + i * sizeof number, &number, sizeof number); };
    if (type == ScalarType::float32) put(static_cast<float>(value));
    else if (type == ScalarType::float64) put(value);
    else if (bytes_of(type) == 4) put(static_cast<int32_t>(i * 2654435761u));
    else put(static_cast<int64_t>(i * 0x9E3779B97F4A7C15u));
  }
  return memory;
}

TEST_F(MachineLoop, RowsAreCombinedInTheLanesOfTheCompiledLoops) {
  int combined = 0;
  for (const Op* op : registry()) {
    if (op->kind != Kind::reduction) continue;
    for (int t = 0; t < scalar_type_count; ++t) {
      const auto type = static_cast<ScalarType>(t);
      const CombineBody& body = op->reducer->body;
      if (!body.of(type).reduce || !machine_combines(body, type)) continue;
      LoopText text;
      LoopOutput output;
      output.place = add_input(text, type, Reads::each);
      output.combines = machine_combines(body, type);
      output.neutral = body.neutral_bits(type);
      text.outputs.push_back(output);
      const auto loop = machine_loop(text);
      ASSERT_NE(loop, nullptr);
      const auto size = static_cast<size_t>(bytes_of(type));
      for (const size_t count : {size_t{1}, size_t{7}, size_t{8}, size_t{16}, size_t{33}, size_t{200}}) {
        std::vector<unsigned char> x = samples(type, 3 * count), got(3 * size), want(3 * size);
        void* memory[] = {got.data(), x.data()};
        loop->run(memory, 3, static_cast<int64_t>(count));
        for (size_t row = 0; row < 3; ++row) {
          body.of(type).reduce(want.data() + row * size, x.data() + row * count * size, static_cast<int64_t>(count), 1);
          double a = 0, b = 0;
          if (type == ScalarType::float64) {
            std::memcpy(&a, got.data() + row * size, size);
            std::memcpy(&b, want.data() + row * size, size);
          } else if (type == ScalarType::float32) {
            float narrow[2];
            std::memcpy(&narrow[0], got.data() + row * size, size);
            std::memcpy(&narrow[1], want.data() + row * size, size);
            a = narrow[0], b = narrow[1];
          }
          const bool same = std::memcmp(got.data() + row * size, want.data() + row * size, size) == 0;
          EXPECT_TRUE(same || (std::isnan(a) && std::isnan(b))) << op->name << ", type " << t << ", rows of " << count;
        }
      }
      ++combined;
    }
  }
  EXPECT_GE(combined, 20);
}

TEST_F(MachineLoop, RowsAndNumbersAreReadOnce) {
  LoopText text;
  const uint16_t x = add_input(text, ScalarType::float32, Reads::each),
                 row = add_input(text, ScalarType::float32, Reads::row),
                 one = add_input(text, ScalarType::float32, Reads::one);
  const uint16_t outside = add_step(text, Primitive::multiply, ScalarType::float32, row, one);
  add_output(text, add_step(text, Primitive::subtract, ScalarType::float32, x, outside));
  add_output(text, outside);  // the same in a whole row
  const std::vector<float> a = numbers(3 * 37, 0.7f), b = numbers(3, 1.9f), c = {1.5f};
  std::vector<float> got(a.size()), spread(a.size());
  void* memory[] = {got.data(), spread.data(), const_cast<float*>(a.data()), const_cast<float*>(b.data()),
                    const_cast<float*>(c.data())};
  machine_loop(text)->run(memory, 3, 37);
  for (size_t i = 0; i < a.size(); ++i) {
    const float from_outside = b[i / 37] * c[0];
    EXPECT_EQ(got[i], a[i] - from_outside) << i;
    EXPECT_EQ(spread[i], from_outside) << i;
  }
}

/// Sums of 2 * `width` inputs from both ends, all of which are alive at once, and of masks of them.
TEST_F(MachineLoop, MoreValuesThanRegistersStandOnTheStack) {
  constexpr size_t width = 60, count = 100;
  LoopText text;
  std::vector<uint16_t> squares, masks;
  for (size_t i = 0; i < width; ++i) {
    const uint16_t x = add_input(text, ScalarType::float32, Reads::each);
    squares.push_back(add_step(text, Primitive::multiply, ScalarType::float32, x, x));
    masks.push_back(add_step(text, Primitive::less, ScalarType::boolean, squares.back(), x));
  }
  uint16_t sum = squares[0], either = masks[0];
  for (size_t i = width; i-- > 1;) {
    sum = add_step(text, Primitive::add, ScalarType::float32, sum, squares[i]);
    either = add_step(text, Primitive::not_equal, ScalarType::boolean, either, masks[i]);
  }
  add_output(text, sum);
  add_output(text, either);
  std::vector<std::vector<float>> inputs;
  std::vector<float> got(count);
  std::vector<uint8_t> parity(count);
  std::vector<void*> memory = {got.data(), parity.data()};
  for (size_t i = 0; i < width; ++i) inputs.push_back(numbers(count, 0.01f * static_cast<float>(i + 1)));
  for (std::vector<float>& input : inputs) memory.push_back(input.data());
  machine_loop(text)->run(memory.data(), 1, count);
  for (size_t k = 0; k < count; ++k) {
    float want = inputs[0][k] * inputs[0][k];
    bool odd = want < inputs[0][k];
    for (size_t i = width; i-- > 1;) {
      want += inputs[i][k] * inputs[i][k];
      odd ^= inputs[i][k] * inputs[i][k] < inputs[i][k];
    }
    ASSERT_EQ(got[k], want) << k;
    ASSERT_EQ(parity[k], odd) << k;
  }
}

TEST_F(MachineLoop, ResultsMayTakeTheMemoryOfInputs) {
  LoopText text;
  const uint16_t x = add_input(text, ScalarType::float32, Reads::each),
                 y = add_input(text, ScalarType::float32, Reads::each);
  for (const uint16_t place : {y, x}) {  // each has the memory of the other
    add_output(text, place);
    text.outputs.back().shares = true;
  }
  const std::vector<float> a = numbers(50, 0.3f), b = numbers(50, 0.4f);
  std::vector<float> first = a, second = b;
  void* memory[] = {first.data(), second.data(), first.data(), second.data()};
  machine_loop(text)->run(memory, 1, 50);
  EXPECT_EQ(first, b);
  EXPECT_EQ(second, a);
}

/// Float32 of all kinds: each exponent and sign, ties of both 16-bit types and what lies beside them, NaN.
std::vector<float> all_kinds() {
  std::vector<float> values;
  for (uint32_t head = 0; head < 512; ++head) {
    for (const uint32_t tail :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0x18000u, 0x7fffffu})
      values.push_back(std::bit_cast<float>(head << 23 | tail));
  }
  return values;
}

template <class T> void compare_packed(Packing packing, const char* name) {
  // What is read, as floats; what is written; what is rounded in between. The last row ends with a part of a turn.
  LoopText reads, writes, rounds;
  add_output(reads, add_input(reads, ScalarType::float32, Reads::each));
  reads.inputs[0].packing = packing;
  add_output(writes, add_input(writes, ScalarType::float32, Reads::each));
  writes.outputs[0].packing = packing;
  const uint16_t x = add_input(rounds, ScalarType::float32, Reads::each);
  add_output(rounds, append(rounds.code, rounded_to(packing, x)));

  constexpr size_t patterns = 1 << 16;
  std::vector<uint16_t> bits(patterns);
  std::iota(bits.begin(), bits.end(), uint16_t{0});
  std::vector<uint32_t> floats(patterns);
  void* memory[] = {floats.data(), bits.data()};
  machine_loop(reads)->run(memory, 1, patterns - 3);
  for (size_t i = 0; i < patterns - 3; ++i) {
    ASSERT_EQ(floats[i], std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<T>(bits[i])))) << name << ' ' << i;
  }

  std::vector<float> given = all_kinds(), rounded(given.size());
  std::vector<uint16_t> packed(given.size() + 1, 0xabcd);
  void* written[] = {packed.data(), given.data()};
  machine_loop(writes)->run(written, 1, static_cast<int64_t>(given.size()));
  void* kept[] = {rounded.data(), given.data()};
  machine_loop(rounds)->run(kept, 4, static_cast<int64_t>(given.size() / 4));
  for (size_t i = 0; i < given.size(); ++i) {
    const T want(given[i]);
    ASSERT_EQ(packed[i], want.bits) << name << ' ' << std::bit_cast<uint32_t>(given[i]);
    ASSERT_EQ(std::bit_cast<uint32_t>(rounded[i]), std::bit_cast<uint32_t>(static_cast<float>(want)))
        << name << ' ' << i;
  }
  EXPECT_EQ(packed.back(), 0xabcd) << "behind the end";
}

TEST_F(MachineLoop, SixteenBitFloatsAreReadWrittenAndRounded) {
  compare_packed<Half>(Packing::half, "Float16");
  compare_packed<BFloat>(Packing::bfloat, "BFloat16");
}

TEST_F(MachineLoop, ASixteenBitFloatOfARowOrOfAllIsReadOnce) {
  LoopText text;
  const uint16_t row = add_input(text, ScalarType::float32, Reads::row),
                 one = add_input(text, ScalarType::float32, Reads::one);
  text.inputs = {{Reads::row, Packing::bfloat}, {Reads::one, Packing::half}};
  add_output(text, add_step(text, Primitive::add, ScalarType::float32, row, one));
  const std::vector<BFloat> rows = {BFloat(1.5f), BFloat(-2), BFloat(8)};
  const Half number(0.25f);
  std::vector<float> got(3 * 11);
  void* memory[] = {got.data(), const_cast<BFloat*>(rows.data()), const_cast<Half*>(&number)};
  machine_loop(text)->run(memory, 3, 11);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<float>(rows[i / 11]) + 0.25f) << i;
}

/// Against what the language makes of an Int32 as T.
template <class T> void compare_short_integers(Packing packing) {
  LoopText writes, reads;
  const uint16_t x = add_input(writes, ScalarType::int32, Reads::each);
  add_output(writes, x);
  writes.outputs[0].packing = packing;
  add_output(writes, append(writes.code, rounded_to(packing, x)));
  add_output(reads, add_input(reads, ScalarType::int32, Reads::each));
  reads.inputs[0].packing = packing;
  for (int64_t count = 1; count <= 50; ++count) {
    std::vector<int32_t> given(static_cast<size_t>(3 * count)), rounded(given.size()), read(given.size());
    for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<int32_t>(i * 2654435761u);
    constexpr T behind{77};
    std::vector<T> written(given.size() + 1, behind);
    void* memory[] = {written.data(), rounded.data(), given.data()};
    machine_loop(writes)->run(memory, 3, count);
    void* back[] = {read.data(), written.data()};
    machine_loop(reads)->run(back, 3, count);
    for (size_t i = 0; i < given.size(); ++i) {
      const auto low = static_cast<T>(given[i]);
      ASSERT_EQ(written[i], low) << i << " of rows of " << count;
      ASSERT_EQ(rounded[i], int32_t{low}) << i;
      ASSERT_EQ(read[i], int32_t{low}) << i;
    }
    ASSERT_EQ(written.back(), behind) << "behind the end";
  }
}

/// They are written as the low bits of Int32, or hold them in between.
TEST_F(MachineLoop, ShortIntegersAreReadWrittenAndRounded) {
  compare_short_integers<uint8_t>(Packing::byte);
  compare_short_integers<int8_t>(Packing::signed_byte);
  compare_short_integers<uint16_t>(Packing::word);
  compare_short_integers<int16_t>(Packing::signed_word);
}

/// A choice with much code on both sides, more values than registers alive around it, where no element, few, or all
/// take a side.
TEST_F(MachineLoop, CodeThatNoElementNeedsIsLeaptOver) {
  constexpr size_t width = 40, count = 90;
  constexpr int steps = 30;
  for (const bool wide : {false, true}) {
    const ScalarType type = wide ? ScalarType::float64 : ScalarType::float32;
    LoopText text;
    const uint16_t x = add_input(text, type, Reads::each), y = add_input(text, type, Reads::each);
    std::vector<uint16_t> alive;
    for (size_t i = 0; i < width; ++i)
      alive.push_back(add_step(text, Primitive::add, type, i == 0 ? x : alive[i - 1], y));
    uint16_t yes = y, no = x;  // the sides read values from before
    for (int i = 0; i < steps; ++i) {
      yes = add_step(text, Primitive::add, type, yes, alive[static_cast<size_t>(i)]);
      no = add_step(text, Primitive::subtract, type, no, alive[width - 1 - static_cast<size_t>(i)]);
    }
    const uint16_t below = add_step(text, Primitive::less, ScalarType::boolean, x, y);
    uint16_t sum = append(text.code, {.primitive = Primitive::select, .type = type, .operands = {below, yes, no}});
    for (size_t i = width; i-- > 0;) sum = add_step(text, Primitive::add, type, sum, alive[i]);
    add_output(text, sum);
    const auto wanted = [&](double a, double b) {  // of whole numbers, exact
      double values[width], by_yes = b, by_no = a;
      for (size_t i = 0; i < width; ++i) values[i] = (i == 0 ? a : values[i - 1]) + b;
      for (size_t i = 0; i < steps; ++i) by_yes += values[i], by_no -= values[width - 1 - i];
      return std::accumulate(values, values + width, a < b ? by_yes : by_no);
    };
    for (const size_t every : {size_t{1}, size_t{2}, size_t{37}, size_t{1000}}) {
      std::vector<double> a(count), b(count), got(count);
      std::vector<float> narrow_a(count), narrow_b(count), narrow_got(count);
      for (size_t i = 0; i < count; ++i) {
        narrow_a[i] = static_cast<float>(a[i] = static_cast<double>(i % 11));
        narrow_b[i] = static_cast<float>(b[i] = i % every == every - 1 ? 20 : -3);
      }
      void* memory[] = {got.data(), a.data(), b.data()};
      void* narrow[] = {narrow_got.data(), narrow_a.data(), narrow_b.data()};
      machine_loop(text)->run(wide ? memory : narrow, 3, count / 3);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(wide ? got[i] : double{narrow_got[i]}, wanted(a[i], b[i])) << i << ", every " << every << ' ' << wide;
      }
    }
  }
}

/// Rows that stand apart, a row's element and one of all: (each + row) * one, rows of any length.
TEST_F(MachineLoop, BytesAreReadWhereTheyStand) {
  LoopText text;
  const uint16_t each = add_input(text, ScalarType::int32, Reads::each),
                 row = add_input(text, ScalarType::int32, Reads::row),
                 one = add_input(text, ScalarType::int32, Reads::one);
  text.inputs[0] = {Reads::each, Packing::byte, Pairing::none, true};
  text.inputs[1].packing = text.inputs[2].packing = Packing::signed_byte;
  const uint16_t sum = add_step(text, Primitive::add, ScalarType::int32, each, row);
  add_output(text, add_step(text, Primitive::multiply, ScalarType::int32, sum, one));
  const int8_t offsets[] = {-128, 7, 127}, factor = -3;
  for (int64_t count = 1; count <= 50; ++count) {
    const int64_t apart = count + 5;
    std::vector<uint8_t> x(static_cast<size_t>(3 * apart));
    std::iota(x.begin(), x.end(), uint8_t{200});
    std::vector<int32_t> got(static_cast<size_t>(3 * count));
    void* memory[] = {got.data(), x.data(), const_cast<int8_t*>(offsets), const_cast<int8_t*>(&factor),
                      reinterpret_cast<void*>(apart - count)};
    machine_loop(text)->run(memory, 3, count);
    for (int64_t i = 0; i < 3 * count; ++i) {
      const int32_t read = x[static_cast<size_t>(i / count * apart + i % count)];
      ASSERT_EQ(got[static_cast<size_t>(i)], (read + offsets[i / count]) * factor) << i << " of rows of " << count;
    }
  }
}

/// Mappings that may be written to and executed.
size_t writable_code() {
  size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) count += line.find("rwx") != std::string::npos;
  return count;
}

TEST_F(MachineLoop, OneTextHasOneCodeThatNobodyCanWriteTo) {
  const auto text_of = [](Primitive primitive) {
    LoopText text;
    const uint16_t x = add_input(text, ScalarType::float64, Reads::each);
    add_output(text, add_step(text, primitive, ScalarType::float64, x, x));
    return text;
  };
  const size_t before = writable_code();  // other libraries of the process may have some
  const auto loop = machine_loop(text_of(Primitive::add));
  EXPECT_EQ(loop, machine_loop(text_of(Primitive::add)));
  EXPECT_NE(loop, machine_loop(text_of(Primitive::multiply)));
  EXPECT_GE(loop->bytes(), 1u);
  EXPECT_EQ(writable_code(), before);
}

/// Arrays that stay at one element for a run of the result's: whole runs, parts of them at the ends of strips, runs of
/// runs, sums whose blocks begin within one, 16-bit floats.
TEST_F(MachineLoop, WhatStaysAtOneElementForARunIsReadOnce) {
  const auto values = [](const Shape& shape, float step) {
    return Array(std::span<const float>(numbers(static_cast<size_t>(shape.count()), step)), shape);
  };
  for (const Shape& shape : {Shape{16, 1000, 3}, Shape{37, 91, 5}, Shape{1100, 3, 7}, Shape{5000, 3, 2}}) {
    const int64_t first = shape[0], middle = shape[1], last = shape[2];
    const Array x = values(shape, 0.7f), y = values({1, middle, last}, 1.1f), z = values({1, 1, last}, 1.9f);
    const Array narrow = cast(values({1, middle, 1}, 0.3f), BFloat16);
    const Array made = x * y + z * cast(narrow, Float32);
    eval(made);
    const auto a = x.to_vector<float>(), b = y.to_vector<float>(), c = z.to_vector<float>(),
               got = made.to_vector<float>();
    const auto d = narrow.to_vector<BFloat>();
    for (int64_t i = 0; i < shape.count(); ++i) {
      const auto row = static_cast<size_t>(i / first), column = row % static_cast<size_t>(middle);
      const float want = a[static_cast<size_t>(i)] * b[row] + c[row / static_cast<size_t>(middle)] * d[column];
      ASSERT_EQ(got[static_cast<size_t>(i)], want) << to_string(shape) << ' ' << i;
    }
    const Array sums = sum(x * y + z * cast(narrow, Float32), {1, 2}), alone = sum(made, {1, 2});
    EXPECT_EQ(sums.to_vector<float>(), alone.to_vector<float>()) << to_string(shape);
  }
}

/// Kernels with more sums, more instructions and more arrays than one loop holds.
TEST_F(MachineLoop, WhatGoesPastTheCachesIsTheSame) {
  for (const ScalarType type : {ScalarType::float32, ScalarType::float64, ScalarType::int32}) {
    LoopText text;
    const uint16_t x = add_input(text, type, Reads::each), row = add_input(text, type, Reads::row);
    add_output(text, add_step(text, Primitive::add, type, x, row));
    text.outputs[0].streams = true;
    const auto streaming = machine_loop(text);
    text.outputs[0].streams = false;
    const auto plain = machine_loop(text);
    ASSERT_NE(streaming, plain);
    const auto size = static_cast<size_t>(bytes_of(type));
    for (const auto& [rows, count] : {std::pair{1, 1000}, std::pair{1, 7}, std::pair{5, 64}, std::pair{3, 128}}) {
      const size_t bytes = static_cast<size_t>(rows * count) * size;
      std::vector<unsigned char> a = samples(type, static_cast<size_t>(rows * count)), b = samples(type, 5);
      std::vector<unsigned char> want(bytes), memory(bytes + 64);
      auto* const got = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
      void* of_plain[] = {want.data(), a.data(), b.data()};
      plain->run(of_plain, rows, count);
      void* of_streaming[] = {got, a.data(), b.data()};
      streaming->run(of_streaming, rows, count);
      EXPECT_EQ(std::memcmp(got, want.data(), bytes), 0) << static_cast<int>(type) << ", " << rows << " rows";
    }
  }
}

/// Beyond the last cache; from any place on, and in rows that begin anywhere.
TEST_F(MachineLoop, LargeArraysHaveTheElementsOfTheirParts) {
  const int64_t cached = std::max<int64_t>(platform::last_cache_bytes(), int64_t{16} << 20);
  if (cached > int64_t{64} << 20) GTEST_SKIP() << "the last cache is too large for a test";
  const int64_t count = cached / 4 + 4099;
  const Array x = arange(0, static_cast<double>(count), 1);
  eval(x);
  const auto check = [](const Array& all, int64_t from) {
    for (const int64_t begin : {int64_t{0}, all.count() / 2 + 3, all.count() - 100}) {
      const std::vector<float> part = slice(all, 0, begin, begin + 50).to_vector<float>();
      for (size_t i = 0; i < part.size(); ++i) {
        const auto element = static_cast<float>(begin + from + static_cast<int64_t>(i));
        ASSERT_EQ(part[i], element * 2 + 1) << begin << ", " << i;
      }
    }
  };
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    for (const int64_t from : {int64_t{0}, int64_t{1}}) {
      const Array all = slice(x, 0, from, count) * 2 + 1;
      eval(all);
      check(all, from);
    }
    const int64_t row = 1001, rows = count / row;
    const Array matrix = reshape(slice(x, 0, 0, row * rows), {row, rows});
    const Array sums = matrix * 2 + full({row, 1}, 1.0f);
    eval(sums);
    check(reshape(sums, {row * rows}), 0);
  }
  set_num_threads(0);
}

TEST_F(MachineLoop, LongKernelsAreCutIntoLoops) {
  std::vector<Array> sums;
  const Array x = normal({40, 30});
  eval();
  for (int i = 0; i < 50; ++i) sums.push_back(sum(sin(x * static_cast<double>(i)) + static_cast<double>(i), 0));
  eval();
  for (int i = 0; i < 50; ++i) {
    const Array alone = sin(x * static_cast<double>(i)) + static_cast<double>(i);
    eval();
    EXPECT_EQ(sums[static_cast<size_t>(i)].to_vector<float>(), sum(alone, 0).to_vector<float>()) << i;
  }
}

}  // namespace
}  // namespace rosin::cpu
