// What tests of convolution kernels share: cases, and kernels run beside the CPU.
// Read first: kernel_testing.hpp. Read next: convolution_strips_test.cpp, convolution_tiles_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {

struct ConvolutionCase {
  Shape x, w;
  ConvOptions options;
};

class ConvolutionKernels : public testing::Test {
 protected:
  using Case = ConvolutionCase;
  Rng rng{7};
  MathMode mode = MathMode::standard;

  /// Small whole numbers, whose sums of products are exact in whatever order.
  Array drawn(const Shape& shape, DType type = DType::Float32) {
    Array y = cast(round(randn(rng, shape) * 2), type);
    eval(y);
    return y;
  }

  /// f by kernels is f by the CPU; whether a kernel with this in its name was among them.
  template <class F> bool is_by(const std::string& name, F&& f) {
    const Array by_cpu = f();
    eval();
    InterpretedExecutor executor;
    executor.mode = mode;
    EXPECT_EQ(by_kernels(f, executor).template to_vector<double>(), by_cpu.to_vector<double>());
    return std::any_of(executor.codes.begin(), executor.codes.end(),
                       [&](const auto& one) { return one.first.find(name) != std::string::npos; });
  }

  /// Whether f has a step for which no library is asked.
  template <class F> bool beats_libraries(F&& f) {
    InterpretedExecutor executor;
    executor.mode = mode;
    executor.run = [](const auto&...) {};
    by_kernels(f, executor);
    for (const Layout& layout : executor.layouts) {
      for (const Step& step : layout.structure->steps) {
        if (step.kernel < 0 && kernels::beats_libraries(layout, step, executor.device)) return true;
      }
    }
    return false;
  }
};

}  // namespace rosin::kernels
