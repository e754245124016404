// Errors say where in a model they arose: golden texts.
#include <gtest/gtest.h>

#include <vector>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/combine_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
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

}  // namespace
}  // namespace rosin
