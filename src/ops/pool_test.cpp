// Pooling against PyTorch (tests/oracles/conv.txt), adaptive and global forms, and what is refused.
#include <rosin/pool.hpp>

#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::OracleCase;
using Arrays = std::vector<Array>;

Extents extents(const OracleCase& entry, const std::string& key) {
  return Extents(std::span<const int64_t>(entry.integers(key)));
}

TEST(Pool, AgreesWithPyTorch) {
  oracles::run_oracles("conv.txt",
                       {{"maxpool",
                         [](const OracleCase& e, const Arrays& x) {
                           return Arrays{maxpool(x[0], extents(e, "window"), extents(e, "stride"), extents(e, "pad"))};
                         }},
                        {"meanpool", [](const OracleCase& e, const Arrays& x) {
                           return Arrays{meanpool(x[0], extents(e, "window"), extents(e, "stride"), extents(e, "pad"))};
                         }}});
}

TEST(Pool, AdaptiveWindowsFollowFluxRule) {
  const Array x = cast(reshape(arange(7), {7, 1, 1}), Float32);
  EXPECT_EQ(adaptive_maxpool(x, 3).to_vector(), (std::vector<float>{2, 4, 6}));  // stride 2, window 3
  EXPECT_EQ(adaptive_meanpool(x, 3).to_vector(), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(global_meanpool(x).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(global_maxpool(x).item<float>(), 6);
}

TEST(Pool, WindowsThatDoNotFitAreRefused) {
  EXPECT_THROW(maxpool(zeros({3, 3, 1, 1}), 4), Error);
  EXPECT_THROW(maxpool(zeros({3, 3}), 2), Error);
  EXPECT_THROW(maxpool(zeros({3, 3, 1, 1}), {2, 2, 2}), Error);
}

TEST(Pool, AdaptiveFormsNameThemselves) {
  EXPECT_EQ(error_of([] {
              static_cast<void>(adaptive_maxpool(ones({4, 1, 1}), 5));
            }),
            "adaptive_maxpool: the result's sizes must be in [1, input size]; got 5 for an input of 4; use a smaller "
            "size");
  EXPECT_EQ(error_of([] { static_cast<void>(adaptive_meanpool(ones({4}), 2)); }).substr(0, 18), "adaptive_meanpool:");
  EXPECT_EQ(error_of([] {
              static_cast<void>(adaptive_maxpool(full({4, 1, 1}, true), 2));
            }),
            "adaptive_maxpool: it takes numbers; got Bool; convert with cast(x, Float32)");
}

}  // namespace
}  // namespace rosin
