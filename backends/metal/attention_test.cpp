// What MPSGraph is told of attention, and what it is not asked for, by hand.
#include "metal/attention.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/failure.hpp"

namespace rosin::metal {
namespace {

constexpr uint64_t memory = uint64_t{8} << 30;

/// Attention of heads side by side.
struct Call {
  int64_t features = 8, heads = 4, served = 4, queries = 5, keys = 7, batch = 3;
  std::vector<rosin_call_array> arrays = {};
  std::vector<rosin_attribute> attributes{{ROSIN_ATTRIBUTE_SCALE, 0, 0.5}};
  rosin_call_description what{};

  rosin_call_array array(int32_t role, int64_t length, int64_t count) const {
    const int64_t place = features * count;
    return {role, ROSIN_BFLOAT16, 4, {features, length, count, batch}, {1, place, features, place * length}};
  }
  rosin_call_description& described() {
    if (arrays.empty()) {
      arrays = {array(ROSIN_ROLE_QUERY, queries, heads), array(ROSIN_ROLE_KEY, keys, served),
                array(ROSIN_ROLE_VALUE, keys, served), array(ROSIN_ROLE_OUTPUT, queries, heads)};
    }
    what.size = sizeof what;
    what.kind = ROSIN_CALL_ATTENTION;
    what.unrounded = 1;
    what.arrays = arrays.data();
    what.array_count = static_cast<uint32_t>(arrays.size());
    what.attributes = attributes.data();
    what.attribute_count = static_cast<uint32_t>(attributes.size());
    return what;
  }
};

/// The status and text with which it is refused.
std::pair<rosin_status, std::string> why_not(const rosin_call_description& call, uint64_t bytes = memory) {
  try {
    attention_of(call, bytes);
  } catch (const plugin::Failure& failure) {
    return {failure.status, failure.text};
  }
  return {ROSIN_OK, {}};
}

std::string refused(const rosin_call_description& call, uint64_t bytes = memory) {
  const auto [status, text] = why_not(call, bytes);
  EXPECT_EQ(status, ROSIN_UNSUPPORTED) << text;
  return text;
}

TEST(AttentionOfGraphs, HasTheSizesOfItsArrays) {
  Call call;
  const Attention a = attention_of(call.described(), memory);
  EXPECT_EQ((Sizes{a.q, a.k, a.v, a.y}), (Sizes{0, 1, 2, 3}));
  EXPECT_EQ((Sizes{a.batch, a.heads, a.served, a.queries, a.keys, a.features}), (Sizes{3, 4, 4, 5, 7, 8}));
  EXPECT_EQ(a.query_sizes(), (Sizes{3, 4, 5, 8}));
  EXPECT_EQ(a.scale, 0.5f);
  EXPECT_FALSE(a.causal);
}

TEST(AttentionOfGraphs, HeadsThatShareKeysAreOneOfMoreQueries) {
  Call call{.served = 2, .attributes = {{ROSIN_ATTRIBUTE_CAUSAL, 1, 0}}};
  const Attention a = attention_of(call.described(), memory);
  EXPECT_EQ(a.query_sizes(), (Sizes{3, 2, 10, 8}));
  EXPECT_EQ(a.mask_sizes(), (Sizes{1, 1, 10, 7}));
  EXPECT_TRUE(a.causal);
  EXPECT_EQ(a.scale, 1.0f);
}

TEST(AttentionOfGraphs, IsRefusedWhereMpsgraphHasNone) {
  Call state, gradient, dropped, exact, values, other, mixed;
  state.described();
  state.arrays.push_back({ROSIN_ROLE_STATE, ROSIN_FLOAT32, 3, {5, 4, 3}, {1, 5, 20}});
  EXPECT_EQ(refused(state.described()), "MPSGraph: its attention gives no sums of exponentials");
  gradient.described().kind = ROSIN_CALL_ATTENTION_DATA;
  EXPECT_EQ(refused(gradient.what), "MPSGraph: its attention has no gradient");
  dropped.attributes.push_back({ROSIN_ATTRIBUTE_DROPOUT, 0, 0.5});
  EXPECT_EQ(refused(dropped.described()), "MPSGraph: no such attention");
  exact.described().unrounded = 0;
  EXPECT_EQ(refused(exact.what), "MPSGraph: its attention rounds less often than single steps");
  values.described();
  for (const size_t i : {2u, 3u}) values.arrays[i] = {values.arrays[i].role, ROSIN_BFLOAT16, 4, {16, 7, 4, 3}, {}};
  values.arrays[3].sizes[1] = 5;
  for (const size_t i : {2u, 3u}) {
    rosin_call_array& array = values.arrays[i];
    for (int64_t d = 0, stride = 1; d < 4; stride *= array.sizes[d++]) array.strides[d] = stride;
  }
  EXPECT_EQ(refused(values.what), "MPSGraph: values have as many features as keys");
  other.described().epilogue.bias = 1;
  EXPECT_EQ(refused(other.what), "MPSGraph: nothing goes along with attention");
  mixed.described();
  mixed.arrays[3].type = ROSIN_FLOAT32;
  EXPECT_EQ(refused(mixed.what), "MPSGraph: one type for all arrays");
  Call wide;
  wide.described();
  for (rosin_call_array& array : wide.arrays) array.type = ROSIN_FLOAT64;
  EXPECT_EQ(refused(wide.what), "MPSGraph: no elements of this type");
  Call gaps;
  gaps.described();
  gaps.arrays[0].strides[1] += 32;
  EXPECT_EQ(refused(gaps.what), "MPSGraph: an array with gaps");
}

TEST(AttentionOfGraphs, IsRefusedWhereScoresOrTheMaskTakeTooMuchRoom) {
  Call scores{.heads = 8, .served = 8, .queries = 4096, .keys = 4096, .batch = 1};
  EXPECT_EQ(why_not(scores.described(), uint64_t{4} << 30).first, ROSIN_OK);
  EXPECT_EQ(refused(scores.what, (uint64_t{4} << 30) - 8), "MPSGraph: more scores than there may be room for");
  Call most{.heads = 64, .served = 64, .queries = 4096, .keys = 4096, .batch = 1};
  EXPECT_EQ(refused(most.described(), uint64_t{1} << 40), "MPSGraph: more scores than there may be room for");
  Call mask{.heads = 1, .served = 1, .queries = 4096, .keys = 4096, .batch = 1};
  mask.attributes.push_back({ROSIN_ATTRIBUTE_CAUSAL, 1, 0});
  EXPECT_EQ(why_not(mask.described()).first, ROSIN_OK);
  Call shared{.heads = 2, .served = 1, .queries = 4096, .keys = 4096, .batch = 1};
  EXPECT_EQ(why_not(shared.described()).first, ROSIN_OK);
  shared.attributes.push_back({ROSIN_ATTRIBUTE_CAUSAL, 1, 0});
  EXPECT_EQ(refused(shared.described()), "MPSGraph: a mask of more than 64 MiB");
}

TEST(AttentionOfGraphs, SizesFitEachOther) {
  const auto changed = [](const std::function<void(Call&)>& change) {
    Call call;
    call.described();
    change(call);
    return why_not(call.what);
  };
  const std::pair<rosin_status, std::string> misfit{ROSIN_INVALID, "attention: sizes that do not fit each other"};
  EXPECT_EQ(changed([](Call& c) { c.arrays[1] = Call{.features = 16}.array(ROSIN_ROLE_KEY, 7, 4); }), misfit);
  EXPECT_EQ(changed([](Call& c) { c.arrays[2] = Call{}.array(ROSIN_ROLE_VALUE, 6, 4); }), misfit);
  EXPECT_EQ(changed([](Call& c) { c.arrays[3] = Call{}.array(ROSIN_ROLE_OUTPUT, 5, 3); }), misfit);
  EXPECT_EQ(changed([](Call& c) {
              for (const int32_t role : {ROSIN_ROLE_KEY, ROSIN_ROLE_VALUE}) {
                c.arrays[role == ROSIN_ROLE_KEY ? 1 : 2] = Call{}.array(role, 7, 3);
              }
            }),
            misfit);
  EXPECT_EQ(changed([](Call& c) { c.arrays[1].rank = 3; }),
            (std::pair<rosin_status, std::string>{ROSIN_INVALID, "attention: an array of another rank"}));
}

}  // namespace
}  // namespace rosin::metal
