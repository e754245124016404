// Convolutions and their gradients by data from tiles in shared memory, against the CPU.
#include "kernels/convolution_testing.hpp"

namespace rosin::kernels {
namespace {

class ConvolutionTiles : public ConvolutionKernels {
 protected:
  static Array made(const Case& c, const Array& x, const Array& w, bool flipped) {
    return flipped ? conv(x, w, c.options) : crosscor(x, w, c.options);
  }
  bool forward_is_right(const Case& c, bool flipped = false, DType type = DType::Float32) {
    const Array x = drawn(c.x, type), w = drawn(c.w, type);
    return is_by("convolution_tiles", [&] { return made(c, x, w, flipped); });
  }
  bool gradient_is_right(const Case& c, bool flipped = false, DType type = DType::Float32) {
    const Array x = drawn(c.x, type), w = drawn(c.w, type), slopes = drawn(made(c, x, w, flipped).shape(), type);
    return is_by("data_tiles",
                 [&] { return gradient([&](const Array& v) { return sum(made(c, v, w, flipped) * slopes); }, x); });
  }
  bool beats(const Case& c, DType type = DType::Float32) {
    const Array x = drawn(c.x, type), w = drawn(c.w, type);
    return beats_libraries([&] { return crosscor(x, w, c.options); });
  }
};

TEST_F(ConvolutionTiles, ResultsAreThoseOfTheCpu) {
  const ConvolutionCase cases[] = {{{28, 28, 1, 64}, {5, 5, 1, 6}, {}},  // LeNet-5
                                   {{12, 12, 6, 64}, {5, 5, 6, 16}, {}},
                                   {{17, 13, 3, 65}, {4, 3, 3, 5}, {.stride = 2, .pad = {1, 2}, .dilation = 2}},
                                   {{9, 40, 2, 66}, {3, 2, 2, 7}, {.stride = {3, 2}, .pad = {0, 2, 1, 0}}},
                                   {{40, 50, 4, 33}, {3, 3, 4, 11}, {.pad = 1}},  // tiles of an image
                                   {{300, 9, 2, 33}, {3, 3, 2, 3}, {.pad = 1}},   // of a line
                                   {{6, 7, 19, 64}, {3, 3, 19, 70}, {.pad = 1}},  // channels in parts, in groups
                                   {{5, 4, 6, 2, 64}, {2, 3, 2, 2, 3}, {.stride = {1, 2, 1}, .pad = {0, 1, 1}}},
                                   {{4, 4, 3, 70}, {1, 1, 3, 10}, {}},
                                   {{4, 1, 3, 70}, {3, 1, 3, 10}, {.pad = {1, 0}}}};
  for (const ConvolutionCase& c : cases) {
    SCOPED_TRACE(to_string(c.x) + " " + to_string(c.w));
    for (const bool flipped : {true, false}) EXPECT_TRUE(forward_is_right(c, flipped));
  }
}

TEST_F(ConvolutionTiles, GradientsByDataAreThoseOfTheCpu) {
  const ConvolutionCase cases[] = {{{12, 12, 6, 64}, {5, 5, 6, 16}, {}},  // LeNet-5
                                   {{17, 13, 3, 65}, {4, 3, 3, 5}, {.pad = {1, 2}, .dilation = 2}},
                                   {{9, 40, 2, 66}, {3, 2, 2, 7}, {.pad = {0, 2, 1, 0}, .dilation = {1, 3}}},
                                   {{9, 9, 2, 66}, {2, 2, 2, 7}, {.pad = 3}},  // windows outside the image
                                   {{40, 50, 4, 33}, {3, 3, 4, 11}, {.pad = 1}},
                                   {{5, 4, 6, 2, 64}, {2, 3, 2, 2, 3}, {.pad = {0, 1, 1}}},
                                   {{4, 4, 3, 70}, {1, 1, 3, 10}, {}}};
  for (const ConvolutionCase& c : cases) {
    SCOPED_TRACE(to_string(c.x) + " " + to_string(c.w));
    for (const bool flipped : {true, false}) EXPECT_TRUE(gradient_is_right(c, flipped));
  }
}

TEST_F(ConvolutionTiles, OtherFloatsToo) {
  const ConvolutionCase c{{9, 8, 3, 64}, {3, 3, 3, 4}, {}};
  for (const DType type : {DType::Float64, DType::Float16, DType::BFloat16}) {
    EXPECT_TRUE(forward_is_right(c, false, type));
    EXPECT_TRUE(gradient_is_right(c, false, type));
  }
}

TEST_F(ConvolutionTiles, LibrariesAreNotAskedForFewChannelsOfManyImages) {
  EXPECT_TRUE(beats({{12, 12, 6, 512}, {5, 5, 6, 16}, {}}));
  EXPECT_FALSE(beats({{12, 12, 6, 8}, {5, 5, 6, 16}, {}}));            // few images
  EXPECT_FALSE(beats({{8, 8, 8, 512}, {3, 3, 8, 32}, {}}));            // many channels
  EXPECT_FALSE(beats({{9, 9, 24, 512}, {5, 5, 24, 16}, {.pad = 2}}));  // much to compute
  EXPECT_FALSE(beats({{12, 12, 6, 512}, {5, 5, 6, 16}, {}}, DType::BFloat16));
  mode = MathMode::fast;
  EXPECT_FALSE(beats({{12, 12, 6, 512}, {5, 5, 6, 16}, {}}));
}

TEST_F(ConvolutionTiles, OtherConvolutionsHaveOtherKernels) {
  EXPECT_FALSE(forward_is_right({{6, 6, 2, 3}, {3, 3, 2, 4}, {}}));               // few images
  EXPECT_FALSE(forward_is_right({{6, 6, 4, 64}, {3, 3, 2, 4}, {.groups = 2}}));   // groups
  EXPECT_FALSE(forward_is_right({{60, 2, 64}, {3, 2, 4}, {}}));                   // one spatial dim
  EXPECT_FALSE(gradient_is_right({{8, 8, 2, 64}, {3, 3, 2, 4}, {.stride = 2}}));  // windows further apart
  mode = MathMode::exact;
  EXPECT_FALSE(forward_is_right({{12, 12, 6, 64}, {5, 5, 6, 16}, {}}));
  EXPECT_FALSE(gradient_is_right({{12, 12, 6, 64}, {5, 5, 6, 16}, {}}));
}

}  // namespace
}  // namespace rosin::kernels
