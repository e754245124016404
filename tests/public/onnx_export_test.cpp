// Functions and models as ONNX files: onnx.checker takes them, onnxruntime and our own reader compute what they do, for
// the batch of the example and for others (tests/check_onnx.py; PYTHON names the interpreter).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <rosin/onnx.hpp>
#include <rosin/rosin.hpp>

#include "../../examples/models/gpt2.hpp"
#include "../../examples/models/resnet.hpp"
#include "../error_testing.hpp"
#include "onnx_export_testing.hpp"

namespace rosin {
namespace {

TEST_F(OnnxExport, APerceptron) {
  const Chain model(Dense(4, 16, relu), Dense(16, 8, tanh), Dense(8, 3), softmax);
  check(model, randn({4, 3}));
  const onnx::Model read = onnx::load(path("m.onnx"));
  EXPECT_EQ(read.opset(), 17);
  EXPECT_EQ(read.inputs()[0].sizes, (std::vector<int64_t>{4, -1}));
  EXPECT_EQ(read.outputs()[0].sizes, (std::vector<int64_t>{3, -1}));
  const std::vector<NamedArray> wanted = named_trainables(model), got = named_trainables(read);
  ASSERT_EQ(got.size(), wanted.size());
  for (const NamedArray& parameter : wanted) {
    const auto same = std::find_if(got.begin(), got.end(), [&](const auto& x) { return x.name == parameter.name; });
    ASSERT_NE(same, got.end()) << parameter.name;
    EXPECT_EQ(same->value.to_vector(), parameter.value.to_vector());
  }
}

TEST_F(OnnxExport, LeNet) {
  const Chain model(Conv({5, 5}, 1, 6, relu), MaxPool({2, 2}), Conv({5, 5}, 6, 16, relu), MeanPool({2, 2}), flatten,
                    Dense(256, 120, relu), Dropout(0.5), Dense(120, 84, relu), Dense(84, 10));
  check(model, rand({28, 28, 1, 2}));
}

TEST_F(OnnxExport, AResNet) { check(models::resnet18(10), rand({32, 32, 3, 2})); }

TEST_F(OnnxExport, NormalisationAsInInference) {
  Chain model(Conv({3, 3}, 2, 4, {.pad = 1}), BatchNorm(4, leakyrelu), GroupNorm(4, 2),
              ConvTranspose({2, 2}, 4, 3, {.stride = 2}));
  const Array x = randn({6, 5, 2, 4});
  State state = setup(Descent{0.01}, model);
  for (int i = 0; i < 3; ++i) {
    auto [loss, g] = withgradient([&](const Chain& m) { return mean(square(m(x))); }, model);
    update(state, model, g);
  }
  check(model, x);
}

/// A cell over the dim of time of (features, time, batch), written out.
struct LongShortMemory {
  Dense input{5, 32};
  Dense hidden{8, 32, {.bias = false}};

  Array operator()(const Array& x) const {
    Array h = zeros({8, x.size(2)}), c = zeros({8, x.size(2)});
    for (int64_t t = 0; t < x.size(1); ++t) {
      const Array now = squeeze(slice(x, 1, t, t + 1), 1);
      const std::vector<Array> gates = chunk(input(now) + hidden(h), 4, 0);
      c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]);
      h = sigmoid(gates[3]) * tanh(c);
    }
    return h;
  }
};

TEST_F(OnnxExport, ARecurrentNetwork) { check(LongShortMemory{}, randn({5, 6, 3})); }

TEST_F(OnnxExport, LayersOfSequences) {
  const Chain model(LSTM(5, 8), Bidirectional(GRU(8, 4), GRU(8, 4)), RNN(8, 6, relu), GRUv3(6, 4), Dense(4, 3));
  check(model, randn({5, 4, 3}));
  const Array ids = randint(0, 9, {4, 3});
  const Chain letters(Embedding(9, 8), TransformerEncoderLayer(8, 2, 16, {.norm_first = true}), Dense(8, 9), softmax);
  check(letters, ids);
}

