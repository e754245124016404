// Errors say where in a model they arose: golden texts.
#include <gtest/gtest.h>

#include <vector>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/combine_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/embedding.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

constexpr const char* dense_text =
    "layer Dense(4 => 2) expects size(input, 0) == 4, but got 3-element Array{Float32}; arrays are (features, batch), "
    "with the features first: transpose(x) exchanges the two";

struct Block {
  Dense first{3, 3};
  Dense second{4, 2};  // does not fit
  Array operator()(const Array& x) const { return second(first(x)); }
};
struct Net {
  Dense in{3, 3};
  std::vector<Block> blocks = std::vector<Block>(2);
  Array operator()(const Array& x) const { return blocks[1](in(x)); }
};

template <class Model> std::string error_of_gradient(const Model& model) {
  return error_of([&] { gradient([](const Model& m) { return sum(m(ones({3}))); }, model); }, ErrorKind::shape);
}

TEST(ErrorPath, OfALayerCalledByHandIsKnownToTheGradientCall) {
  EXPECT_EQ(error_of_gradient(Net{}), std::string("blocks[1].second: ") + dense_text);
}

TEST(ErrorPath, OfALayerCalledByHandAloneNamesTheLayer) {
  EXPECT_EQ(error_of([] { Net{}(ones({3})); }, ErrorKind::shape), dense_text);
}

TEST(ErrorPath, OfALayerCalledByHandIsKnownToPredict) {
  const Net net;
  EXPECT_EQ(error_of([&] { predict(net, ones({3})); }, ErrorKind::shape),
            std::string("blocks[1].second: ") + dense_text);
  EXPECT_EQ(predict(net.in, ones({3})).shape(), Shape({3}));
}

TEST(ErrorPath, OfALayerInAChainIsItsIndex) {
  const Chain chain(Dense(3, 3), Dense(4, 2));
  EXPECT_EQ(error_of([&] { chain(ones({3})); }, ErrorKind::shape), std::string("layers[1]: ") + dense_text);
  EXPECT_EQ(error_of_gradient(chain), std::string("layers[1]: ") + dense_text);
}

TEST(ErrorPath, GoesThroughContainersAndStructsInThem) {
  const Chain chain(Dense(3, 3), SkipConnection(Chain(relu, Block{}), add));
  EXPECT_EQ(error_of([&] { chain(ones({3})); }, ErrorKind::shape),
            std::string("layers[1].layers[0].layers[1].second: ") + dense_text);
}

TEST(ErrorPath, OfAnOpNamesTheLayerBesideIt) {
  Dense wrong(3, 2);
  wrong.bias = zeros({5});
  const Chain chain(Dense(3, 3), wrong);
  EXPECT_EQ(error_of([&] { chain(ones({3})); }, ErrorKind::shape),
            "layers[1], Dense(3 => 2): add: sizes (2) and (5) do not broadcast; dims are aligned from the first, each "
            "pair must be equal or 1");
}

TEST(ErrorPath, OfAFunctionInAChainIsItsIndex) {
  const Chain chain(Dense(3, 3), [](const Array& x) { return reshape(x, {7}); });
  EXPECT_EQ(error_of([&] { chain(ones({3})); }, ErrorKind::shape).rfind("layers[1]: reshape: ", 0), 0u);
}

