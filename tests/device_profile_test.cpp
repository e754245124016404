// profile() of a device: its launches, timed one by one. Read first: test_device.hpp.
#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/optim.hpp>
#include <rosin/profile.hpp>
#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "test_device.hpp"

namespace rosin {
namespace {

/// "CUDA:0"
std::string name_of(const Device& device) {
  const std::string text = to_string(device);
  return text.substr(0, text.find(' '));
}

TEST(DeviceProfile, LaunchesAreThereWithTheirSizes) {
  const Array a = ones({30, 40}) | some_device(), b = ones({40, 50}) | some_device();
  eval(a, b);
  const Profile profile = rosin::profile([&] {
    for (int i = 0; i < 3; ++i) eval(exp(matmul(a, b)) * 2);
  });
  int64_t products = 0;
  for (const ProfileEntry& entry : profile.entries) {
    EXPECT_EQ(entry.device, name_of(some_device()));
    EXPECT_GT(entry.seconds, 0);
    EXPECT_EQ(entry.runs % 3, 0) << entry.ops;
    const bool product = entry.ops.starts_with("matmul") && entry.sizes == "(30, 40) (40, 50) Float32";
    if (product) products += entry.runs;
    else EXPECT_EQ(entry.ops + " " + entry.sizes, "exp mul (30, 50) Float32");
  }
  EXPECT_GE(products, 3);
}

/// A network that is trained, and what it is then.
std::vector<float> trained(bool profiled) {
  seed(4);
  Dense model = Dense(8, 5, tanh) | some_device();
  State state = setup(Momentum{.eta = 0.1}, model);
  const Array x = rand({8, 6}) | some_device(), y = rand({5, 6}) | some_device();
  const auto step = [&] {
    auto [loss, grad] = withgradient([&](const Dense& m) { return mse(m(x), y); }, model);
    update(state, model, grad);
    eval(loss);
  };
  for (int i = 0; i < 12; ++i) {
    if (profiled && i % 3 == 0) EXPECT_FALSE(rosin::profile(step).runs.empty());
    else step();
  }
  return cpu(model.weight).to_vector<float>();
}

TEST(DeviceProfile, StepsWithAndWithoutAreTheSame) { EXPECT_EQ(trained(true), trained(false)); }

TEST(DeviceProfile, CopiesAreThereWithTheirBytes) {
  const Array x = rand({300, 7});
  eval(x);
  const Profile profile = rosin::profile([&] {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(cpu(exp(x | some_device())(slice(0, 100))).to_vector<float>().size(), 700u);
  });
  const auto runs_of = [&](const std::string& ops, const std::string& sizes) {
    int64_t runs = 0;
    for (const ProfileEntry& entry : profile.entries) {
      if (entry.ops != ops || entry.sizes != sizes) continue;
      EXPECT_EQ(entry.device, name_of(some_device()));
      EXPECT_GT(entry.seconds, 0);
      runs += entry.runs;
    }
    return runs;
  };
  EXPECT_EQ(runs_of("copy to the device", "8400 bytes"), 2);
  EXPECT_EQ(runs_of("copy to the host", "2800 bytes"), 2);
}

TEST(DeviceProfile, AsManyRunsAsLaunches) {
  const Array x = rand({40, 40}) | some_device();
  const auto work = [&] { eval(exp(matmul(x, x)) + 1, tanh(x)); };
  for (int i = 0; i < 5; ++i) work();
  const Stats before = stats();
  const Profile profile = rosin::profile(work);
  EXPECT_EQ(static_cast<int64_t>(profile.runs.size()), stats().launches - before.launches);
  EXPECT_EQ(stats().graph_launches, before.graph_launches);
}

}  // namespace
}  // namespace rosin