TEST_F(OnnxExport, ATransformerOfCharacters) {
  const auto model = models::gpt2({.vocabulary = 40, .positions = 12, .width = 24, .layers = 2, .heads = 4});
  check(model, randint(0, 40, {12, 3}));
}

TEST_F(OnnxExport, SeveralInputsAndOutputsByName) {
  const Array table = randn({6, 10}), x = randn({6, 3}), mask = randn({6, 6});
  const Array ids({int64_t{3}, int64_t{0}, int64_t{9}}, {3});
  const auto f = [&](const Array& values, const Array& places, const Array& square_mask) {
    const Array mixed = matmul(square_mask, values) + gather(table, places, 1);
    return std::tuple{mixed, argmax(mixed, 0), mixed > 0.5};
  };
  onnx::save(path("m.onnx"), f, {{"values", x}, {"places", ids}, {"mask", mask}},
             {.outputs = {"mixed", "largest", "high"}, .opset = 18, .parameters = {{"table", table}}});
  const auto call = [&](const Arrays& given) {
    const auto [a, b, c] = f(given[0], given[1], given[2]);
    return Arrays{a, b, c};
  };
  add_case(call, {{"values", x}, {"places", ids}, {"mask", mask}});
  check_with_onnxruntime();
  const onnx::Model model = onnx::load(path("m.onnx"));
  EXPECT_EQ(model.outputs()[2].name, "high");
  EXPECT_EQ(named_trainables(model)[0].name, "table");
}

TEST_F(OnnxExport, FunctionsOfElements) {
  const auto f = [](const Array& y) {
    const Array p = abs(y) + 0.1, b = clamp(y, -0.9, 0.9);
    const std::vector<Array> list{sqrt(p),  rsqrt(p), cbrt(y),         exp2(y),  expm1(y),     log(p),        log2(p),
                                  log10(p), log1p(p), logaddexp(p, y), asinh(y), acosh(p + 1), atanh(tanh(y))};
    const std::vector<Array> more{pow(p, 1.5), sin(y), cos(y), tan(b), asin(b), acos(b), atan(y), sinh(y), cosh(y)};
    const std::vector<Array> whole{mod(y, 0.7), floor_divide(y, 0.7), sign(y), floor(y), ceil(y), trunc(y), round(y)};
    const std::vector<Array> plain{erf(y), square(y), reciprocal(p), -y, max(y, 0.2), min(y, p)};
    const Array chosen = where(((y > 0) & !(y >= p)) | (y != y), y, 1.0);
    return concat({concat(list, 0), concat(more, 0), concat(whole, 0), concat(plain, 0), chosen,
                   cast(is_finite(y), Float32), cast(is_nan(y), Float32)},
                  0);
  };
  check(f, 0.9 * randn({6, 3}));
  check(f, 0.9 * randn({6, 3}), {.opset = 28});
}

/// Shifts by counts that are arrays, those beyond the bits of the type among them, and by a number.
TEST_F(OnnxExport, BitsOfIntegers) {
  const auto f = [](const Array& a, const Array& b, const Array& s) {
    return std::tuple{bitwise_or(bitwise_and(a, b), bitwise_not(bitwise_xor(a, 5))),
                      left_shift(a, b),
                      right_shift(a, b),
                      right_shift(a, 3),
                      bitwise_xor(s, -6),
                      bitwise_not(s)};
  };
  for (const DType type : {UInt8, UInt32, UInt64}) {
    const Array a = cast(randint(0, 1 << 30, {6, 2}), type), b = cast(randint(0, 80, {6, 2}), type);
    const Array s = randint(-100, 100, {6, 2});
    onnx::save(path("m.onnx"), f, {{"a", a}, {"b", b}, {"s", s}}, {.opset = 18});
    add_case(
        [&](const Arrays& x) { return std::apply([](const auto&... y) { return Arrays{y...}; }, f(x[0], x[1], x[2])); },
        {{"a", a}, {"b", b}, {"s", s}});
    check_with_onnxruntime();
  }
  const auto of_signed = [](const Array& y) { return left_shift(y, 3) + right_shift(y, abs(y)); };
  check(of_signed, randint(-100, 100, {6, 3}), {.opset = 28});
  const Array n({1, 2, 3}, {3}), u = cast(n, UInt8);
  const auto saved = [&](auto g, const Array& x) { return error_of([&] { onnx::save(path("m.onnx"), g, x); }); };
  EXPECT_NE(saved([](const Array& x) { return left_shift(x, 1); }, n).find("unsigned"), std::string::npos);
  EXPECT_NE(saved([](const Array& x) { return bitwise_not(x); }, u).find("opset 18"), std::string::npos);
}

