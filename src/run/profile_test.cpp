// profile(): what is counted, named and timed, and the files that show it.
#include <rosin/profile.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#include <rosin/rosin.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

const ProfileEntry* find(const Profile& profile, const std::string& ops) {
  const auto at = std::find_if(profile.entries.begin(), profile.entries.end(),
                               [&](const ProfileEntry& entry) { return entry.ops == ops; });
  return at == profile.entries.end() ? nullptr : &*at;
}

TEST(Profile, KernelsAndCallsAreThereWithOpsSizesAndRuns) {
  const Array a = ones({30, 40}), b = ones({40, 50});
  eval(a, b);
  const Profile profile = rosin::profile([&] {
    for (int i = 0; i < 3; ++i) eval(exp(matmul(a, b)) * 2);
  });
  const ProfileEntry* const product = find(profile, "matmul");
  ASSERT_TRUE(product);
  EXPECT_EQ(product->sizes, "(30, 40) (40, 50) Float32");
  EXPECT_EQ(product->device, "CPU");
  EXPECT_EQ(product->runs, 3);
  const ProfileEntry* const kernel = find(profile, "exp mul");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->sizes, "(30, 50) Float32");
  EXPECT_EQ(kernel->runs, 3);
  EXPECT_EQ(profile.entries.size(), 2u);
  EXPECT_EQ(profile.runs.size(), 6u);
}

TEST(Profile, TimesAddUp) {
  const Array x = rand({300, 300});
  const Profile profile = rosin::profile([&] {
    for (int i = 0; i < 5; ++i) eval(matmul(x, x), tanh(x));
  });
  double of_entries = 0, of_runs = 0, last = 0;
  for (size_t i = 0; i < profile.entries.size(); ++i) {
    EXPECT_GT(profile.entries[i].seconds, 0);
    if (i > 0) {
      EXPECT_GE(profile.entries[i - 1].seconds, profile.entries[i].seconds);
    }
    of_entries += profile.entries[i].seconds;
  }
  for (const ProfileRun& run : profile.runs) {
    EXPECT_GE(run.begin, last);  // one thread: one after the other
    last = run.begin + run.seconds - 1e-9;
    of_runs += run.seconds;
  }
  EXPECT_NEAR(of_entries, of_runs, 1e-9);
  EXPECT_LE(of_entries + profile.planning, profile.seconds);
  EXPECT_GT(profile.planning, 0);
}

TEST(Profile, ATrainingStepIsSeenWhole) {
  seed(1);
  Chain model(Dense(20, 30, tanh), Dense(30, 2));
  State state = setup(Adam{}, model);
  const Array x = rand({20, 16}), y = rand({2, 16});
  const auto step = [&] {
    auto [loss, grad] = withgradient([&](const Chain& m) { return mse(m(x), y); }, model);
    update(state, model, grad);
    return loss;
  };
  for (int i = 0; i < 200; ++i) eval(step());  // so many that steps would run behind this thread
  reset_stats();
  eval(step());
  const Stats of_one = stats();
  const Profile profile = rosin::profile([&] { eval(step()); });
  EXPECT_EQ(static_cast<int64_t>(profile.runs.size()), of_one.kernels + of_one.calls);
}

TEST(Profile, ThreadsAreToldApart) {
  const Array x = ones({10});
  eval(x);
  const Profile profile = rosin::profile([&] {
    eval(exp(x));
    std::thread([&] { eval(exp(x)); }).join();
  });
  ASSERT_EQ(profile.runs.size(), 2u);
  EXPECT_EQ(profile.runs[0].thread, 0);
  EXPECT_EQ(profile.runs[1].thread, 1);
  EXPECT_EQ(profile.entries.at(0).runs, 2);
}

TEST(Profile, OneIsTakenAtATimeAndOneThatFailsEnds) {
  const auto inside = [] { rosin::profile([] {}); };
  EXPECT_EQ(error_of([&] { rosin::profile(inside); }, ErrorKind::argument),
            "profile: there is one at a time; another one is under way; wait for that, or take both in one");
  EXPECT_TRUE(rosin::profile([] {}).runs.empty());
}

