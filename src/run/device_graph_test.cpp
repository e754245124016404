// Tests of graphs of devices, on the reference back end, which runs the nodes of a graph in another order than steps.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/model.hpp>
#include <rosin/move.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

class DeviceGraphs : public testing::Test {
 protected:
  void SetUp() override {
    if (!functional("reference")) GTEST_SKIP() << why_not("reference");
    device_ = get_device("reference", 0);
  }
  void TearDown() override { set_plan_cache(true); }

  /// A plan that is made anew each time never runs as a graph.
  template <class F> auto one_by_one(F f) {
    set_plan_cache(false);
    const Stats before = stats();
    auto result = f();
    EXPECT_EQ(stats().graph_launches, before.graph_launches);
    set_plan_cache(true);
    return result;
  }
  template <class F> int64_t graphs_of(F f) {
    const int64_t before = stats().graph_launches;
    f();
    return stats().graph_launches - before;
  }

  Device device_;
};

Array ramp(const Shape& shape, int from) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.count(); ++i) values.push_back(static_cast<float>((i + from) * 7 % 11) / 11.0f - 0.4f);
  return Array(values, shape);
}

struct Net {
  Dense first{3, 5, tanh}, second{5, 4, relu}, out{4, 2};
  Array operator()(const Array& x) const { return out(second(first(x))); }
};

using Bits = std::vector<std::vector<float>>;

/// Trains with the batches in turn; what comes out of each step, and the model at the end.
template <class Rule> Bits train_net(const Device& device, Rule rule, const std::vector<int64_t>& batches) {
  seed(3);
  Net model = Net{} | device;
  State state = setup(rule, model);
  Bits all;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Array x = ramp({3, batches[i]}, static_cast<int>(i)) | device;
    const Array y = ramp({2, batches[i]}, static_cast<int>(i) + 5) | device;
    const auto step = withgradient([&](const Net& m) { return mse(m(x), y); }, model);
    update(state, model, step.gradient);
    all.push_back(step.value.template to_vector<float>());
  }
  for (const Array& x : fleaves(model)) all.push_back(x.to_vector<float>());
  for (const Array& x : fleaves(state)) all.push_back(x.to_vector<float>());
  return all;
}

TEST_F(DeviceGraphs, StepsOfTrainingHaveTheBitsOfSingleLaunches) {
  const std::vector<int64_t> same(12, 6), two = {6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4};
  for (const auto& batches : {same, two}) {
    const auto train = [&] { return train_net(device_, Adam{.eta = 0.01}, batches); };
    const Bits expected = one_by_one(train);
    Bits got;
    // The first runs of each size are no graphs.
    EXPECT_GE(graphs_of([&] { got = train(); }), static_cast<int64_t>(batches.size()) - 8);
    EXPECT_EQ(got, expected);
  }
}

TEST_F(DeviceGraphs, ThirdRunsAreTheFirstGraphs) {
  const Array x = ramp({300}, 1) | device_;
  for (int run = 0; run < 6; ++run) {
    Array y;
    const int64_t graphs = graphs_of([&] {
      y = exp(x) * static_cast<double>(run) + 1;
      eval();
    });
    EXPECT_EQ(graphs, run >= 2) << run;
    EXPECT_EQ(y.to_vector<float>(), (exp(x | cpu) * static_cast<double>(run) + 1).to_vector<float>());
  }
}

TEST_F(DeviceGraphs, NumbersComeAnewWithEachRun) {
  const Array x = ramp({4, 700}, 2) | device_;
  const auto run = [&](int i) {
    const double a = 0.5 * i, b = 1.5 - i;
    const Array rows = sum(x * a, 0), drawn = rand({9}) | device_;
    return std::vector{(rows + b).to_vector<float>(), (sum(x - b, 1) * (a + 1)).to_vector<float>()};
  };
  std::vector<std::vector<std::vector<float>>> expected, got;
  one_by_one([&] {
    for (int i = 0; i < 6; ++i) expected.push_back(run(i));
    return 0;
  });
  EXPECT_GT(graphs_of([&] {
              for (int i = 0; i < 6; ++i) got.push_back(run(i));
            }),
            0);
  EXPECT_EQ(got, expected);
}

TEST_F(DeviceGraphs, ResultsThatAreHeldKeepTheirValues) {
  const Array x = ramp({50}, 3) | device_;
  std::vector<Array> held;
  for (int i = 0; i < 8; ++i) {
    held.push_back(sqrt(abs(x)) + static_cast<double>(i));
    eval();
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(held[static_cast<size_t>(i)].to_vector<float>(), (sqrt(abs(x | cpu)) + double(i)).to_vector<float>())
        << i;
  }
}

TEST_F(DeviceGraphs, ALeafThatComesFromElsewhereEachTimeIsCopiedByOneNode) {
  // (The kept batches make each come in memory of its own.)
  std::vector<Array> kept;
  const auto step = [&](int i) {
    kept.push_back(ramp({6, 6}, i) | device_);
    const Array& x = kept.back();
    const Array y = exp(sum(x, 0)) + matmul(x, x) + sum(x * x);
    return y.to_vector<float>();
  };
  for (int i = 0; i < 9; ++i) step(i);
  const Stats before = stats();
  const std::vector<float> got = step(40);
  EXPECT_EQ(stats().graph_launches - before.graph_launches, 1);
  EXPECT_LE(stats().graph_updates - before.graph_updates, 2);  // the copy, and where the result is written
  EXPECT_EQ(got, one_by_one([&] { return step(40); }));
}

TEST_F(DeviceGraphs, AResultThatIsKeptForAStepTakesNobodysPlace) {
  const Array x = ramp({9, 9}, 6) | device_, w = ramp({9, 9}, 7) | device_;
  Array kept;  // takes turns between two places; the others find theirs free
  int64_t updates = 0;
  for (int i = 0; i < 12; ++i) {
    const Array loss = sum(square(matmul(w, x)), 0), rows = sum(matmul(w, x), 1), all = sum(w * x, 0);
    const int64_t before = stats().graph_updates;
    eval();
    if (i >= 6) updates += stats().graph_updates - before;
    kept = loss;
  }
  EXPECT_LE(updates, 6);  // where the loss is written
}

TEST_F(DeviceGraphs, TrimGivesThemBack) {
  const Array x = ramp({30}, 4) | device_;
  const auto run = [&] { return (x * 3).to_vector<float>(); };
  for (int i = 0; i < 4; ++i) run();
  EXPECT_EQ(graphs_of(run), 1);
  trim();
  EXPECT_EQ(graphs_of(run), 0);
  EXPECT_EQ(run(), (ramp({30}, 4) * 3).to_vector<float>());
}

}  // namespace
}  // namespace rosin
