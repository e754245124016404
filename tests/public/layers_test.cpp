// Layers as a user writes them: against the public headers and the shared library only.
#include <cmath>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/combine_layers.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/dropout.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/model.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/pool_layers.hpp>
#include <rosin/random.hpp>
#include <rosin/show.hpp>

using namespace rosin;

namespace {

struct MLP {
  Dense hidden{784, 256, relu};
  Dense out{256, 10};
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

struct Residual {
  Chain body{Dense(8, 8, tanh), Dropout(0.1)};
  BatchNorm norm{8};
  double weight = 0.5;
  Array operator()(const Array& x) const { return norm(x + body(x) * weight); }
};

const Dense at_namespace_scope{3, 2};
const Chain chain_at_namespace_scope(Dense(3, 2), softmax);

TEST(PublicLayers, AStructOfLayersIsAModel) {
  EXPECT_EQ(parameter_count(MLP{}), 203530);
  EXPECT_EQ(to_string(MLP{}),
            "MLP(\n"
            "  hidden = Dense(784 => 256, relu),     # 200_960 parameters\n"
            "  out = Dense(256 => 10),               # 2_570 parameters\n"
            ")                   # Total: 4 arrays, 203_530 parameters, 795.039 KiB.");
}

TEST(PublicLayers, FunctionsOfTheLibraryAndOfTheUserAreLayers) {
  const Chain model(Dense(10, 5, sigmoid), Dense(5, 2), softmax);
  EXPECT_EQ(model(rand({10})).shape(), (Shape{2}));
  EXPECT_NEAR(sum(model(rand({10, 3}))).item(), 3, 1e-5);
  const double slope = 0.25;
  const Chain bent(Dense(4, 4, [slope](const Array& x) { return leakyrelu(x, slope); }),
                   SkipConnection(Dense(4, 4), add), tanh);
  EXPECT_EQ(bent(rand({4, 2})).shape(), (Shape{4, 2}));
}

TEST(PublicLayers, LayersPrintThroughStreams) {
  std::ostringstream text;
  text << Conv({5, 5}, 3, 7, relu, {.stride = 2, .pad = 1, .bias = false});
  EXPECT_EQ(text.str(), "Conv((5, 5), 3 => 7, relu, pad=1, stride=2, bias=false)  # 525 parameters");
  const Chain chain(Dense(2, 3), Dense(3, 1));
  std::ostringstream of_chain;
  of_chain << chain << "\n" << SkipConnection(Dense(4, 4), add);
  EXPECT_EQ(of_chain.str(), to_string(chain) + "\n" + to_string(SkipConnection(Dense(4, 4), add)));
}

TEST(PublicLayers, GradientsHaveTheTypeOfTheModel) {
  Residual model;
  const Array x = randn({8, 16}), y = onehot(randint(0, 8, {16}), 8);
  auto [loss, grad] = withgradient([&](const Residual& m) { return logitcrossentropy(m(x), y); }, model);
  EXPECT_TRUE(std::isfinite(loss.item()));
  EXPECT_EQ(grad.body[0].get_if<Dense>()->weight.shape(), (Shape{8, 8}));
  EXPECT_GT(sum(abs(grad.body[0].get_if<Dense>()->weight)).item(), 0);
  EXPECT_GT(sum(abs(model.norm.mean.value())).item(), 0);
  EXPECT_EQ(trainables(model).size(), 4u);
}

TEST(PublicLayers, ObjectsAtNamespaceScopeWork) {
  EXPECT_EQ(at_namespace_scope(ones({3})).shape(), (Shape{2}));
  EXPECT_NEAR(sum(chain_at_namespace_scope(ones({3}))).item(), 1, 1e-6);
}

TEST(PublicLayers, OneModelServesManyThreads) {
  const Chain model(Dense(6, 5, relu), Dense(5, 4), softmax);
  const Array x = rand({6, 3});
  const std::vector<float> want = model(x).to_vector();
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      bool same_always = true;
      for (int i = 0; i < 20; ++i) {
        const Chain copy = model;
        same_always = same_always && copy(x).to_vector() == want;
      }
      equal[t] = same_always;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 1));
}

}  // namespace
