// Tests of one-hot labels and of pictures as arrays.
#include <rosin/onehot.hpp>

#include <gtest/gtest.h>

#include <string>

#include <rosin/create.hpp>
#include <rosin/data.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/idx.hpp>
#include <rosin/matmul.hpp>
#include <rosin/onehot_array.hpp>
#include <rosin/reduce.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

TEST(OneHot, ColumnsHaveOneAtTheLabel) {
  const Array y = onehotbatch(std::vector<int>{2, 0}, 3);
  EXPECT_EQ(y.dtype(), Bool);
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{0, 0, 1, 1, 0, 0}));
}

TEST(OneHot, TakesBytesAndArraysAndGivesOtherTypes) {
  const std::vector<uint8_t> bytes = {1, 1};
  EXPECT_EQ(onehotbatch(std::span<const uint8_t>(bytes), 2).to_vector<int>(), (std::vector<int>{0, 1, 0, 1}));
  const Array y = onehotbatch(Array({0, 1, 1, 0}, {2, 2}), 2, Float32);
  EXPECT_EQ(y.dtype(), Float32);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(y.to_vector(), (std::vector<float>{1, 0, 0, 1, 0, 1, 1, 0}));
  EXPECT_EQ(onehotbatch(bytes, 2, Float16).to_vector(), (std::vector<float>{0, 1, 0, 1}));
}

TEST(OneHot, OnecoldIsTheWayBack) {
  const std::vector<int> labels = {3, 0, 2, 2, 1};
  EXPECT_EQ(onecold(onehotbatch(labels, 4)).to_vector<int>(), labels);
}

TEST(OneHot, ALabelOutOfRangeIsNamed) {
  EXPECT_EQ(error_of(
                [] {
                  onehotbatch(std::vector<int>{0, 9, 10}, 10);
                },
                ErrorKind::argument),
            "onehotbatch: label out of range: label 10 of observation 2; with 10 classes labels are 0 to 9");
  EXPECT_EQ(error_of([] { onehotbatch(std::vector<int>{-1}, 2); }, ErrorKind::argument),
            "onehotbatch: label out of range: label -1 of observation 0; with 2 classes labels are 0 to 1");
  EXPECT_EQ(error_of([] { onehotbatch(Array({0.5f}, {1}), 2); }, ErrorKind::dtype),
            "onehotbatch: labels must be integers; got Float32; cast them, or count the classes' names from 0");
  EXPECT_EQ(error_of([] { onehotbatch(std::vector<int>{}, 0); }, ErrorKind::argument),
            "onehotbatch: there must be at least one class; got 0 classes");
}

TEST(OneHotArray, StaysIndicesAndComputesAsTheDenseOneDoes) {
  const OneHotArray y(Array({2, 0, 1, 1}, {2, 2}), 3);
  EXPECT_EQ(y.dense().shape(), (Shape{3, 2, 2}));
  const Array w = reshape(cast(arange(6), Float32), {2, 3});
  EXPECT_EQ(matmul(w, y).to_vector(), matmul(w, cast(y.dense(), Float32)).to_vector());
  EXPECT_EQ(matmul(w, y).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(embed(Embedding(w), y).to_vector(), Embedding(w)(y.dense()).to_vector());
  const Array yhat = sin(reshape(cast(arange(12), Float32), {3, 2, 2}));
  EXPECT_NEAR(logitcrossentropy(yhat, y).item(), logitcrossentropy(yhat, y.dense()).item(), 1e-6);
  EXPECT_TRUE(same(onecold(y), y.indices));
  EXPECT_EQ(numobs(y), 2);
  EXPECT_EQ(getobs(y, {1}).indices.to_vector<int>(), (std::vector<int>{1, 1}));
  const Array by_w = gradient([&](const Array& m) { return sum(square(matmul(m, y))); }, w);
  EXPECT_EQ(by_w.to_vector(), (std::vector<float>{0, 2, 8, 12, 8, 10}));
  EXPECT_EQ(error_of(
                [&] {
                  matmul(ones({2, 4}), y);
                },
                ErrorKind::shape),
            "matmul: a matrix has a column for each class; got (2, 4) for 3 classes; transpose it");
}

TEST(LabelSet, NumbersAndNamesAreEachOthersInverse) {
  const LabelSet<> labels = {"cat", "dog", "?"};
  const OneHotArray y = labels.encode({"dog", "cat", "dog"});
  EXPECT_EQ(y.indices.to_vector<int>(), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(y.classes, 3);
  EXPECT_EQ(labels.decode(y.dense()), (std::vector<std::string>{"dog", "cat", "dog"}));
  EXPECT_EQ(labels.decode(y.indices), (std::vector<std::string>{"dog", "cat", "dog"}));
  EXPECT_EQ(LabelSet<>({"cat", "?"}, "?").number("horse"), 1);
  const std::vector<int> seen = {7, 3, 7};
  EXPECT_EQ(LabelSet<int>::of(seen).labels(), (std::vector<int>{3, 7}));
  EXPECT_EQ(error_of([&] { labels.number("horse"); }, ErrorKind::argument),
            "LabelSet: the label is none of the 3; state one for unknown labels, or add it");
  EXPECT_EQ(error_of([&] { labels[3]; }, ErrorKind::argument),
            "LabelSet: a class lies in [0, 3); got 3; classes count from 0");
  EXPECT_EQ(error_of(
                [] {
                  LabelSet<>{"a", "a"};
                },
                ErrorKind::argument),
            "LabelSet: every label stands once; got one twice; remove it");
}

TEST(ImageArrays, PicturesAreWidthHeightChannelCountFromZeroToOne) {
  // Two pictures of two rows and three columns.
  const LabelledImages pictures{2, 2, 3, {0, 51, 102, 153, 204, 255, 255, 0, 0, 0, 0, 51}, {7, 1}};
  const ImageArrays arrays = image_arrays(pictures);
  EXPECT_EQ(arrays.images.shape(), (Shape{3, 2, 1, 2}));
  EXPECT_EQ(arrays.images.dtype(), Float32);
  EXPECT_FLOAT_EQ(static_cast<float>(arrays.images.item(1, 0, 0, 0)), 0.2f);  // column 1 of row 0
  EXPECT_FLOAT_EQ(static_cast<float>(arrays.images.item(0, 1, 0, 0)), 0.6f);  // column 0 of row 1
  EXPECT_FLOAT_EQ(static_cast<float>(arrays.images.item(2, 1, 0, 1)), 0.2f);
  EXPECT_EQ(arrays.labels.to_vector<int>(), (std::vector<int>{7, 1}));
  EXPECT_EQ(
      error_of(
          [] {
            image_arrays({1, 2, 2, {0, 0, 0}, {1}});
          },
          ErrorKind::argument),
      "image_arrays: pixels and labels must fit the count of images; got 3 pixels and 1 labels for 1 images of 2x2");
}

}  // namespace
}  // namespace rosin
