// Scatters whose result takes over the memory of their target: when they may, and that nobody sees it.
#include <gtest/gtest.h>

#include <numeric>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rule.hpp>
#include <rosin/stats.hpp>

#include "graph/context.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

constexpr int64_t features = 4, places = 6;
constexpr int64_t bytes_of_updates = features * 4, bytes_of_target = features * places * 4;

const void* memory_of(const Array& x) { return x.node()->data(); }
Array at(int32_t place) { return full({1}, place, Int32); }

/// (features, places) with numbers from 0 on.
Values numbers() {
  Values values(features * places);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}
Array target() { return Array(numbers(), {features, places}); }

/// Of `values` with one place changed.
Values with_place(Values values, int64_t place, float value) {
  for (int64_t i = 0; i < features; ++i) values[static_cast<size_t>(place * features + i)] = value;
  return values;
}

/// Of a scatter, without what its operands take.
int64_t written_by(const Array& made) {
  const int64_t before = stats().written_bytes;
  eval(made);
  return stats().written_bytes - before;
}

TEST(ScatterInPlace, RangesThatAreSetAreWrittenWhereTheyAre) {
  constexpr int64_t heads = 16;
  Array cache = zeros({heads, 3, 40}), two = full({heads}, 2.0f), three = full({heads, 3, 1}, 3.0f);
  eval(cache, two, three);
  const void* memory = memory_of(cache);
  for (int64_t at = 0; at < 3; ++at) {
    cache = set(cache, {slice(), 1, at}, two);
    EXPECT_EQ(written_by(cache), heads * 4);
    cache = set(cache, {slice(), slice(), slice(20 + at, 21 + at)}, three);
    EXPECT_EQ(written_by(cache), 3 * heads * 4);
    EXPECT_EQ(memory_of(cache), memory);
  }
  EXPECT_EQ(sum(cache).item(), 3 * heads * 2 + 3 * 3 * heads * 3);
}

TEST(ScatterInPlace, WhatNobodyElseHoldsKeepsItsMemory) {
  Array cache = target();
  const void* memory = memory_of(cache);
  Values expected = numbers();
  for (int32_t place : {1, 4, 1, 5}) {
    const Array where = at(place), update = full({features, 1}, 10.0f * static_cast<float>(place));
    eval();
    cache = scatter(cache, where, update, 1);
    EXPECT_EQ(written_by(cache), bytes_of_updates);
    EXPECT_EQ(memory_of(cache), memory);
    expected = with_place(expected, place, static_cast<float>(place) * 10);
    EXPECT_EQ(cache.to_vector(), expected);
  }
}

TEST(ScatterInPlace, WhatSomebodyElseHoldsOrReadsStays) {
  Array cache = target();
  const Array held = cache, where = at(2), update = full({features, 1}, 9.0f);
  eval();
  cache = scatter(cache, where, update, 1);
  EXPECT_EQ(written_by(cache), bytes_of_target);
  EXPECT_EQ(held.to_vector(), numbers());
  EXPECT_EQ(cache.to_vector(), with_place(numbers(), 2, 9));

  Array other = target();
  const Array doubled = other * 2;
  other = scatter(other, at(0), full({features, 1}, 7), 1);
  eval();
  EXPECT_EQ(other.to_vector(), with_place(numbers(), 0, 7));
  EXPECT_EQ(doubled.to_vector()[5], 10);

  Array itself = target();  // updates and target are one
  itself = scatter(itself, Array({5, 4, 3, 2, 1, 0}, {places}), itself, 1);
  EXPECT_EQ(itself.to_vector()[0], 20);
  EXPECT_EQ(itself.to_vector()[20], 0);
}

TEST(ScatterInPlace, IntermediatesAreWrittenOnce) {
  const Array start = target();
  Array x = start;
  for (int32_t place = 0; place < 4; ++place) x = scatter(x, at(place), full({features, 1}, 1), 1);
  // One copy of the target, its updates, and a copy that comes out.
  EXPECT_LE(written_by(x), 2 * bytes_of_target + 8 * bytes_of_updates);
  EXPECT_EQ(start.to_vector(), numbers());
  Values expected = numbers();
  std::fill_n(expected.begin(), 4 * features, 1.0f);
  EXPECT_EQ(x.to_vector(), expected);
}

TEST(ScatterInPlace, SumsOfEveryTypeAreThoseOfSingleSteps) {
  for (const DType type : {Float32, Float16, BFloat16, Float64, Int32, UInt8}) {
    const Array start = cast(target(), type), places_twice = Array({3, 3, 0}, {3}), added = cast(ones({4, 3}), type);
    Array together = start + cast(ones({1}), type), alone = together;
    eval(alone);
    for (int i = 0; i < 3; ++i) {
      together = scatter_add(together, places_twice, added, 1);
      alone = scatter_add(alone, places_twice, added, 1);
      eval(alone);
    }
    EXPECT_EQ(cast(together, Float32).to_vector(), cast(alone, Float32).to_vector()) << to_string(type);
    Array largest = scatter_max(start * cast(ones({1}), type), places_twice, cast(full({4, 3}, 100), type), 1);
    EXPECT_EQ(cast(largest, Float32).to_vector()[12], 100) << to_string(type);
  }
}

TEST(ScatterInPlace, GradientsAreThoseOfCopies) {
  const Array x = target(), u = full({features, 1}, 2.0f);
  const auto loss = [](const Array& a, const Array& b) {
    Array kept = square(a);
    for (int32_t place : {0, 3}) kept = scatter(kept, at(place), b, 1);
    return sum(square(kept));
  };
  const auto [by_x, by_u] = gradient(loss, x, u);
  Values expected(features * places);  // 4 x^3, and 0 where x was overwritten
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool is_overwritten = i / features == 0 || i / features == 3;
    expected[i] = is_overwritten ? 0 : 4 * static_cast<float>(i * i * i);
  }
  EXPECT_EQ(by_x.to_vector(), expected);
  EXPECT_EQ(by_u.to_vector(), Values(features, 8));  // twice 2 * 2
}

TEST(ScatterInPlace, AnIndexThatIsOutsideIsSaidEachTime) {
  Array cache = target();
  cache = scatter(cache, Array({1, 9}, {2}), full({features, 2}, 5), 1);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(eval(cache), Error);
}

/// A rule that overwrites places of its state, and then refuses the step.
struct Forgetful {
  bool refuses = false;
  struct State {
    Array kept;
  };
  State init(const Array& x) const { return {x * 1}; }
  Array apply(State& state, const Array& x, const Array& d) const {
    state.kept = scatter(state.kept, at(0), full({features, 1}, 50), 1);
    if (refuses) require_finite(sum(d) / 0, "Forgetful: the gradient must be finite");
    return state.kept - x;
  }
  void visit_rules(RuleVisitor& visitor) { visitor.option({.name = "refuses", .flag = &refuses}); }
};

TEST(ScatterInPlace, AStepThatFailsGivesBackWhatItsRuleOverwrote) {
  Array model = target();
  State state = setup(Forgetful{true}, model);
  EXPECT_THROW(update(state, model, ones({features, places})), Error);
  EXPECT_EQ(model.to_vector(), numbers());
  bool found = false;
  for (const NamedArray& each : rosin::state(state)) {
    if (each.value.shape() != model.shape()) continue;
    found = true;
    EXPECT_EQ(each.value.to_vector(), numbers()) << each.name;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace rosin
