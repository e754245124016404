// How descriptions of attention become what cuDNN is told, and that the real cuDNN, where it is installed, has plans
// for that. See attention.hpp.
#include "cuda/attention.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/real_dnn_testing.hpp"

namespace rosin::cuda {
namespace {

struct Asked {
  bool gradient = false;
  int32_t type = ROSIN_BFLOAT16;
  int64_t features = 64, heads = 12, served = 12, queries = 1024, keys = 1024, batch = 32;
  bool causal = false;
  int64_t gap = 0;  // between the heads of one place and the next
};

/// A call, and what it points to.
struct Described {
  std::vector<rosin_call_array> arrays;
  rosin_attribute attributes[2] = {{ROSIN_ATTRIBUTE_SCALE, 0, 0.125}, {ROSIN_ATTRIBUTE_CAUSAL, 1, 0}};
  rosin_call_description what{};

  explicit Described(const Asked& a) {
    add(ROSIN_ROLE_QUERY, a, a.heads, a.queries);
    add(ROSIN_ROLE_KEY, a, a.served, a.keys);
    add(ROSIN_ROLE_VALUE, a, a.served, a.keys);
    add(ROSIN_ROLE_OUTPUT, a, a.heads, a.queries);
    arrays.push_back(
        {ROSIN_ROLE_STATE, ROSIN_FLOAT32, 3, {a.queries, a.heads, a.batch}, {1, a.queries, a.queries * a.heads}});
    if (a.gradient) {
      add(ROSIN_ROLE_OUTPUT_GRADIENT, a, a.heads, a.queries);
      add(ROSIN_ROLE_QUERY_GRADIENT, a, a.heads, a.queries);
      add(ROSIN_ROLE_KEY_GRADIENT, a, a.served, a.keys);
      add(ROSIN_ROLE_VALUE_GRADIENT, a, a.served, a.keys);
    }
    what.size = sizeof what;
    what.kind = a.gradient ? ROSIN_CALL_ATTENTION_DATA : ROSIN_CALL_ATTENTION;
    what.array_count = static_cast<uint32_t>(arrays.size());
    what.arrays = arrays.data();
    what.deterministic = what.unrounded = 1;
    what.attribute_count = a.causal ? 2 : 1;
    what.attributes = attributes;
  }

