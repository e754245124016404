// Memory of users as arrays: what is shared, how long it is kept, that it is never written, and the errors.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <rosin/borrow.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rules.hpp>

#include "../error_testing.hpp"

namespace rosin {
namespace {

using Floats = std::vector<float>;

std::shared_ptr<Floats> counted(size_t count) {
  auto values = std::make_shared<Floats>(count);
  std::iota(values->begin(), values->end(), 0.0f);
  return values;
}

TEST(Borrow, SharesTheMemoryInBothDirections) {
  const auto values = counted(6);
  const Array x = Array::borrow(values->data(), {2, 3}, values);
  EXPECT_EQ(x.data<float>().data(), values->data());
  EXPECT_EQ(x.data<float>().size(), 6u);
  EXPECT_EQ(x.item(1, 2), 5);
  EXPECT_EQ(sum(x).item(), 15);
  const Array y = x + 1;
  EXPECT_EQ(y.data<float>()[5], 6);
  EXPECT_EQ(y.data<float>().data(), y.data<float>().data());
}

TEST(Borrow, TakesAVectorAndAnyElementType) {
  std::vector<int64_t> values = {1, -2, int64_t{1} << 62};
  const int64_t* memory = values.data();
  const Array x = Array::borrow(std::move(values), {3});
  EXPECT_EQ(x.data<int64_t>().data(), memory);
  EXPECT_EQ(x.data<int64_t>()[2], int64_t{1} << 62);
  static const bool flags[] = {true, false};
  EXPECT_EQ(Array::borrow(flags, {2}, nullptr).dtype(), Bool);
  EXPECT_EQ(Array::borrow(static_cast<const float*>(nullptr), {0, 3}, nullptr).count(), 0);
  EXPECT_EQ(error_of(
                [] {
                  Array::borrow(Floats{1, 2}, {3});
                },
                ErrorKind::shape),
            "array: the shape (3) has 3 elements; got 2 values");
}

TEST(Borrow, TheOwnerIsKeptUntilTheLastUseAndNoLonger) {
  auto values = counted(4);
  const std::weak_ptr<Floats> watched = values;
  Array x = Array::borrow(values->data(), {4}, values);
  values.reset();
  Array y = x * 2;
  x = {};
  EXPECT_FALSE(watched.expired());  // y reads it
  EXPECT_EQ(y.to_vector(), (Floats{0, 2, 4, 6}));
  EXPECT_TRUE(watched.expired());
}

TEST(Borrow, AnErrorLetsTheOwnerGo) {
  auto values = counted(4);
  const std::weak_ptr<Floats> watched = values;
  const char* odd = reinterpret_cast<const char*>(values->data()) + 1;
  EXPECT_EQ(error_of([&] { Array::borrow(reinterpret_cast<const float*>(odd), {3}, std::move(values)); },
                     ErrorKind::argument),
            "borrow: memory of Float32 must be aligned to 4 bytes; the pointer is not; copy the values instead: "
            "Array(span, shape)");
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(error_of([] { Array::borrow(static_cast<const float*>(nullptr), {3}, nullptr); }, ErrorKind::argument),
            "borrow: an array of shape (3) needs memory; got a null pointer; give the values");
}

// The array is the only one that reads its memory, so that a result could take it.
TEST(Borrow, TheMemoryIsNeverWritten) {
  const auto values = counted(1000);
  const Floats before = *values;
  Array x = Array::borrow(values->data(), {1000}, values);
  for (int i = 0; i < 3; ++i) {
    x = x * 2 + 1;
    eval();
  }
  EXPECT_EQ(x.item(1), 15);
  EXPECT_EQ(*values, before);
  Array same_memory = reshape(Array::borrow(values->data(), {1000}, values), {10, 100});
  eval(same_memory);
  same_memory = same_memory + 1;
  eval(same_memory);
  EXPECT_EQ(*values, before);
}

struct Line {
  Array weight, bias;
};

TEST(Borrow, AModelOnBorrowedMemoryIsTrainedAndTheMemoryStays) {
  const auto values = counted(12);
  const Floats before = *values;
  Line model{Array::borrow(values->data(), {3, 4}, values), zeros({3})};
  auto state = setup(Adam{.eta = 0.1}, model);
  const Array x = ones({4, 5}), y = zeros({3, 5});
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    auto [loss, grad] = withgradient([&](const Line& m) { return mse(matmul(m.weight, x) + m.bias, y); }, model);
    update(state, model, grad);
    last = loss.item();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, first / 4);
  EXPECT_EQ(*values, before);
}

TEST(Borrow, ElementsThatCannotBeSeenAreErrorsWithACure) {
  EXPECT_EQ(
      error_of(
          [] {
            const Array x = ones({2});
            x.data<double>();
          },
          ErrorKind::dtype),
      "data: the elements are read as they are; they are Float32, not Float64; ask for their own type, or convert "
      "with cast or to_vector");
  EXPECT_EQ(error_of(
                [] {
                  const Array x = 2.0f;
                  x.data<float>();
                },
                ErrorKind::argument),
            "data: a C++ number has no memory; read it with item()");
  EXPECT_EQ(error_of(
                [] {
                  const Array x;
                  x.data<float>();
                },
                ErrorKind::argument),
            "data: the array is nothing (an empty handle); give it a value first");
}

TEST(BorrowStrided, RowMajorMemoryIsSharedAndReadInItsOrder) {
  auto values = counted(24);
  const std::weak_ptr<Floats> watched = values;
  Array x = borrow_row_major(values->data(), {2, 3, 4}, values);
  EXPECT_EQ(x.shape(), Shape({2, 3, 4}));
  (*values)[23] = -1;  // before anything has read it: the memory is the same
  values.reset();
  EXPECT_FALSE(watched.expired());
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) EXPECT_EQ(x.item(i, j, k), i + j + k == 6 ? -1 : 12 * i + 4 * j + k);
    }
  }
  x = {};
  EXPECT_TRUE(watched.expired());
}

