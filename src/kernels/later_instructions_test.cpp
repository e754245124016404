// What kernels do on devices that take more than backend.h's first page: vectors, marks, exchange within warps, long
// rows in shared memory. Each against the same kernels on a device that takes the first page alone, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/node.hpp"
#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {
namespace {

const Abilities first_page;

template <class F> Array on(const Abilities& device, F&& f, std::map<std::string, KernelCode>* codes = nullptr) {
  InterpretedExecutor executor;
  executor.device = device;
  const Array result = by_kernels(
      [&] {
        Array made = f();
        eval(made);
        return made;
      },
      executor);
  if (codes) *codes = executor.codes;
  return result;
}

int count_of(const std::map<std::string, KernelCode>& codes, KernelOperation operation) {
  int count = 0;
  for (const auto& [name, code] : codes) {
    for (const KernelInstruction& instruction : code.instructions) count += instruction.is(operation);
  }
  return count;
}

/// How many codes have names that begin so.
int64_t named(const std::map<std::string, KernelCode>& codes, std::string_view name) {
  return std::count_if(codes.begin(), codes.end(), [&](const auto& code) { return code.first.starts_with(name); });
}

/// The same bits with and without what the first page does not know; what stands in the codes with it.
template <class F> std::map<std::string, KernelCode> same_bits(F&& f, const std::string& what = "") {
  std::map<std::string, KernelCode> codes;
  const Array wanted = on(first_page, f);
  expect_same_bits(on(InterpretedExecutor().device, f, &codes), wanted, what);
  return codes;
}

TEST(LaterInstructions, AreNotThereForTheFirstPage) {
  std::map<std::string, KernelCode> codes;
  const Array x = numbers({300, 40}, BFloat16);
  on(
      first_page, [&] { return softmax(x + x) * sum(x, {0}); }, &codes);
  ASSERT_FALSE(codes.empty());
  for (const auto& [name, code] : codes) {
    EXPECT_LE(code.shared_bytes(), 16384) << name;
    for (const KernelInstruction& instruction : code.instructions) {
      EXPECT_LE(instruction.operation, static_cast<uint16_t>(KernelOperation::tanh_approximate)) << name;
    }
  }
}

TEST(LaterInstructions, VectorsOfEveryFloatAndLength) {
  for (const DType type : {Float32, Float16, BFloat16}) {
    for (const int64_t length : {1, 3, 4, 8, 1000, 1003, 2048, 2055}) {
      const Array x = numbers({length}, type), y = numbers({length}, type);
      const auto codes =
          same_bits([&] { return x * y + 1.5f * x; }, to_string(type) + std::string(" ") + std::to_string(length));
      EXPECT_EQ(count_of(codes, KernelOperation::load_vector), 2);
      EXPECT_EQ(count_of(codes, KernelOperation::store_vector), 1);
    }
  }
}

TEST(LaterInstructions, VectorsOfSeveralTypesTakeTurns) {
  const Array x = numbers({515}, BFloat16), y = numbers({515}), z = numbers({515}, Float16);
  const Array mask = z > 0;
  eval(mask);
  const auto codes = same_bits([&] { return where(mask, cast(x, Float32) * y, cast(z, Float32)); });
  // eight lanes: one vector of each 16-bit type and of the mask, two of Float32, two that are stored
  EXPECT_EQ(count_of(codes, KernelOperation::load_vector), 5);
  EXPECT_EQ(count_of(codes, KernelOperation::store_vector), 2);
}

TEST(LaterInstructions, WhatIsLessThanAVectorIsStoredOneByOne) {
  const Array x = numbers({516});
  const auto codes = same_bits([&] {
    Array y = x;
    for (int i = 0; i < 40; ++i) y = y * x - 0.25f;  // so many steps that strips have two lanes
    return y > 0;
  });
  EXPECT_EQ(count_of(codes, KernelOperation::load_vector), 1);
  EXPECT_EQ(count_of(codes, KernelOperation::store_vector), 0);
}

TEST(LaterInstructions, OperandsThatAreNotAlignedAreLoadedOneByOne) {
  const Array x = numbers({1029}), y = numbers({1024});
  const auto even = same_bits([&] { return slice(x, 0, 4, 1028) * y; });
  const auto odd = same_bits([&] { return slice(x, 0, 3, 1027) * y; });
  EXPECT_EQ(count_of(even, KernelOperation::load_vector), 2);
  EXPECT_EQ(count_of(odd, KernelOperation::load_vector), 1);
}

TEST(LaterInstructions, BroadcastsTakeStripsWithinTheFirstDim) {
  for (const int64_t rows : {8, 9}) {
    const Array x = numbers({rows, 33}), bias = numbers({rows}), scale = numbers({1, 33});
    const auto codes = same_bits([&] { return x * scale + bias; }, std::to_string(rows));
    EXPECT_EQ(count_of(codes, KernelOperation::load_vector), rows == 8 ? 4 : 0);  // eight lanes, as the body is short
  }
}

TEST(LaterInstructions, SumsAreTheSameWithinWarps) {
  for (const int64_t length : {1, 2, 5, 31, 32, 33, 64, 100, 128, 200, 256, 1000, 4000}) {
    const Array x = numbers({length, 37}), whole = cast(10 * x, Int32);
    const std::string what = std::to_string(length);
    const auto codes = same_bits([&] { return softmax(x, 0); }, what);
    EXPECT_EQ(count_of(codes, KernelOperation::shuffle) > 0, length > 1) << what;
    same_bits([&] { return sum(x, {0}); }, what);
    same_bits([&] { return sum(x, {1}); }, what);
    same_bits([&] { return maximum(whole, {0}); }, what);
    same_bits([&] { return sum(cast(x, Float64), {0}); }, what);
    same_bits([&] { return all(x < 2.9f, {0}); }, what);
  }
  const Array many = numbers({70000});
  same_bits([&] { return sum(many); }, "parts");
}

TEST(LaterInstructions, WhatIsReadAndNotWrittenIsMarked) {
  const Array x = numbers({100}), y = numbers({100});
  const auto codes = same_bits([&] { return x * y; });
  EXPECT_EQ(count_of(codes, KernelOperation::read_only), 2);
}

TEST(LaterInstructions, MemoryThatIsTakenOverIsNotMarked) {
  const Array y = numbers({100});
  const auto codes = same_bits([&] {
    Array x = numbers({100});
    x = x * y;  // its memory goes on
    eval(x);
    return x;
  });
  for (const auto& [name, code] : codes) {
    const std::map<std::string, KernelCode> one = {{name, code}};
    if (count_of(one, KernelOperation::load_vector) == 0) continue;
    EXPECT_EQ(count_of(one, KernelOperation::load_vector), 4);
    EXPECT_EQ(count_of(one, KernelOperation::read_only), 1);
  }
}

/// A step of Adam for arrays of several sizes, some of which strips do not divide.
Array moved_by_adam() {
  std::vector<Array> model;
  for (const int64_t size : {8, 256, 1000, 24, 7, 1003, 4096}) model.push_back(numbers({size}));
  auto state = setup(Adam{.eta = 0.1}, model);
  const auto loss = [](const std::vector<Array>& all) {
    Array total(0.0f);
    for (const Array& one : all) total = total + sum(one * one * one);
    return total;
  };
  for (int i = 0; i < 2; ++i) update(state, model, gradient(loss, model));
  return concat(model, 0);
}

TEST(LaterInstructions, PartsOfOneCodeShareItAndChooseTheirBuffers) {
  const auto codes = same_bits(moved_by_adam);
  EXPECT_GT(count_of(codes, KernelOperation::choose), 0);
  for (const auto& [name, code] : codes) {
    EXPECT_LE(8 * (code.buffers.size() + code.parameters.size()), 4096u) << name;
  }
  Abilities narrow = InterpretedExecutor().device;
  narrow.argument_bytes = 1024;
  std::map<std::string, KernelCode> of_narrow;
  expect_same_bits(on(narrow, moved_by_adam, &of_narrow), on(first_page, moved_by_adam), "few arguments");
  for (const auto& [name, code] : of_narrow) {
    EXPECT_LE(16 * code.buffers.size() + 8 * code.parameters.size(), 1024u) << name;
  }
}

TEST(LaterInstructions, SumsOfPartsShareALaunch) {
  const Array x = numbers({40, 3000}), y = numbers({40, 3000});
  Abilities waits = InterpretedExecutor().device;
  waits.arrivals = false;
  const auto three = [&] { return concat({sum(x * y, 1), sum(x - y, 1), sum(x * x, 1)}, 0); };
  std::map<std::string, KernelCode> columns, whole;
  expect_same_bits(on(waits, three, &columns), on(first_page, three), "columns");
  EXPECT_EQ(named(columns, "column_parts"), 1);
  // Sums of all elements of one kernel are added up together too: nobody has to choose whose.
  const auto all = [&] {
    const auto one = [](const Array& z) { return reshape(sum(z), {1}); };
    return concat({one(x * y), one(x - y), one(x * x)}, 0);
  };
  expect_same_bits(on(waits, all, &whole), on(first_page, all), "sums");
  EXPECT_EQ(named(whole, "sum_parts"), 1);
  EXPECT_EQ(count_of(whole, KernelOperation::choose), 0);
}

Array log_of_sums(const Array& x) {
  const Array shifted = x - maximum(x, 0);
  return log(sum(exp(shifted), 0));
}

TEST(LaterInstructions, WhoComesLastAddsUpTheParts) {
  const Array x = numbers({40, 3000}), long_line = numbers({100000}), wide = numbers({7, 5, 20000});
  const auto check = [](auto&& f, int64_t arrivals) {
    const auto codes = same_bits(f);
    EXPECT_EQ(named(codes, "column_parts") + named(codes, "sum_parts"), 0);
    EXPECT_EQ(count_of(codes, KernelOperation::arrive), arrivals);
  };
  check([&] { return sum(x, 1); }, 1);
  check([&] { return sum(long_line * long_line); }, 1);
  check([&] { return sum(wide, {0, 2}); }, 1);
  const Array tall = numbers({300, 40000});
  check([&] { return sum(tall, 1); }, 2);               // of clusters of parts, and of these
  check([&] { return maximum(x, 1) + sum(x, 1); }, 1);  // what follows from the sums is theirs too
  check([&] { return sum(x, 0); }, 0);                  // no parts
  const Array few = numbers({10, 300});
  check([&] { return sum(log_of_sums(few)); }, 1);  // behind the rows, in their launch
}

/// Shared memory of a small device has room for the lines of few roots at once.
TEST(LaterInstructions, ManyRootsAreCombinedSomeAtATime) {
  const Array x = numbers({300, 3000}), y = numbers({300, 3000}, Float64);
  const auto f = [&] {
    std::vector<Array> all;
    for (int i = 0; i < 20; ++i) all.push_back(sum(x * (i + 1) + i, 1));
    for (int i = 0; i < 3; ++i) all.push_back(cast(sum(cast(x, Float64) * y - i, 1), Float32));
    return concat(all, 1);
  };
  std::map<std::string, KernelCode> small;
  const Array wanted = on(first_page, f, &small);
  expect_same_bits(on(InterpretedExecutor().device, f), wanted, "23 roots");
  for (const auto& [name, code] : small) EXPECT_LE(code.shared_bytes(), 16384) << name;
}

TEST(LaterInstructions, LongRowsStayInOneKernel) {
  const Array x = numbers({6000, 3});
  std::map<std::string, KernelCode> codes;
  const auto f = [&] { return softmax(x, 0); };
  const Array got = on(InterpretedExecutor().device, f, &codes);
  ASSERT_EQ(codes.size(), 1u);
  EXPECT_GT(codes.begin()->second.shared_bytes(), 16384);
  // Of four strips at a time, and of what is left one by one: the other walks find it in shared memory.
  EXPECT_EQ(count_of(codes, KernelOperation::load_vector), (4 + 1) * 2);
  const Array wanted = f();
  eval(wanted);
  EXPECT_LT(maximum(abs(got - wanted) / wanted).item(), 1e-5);
}

}  // namespace
}  // namespace rosin::kernels