TEST(Profile, NothingIsDifferentForIt) {
  const Array x = rand({100, 100});
  const Array plain = softmax(matmul(x, x));
  eval(plain);
  Array profiled;
  rosin::profile([&] { eval(profiled = softmax(matmul(x, x))); });
  EXPECT_EQ(plain.to_vector<float>(), profiled.to_vector<float>());
}

Profile made_by_hand() {
  Profile profile;
  profile.seconds = 0.5;
  profile.planning = 0.0123;
  profile.entries = {{"matmul", "(384, 128) (128, 768) Float32", "CPU", 40, 0.3},
                     {"add tanh multiply add tanh multiply subtract", "(384, 768) Float32", "CUDA:0", 3, 0.1},
                     {"a \"b\"\\\n", "", "CPU", 1, 25e-6}};
  profile.runs = {{0, 0, 0.25, 0.3}, {2, 1, 0.3, 25e-6}};
  return profile;
}

TEST(Profile, TheTableFitsIntoATerminal) {
  EXPECT_EQ(to_string(made_by_hand()),
            "profile of 500 ms: 400 ms in 2 kernels and calls, 12.3 ms planning\n"
            "    time  share   runs     each  device what\n"
            "  300 ms  75.0%     40  7.50 ms  CPU    matmul (384, 128) (128, 768) Float32\n"
            "  100 ms  25.0%      3  33.3 ms  CUDA:0 add tanh multiply ... (384, 768) Float32\n"
            " 25.0 us   0.0%      1  25.0 us  CPU    a \"b\"\\\n\n");
}

TEST(Profile, LongTextsAreCut) {
  Profile profile = made_by_hand();
  profile.entries = {
      {"maxpool_gradient", "(24, 24, 6, 128) (12, 12, 6, 128) (12, 12, 6, 128) Float32", "AMDGPU:10", 1, 1},
      {std::string(200, 'x'), "", "CPU", 1, 1}};
  std::stringstream text(to_string(profile));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_NE(text.str().find("AMDGPU:10 maxpool_g... (24, 24, 6, 128) (12,...\n"), std::string::npos) << text.str();
}

TEST(Profile, OfManyEntriesThoseThatTookMostAreShown) {
  Profile profile = made_by_hand();
  profile.entries.resize(1);
  for (int i = 0; i < 30; ++i) profile.entries.push_back({"exp", std::to_string(i), "CPU", 1, 1e-3});
  const std::string text = to_string(profile);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 + 20 + 1);
  EXPECT_TRUE(text.ends_with(" 11.0 ms  in 11 others\n")) << text;
}

TEST(Profile, TheTraceIsWhatViewersRead) {
  const std::string path = testing::TempDir() + "rosin_profile_test.json";
  save_trace(path, made_by_hand());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(
      text.str(),
      "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
      "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": \"CPU\"}},\n"
      "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"args\": {\"name\": \"CUDA:0\"}},\n"
      "{\"ph\": \"X\", \"name\": \"matmul\", \"pid\": 0, \"tid\": 0, \"ts\": 250000.000, \"dur\": 300000.000, "
      "\"args\": {\"sizes\": \"(384, 128) (128, 768) Float32\"}},\n"
      "{\"ph\": \"X\", \"name\": \"a \\\"b\\\"\\\\\\u000a\", \"pid\": 0, \"tid\": 1, \"ts\": 300000.000, \"dur\": "
      "25.000, \"args\": {\"sizes\": \"\"}}\n]}\n");
  std::remove(path.c_str());
  const std::string message = error_of([] { save_trace("/nowhere/at/all.json", {}); }, ErrorKind::io);
  EXPECT_NE(message.find("/nowhere/at/all.json"), std::string::npos) << message;
}

}  // namespace
}  // namespace rosin
