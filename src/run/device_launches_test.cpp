// Tests of how many launches a device gets, on the reference back end.
#include <gtest/gtest.h>

#include <vector>

#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/model.hpp>
#include <rosin/move.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

class DeviceLaunches : public testing::Test {
 protected:
  void SetUp() override {
    if (!functional("reference")) GTEST_SKIP() << why_not("reference");
    device_ = get_device("reference", 0);
  }
  template <class F> int64_t launches_of(F f) {
    const int64_t before = stats().launches;
    f();
    return stats().launches - before;
  }
  Device device_;
};

TEST_F(DeviceLaunches, IndependentElementwiseKernelsShareOne) {
  const Array a = ones({7}) | device_, b = ones({300}) | device_, c = ones({3, 500}) | device_;
  Array x, y, z;
  EXPECT_EQ(launches_of([&] {
              x = a + 1;
              y = b * 3;
              z = c - 5;
              eval();
            }),
            1);
  EXPECT_EQ(sum(x).item(), 14);
  EXPECT_EQ(sum(y).item(), 900);
  EXPECT_EQ(sum(z).item(), -6000);
}

TEST_F(DeviceLaunches, ArgumentsOfOneLaunchAreBounded) {
  std::vector<Array> in, out(50);
  for (int64_t i = 0; i < 50; ++i) in.push_back(full({i + 2}, static_cast<float>(i)) | device_);
  const int64_t launches = launches_of([&] {
    for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] + 1;
    eval();
  });
  EXPECT_GT(launches, 1);
  EXPECT_LT(launches, 10);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(mean(out[i]).item(), static_cast<double>(i + 1));
}

struct Model {
  Dense first{3, 5}, second{5, 2};
};

TEST_F(DeviceLaunches, AnUpdateOfSeveralParametersIsOneLaunch) {
  Model model = Model{} | device_;
  State state = setup(Adam{}, model);
  int64_t launches = 0;
  for (int i = 0; i < 2; ++i) {
    const Model gradient = fmap([](const Array& x) { return x * 0.5 + 1; }, model);
    eval();
    launches = launches_of([&] { update(state, model, gradient); });
  }
  EXPECT_EQ(launches, 1);
}

}  // namespace
}  // namespace rosin
