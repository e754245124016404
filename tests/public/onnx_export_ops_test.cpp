// Ops whose form in ONNX is several nodes or a loop, checked as in onnx_export_test.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "../error_testing.hpp"
#include "onnx_export_testing.hpp"

namespace rosin {
namespace {

/// The fixture of written files, for functions of one array with several results.
class OnnxExportOps : public OnnxExport {
 protected:
  template <class F> void check_all(const F& f, const Array& x, std::initializer_list<int64_t> opsets = {17, 28}) {
    for (const int64_t opset : opsets) {
      if (opset != *opsets.begin()) another_file();
      onnx::save(path("m.onnx"), f, x, {.opset = opset});
      const auto call = [&](const Arrays& given) { return f(given[0]); };
      add_case(call, {{"input", x}});
      add_case(call, {{"input", concat({x, flip(x, 0)}, -1)}});
    }
    check_with_onnxruntime();
  }
};

TEST_F(OnnxExportOps, RunningProductsAndExtremes) {
  const auto f = [](const Array& x) {
    const auto weighted = [&](Array (*running)(const Array&, int), int dim) {
      return gradient([&](const Array& y) { return sum(running(y, dim) * (y + 1)); }, x);
    };
    return Arrays{cumprod(x, 0),
                  cumprod(x, 1),
                  cummax(x, 0),
                  cummin(x, 1),
                  logcumsumexp(x, 0),
                  logcumsumexp(9 * x, 1),
                  weighted(cumprod, 0),
                  weighted(cummax, 1),
                  weighted(cumsum, 0),
                  cummax(cast(4 * x, Int32), 0),
                  cumprod(cast(2 * x, Int64), 1)};
  };
  check_all(f, randn({5, 3}), {16, 28});
}

TEST_F(OnnxExportOps, DistancesBetweenPoints) {
  const Array points = randn({5, 4});
  check_all([&](const Array& x) { return Arrays{cdist(x, points), cdist(points, x, 1)}; }, randn({5, 3}));
}

TEST_F(OnnxExportOps, LogarithmsOfSumsOfInfiniteNumbers) {
  const auto f = [](const Array& x) { return Arrays{logaddexp(x, flip(x, 0)), logcumsumexp(x, 0)}; };
  const float inf = std::numeric_limits<float>::infinity();
  check_all(f, Array({-inf, 1.0f, -inf, -inf, inf, 2.0f}, {3, 2}), {17});
}

TEST_F(OnnxExportOps, SpecialFunctions) {
  const auto f = [](const Array& x) {
    const Array away = x + 0.25 * (cast(abs(x - round(x)) < 0.05, Float32));  // of the poles
    return Arrays{lgamma(away), digamma(away), trigamma(away), erfinv(x / 4.2)};
  };
  check_all(f, 8 * rand({7, 60}) - 4);
  const auto large = [](const Array& x) { return Arrays{lgamma(x), digamma(x), trigamma(1 / x)}; };
  check_all(large, exp(10 * rand({7, 9})), {17});
  const auto ends = [](const Array& x) { return Arrays{erfinv(x), lgamma(x), cast(is_nan(digamma(x)), Int32)}; };
  check_all(ends, Array({-1.0f, 1.0f, 0.0f, 0.5f, -0.999f, 0.99999f}, {3, 2}), {17});
}

TEST_F(OnnxExportOps, SlopesOfActivations) {
  const auto f = [](const Array& x) {
    const auto slope = [&](Array (*activation)(const Array&)) {
      return gradient([&](const Array& y) { return sum(activation(y) * y); }, x);
    };
    const Array labels = cast(x > 0, Float32);
    return Arrays{slope(relu),
                  slope(sigmoid),
                  slope(tanh),
                  slope(gelu),
                  slope(swish),
                  slope(softplus),
                  gradient([&](const Array& y) { return logitbinarycrossentropy(y, labels); }, x)};
  };
  check_all(f, 3 * randn({6, 4}));
}

TEST_F(OnnxExportOps, WhatModelsSeldomRecord) {
  const Adam rule{.eta = 0.1};
  const auto f = [&](const Array& x) {
    Moments moments = rule.init(x);
    const Array moved = rule.moved(moments, x, tanh(x));
    return Arrays{all(x > -1, 0),
                  argmin(x, 0),
                  is_inf(1 / relu(x)),
                  logical_xor(x > 0, x > 1),
                  logitbinarycrossentropy(x, cast(x > 0.5, Float32)),
                  moved};
  };
  check_all(f, randn({6, 4}));
}

TEST_F(OnnxExportOps, AStepOfTraining) {
  const Chain model(Dense(5, 4, tanh), Dense(4, 3));
  const Adam rule{.eta = 0.1};
  const auto trained = [&](const Array& x) {
    const Array labels = onehot(squeeze(argmax(slice(x, 0, 0, 3), 0), 0), 3);
    const auto [loss, g] = withgradient([&](const Chain& m) { return logitcrossentropy(m(x), labels); }, model);
    const std::vector<NamedArray> parameters = named_trainables(model), slopes = named_trainables(g);
    Arrays results{loss};
    for (size_t i = 0; i < parameters.size(); ++i) {
      Moments moments = rule.init(parameters[i].value);
      results.push_back(parameters[i].value - rule.apply(moments, parameters[i].value, slopes[i].value));
    }
    return results;
  };
  check_all(trained, randn({5, 4}));
}

/// Sequences of their own lengths, in both directions, whose states are given and taken.
TEST_F(OnnxExportOps, RecurrentLayersWithLengthsAndStates) {
  const LSTM lstm(5, 4);
  const GRU gru(4, 3);
  const GRUv3 third(3, 3);
  const RNN last(3, 2);
  const auto f = [&](const Array& x) {
    const Array lengths = cast(clamp(floor(abs(4 * select(select(x, 0, 0), 0, 0))), 0, 7), Int64);
    const LSTMState given{tanh(select(slice(x, 0, 0, 4), 1, 0)), select(slice(x, 0, 1, 5), 1, 0)};
    const auto a = lstm(x, given, {.lengths = lengths});
    const auto b = gru(a.out, zeros({3}), {.lengths = lengths, .reverse = true});
    const auto c = third(b.out, zeros({3}), {.reverse = true});
    const auto loss = [&](const Array& y) { return sum(square(lstm(y))); };
    return Arrays{a.out, a.state.hidden, a.state.cell, b.out, b.state, c.out, last(c.out), gradient(loss, x)};
  };
  check_all(f, randn({5, 7, 3}));
}

TEST_F(OnnxExportOps, ALongSequenceIsAShortFile) {
  onnx::save(path("m.onnx"), LSTM(2, 3), randn({2, 5000, 2}));
  EXPECT_LT(fs::file_size(path("m.onnx")), 5000u);
}

TEST_F(OnnxExportOps, NumbersThatFollowFromTheBatch) {
  const auto f = [](const Array& x) {
    const auto n = static_cast<double>(x.size(1));
    return Arrays{mean(x),         var(x),        x * n,
                  x / (2 * n + 1), x * (0.3 / n), gradient([](const Array& y) { return mean(square(y)); }, x)};
  };
  check_all(f, randn({5, 4}));
}

TEST_F(OnnxExportOps, GradientsOfConvolutionsAndPooling) {
  const Conv strided({3, 2}, 4, 6, {.stride = {2, 1}, .pad = {1, 0}, .dilation = {1, 2}, .groups = 2});
  const CrossCor plain({3, 3}, 6, 4);
  const auto f = [&](const Array& x) {
    const auto of_weights = [&](const auto& layer, const Array& images) {
      const auto g = gradient([&](const auto& l) { return sum(square(l(images))); }, layer);
      return named_trainables(g)[0].value;
    };
    const auto pooled = [&](auto pool) { return gradient([&](const Array& y) { return sum(square(pool(y))); }, x); };
    const auto largest = [](const Array& y) { return maxpool(y, {3, 2}, {2, 2}, {1, 0}); };
    const auto means = [](const Array& y) { return meanpool(y, {3, 2}, {2, 2}, {1, 0}); };
    return Arrays{of_weights(strided, x),
                  of_weights(plain, strided(x)),
                  pooled(largest),
                  pooled(means),
                  pooled([&](const Array& y) { return strided(y); }),
                  gradient([&](const Array& y) { return sum(square(pooled(largest) * y)); }, x)};
  };
  check_all(f, randn({9, 8, 4, 2}));
  const auto second = [](const Array& x) {
    const auto slope = [](const Array& y) {
      return gradient([](const Array& z) { return sum(square(maxpool(z, 2)) * maxpool(z, 2)); }, y);
    };
    return Arrays{gradient([&](const Array& y) { return sum(slope(y) * y); }, x)};
  };
  check_all(second, randn({6, 4, 2, 2}), {17});
}

TEST_F(OnnxExportOps, ScattersThatCombine) {
  const Array at({3, 0, 3, 1}, {4});
  const auto f = [&](const Array& x) {
    const Array rows = slice(x, 0, 1, 5);
    return Arrays{scatter_mul(x, at, rows, 0), scatter_max(x, at, rows, 0), scatter_min(x, at, rows, 0),
                  scatter_mean(x, at, rows, 0)};
  };
  check_all(f, randn({6, 3}), {18, 28});
  const auto largest = [&](const Array& x) { return scatter_max(x, at, slice(x, 0, 0, 4), 0); };
  const std::string why = error_of([&] { onnx::save(path("m.onnx"), largest, randn({6, 3})); });
  EXPECT_NE(why.find("scatter_max (the format has it from opset 18 on)"), std::string::npos) << why;
}

TEST_F(OnnxExportOps, ResizedImages) {
  const auto f = [](const Array& x) {
    const InterpolateOptions smaller{.size = {3, 2}, .antialias = true};
    const auto enlarged = [](const Array& y) { return Upsample(2, UpsampleMode::bilinear)(y); };
    return Arrays{enlarged(x),
                  Upsample(UpsampleMode::nearest, {.size = {7, 9}})(x),
                  interpolate(x, {.size = {5, 6}, .mode = Interpolation::cubic}),
                  interpolate(x, smaller),
                  interpolate(x, {.size = 1, .mode = Interpolation::area}),
                  gradient([&](const Array& y) { return sum(square(enlarged(y))); }, x)};
  };
  check_all(f, randn({5, 4, 2, 3}));
}

TEST_F(OnnxExportOps, FourierTransforms) {
  const auto f = [](const Array& x) {
    const Array z = fft(x, 0), turned = permute(reshape(z, {2, 3, -1}), {1, 2, 0});
    const Array moved = concat({slice(turned, 0, 1, 3), slice(turned, 0, 0, 1)}, 0);
    return Arrays{view_as_real(z),
                  view_as_real(ifft(z * conj(flip(z, 0)), 0)),
                  irfft(rfft(x, 0) * 2, 0, 6),
                  abs(pad(moved, 1, 1, 0)),
                  real(gather(moved, Array({2, 0}, {2}), 0)),
                  spectrogram(x, {.n_fft = 4, .hop_length = 1, .center = false}),
                  gradient([](const Array& y) { return sum(square(abs(rfft(y, 0)))); }, x)};
  };
  check_all(f, randn({6, 3}));
}

TEST_F(OnnxExportOps, ComplexNumbersGoInAndOutAsTheirParts) {
  const Array x = randn({4, 3});
  const auto refusal = [&](const auto& f, const Array& example) {
    return error_of([&] { onnx::save(path("m.onnx"), f, example); }, ErrorKind::argument);
  };
  const auto spiral = [](const Array& y) { return square(complex(y, 1 - y)); };
  EXPECT_EQ(refusal(spiral, x),
            "onnx::save: inputs and outputs must be real; got the output \"output\" of ComplexF32; return view_as_real "
            "of it");
  EXPECT_NE(refusal([](const Array& z) { return real(z); }, complex(x, x)).find("begin with view_as_complex"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path("m.onnx")));
  const Array captured = complex(randn({4, 1}), randn({4, 1}));
  check_all([&](const Array& y) { return Arrays{real(spiral(y)), imag(spiral(y) * captured)}; }, x);
}

TEST_F(OnnxExportOps, Determinants) {
  check_all(
      [](const Array& x) {
        return Arrays{linalg::det(reshape(x, {3, 3, -1})), linalg::det(reshape(sum(x, 1), {3, 3}))};
      },
      randn({9, 2}));
}

TEST_F(OnnxExportOps, DrawsAreMadeAnewByTheFile) {
  const auto f = [](const Array& x) {
    const Array u = uniform({500, x.size(1)}), v = uniform({500, x.size(1)}), n = normal({500, x.size(1)}, 2, 3);
    const Array whole = randint(-3, 4, {500, x.size(1)});
    const auto near = [](const Array& y, double wanted, double by) { return abs(y - wanted) < by; };
    return Arrays{x + cast(any(u == v), Float32),  // which they never are
                  near(mean(u), 0.5, 0.1),
                  minimum(u) >= 0,
                  maximum(u) < 1,
                  near(mean(n), 2, 0.6),
                  near(stddev(n), 3, 0.5),
                  minimum(whole),
                  maximum(whole),
                  sort(permutation(20), 0),
                  near(mean(cast(bernoulli(0.25, {500, x.size(1)}), Float32)), 0.25, 0.1)};
  };
  check_all(f, randn({2, 3}), {17, 21});  // onnxruntime 1.32 has no random ops of opset 22
}

TEST_F(OnnxExportOps, DropoutIsWrittenWhereItIsActive) {
  Chain model(Dense(4, 400), Dropout(0.25));
  const auto zeros = [&](const Array& x) { return mean(cast(model(x) == 0, Float32), 0); };
  const Array x = randn({4, 3});
  onnx::save(path("m.onnx"), zeros, x);
  EXPECT_EQ(maximum(onnx::load(path("m.onnx"))(x)).item(), 0);
  trainmode(model);
  onnx::save(path("m.onnx"), zeros, x);
  const onnx::Model active = onnx::load(path("m.onnx"));
  const Array first = active(x), second = active(x);
  EXPECT_NEAR(mean(first).item(), 0.25, 0.06);
  EXPECT_NE(first.to_vector(), second.to_vector());
  check_all([&](const Array& y) { return Arrays{abs(zeros(y) - 0.25) < 0.15}; }, x, {17, 21});
}

}  // namespace
}  // namespace rosin
