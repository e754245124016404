// Buckets over a transport that pretends a second rank with the same arrays.
#include "dist/buckets.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <rosin/rosin.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/run_itself.hpp"

namespace rosin::distributed {
namespace {

struct Sent {
  std::string name;
  uint32_t parts;
  bool by_other_thread;
  bool in_common = false;
};
std::vector<Sent> sent;
std::thread::id caller;
rosin_comm_status answer;
rosin_comm_status common_answer;  // to who asks for memory in common
int times_asked;
std::vector<std::max_align_t> memory_in_common;

rosin_comm_status join(double) { return ROSIN_COMM_OK; }
rosin_comm_status world(rosin_comm**) { return ROSIN_COMM_OK; }
void leave() {}
const char* error_text() { return "the other rank is gone"; }
rosin_comm_status place(rosin_comm*, rosin_comm_place* out) {
  out->ranks = 2;
  return ROSIN_COMM_OK;
}
rosin_comm_status run(rosin_comm*, const rosin_comm_collective* c) {
  const bool in_common = c->memory == ROSIN_COMM_COMMON;
  sent.push_back({c->name, c->part_count, std::this_thread::get_id() != caller, in_common});
  if (c->kind == ROSIN_COMM_ALLGATHER) {  // what ranks have: numbers of 8 bytes
    const size_t bytes = c->parts->count * sizeof(uint64_t);
    std::memcpy(c->parts->receive, c->parts->send, bytes);
    std::memcpy(static_cast<char*>(c->parts->receive) + bytes, c->parts->send, bytes);
    return answer;
  }
  for (uint32_t p = 0; p < c->part_count; ++p) {
    if (c->kind == ROSIN_COMM_REDUCE && c->root != 0) continue;  // (This is rank 0, whose parts are the first.)
    const auto* const from = static_cast<const float*>(c->parts[p].send);
    auto* const to = static_cast<float*>(c->parts[p].receive);
    for (uint64_t i = 0; i < c->parts[p].count; ++i) to[i] = 2 * from[i];
  }
  return answer;
}

rosin_comm_status common(rosin_comm*, uint64_t bytes, double, void** out) {
  ++times_asked;
  if (common_answer != ROSIN_COMM_OK) return common_answer;
  memory_in_common.assign(bytes / sizeof(std::max_align_t) + 1, {});
  *out = memory_in_common.data();
  return ROSIN_COMM_OK;
}

using rosin::detail::Owner;

class TwoRanks {
 public:
  explicit TwoRanks(bool offers_common = false) : transport_(table(offers_common)), group_("pretended", transport_, 5) {
    sent.clear();
    common_answer = ROSIN_COMM_OK;
    times_asked = 0;
    caller = std::this_thread::get_id();
    answer = ROSIN_COMM_OK;
  }
  static rosin_comm_transport table(bool offers_common) {
    rosin_comm_transport t{};
    t.size = sizeof t;
    t.name = "Pretended";
    t.error_text = error_text;
    t.join = join;
    t.world = world;
    t.leave = leave;
    t.place = place;
    t.run = run;
    if (offers_common) t.common = common;
    return t;
  }
  /// (Nothing is to be settled: this transport takes no memory of devices.)
  std::vector<Array> sums(const std::vector<Array>& given, const std::vector<Owner>& owners = {}) {
    std::vector<rosin::detail::NamedGradient> gradients;
    for (size_t i = 0; i < given.size(); ++i) {
      gradients.push_back({"one", given[i], owners.empty() ? Owner{} : owners[i]});
    }
    Buckets buckets(group_, gradients, given);
    buckets.begin();
    std::vector<Array> made = buckets.sums(buckets.suit_common());
    buckets.look();
    return made;
  }

  Backend backend() { return Backend(&group_); }
  std::vector<Owner> owners(const std::vector<rosin::detail::SharedParameter>& parameters) const {
    return group_.owners(parameters);
  }