TEST_F(OnnxExport, Activations) {
  const auto f = [](const Array& y) {
    const std::vector<Array> hard{hardsigmoid(y), hardtanh(y), relu6(y), hardswish(y), trelu(y, 0.3), relu(y)};
    const std::vector<Array> soft{logsigmoid(y), softsign(y), softplus(y), softshrink(y, 0.4), tanhshrink(y), tanh(y)};
    const std::vector<Array> bent{leakyrelu(y, 0.2), elu(y, 0.7), selu(y), celu(y, 0.8), lisht(y), logcosh(y), mish(y)};
    const std::vector<Array> gates{gelu(y), gelu_sigmoid(y), gelu_erf(y), swish(y), sigmoid(y), logsoftmax(y)};
    return concat({concat(hard, 0), concat(soft, 0), concat(bent, 0), concat(gates, 0)}, 0);
  };
  check(f, 2 * randn({6, 3}));
  check(f, 2 * randn({6, 3}), {.opset = 28});
}

TEST_F(OnnxExport, MovementAndReductions) {
  const auto flat = [](const Array& x) {
    const Array rows = reshape(x, {4, 6, -1});
    const Array turned = permute(rows, {1, 0, 2}), back = flip(slice(rows, 1, 1, 5, 2), 0);
    return std::vector<Array>{reshape(turned, {24, -1}),
                              flatten(pad(back, 1, 1, 1, 0.5)),
                              sum(rows, {0}),
                              maximum(rows, 1),
                              prod(rows, {0, 1}),
                              cumsum(rows, 1),
                              argsort(rows, 1),
                              flip(x, 1),
                              take_along(rows, cast(argmax(rows, 1), Int64), 1),
                              any(rows > 1, 1),
                              minimum(rows, 0),
                              onehot(squeeze(argmax(x, 0), 0), 24)};
  };
  const Array x = randn({24, 3});
  for (const int64_t opset : {16, 21, 28}) {
    if (opset != 16) another_file();
    onnx::save(path("m.onnx"), flat, x, {.opset = opset});
    add_case([&](const Arrays& given) { return flat(given[0]); }, {{"input", x}});
    add_case([&](const Arrays& given) { return flat(given[0]); }, {{"input", randn({24, 4})}});
  }
  check_with_onnxruntime();
}

TEST_F(OnnxExport, ExtremesOfNothingAreBounds) {
  const auto f = [](const Array& x) { return Arrays{maximum(x, 1), minimum(x, 1)}; };
  for (const auto& [type, low, high] :
       {std::tuple{Int8, -128.0, 127.0}, std::tuple{UInt8, 0.0, 255.0}, std::tuple{Int32, -0x1p31, 0x1p31 - 1},
        std::tuple{Float32, -HUGE_VAL, HUGE_VAL}}) {
    onnx::save(path("m.onnx"), f, zeros({2, 3}, type));
    const Array none = zeros({2, 0}, type);
    const Arrays found = onnx::load(path("m.onnx"))(std::span<const Array>(&none, 1));
    EXPECT_EQ(cast(found[0], Float64).to_vector<double>(), std::vector<double>(2, low));
    EXPECT_EQ(cast(found[1], Float64).to_vector<double>(), std::vector<double>(2, high));
  }
}

