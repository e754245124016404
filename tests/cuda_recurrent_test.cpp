// Recurrent layers that cuDNN computes, on the pretended GPUs of tests/fake_cuda: which are taken, and what comes out,
// beside the CPU. Read first: library_call_testing.hpp.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <rosin/chain.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/recurrent.hpp>
#include <rosin/vmap.hpp>

#include "cuda_testing.hpp"
#include "library_call_testing.hpp"

namespace rosin {
namespace {

constexpr double tolerance = 1e-5;

/// Of a layer's outputs and last states with other weights, so that f can be asked for gradients.
struct Weights {
  Array input, recurrent, bias;
};
Weights weights_of(int64_t gates, int64_t in, int64_t out) {
  return {randn({gates * out, in}), randn({gates * out, out}), randn({gates * out})};
}
Arrays arrays_of(const Weights& w, const Array& x, int64_t out, int64_t batch) {
  return {x, w.input, w.recurrent, w.bias, randn({out, batch}), randn({out, batch})};
}

template <class Cell> Cell cell_of(const Arrays& a) {
  Cell cell;
  cell.input_weight = a[1];
  cell.recurrent_weight = a[2];
  cell.bias = a[3];
  return cell;
}
Array all_of(const RecurrentResult<Array>& made) {
  return concat({reshape(made.out, {-1}), reshape(made.state, {-1})}, 0);
}
Array all_of(const RecurrentResult<LSTMState>& made) {
  return concat({reshape(made.out, {-1}), reshape(made.state.hidden, {-1}), reshape(made.state.cell, {-1})}, 0);
}

using Form = std::function<Array(const Arrays&)>;

Form rnn(Activation act = UnaryFunction{tanh}, SequenceOptions how = {}) {
  return [=](const Arrays& a) {
    RNNCell cell = cell_of<RNNCell>(a);
    cell.act = act;
    return all_of(RNN(cell)(a[0], a[4], how));
  };
}
Form lstm(SequenceOptions how = {}) {
  return [=](const Arrays& a) { return all_of(LSTM(cell_of<LSTMCell>(a))(a[0], {a[4], a[5]}, how)); };
}
Form gru(SequenceOptions how = {}) {
  return [=](const Arrays& a) { return all_of(GRU(cell_of<GRUCell>(a))(a[0], a[4], how)); };
}

/// The slopes by all operands of a sum of f's results.
Form slopes(const Form& f) {
  return [=](const Arrays& a) {
    const auto loss = [&](const Arrays& all) {
      const Array y = f(all);
      return sum(square(y) + y);
    };
    Arrays given = gradient(loss, a);
    for (Array& g : given) {
      if (!g.is_nothing()) g = reshape(g, {-1});
    }
    std::erase_if(given, [](const Array& g) { return g.is_nothing(); });
    return concat(given, 0);
  };
}

/// How many calls of the library f makes on the device; its result is the CPU's.
int64_t calls(const Form& f, const Arrays& arrays, double close = tolerance) {
  return launches_on(cuda(), f, arrays, close).by_library;
}

TEST(DISABLED_Inside, CudaRunsRecurrentLayers) {
  const Array x = randn({3, 5, 2});
  const Arrays one = arrays_of(weights_of(1, 3, 4), x, 4, 2), four = arrays_of(weights_of(4, 3, 4), x, 4, 2),
               three = arrays_of(weights_of(3, 3, 4), x, 4, 2);
  EXPECT_EQ(calls(rnn(), one), 1);
  EXPECT_EQ(calls(rnn(UnaryFunction{relu}), one), 1);
  EXPECT_EQ(calls(lstm(), four), 1);
  EXPECT_EQ(calls(gru(), three), 1);
  EXPECT_EQ(calls(lstm({.reverse = true}), four), 1);
  EXPECT_EQ(calls(gru({.reverse = true}), three), 1);
  Arrays single = four;  // a sequence without a batch
  single[0] = randn({3, 5});
  single[4] = randn({4});
  single[5] = randn({4});
  EXPECT_EQ(calls(lstm(), single), 1);
  Arrays plain = four;  // no bias, and one state for all
  plain[4] = randn({4});
  const Form without_bias = [](const Arrays& a) {
    LSTMCell cell = cell_of<LSTMCell>(a);
    cell.bias = {};
    return LSTM(cell)(a[0], LSTMState{a[4], a[4]}).out;
  };
  EXPECT_EQ(calls(without_bias, plain), 1);
  // Views are copied before.
  Arrays viewed = four;
  viewed[0] = randn({2, 5, 3});
  const Form of_view = [](const Arrays& a) {
    Arrays all = a;
    all[0] = permute(a[0], {2, 1, 0});
    return lstm()(all);
  };
  EXPECT_EQ(calls(of_view, viewed), 1);
}

TEST(CudaRecurrent, IsThatOfTheCpu) {
  const Products products;
  expect_success(on_pretended_gpu("CudaRunsRecurrentLayers", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_EQ(products.count("recurrent inference"), 9);
  EXPECT_EQ(products.count("recurrent training"), 4);  // those that the library is tried with
}

TEST(DISABLED_Inside, CudaRunsGradientsOfRecurrentLayers) {
  const Array x = randn({3, 5, 2});
  const Arrays one = arrays_of(weights_of(1, 3, 4), x, 4, 2), four = arrays_of(weights_of(4, 3, 4), x, 4, 2),
               three = arrays_of(weights_of(3, 3, 4), x, 4, 2);
  EXPECT_EQ(calls(slopes(rnn()), one, 1e-4), 2);
  EXPECT_EQ(calls(slopes(rnn(UnaryFunction{relu})), one, 1e-4), 2);
  EXPECT_EQ(calls(slopes(lstm()), four, 1e-4), 2);
  EXPECT_EQ(calls(slopes(gru()), three, 1e-4), 2);
  EXPECT_EQ(calls(slopes(lstm({.reverse = true})), four, 1e-4), 2);
  // Of the last state alone, and by the weights alone.
  const auto of_last = [](const Arrays& a) {
    return gradient(
        [&](const Array& w) {
          Arrays all = a;
          all[1] = w;
          return sum(LSTM(cell_of<LSTMCell>(all))(a[0], LSTMState{a[4], a[5]}).state.cell);
        },
        a[1]);
  };
  EXPECT_EQ(calls(of_last, four, 1e-4), 2);
}

TEST(CudaRecurrent, HasGradientsByDataAndWeights) {
  const Products products;
  expect_success(on_pretended_gpu("CudaRunsGradientsOfRecurrentLayers", "devices=1,order=3", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_GE(products.count("recurrent data"), 4 + 6);
  EXPECT_GE(products.count("recurrent weights"), 4 + 6);
}

TEST(DISABLED_Inside, CudaRunsRecurrentLayersOfOtherTypes) {
  const Arrays four = arrays_of(weights_of(4, 3, 4), randn({3, 5, 2}), 4, 2);
  for (const auto& [type, close] :
       {std::tuple(Float64, 1e-12), std::tuple(Float16, 5e-3), std::tuple(BFloat16, 5e-2)}) {
    Arrays all;
    for (const Array& a : four) all.push_back(cast(a, type));
    EXPECT_EQ(calls(lstm(), all, close), 1) << to_string(type);
    EXPECT_EQ(calls(slopes(lstm()), all, 20 * close), 2) << to_string(type);
  }
}

TEST(CudaRecurrent, IsOfAnyFloat) {
  const Products products;
  expect_success(on_pretended_gpu("CudaRunsRecurrentLayersOfOtherTypes", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, CudaGoesStepByStep) {
  const Array x = randn({3, 5, 2});
  const Arrays one = arrays_of(weights_of(1, 3, 4), x, 4, 2), three = arrays_of(weights_of(3, 3, 4), x, 4, 2);
  const Arrays four = arrays_of(weights_of(4, 3, 4), x, 4, 2);
  const Array lengths(std::vector<int64_t>{3, 5}, {2});
  EXPECT_GT(calls(lstm({.lengths = lengths}), four), 4);  // products
  EXPECT_GT(calls(rnn(UnaryFunction{sigmoid}), one), 4);
  EXPECT_GT(calls([](const Arrays& a) { return with(MathMode::exact, [&] { return gru()(a); }); }, three), 4);
  EXPECT_GT(calls(
                [](const Arrays& a) {
                  return gradient(
                      [&](const Array& v) {
                        Arrays all = a;
                        all[0] = v;
                        return sum(square(gradient(
                            [&](const Array& w) {
                              Arrays inner = all;
                              inner[1] = w;
                              return sum(square(lstm()(inner)));
                            },
                            a[1])));
                      },
                      a[0]);
                },
                four, 1e-3),
            8);
  EXPECT_GT(calls(
                [](const Arrays& a) {
                  const auto of_one = [&](const Array& v) {
                    Arrays all = a;
                    all[0] = v;
                    return lstm()(all);
                  };
                  return vmap(of_one, stack({a[0], 2 * a[0]}, 3));
                },
                four),
            4);
}

TEST(CudaRecurrent, GoesStepByStepWhereCudnnHasNoSuchLayer) {
  const Products products;
  expect_success(on_pretended_gpu("CudaGoesStepByStep", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_EQ(products.count("recurrent inference"), 0);
}

struct Network {
  LSTM first{3, 6};
  Bidirectional<GRU> second{GRU(6, 4), GRU(6, 4)};
  Dense out{8, 2};
  Array operator()(const Array& x) const { return out(select(second(first(x)), 1, -1)); }
};

/// Losses of a small network, and the sum of some weights at the end.
std::vector<float> trained(const Device& device, int steps) {
  seed(3);
  Network model = Network{} | device;
  State state = setup(Adam{.eta = 1e-2}, model);
  std::vector<float> all;
  for (int i = 0; i < steps; ++i) {
    const Array x = randn({3, 7, 4}) | device, y = cast(randn({2, 4}) > 0, Float32) | device;
    const auto [loss, g] = withgradient([&](const Network& m) { return logitcrossentropy(m(x), y); }, model);
    update(state, model, g);
    all.push_back(loss.item<float>());
  }
  all.push_back(sum(model.first.cell.recurrent_weight).item<float>());
  return all;
}

TEST(DISABLED_Inside, CudaTrainsRecurrentLayers) {
  const std::vector<float> here = trained(Device(), 6), there = trained(cuda(), 6);
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4) << i;
  print(there);
  trim();
  synchronize(cuda());
}

TEST(CudaRecurrent, TrainsAModelInGraphsWithTheSameBits) {
  const Products products;
  const Outcome graphs = on_pretended_gpu("CudaTrainsRecurrentLayers", "devices=1,order=2", products.variable());
  expect_success(graphs);
  EXPECT_EQ(products.count("error"), 0);
  const Outcome direct = on_pretended_gpu("CudaTrainsRecurrentLayers", "devices=1", "ROSIN_GRAPHS=0");
  expect_success(direct);
  EXPECT_EQ(printed(graphs.text), printed(direct.text));
  EXPECT_FALSE(printed(direct.text).empty());
}

TEST(CudaRecurrent, IsStepByStepWhereTheLibraryFailsItsTrial) {
  for (const char* options : {"cudnn=80907", "fail=cudnnRNNForward:1", "fail=cudnnRNNBackwardWeights_v8:1",
                              "fail=cudnnSetRNNDescriptor_v8:1"}) {
    const Products products;
    expect_success(on_pretended_gpu("CudaTrainsRecurrentLayers", options, products.variable()));
    EXPECT_LE(products.count("recurrent training 2"), 1) << options;  // lstm
  }
}

}  // namespace
}  // namespace rosin