 private:
  rosin_comm_transport transport_;
  Group group_;
};

class BucketsOfTwo : public testing::Test, public TwoRanks {};

/// 4 MiB each; each needs the one behind it, as in a backward pass.
std::vector<Array> pending(Array x = full({1024, 1024}, 0.5f)) {
  std::vector<Array> given(4);
  for (size_t i = given.size(); i-- > 0;) {
    x = cumsum(x, 1) * 0.5;
    given[i] = x;
  }
  return given;
}

TEST_F(BucketsOfTwo, SendTheLastFirstByAThreadOfTheirOwn) {
  const std::vector<Array> given = pending();
  const std::vector<Array> got = sums(given);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].name, "update of gradients, message 0");
  EXPECT_EQ(sent[0].parts, 1u);
  EXPECT_EQ(sent[1].parts, 3u);
  EXPECT_TRUE(sent[0].by_other_thread);
  for (size_t i = 0; i < given.size(); ++i) EXPECT_TRUE(all(got[i] == 2.0 * given[i]).item<bool>()) << i;
}

TEST_F(BucketsOfTwo, NeedNoThreadForWhatIsThere) {
  const std::vector<Array> given = pending();
  eval();
  sums(given);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_FALSE(sent[0].by_other_thread);
  sent.clear();
  const Array x = full({3}, 2.0f), small = x + 1.0;
  EXPECT_EQ(sums({small, small}).front().to_vector<float>(), (std::vector<float>{6, 6, 6}));
  ASSERT_EQ(sent.size(), 1u) << "one message: nothing is left to compute beside it";
  EXPECT_FALSE(sent[0].by_other_thread);
}

TEST_F(BucketsOfTwo, GiveOwnersTheirShare) {
  const std::vector<Array> given = pending();
  const std::vector<Array> got = sums(given, {{0}, {1}, {0}, {1}});
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0].name, "update of gradients of the share of rank 1, message 0");
  EXPECT_TRUE(got[1].is_nothing());
  EXPECT_TRUE(got[3].is_nothing());
  EXPECT_TRUE(all(got[0] == 2.0 * given[0]).item<bool>());
  EXPECT_TRUE(all(got[2] == 2.0 * given[2]).item<bool>());
}

/// One message has the parts for all ranks, from where the gradients are written, and what is left is the last one's.
TEST_F(BucketsOfTwo, GiveEachItsPartOfWhatIsDivided) {
  const std::vector<Array> given = pending();
  const int64_t part = 1 << 18;
  const std::vector<Array> got = sums(given, {{-1, part}, {1}, {0}, {-1, given[3].count() / 2}});
  std::string names;
  for (const Sent& message : sent) names += message.name + ": " + std::to_string(message.parts) + "\n";
  EXPECT_EQ(names,
            "update of gradients of parts for each rank, message 0: 1\n"
            "update of gradients of the share of rank 0, message 1: 1\n"
            "update of gradients of the share of rank 1, message 2: 2\n"
            "update of gradients of parts for each rank, message 3: 1\n");
  EXPECT_TRUE(got[1].is_nothing());
  for (const auto& [i, count] : {std::pair{size_t{0}, part}, std::pair{size_t{3}, given[3].count() / 2}}) {
    EXPECT_EQ(got[i].shape(), Shape({count}));
    EXPECT_TRUE(all(got[i] == 2.0 * slice(reshape(given[i], {-1}), 0, 0, count)).item<bool>());
  }
  EXPECT_TRUE(all(got[2] == 2.0 * given[2]).item<bool>());
}

TEST_F(BucketsOfTwo, DivideWhatWouldBeTooMuchForARank) {
  using Parameters = std::vector<rosin::detail::SharedParameter>;
  const auto text = [this](const Parameters& parameters) {
    std::string said;
    for (const auto& [process, part] : owners(parameters)) {
      said += (part > 0 ? "parts of " + std::to_string(part) : std::to_string(process)) + " ";
    }
    return said;
  };
  const int64_t large = 100'000, small = 1000;
  EXPECT_EQ(text({{large, 4 * large, true}, {large, 4 * large, true}, {small, 4 * small, true}}), "0 1 0 ")
      << "whole ones are balanced";
  EXPECT_EQ(text({{small, 4 * small, true}, {large, 4 * large, true}}), "0 parts of 49984 ");
  EXPECT_EQ(text({{small, 4 * small, true}, {large, 4 * large, false}}), "1 0 ") << "the rule looks at all of it";
  EXPECT_EQ(text({{small, 4 * small, true}, {3 * small, 12 * small, true}}), "1 0 ") << "less than 64 KiB";
  EXPECT_EQ(text({{0, 0, true}, {96'000, 768'000, true}}), "0 parts of 48000 ");
}