TEST_F(OnnxExport, ScatteringAndSorting) {
  const Array at = Array(std::vector<int64_t>{3, 0, 5, 2}, {4}),
              pairs = Array(std::vector<int32_t>{1, 1, 0, 3}, {2, 2});
  const auto flat = [&](const Array& x) {
    const Array rows = reshape(x, {4, 6, -1});
    const auto [values, places] = topk(rows, 2, 1);
    return std::vector<Array>{scatter(rows, at, 2 * slice(rows, 1, 0, 4), 1),
                              scatter_add(rows, at, slice(rows, 1, 1, 5), 1),
                              scatter_add(rows, pairs, reshape(rows, {2, 2, 6, -1}), 0),
                              scatter_add(x, Array(std::vector<int64_t>{0}, {1}), slice(x, 1, 0, 1), 1),
                              sort(rows, 1, true),
                              sort(rows, 0),
                              values,
                              places,
                              atan2(x, flip(x, 0)),
                              hypot(x, flip(x, 0)),
                              hypot(x * 0.0, x * 1e30),
                              gradient([&](const Array& r) { return sum(square(take_along(r, places, 1))); }, rows)};
  };
  const Array x = randn({24, 3});
  onnx::save(path("m.onnx"), flat, x);
  for (const int64_t batch : {3, 4}) {
    add_case([&](const Arrays& given) { return flat(given[0]); }, {{"input", randn({24, batch})}});
  }
  check_with_onnxruntime();
}

TEST_F(OnnxExport, DataInAFileBesideIt) {
  const Chain model(Dense(40, 30, relu), Dense(30, 20));
  check(model, randn({40, 2}), {.external_data = true});
  EXPECT_GT(fs::file_size(path("m.onnx.data")), 4 * (40 * 30 + 30 * 20) - 1);
  EXPECT_LT(fs::file_size(path("m.onnx")), 3000u);
}

TEST_F(OnnxExport, SizesMayStay) {
  onnx::save(path("m.onnx"), Dense(4, 2), randn({4, 3}), {.symbolic_batch = false});
  EXPECT_EQ(onnx::load(path("m.onnx")).inputs()[0].sizes, (std::vector<int64_t>{4, 3}));
}

TEST_F(OnnxExport, ErrorsNameWhatIsMissing) {
  const Array x = randn({4, 3});
  const std::string file = path("m.onnx");
  const auto unknown = [](const Array& y) {
    const Array a = matmul(y, transpose(y)) + eye(4);
    return matmul(linalg::inv(a), y) + matmul(linalg::cholesky(a), y) + linalg::solve(a, y);
  };
  const auto refusal = [&](const auto& f, const onnx::SaveOptions& options = {}) {
    return error_of([&] { onnx::save(file, f, x, options); }, ErrorKind::argument);
  };
  EXPECT_EQ(refusal(unknown),
            "onnx::save: ops must have a form in ONNX; got inv, cholesky, solve; compute these outside the function, "
            "or in other ops");
  EXPECT_NE(refusal([](const Array& y) { return y * sum(y).item(); }).find("must not read values"), std::string::npos);
  const auto counts = [](const Array& y) { return y * std::sqrt(static_cast<double>(y.size(1))); };
  EXPECT_NE(refusal(counts).find(".symbolic_batch = false"), std::string::npos);
  EXPECT_NE(refusal(Dense(4, 2), {.opset = 11}).find("opset 16 to 28"), std::string::npos);
  EXPECT_NE(refusal(Dense(4, 2), {.outputs = {"input"}}).find("names of their own"), std::string::npos);
  EXPECT_FALSE(fs::exists(file));
}

}  // namespace
}  // namespace rosin
