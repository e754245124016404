// Gradients of convolutions by weights from strips in shared memory, against the CPU.
#include "kernels/convolution_testing.hpp"

namespace rosin::kernels {
namespace {

class ConvolutionStrips : public ConvolutionKernels {
 protected:
  template <class F> static Array by_weights(F&& f, const Array& w, const Array& slopes) {
    return gradient([&](const Array& v) { return sum(f(v) * slopes); }, w);
  }

  /// Of the gradient by weights of c.
  bool beats(const Case& c, DType type) {
    const Array x = drawn(c.x, type), w = drawn(c.w, type), slopes = drawn(crosscor(x, w, c.options).shape(), type);
    return beats_libraries(
        [&] { return by_weights([&](const Array& v) { return crosscor(x, v, c.options); }, w, slopes); });
  }

  bool gradient_is_right(const Case& c, bool flipped, DType type = DType::Float32) {
    const Array x = drawn(c.x, type), w = drawn(c.w, type);
    const auto f = [&](const Array& v) { return flipped ? conv(x, v, c.options) : crosscor(x, v, c.options); };
    const Array slopes = drawn(f(w).shape(), type);
    return is_by("strips", [&] { return by_weights(f, w, slopes); });
  }
};

TEST_F(ConvolutionStrips, GradientsByWeightsAreThoseOfTheCpu) {
  const Case cases[] = {{{28, 28, 1, 64}, {5, 5, 1, 6}, {}},  // LeNet-5
                        {{12, 12, 6, 64}, {5, 5, 6, 16}, {}},
                        {{13, 1, 70}, {3, 1, 2}, {}},  // one spatial dim
                        {{17, 3, 65}, {4, 3, 5}, {.stride = 2, .pad = {1, 2}, .dilation = 2}},
                        {{9, 40, 2, 66}, {3, 2, 2, 7}, {.stride = {3, 2}, .pad = {0, 2, 1, 0}, .dilation = {1, 3}}},
                        {{16, 50, 4, 33}, {3, 3, 4, 8}, {.pad = 1}},  // strips of an image, the last of them short
                        {{5, 4, 6, 2, 64}, {2, 3, 2, 2, 3}, {.stride = {1, 2, 1}, .pad = {0, 1, 1}}},
                        {{4, 4, 3, 70}, {1, 1, 3, 10}, {}},
                        {{4, 4, 24, 400}, {3, 3, 24, 16}, {.pad = 1}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(to_string(c.x) + " " + to_string(c.w));
    for (const bool flipped : {true, false}) EXPECT_TRUE(gradient_is_right(c, flipped));
  }
}

TEST_F(ConvolutionStrips, WhoComesLastAddsUpTheParts) {
  const Case cases[] = {{{12, 12, 6, 64}, {5, 5, 6, 16}, {}},  // neighbours of neighbours
                        {{4, 4, 24, 400}, {3, 3, 24, 16}, {.pad = 1}},
                        {{5, 1, 1500}, {3, 1, 2}, {}},                   // three steps, the last neighbours fewer
                        {{4, 4, 40, 400}, {3, 3, 40, 40}, {.pad = 1}}};  // several chunks of weights
  for (const Case& c : cases) {
    SCOPED_TRACE(to_string(c.x) + " " + to_string(c.w));
    const Array x = drawn(c.x), w = drawn(c.w), slopes = drawn(crosscor(x, w, c.options).shape());
    const auto f = [&](const Array& v) { return crosscor(x, v, c.options); };
    // Whole numbers, which the CPU adds up exactly in Float64.
    const auto exact = [&](const Array& v) { return crosscor(cast(x, Float64), v, c.options); };
    const std::vector<double> wanted = by_weights(exact, cast(w, Float64), cast(slopes, Float64)).to_vector<double>();
    for (const bool arrivals : {true, false}) {
      InterpretedExecutor executor;
      executor.mode = mode;
      executor.device.arrivals = arrivals;
      EXPECT_EQ(by_kernels([&] { return by_weights(f, w, slopes); }, executor).to_vector<double>(), wanted);
      const auto named = [&](std::string_view name) {
        return std::count_if(executor.codes.begin(), executor.codes.end(),
                             [&](const auto& code) { return code.first.starts_with(name); });
      };
      EXPECT_EQ(named("convolution_strips"), 1);
      EXPECT_EQ(named("convolution_parts"), arrivals ? 0 : 1);
    }
  }
}

TEST_F(ConvolutionStrips, OtherFloatsToo) {
  const Case c{{9, 8, 3, 64}, {3, 3, 3, 4}, {}};
  EXPECT_TRUE(gradient_is_right(c, false, DType::Float64));
  EXPECT_TRUE(gradient_is_right(c, false, DType::Float16));
  EXPECT_TRUE(gradient_is_right(c, false, DType::BFloat16));
}

TEST_F(ConvolutionStrips, LibrariesAreNotAskedForFewChannelsOfManyImages) {
  const auto asked = [&](const Case& c, DType type = DType::Float32) { return !beats(c, type); };
  EXPECT_FALSE(asked({{8, 8, 1, 600}, {3, 3, 1, 6}, {}}));
  EXPECT_TRUE(asked({{8, 8, 1, 8}, {3, 3, 1, 6}, {}}));                     // few images
  EXPECT_TRUE(asked({{4, 4, 40, 1200}, {3, 3, 40, 40}, {.pad = 1}}));       // much to compute
  EXPECT_TRUE(asked({{8, 8, 1, 600}, {3, 3, 1, 6}, {}}, DType::BFloat16));  // units that multiply matrices
  mode = MathMode::fast;
  EXPECT_TRUE(asked({{8, 8, 1, 600}, {3, 3, 1, 6}, {}}));
}

TEST_F(ConvolutionStrips, OtherConvolutionsHaveOtherKernels) {
  EXPECT_FALSE(gradient_is_right({{6, 6, 2, 3}, {3, 3, 2, 4}, {}}, false));              // few images
  EXPECT_FALSE(gradient_is_right({{6, 6, 4, 64}, {3, 3, 2, 4}, {.groups = 2}}, false));  // groups
  EXPECT_FALSE(gradient_is_right({{70, 1, 64}, {40, 1, 2}, {}}, false));                 // long kernels
  EXPECT_FALSE(gradient_is_right({{9000, 1, 64}, {3, 1, 2}, {}}, false));                // strips that do not fit
  mode = MathMode::exact;
  EXPECT_FALSE(gradient_is_right({{12, 12, 6, 64}, {5, 5, 6, 16}, {}}, false));
}

}  // namespace
}  // namespace rosin::kernels