TEST_F(BucketsOfTwo, StopWhenTheStepOrTheOtherRankFails) {
  std::vector<Array> given = pending();
  given[0] = gather(reshape(given[0], {-1}), Array({1 << 21}, {1}));
  EXPECT_NE(error_of([&] { sums(given); }, ErrorKind::argument).find("gather"), std::string::npos);
  EXPECT_LE(sent.size(), 1u);
  answer = ROSIN_COMM_LOST;
  EXPECT_NE(error_of([&] { sums(pending()); }, ErrorKind::distributed).find("other rank"), std::string::npos);
}

// ---- Memory in common ----

class SumsInCommon : public testing::Test, public TwoRanks {
 protected:
  SumsInCommon() : TwoRanks(true) {}
  /// The sums of two arrays of 4 MiB, whether in memory in common is told.
  std::vector<Array> sums_of(float number, bool in_common) {
    sent.clear();
    const std::vector<Array> given = {full({1024, 1024}, number), full({1024, 1024}, number + 1)};
    eval();
    std::vector<Array> got = sums(given);
    EXPECT_FALSE(sent.empty());
    for (const Sent& message : sent) EXPECT_EQ(message.in_common, in_common) << message.name;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(all(got[i] == 2.0 * given[i]).item<bool>()) << i;
    return got;
  }
};

TEST_F(SumsInCommon, StandThereFromStepToStep) {
  std::vector<const float*> first, second;
  for (const Array& x : sums_of(1, true)) first.push_back(x.data<float>().data());
  for (const Array& x : sums_of(5, true)) second.push_back(x.data<float>().data());
  EXPECT_EQ(first, second);
  EXPECT_EQ(times_asked, 1);
}

TEST_F(SumsInCommon, StandElsewhereWhileSomebodyReadsTheLast) {
  const std::vector<Array> held = {sums_of(1, true)[1]};
  sums_of(5, false);
  EXPECT_TRUE(all(held[0] == 4.0).item<bool>());
}

TEST_F(SumsInCommon, StandElsewhereWhileAPendingOpReadsTheLast) {
  const std::vector<Array> given = {full({1024, 1024}, 3.0f), full({1024, 1024}, 4.0f)};
  eval();
  const Array twice = 2.0 * sums(given)[0];
  EXPECT_TRUE(sent.back().in_common);
  const std::vector<Array> again = sums(given);
  EXPECT_FALSE(sent.back().in_common);
  EXPECT_TRUE(all(again[0] == 6.0).item<bool>());
  EXPECT_TRUE(all(twice == 12.0).item<bool>());
  sums_of(2, true);
  EXPECT_TRUE(all(twice == 12.0).item<bool>());
}

TEST_F(SumsInCommon, AreReadLaterByAGradientCall) {
  const Array slope = gradient(
      [&](const Array& x) {
        sums_of(3, false);
        return sum(x);
      },
      ones({2}));
  EXPECT_EQ(slope.to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST_F(SumsInCommon, AreElsewhereWhereTheSystemGivesNone) {
  common_answer = ROSIN_COMM_UNSUPPORTED;
  sums_of(1, false);
  sums_of(2, false);
  EXPECT_EQ(times_asked, 1);
  common_answer = ROSIN_COMM_OK;
  EXPECT_EQ(sums({full({3}, 2.0f)}).front().to_vector<float>(), (std::vector<float>{4, 4, 4}));
}

TEST_F(SumsInCommon, OfAStepTakeNoOtherMemory) {
  Chain model(Dense(1024, 1024), Dense(1024, 1024));
  State state = setup(Optimizer(backend(), Adam{}), model);
  const Chain gradient = fmap([](const Array& x) { return full(x.shape(), 0.5f); }, model);
  eval();
  for (int step = 0; step < 2; ++step) update(state, model, gradient);
  eval();
  const Device device = fleaves(model).front().device();
  trim(device);
  const int64_t live = memory_stats(device).live;
  set_memory_limit(device, live + 1000);
  sent.clear();
  update(state, model, gradient);
  eval();
  set_memory_limit(device, 0);
  ASSERT_EQ(sent.size(), 3u) << "nobody is asked whether there is memory";
  EXPECT_EQ(sent[0].name, "update of what ranks have");
  EXPECT_TRUE(sent[1].in_common && sent[2].in_common);
}

/// Three steps: nothing is sent in the first two, and the third is as every step of a rule that collects nothing.
TEST_F(BucketsOfTwo, TakeWhatAccumGradHandsOn) {
  Chain model(Dense(1024, 1024), Dense(1024, 1024));
  const Chain gradient = fmap([](const Array& x) { return full(x.shape(), 0.5f); }, model), before = model;
  State state = setup(OptimiserChain(AccumGrad{3}, Optimizer(backend(), Descent{1.0})), model);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(sent.size(), 0u) << step;
    update(state, model, gradient);
  }
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[0].name, "update of what ranks have");
  EXPECT_EQ(sent[3].name, "update of how the steps ended") << "the model before is held, so the step takes memory";
  for (const Sent& message : {sent[1], sent[2]}) EXPECT_EQ(message.parts, 2u) << message.name;
  const std::vector<Array> got = fleaves(model), old = fleaves(before);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(all(abs(old[i] - got[i] - 0.5) < 1e-6).item<bool>()) << i;
}

