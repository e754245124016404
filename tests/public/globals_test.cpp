// Arrays at namespace scope: made before main, used in it, destroyed after it.
#include <gtest/gtest.h>

#include <cstdlib>

#include <rosin/array.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rule.hpp>

namespace {

using namespace rosin;

const Array global = ones({3}) + 2;

struct GlobalLayer {
  Array weight = ones({2, 2}) * 3;
  Array shifted = weight + 1;
};
GlobalLayer layer;

TEST(Globals, ArraysMadeBeforeMainHaveTheirValues) {
  EXPECT_EQ(global.to_vector(), (std::vector<float>{3, 3, 3}));
  EXPECT_EQ(matmul(layer.weight, layer.shifted).to_vector(), (std::vector<float>{24, 24, 24, 24}));
}

TEST(Globals, AnArrayThatIsStillPendingWhenTheProcessEndsDoesNoHarm) {
  layer.shifted = layer.shifted * 2;
  static thread_local Array late;
  late = layer.shifted + 1;
  EXPECT_EQ(late.count(), 4);
}

/// Takes steps in its destructor, when what the main thread keeps for itself has gone, and ends the process with 0 if
/// they are right. (What is made so late stays, which a check for leaks would tell.)
struct Trainer {
  Dense model{3, 2};
  State state = setup(Descent{0.5f}, model);
  void step() {
    update(state, model, gradient([](const Dense& m) { return sum(m(ones({3}))); }, model));
  }
  ~Trainer() {
    for (int i = 0; i < 3; ++i) step();
    std::_Exit(model.bias.to_vector() == std::vector<float>{-2, -2} ? 0 : 2);
  }
};

TEST(Globals, DestructorsOfGlobalsMayTrain) {
  const auto end = [] {
    static Trainer trainer;
    trainer.step();
    std::exit(3);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "");
}

}  // namespace
