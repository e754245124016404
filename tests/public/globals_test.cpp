// Arrays at namespace scope: made before main, used in it, destroyed after it.
#include <gtest/gtest.h>

#include <rosin/array.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>

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

}  // namespace