TEST(BorrowStrided, ColumnMajorMemoryIsTheArrayItselfWhereverDimsOfSizeOneStand) {
  const auto values = counted(6);
  for (const auto& strides : {std::vector<int64_t>{1, 77, 2}, {1, 1, 2}}) {
    const Array x = borrow_strided(values->data(), {2, 1, 3}, std::span<const int64_t>(strides), values);
    EXPECT_EQ(x.data<float>().data(), values->data());
  }
  const Array row = borrow_strided(values->data(), {1, 6}, {6, 1}, values);
  EXPECT_EQ(row.data<float>().data(), values->data());
}

TEST(BorrowStrided, MemoryWithGapsIsCopiedAndItsOwnerLetGo) {
  auto values = counted(12);
  const std::weak_ptr<Floats> watched = values;
  const float* memory = values->data();
  const Array gaps = borrow_strided(memory, {2, 3}, {1, 4}, values);
  const Array backwards = borrow_strided(memory + 11, {3}, {-2}, values);
  const Array repeated = borrow_strided(memory + 5, {2, 2}, {0, 1}, std::move(values));
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(gaps.to_vector(), (Floats{0, 1, 4, 5, 8, 9}));
  EXPECT_EQ(backwards.to_vector(), (Floats{11, 9, 7}));
  EXPECT_EQ(repeated.to_vector(), (Floats{5, 5, 6, 6}));
  EXPECT_EQ(borrow_strided(memory, {0, 3}, {1, 7}, nullptr).shape(), Shape({0, 3}));
}

TEST(BorrowStrided, EveryDimNeedsAStride) {
  static const float value = 1;
  EXPECT_EQ(error_of(
                [] {
                  borrow_strided(&value, {1, 1}, {1}, nullptr);
                },
                ErrorKind::shape),
            "borrow: every dim needs a stride; got 1 for the shape (1, 1); give one for each");
}

}  // namespace
}  // namespace rosin