 private:
  /// Heads side by side, then places.
  void add(int32_t role, const Asked& a, int64_t heads, int64_t length) {
    const int64_t place = a.features * heads + a.gap;
    arrays.push_back({role, a.type, 4, {a.features, length, heads, a.batch}, {1, place, a.features, place * length}});
  }
};

rosin_status refusal(const rosin_call_description& call) {
  try {
    attention_of(call);
  } catch (const plugin::Failure& failure) {
    return failure.status;
  }
  return ROSIN_OK;
}

TEST(CudaAttentionCall, HasTheDimsOfRosinFromTheLastToTheFirst) {
  const Described described(
      {.gradient = true, .served = 4, .queries = 8, .keys = 16, .batch = 2, .causal = true, .gap = 8});
  const Attention a = attention_of(described.what);
  EXPECT_EQ(a.q.sizes, (std::vector<int64_t>{2, 12, 8, 64}));
  EXPECT_EQ(a.q.strides, (std::vector<int64_t>{8 * 776, 64, 776, 1}));
  EXPECT_EQ(a.k.sizes, (std::vector<int64_t>{2, 4, 16, 64}));
  EXPECT_EQ(a.state.sizes, (std::vector<int64_t>{2, 12, 8, 1}));
  EXPECT_EQ(a.dv.at, 8);
  EXPECT_TRUE(a.causal);
  EXPECT_EQ(a.scale, 0.125);
  EXPECT_EQ(a.bytes[0], 2u * (2 * 8 * 776 - 8));
}

TEST(CudaAttentionCall, RefusesWhatCudnnDoesNotCompute) {
  EXPECT_EQ(refusal(Described({}).what), ROSIN_OK);
  EXPECT_EQ(refusal(Described({.type = ROSIN_FLOAT32}).what), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal(Described({.features = 12}).what), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal(Described({.features = 512}).what), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal(Described({.gap = 4}).what), ROSIN_UNSUPPORTED);  // not aligned
  EXPECT_EQ(refusal(Described({.served = 5}).what), ROSIN_INVALID);
  Described more({});
  more.what.unrounded = 0;
  EXPECT_EQ(refusal(more.what), ROSIN_UNSUPPORTED);
  Described dropping({.causal = true});
  dropping.attributes[1] = {ROSIN_ATTRIBUTE_DROPOUT, 0, 0.5};
  EXPECT_EQ(refusal(dropping.what), ROSIN_UNSUPPORTED);
  Described other({});
  other.arrays[1].sizes[0] = 32;
  EXPECT_EQ(refusal(other.what), ROSIN_INVALID);
  Described few({.gradient = true});
  few.what.array_count = 8;
  EXPECT_EQ(refusal(few.what), ROSIN_UNSUPPORTED);
}

class RealDnnAttention : public RealDnn {
 protected:
  void SetUp() override {
    RealDnn::SetUp();
    if (IsSkipped()) return;
    if (!library_->is_at_least(9, 21)) {
      GTEST_SKIP() << "cuDNN " << library_->version() << " builds plans of attention where there is a driver alone";
    }
  }
};

TEST_F(RealDnnAttention, BuildsPlans) {
  constexpr uint64_t much = uint64_t{1} << 30;
  for (const bool gradient : {false, true}) {
    for (const bool causal : {false, true}) {
      for (const int32_t type : {ROSIN_FLOAT16, ROSIN_BFLOAT16}) {
        std::vector<Asked> all(5, Asked{.gradient = gradient, .type = type, .causal = causal});
        all[1].features = 128, all[1].served = 4;
        all[2].features = 8, all[2].queries = all[2].keys = 24;
        all[3].gap = 2 * 64 * 12;  // q, k and v side by side
        all[4].features = 256, all[4].heads = all[4].served = 8;
        for (const Asked& asked : all) {
          DnnWays found = ways(attention_of(Described(asked).what), much);
          EXPECT_NE(found.plan(found.first()), nullptr) << asked.features << " features, causal " << causal;
        }
      }
    }
  }
}

/// Keeps texts in memory, as rosin keeps them on disk.
struct Keeper {
  std::map<std::string, std::string> texts;
  int taken = 0;
};
Keeper keeper;

uint64_t cache_get(const rosin_host*, const char* key, void* bytes, uint64_t capacity) {
  const auto found = keeper.texts.find(key);
  if (found == keeper.texts.end()) return 0;
  if (found->second.size() <= capacity) {
    std::memcpy(bytes, found->second.data(), found->second.size());
    ++keeper.taken;
  }
  return found->second.size();
}
void cache_put(const rosin_host*, const char* key, const void* bytes, uint64_t count) {
  keeper.texts[key].assign(static_cast<const char*>(bytes), count);
}

/// A plan is built once: later it is made of what was kept. What is kept and damaged is built anew.
TEST_F(RealDnnAttention, KeepsPlans) {
  rosin_host host{};
  host.size = sizeof host;
  host.cache_get = cache_get;
  host.cache_put = cache_put;
  host_ = &host;
  keeper = {};
  for (const bool gradient : {false, true}) {
    const Attention attention = attention_of(Described({.gradient = gradient, .causal = true}).what);
    constexpr uint64_t much = uint64_t{1} << 30;
    DnnWays built = ways(attention, much);
    const size_t way = built.first();
    ASSERT_EQ(keeper.texts.size(), 1u);
    EXPECT_EQ(keeper.taken, 0);
    DnnWays kept = ways(attention, much);
    EXPECT_EQ(kept.first(), way);
    EXPECT_EQ(keeper.taken, 1);
    EXPECT_NE(kept.plan(way), nullptr);
    EXPECT_EQ(kept.workspace(way), built.workspace(way));
    keeper.texts.begin()->second.resize(100);
    DnnWays anew = ways(attention, much);
    EXPECT_NE(anew.plan(anew.first()), nullptr);
    EXPECT_GT(keeper.texts.begin()->second.size(), 100u);
    keeper = {};
  }
}

}  // namespace
}  // namespace rosin::cuda
