// Assignments to buffers: at once outside gradient calls, noted inside them.
#include <rosin/buffer.hpp>

#include <vector>

#include <gtest/gtest.h>

#include <rosin/error.hpp>
#include <rosin/model.hpp>

#include "model/notes.hpp"

namespace rosin {
namespace {

Array number(float value) { return Array(std::vector<float>{value}, {1}); }
float value_of(const Buffer& buffer) { return buffer.value().item<float>(); }

struct Norm {
  Array scale = number(1);
  Buffer mean{number(0)};
};
struct Normalised {
  Norm first, second;
};

TEST(Buffers, AreAssignedAtOnceOutsideGradientCalls) {
  Norm norm;
  assign(norm.mean, number(5));
  EXPECT_EQ(value_of(norm.mean), 5);
}

TEST(Buffers, OfAConstModelKeepTheirValueOutsideGradientCalls) {
  const Norm norm;
  assign(norm.mean, number(5));
  EXPECT_EQ(value_of(norm.mean), 0);
}

TEST(Buffers, KeepTheirShape) {
  Norm norm;
  EXPECT_THROW(assign(norm.mean, Array(std::vector<float>{1, 2}, {2})), Error);
  EXPECT_THROW(assign(norm.mean, Array()), Error);
}

TEST(Buffers, AreWrittenIntoTheModelAfterTheGradientCall) {
  Normalised model;
  {
    BufferNotes notes;
    Normalised copy = copy_of(model);
    notes.adopt(copy);
    const Normalised& seen = copy;
    assign(seen.second.mean, number(1));
    EXPECT_EQ(value_of(seen.second.mean), 1);
    const Normalised by_value = copy;  // as a lambda that takes the model by value
    assign(by_value.second.mean, number(value_of(by_value.second.mean) + 1));
    EXPECT_EQ(value_of(model.second.mean), 0);
    notes.write(model);
  }
  EXPECT_EQ(value_of(model.first.mean), 0);
  EXPECT_EQ(value_of(model.second.mean), 2);
}

TEST(Buffers, KeepTheirValueWhenTheGradientCallFails) {
  Normalised model;
  Normalised survivor;
  {
    BufferNotes notes;
    Normalised copy = copy_of(model);
    notes.adopt(copy);
    assign(static_cast<const Normalised&>(copy).first.mean, number(1));
    survivor = copy;
  }
  EXPECT_EQ(value_of(model.first.mean), 0);
  EXPECT_EQ(value_of(survivor.first.mean), 0);
  BufferNotes later;
  EXPECT_FALSE(BufferNotes::note(survivor.first.mean, number(3)));
}

TEST(Buffers, OfNestedGradientCallsReachTheOuterModel) {
  Normalised model;
  BufferNotes outer;
  Normalised copy = copy_of(model);
  outer.adopt(copy);
  {
    BufferNotes inner;
    Normalised second = copy_of(copy);
    inner.adopt(second);
    assign(static_cast<const Normalised&>(second).first.mean, number(4));
    inner.write(copy);
  }
  EXPECT_EQ(value_of(copy.first.mean), 4);
  outer.write(model);
  EXPECT_EQ(value_of(model.first.mean), 4);
}

TEST(Buffers, OfSeveralModelsInOneCallAreKeptApart) {
  Norm a, b;
  BufferNotes notes;
  Norm copy_a = copy_of(a), copy_b = copy_of(b);
  const auto at_a = notes.adopt(copy_a), at_b = notes.adopt(copy_b);
  assign(static_cast<const Norm&>(copy_b).mean, number(2));
  EXPECT_TRUE(notes.any());
  notes.write(a, at_a);
  notes.write(b, at_b);
  EXPECT_EQ(value_of(a.mean), 0);
  EXPECT_EQ(value_of(b.mean), 2);
}

}  // namespace
}  // namespace rosin