// ---- A device ----

struct OnADevice : TwoRanks {
  /// Results stay, so that each has memory of its own. From the third step on it is a graph.
  void step() {
    kept.push_back(pending(x));
    const Stats before = stats();
    const std::vector<Array> got = sums(kept.back());
    graphs = stats().graph_launches - before.graph_launches;
    launches += stats().launches - before.launches;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].device(), x.device());
      EXPECT_EQ(got[i].to_vector<float>(), (2.0 * (kept.back()[i] | cpu)).to_vector<float>()) << i;
    }
  }

  const Array x = full({512, 512}, 0.5f) | get_device("reference", 0);
  std::vector<std::vector<Array>> kept;
  int64_t launches = 0, graphs = 0;
};
constexpr int device_steps = 4;

class BucketsOfADevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!functional("reference")) GTEST_SKIP() << why_not("reference");
  }
};

TEST_F(BucketsOfADevice, CutItsGraphsBetweenMessages) {
  OnADevice two;
  for (int i = 0; i < device_steps; ++i) two.step();
  EXPECT_EQ(sent.size(), 2u * device_steps);
  EXPECT_EQ(two.graphs, 2);
}

TEST(DISABLED_Inside, StepsOfADevice) {
  OnADevice two;
  for (int i = 0; i < device_steps; ++i) two.step();
}

/// The last launch of a run begins when something has been copied out that was given after it: the first message.
TEST_F(BucketsOfADevice, SendTheFirstBeforeTheLastLaunchBegins) {
  if (!can_run_itself()) GTEST_SKIP() << "no /proc/self/exe";
  OnADevice two;
  for (int i = 0; i < device_steps; ++i) {
    two.step();
    if (i != 0 && i + 1 != device_steps) continue;
    const std::string last = std::to_string(two.launches - 1);
    expect_success(run_itself("StepsOfADevice", "ROSIN_REFERENCE=hold=" + last));
  }
}

/// The third step has the first two launches of graphs, one for each message.
TEST_F(BucketsOfADevice, AreRightWhereAPartOfAGraphIsRefused) {
  if (!can_run_itself()) GTEST_SKIP() << "no /proc/self/exe";
  for (const char* const refused : {"graph_fail=0", "graph_fail=1", "no_graph=launch", "no_graph=update"}) {
    expect_success(run_itself("StepsOfADevice", std::string("ROSIN_REFERENCE=") + refused));
  }
}

TEST_F(BucketsOfADevice, AreLookedAtWhenAllIsSent) {
  OnADevice two;
  const auto sums = [&](int32_t index) {
    std::vector<Array> given = pending(two.x);
    given[0] = given[0] + gather(reshape(given[0], {-1}), Array({index}, {1}) | two.x.device());
    two.sums(given);
  };
  for (int i = 0; i < device_steps; ++i) {
    sent.clear();
    sums(5);
    EXPECT_EQ(sent.size(), 2u);
    sent.clear();
    EXPECT_NE(error_of([&] { sums(1 << 21); }, ErrorKind::argument).find("gather"), std::string::npos);
    EXPECT_EQ(sent.size(), 2u);
  }
}

}  // namespace
}  // namespace rosin::distributed