TEST(ErrorPath, IsAskedForByItself) {
  try {
    Chain(Dense(3, 3), Dense(4, 2))(ones({3}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.path(), "layers[1]");
    const Error copy = error;
    EXPECT_EQ(copy.path(), "layers[1]");
  }
  EXPECT_EQ(Error(ErrorKind::shape, "text").path(), "");
}

TEST(ErrorPath, OfAModelThatIsTheFirstMemberOfAnother) {
  struct Outer {
    Block block;  // at the address of Outer and of its own first layer
    Array operator()(const Array& x) const { return block(x); }
  };
  EXPECT_EQ(error_of_gradient(Outer{}), std::string("block.second: ") + dense_text);
}

// --- Errors that come after the call: found by values.

constexpr const char* index_text =
    "Embedding: an index must lie in its dim of 5 elements; got 7; indices count from 0, negative ones from the end";

struct Words {
  Dense first{3, 3};
  std::vector<Embedding> tables{Embedding(5, 3), Embedding(5, 3)};
  Dense out{3, 1};
  Array operator()(const Array& x) const { return sum(out(tables[1](x))) + sum(tables[0](x * 0)); }
};

Array beyond() { return Array({1, 7}, {2}); }

TEST(ErrorPath, OfAnIndexIsThatOfTheLayerThatRecordedIt) {
  const Chain chain(Embedding(5, 3), Dense(3, 2));
  const Array y = chain(beyond());
  EXPECT_EQ(error_of([&] { y.to_vector(); }, ErrorKind::argument), std::string("layers[0]: ") + index_text);
  const Chain outer(Dense(2, 2), Chain(Embedding(5, 3), relu));
  const Array z = outer[1](beyond());
  EXPECT_EQ(error_of([&] { z.to_vector(); }, ErrorKind::argument), std::string("layers[0]: ") + index_text);
}

TEST(ErrorPath, OfAnIndexIsKnownToTheGradientCallAndToTheUpdateBehindIt) {
  Words model;
  State state = setup(Descent{.eta = 0.1}, model);
  const std::vector<float> before = model.tables[1].weight.to_vector<float>();
  for (int i = 0; i < 3; ++i) {
    const auto [loss, g] = withgradient([](const Words& m) { return m(beyond()); }, model);
    std::string path;
    try {
      update(state, model, g);
    } catch (const Error& error) {
      path = error.path();
      EXPECT_EQ(std::string(error.what()).rfind(std::string("tables[1]: ") + index_text, 0), 0u) << error.what();
    }
    EXPECT_EQ(path, "tables[1]");
  }
  EXPECT_EQ(model.tables[1].weight.to_vector<float>(), before);
}

TEST(ErrorPath, OfAnIndexIsKnownToPredict) {
  const Words words;
  const Array y = predict(words, beyond());
  EXPECT_EQ(error_of([&] { y.item(); }, ErrorKind::argument), std::string("tables[1]: ") + index_text);
}

TEST(ErrorPath, OfAnIndexIsNotThatOfTheLayerThatReadsIt) {
  const Array outside = gather(ones({4}), Array({9}, {1}));
  const Chain reads(relu, [&](const Array& x) { return x * outside.item(); });
  EXPECT_EQ(error_of([&] { reads(ones({2})); }, ErrorKind::argument).rfind("gather: an index", 0), 0u);
  const Chain chain(Embedding(5, 1), relu);
  const Array inside = chain(Array({7}, {1}));
  const Chain reads_that(relu, [&](const Array& x) { return x * inside.item(); });
  EXPECT_EQ(error_of([&] { reads_that(ones({2})); }, ErrorKind::argument), std::string("layers[0]: ") + index_text);
}

TEST(ErrorPath, OfAnIndexOfTwoProgramsThatShareAPlanIsThatOfEach) {
  const Words words;
  for (const size_t table : {size_t{0}, size_t{1}}) {
    const auto [value, g] = withgradient([&](const Words& m) { return sum(m.tables[table](beyond())); }, words);
    EXPECT_EQ(error_of([&] { value.item(); }), "tables[" + std::to_string(table) + "]: " + index_text);
  }
}

TEST(ErrorPath, OfALabelIsThatOfTheFunctionInTheChain) {
  const Chain chain(relu, [](const Array& x) { return cast(onehot(cast(x, Int32), 3), Float32); });
  const Array y = chain(Array({1.0f, 4.0f}, {2}));
  EXPECT_EQ(error_of([&] { y.to_vector(); }),
            "layers[1]: onehot: a label must be in [0, 3); got 4; labels count from 0");
}

}  // namespace
}  // namespace rosin
