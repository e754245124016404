// The seeds on arrays and models on devices: basic use, moves between devices, printing. Rows 7-13, 20, 26, 31-33, 39,
// 41, 42, 58-60 and cases D7-D9, D11-D17, D20, D23-D26, D29, D30, D34, D35, D37, D38; see CASES.md.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "seeds.hpp"

namespace rosin::seeds {
namespace {

/// The heading of an array's text.
std::string heading(const Array& x) {
  const std::string text = to_string(x);
  return text.substr(0, text.find('\n'));
}

// --- Basic use

TEST_F(Seeds, Row07TheBasicExampleGivesLossAndGradientOfTheCpu) {
  if (!cu_works()) return;
  const Array W = cu(rand<double>({2, 5}));  // a 2×5 CuArray
  const Array b = cu(rand<double>({2}));
  const Array x = cu(rand<double>({5})), y = cu(rand<double>({2}));  // dummy data
  const auto loss = [](const Array& w, const Array& c, const Array& input, const Array& target) {
    return sum(square(matmul(w, input) + c - target));
  };
  EXPECT_EQ(text_of(W.device()), "CUDA:0");
  EXPECT_EQ(W.dtype(), Float32);
  const double value = loss(W, b, x, y).item();
  EXPECT_GE(value, 0);
  EXPECT_NEAR(value, loss(cpu(W), cpu(b), cpu(x), cpu(y)).item(), 1e-4);
  const auto [dW, db] = gradient([&](const Array& w, const Array& c) { return loss(w, c, x, y); }, W, b);
  const auto [hW, hb] =
      gradient([&](const Array& w, const Array& c) { return loss(w, c, cpu(x), cpu(y)); }, cpu(W), cpu(b));
  EXPECT_EQ(text_of(dW.device()), "CUDA:0");
  expect_close(cpu(dW), hW);
  expect_close(cpu(db), hb);
}

TEST_F(Seeds, Row08FmapOfCuMovesADenseLayer) {
  if (!cu_works()) return;
  Dense d(10, 5, sigmoid);
  d = fmap(cu, d);
  EXPECT_EQ(heading(d.weight), "5×10 Array{Float32} on CUDA:0:");
  const Array y = d(cu(rand<double>({10})));
  EXPECT_EQ(heading(y), "5-element Array{Float32} on CUDA:0:");
  for (double value : cpu(y).to_vector<double>()) EXPECT_TRUE(value > 0 && value < 1) << value;
}

TEST_F(Seeds, Row09FmapOfCuMovesAChain) {
  if (!cu_works()) return;
  Chain m(Dense(10, 5, sigmoid), Dense(5, 2), softmax);
  m = fmap(cu, m);
  EXPECT_NEAR(sum(m(cu(rand<double>({10})))).item(), 1, 1e-5);
}

TEST_F(Seeds, Row10AMovedDenseLayerPrintsAsBefore) {
  const Dense m = Dense(10, 5) | gpu;
  EXPECT_EQ(to_string(m), "Dense(10 => 5)      # 55 parameters");
  EXPECT_EQ(text_of(device_of(m)), gpu_text());
}

TEST_F(Seeds, Row11ANumberOfTheHostBecomesFloat32OnTheDevice) {
  const Array x = rand<double>({10}) | gpu;
  EXPECT_EQ(x.dtype(), gpu_text() == "CPU" ? Float64 : Float32);
  EXPECT_EQ(heading(x), std::string("10-element Array{") + to_string(x.dtype()) + "} on " + gpu_text() + ":");
}

TEST_F(Seeds, Row12AMovedModelRunsOnItsDevice) {
  const Dense m = Dense(10, 5) | gpu;
  const Array x = rand({10}) | gpu;
  const Array y = m(x);
  EXPECT_EQ(heading(y), "5-element Array{Float32} on " + gpu_text() + ":");
  expect_close(cpu(y), cpu(m)(cpu(x)));
}

TEST_F(Seeds, Row13CpuBringsAnArrayBack) {
  const Array x = rand({10}) | gpu;
  const Array back = x | cpu;
  EXPECT_EQ(heading(back), "10-element Array{Float32} on CPU:");
  EXPECT_EQ(back.to_vector(), x.to_vector());
  // The rows are those of the array on the device.
  EXPECT_EQ(to_string(back).substr(heading(back).size()), to_string(x).substr(heading(x).size()));
}

TEST_F(Seeds, Row20CpuBringsAModelBackAndLeavesTheOriginal) {
  const Chain model = Chain(Dense(4, 3, tanh), BatchNorm(3)) | gpu;
  const Chain on_host = cpu(model), piped = model | cpu;
  for (const NamedArray& entry : state(on_host)) EXPECT_EQ(text_of(entry.value.device()), "CPU") << entry.name;
  for (const NamedArray& entry : state(piped)) EXPECT_EQ(text_of(entry.value.device()), "CPU") << entry.name;
  for (const NamedArray& entry : state(model)) EXPECT_EQ(text_of(entry.value.device()), gpu_text()) << entry.name;
}

// --- Device objects

TEST_F(Seeds, Row26ADeviceMovesAModelWithItsValues) {
  Dense model(2, 3);
  const Array before = model.weight;
  EXPECT_EQ(heading(before), "3×2 Array{Float32} on CPU:");
  const Device device = get_device();
  model = model | device;
  EXPECT_EQ(to_string(model), "Dense(2 => 3)       # 9 parameters");
  EXPECT_EQ(heading(model.weight), "3×2 Array{Float32} on " + gpu_text() + ":");
  expect_equal(cpu(model.weight), before);
  EXPECT_EQ(to_string(model.weight).substr(heading(model.weight).size()),
            to_string(before).substr(heading(before).size()));
}

TEST_F(Seeds, Row31AModelIsOnTheDeviceThatItWasMovedTo) {
  for (const Device& device0 : gpus()) {
    const Dense dense_model = Dense(2, 3) | device0;
    EXPECT_EQ(dense_model.weight.device(), device0);
    EXPECT_EQ(to_string(dense_model.weight.device()), to_string(device0));
  }
}

TEST_F(Seeds, Row32AModelGoesFromOneDeviceToTheNext) {
  const Device chosen = gpu_device();
  Dense dense_model(2, 3);
  const Array weight = dense_model.weight;
  for (const Device& device : gpus()) {
    dense_model = dense_model | device;
    EXPECT_EQ(dense_model.weight.device(), device);
    EXPECT_EQ(dense_model.bias.device(), device);
    expect_equal(cpu(dense_model.weight), weight);
    EXPECT_EQ(gpu_device(), chosen);
  }
}

TEST_F(Seeds, Row33AModelOnAnyDeviceIsPrinted) {
  for (const Device& device : gpus()) {
    const Dense model = Dense(2, 3) | device;
    EXPECT_EQ(to_string(model), "Dense(2 => 3)       # 9 parameters");
    EXPECT_FALSE(to_string(model.weight).empty());
  }
}

// --- The distributed example, as far as one process goes

TEST_F(Seeds, Row39ScalarIndexingOfADeviceArrayThrowsUnlessAllowed) {
  allowscalar(false);
  const Array host({1.0f, 2.0f}, {2});
  EXPECT_EQ(host.item(1), 2);
  const Array x = gpu(host);
  if (text_of(x.device()) == "CPU") {
    EXPECT_EQ(x.item(1), 2);
    return;
  }
  EXPECT_EQ(error_of([&] { x.item(1); }, ErrorKind::device),
            "Scalar indexing is disallowed.\n"
            "Invocation of item resulted in scalar indexing of a GPU array.\n"
            "This is typically caused by calling an iterating implementation of a method.\n"
            "Such implementations *do not* execute on the GPU, but very slowly on the CPU,\n"
            "and therefore should be avoided.\n\n"
            "If you want to allow scalar iteration, use `allowscalar(true)`\n"
            "to enable scalar iteration in this thread or for the operations in question,\n"
            "or copy the array with `cpu(x)`.");
  allowscalar(true);
  EXPECT_EQ(x.item(1), 2);
  allowscalar(false);
  EXPECT_EQ(sum(x).item(), 3);
}

TEST_F(Seeds, Row41AChainOnADevicePrintsAsInTheSeeds) {
  const Chain model = Chain(Dense(1, 256, tanh), Dense(256, 1)) | gpu;
  EXPECT_EQ(to_string(model),
            "Chain(\n"
            "  Dense(1 => 256, tanh),                # 512 parameters\n"
            "  Dense(256 => 1),                      # 257 parameters\n"
            ")                   # Total: 4 arrays, 769 parameters, 3.004 KiB.");
}

TEST_F(Seeds, Row42ArithmeticStaysOnTheDevice) {
  const Array x = rand({1, 16}) | gpu;
  EXPECT_EQ(heading(x), "1×16 Array{Float32} on " + gpu_text() + ":");
  const Array y = pow(x, 3);
  EXPECT_EQ(heading(y), "1×16 Array{Float32} on " + gpu_text() + ":");
  expect_close(cpu(y), pow(cpu(x), 3), 1e-6);
}

// --- Lux

TEST_F(Seeds, Row58RandnIsFloat32) { EXPECT_EQ(heading(randn({3, 2})), "3×2 Array{Float32} on CPU:"); }

TEST_F(Seeds, Row59GpuDeviceMovesOrFallsBackToTheCpu) {
  const Array x_cpu = randn({3, 2});
  const Device gdev = gpu_device();
  const Array x_gpu = x_cpu | gdev;
  EXPECT_EQ(heading(x_gpu), "3×2 Array{Float32} on " + gpu_text() + ":");
  EXPECT_EQ(same(x_gpu, x_cpu), gpu_text() == "CPU");
}

TEST_F(Seeds, Row60TheWayThereAndBackKeepsTheValues) {
  const Device cdev = cpu_device(), gdev = gpu_device();
  const Array x_cpu = randn({3, 2});
  EXPECT_TRUE(isapprox((x_cpu | gdev) | cdev, x_cpu));
}

// --- Cases of the upstream suites

TEST_F(Seeds, D07AnArrayGoesToTheChosenDevice) {
  const Device dev = get_device();
  EXPECT_EQ((randn({5, 5}) | dev).device(), dev);
  for (const Device& device : gpus()) EXPECT_EQ((randn({5, 5}) | device).device(), device);
}

TEST_F(Seeds, D08OneModelGoesOverAllDevicesWithItsValues) {
  Dense model(2, 3);
  model.bias = randn({3});
  const Dense original = model;
  for (const Device& device : gpus()) {
    EXPECT_EQ(get_device(device.backend(), device.id()), device);
    model = model | device;
    EXPECT_EQ(device_of(model), device);
    expect_equal(cpu(model.weight), original.weight);
    expect_equal(cpu(model.bias), original.bias);
  }
}

TEST_F(Seeds, D09TheCpuTakesTheModelBack) {
  const Chain model = Chain(Dense(2, 3), BatchNorm(3)) | gpu;
  const Chain back = get_device("CPU")(model);
  for (const Array& x : fleaves(back)) EXPECT_EQ(text_of(x.device()), "CPU");
}

TEST_F(Seeds, D11AllParametersOfAChainAreMoved) {
  const Chain m = gpu(Chain(Dense(10, 5, tanh), Dense(5, 2), softmax));
  for (const Array& p : trainables(m)) EXPECT_EQ(text_of(p.device()), gpu_text());
  const Array y = m(gpu(rand({10, 10})));
  EXPECT_EQ(y.dtype(), Float32);
  EXPECT_EQ(to_string(y.shape()), "(2, 10)");
}

TEST_F(Seeds, D12OneHotArraysKeepTheirTypeAndAddUp) {
  const Array labels = onehotbatch(Array({0, 1, 2}, {3}), 3);
  const Array there = gpu(labels);
  EXPECT_EQ(there.dtype(), Bool);
  expect_equal(cpu(there), labels);
  EXPECT_EQ(onecold(gpu(Array({1.0f, 2.0f, 3.0f}, {3}))).item<int64_t>(), 2);
  const Array xs = rand({3, 3});
  expect_close(cpu(gpu(xs) + there), xs + labels, 1e-6);
}

TEST_F(Seeds, D13TheGradientOfConvolutionsIsOnTheirDevice) {
  const Array x = rand({6, 6, 2, 2});
  const auto check = [&](const auto& layer) {
    const auto model = gpu(layer);
    const auto there = gradient([&](const auto& m) { return sum(square(m(gpu(x)))); }, model);
    const auto here_too = gradient([&](const auto& m) { return sum(square(m(x))); }, layer);
    EXPECT_EQ(text_of(there.weight.device()), gpu_text());
    expect_close(cpu(there.weight), here_too.weight);
    expect_close(cpu(there.bias), here_too.bias);
  };
  check(Conv({3, 3}, 2, 3));
  check(CrossCor({3, 3}, 2, 3));
}

TEST_F(Seeds, D20TheGradientOfARebuiltModelIsOnItsDevice) {
  const auto model = gpu(Chain(Dense(3, 4, relu), Dense(4, 2)));
  const Array x = gpu(rand({3, 5}));
  const auto made = destructure(model);
  const Array g = gradient([&](const Array& p) { return sum(square(made.second(p)(x))); }, made.first);
  EXPECT_EQ(text_of(g.device()), gpu_text());
  EXPECT_EQ(g.shape(), (Shape{4 * 3 + 4 + 2 * 4 + 2}));
  const auto direct = gradient([&](const auto& m) { return sum(square(m(x))); }, model);
  expect_close(cpu(g), cpu(detail::trained_elements(direct)));
}

struct Named {
  Array a;
};

TEST_F(Seeds, D14OnlyFloatsOf64BitsChangeTheirType) {
  const bool on_gpu = gpu_text() != "CPU";
  EXPECT_EQ(gpu(Named{ones({1}, Float64)}).a.dtype(), on_gpu ? Float32 : Float64);
  EXPECT_EQ(gpu(cast(ones({1}), ComplexF64)).dtype(), on_gpu ? ComplexF32 : ComplexF64);
  for (DType type : {Float32, Float16, BFloat16, Int32, Int64, UInt8, Bool})
    EXPECT_EQ(gpu(ones({2}, type)).dtype(), type);
}

TEST_F(Seeds, D16MovesInsideGradientsLeaveItOnTheDeviceOfTheInput) {
  const Array a = randn({3, 3}), x = Array({1.0f, 2.0f, 3.0f}, {3});
  const Array ca = gpu(a);
  expect_equal(gradient([](const Array& v) { return sum(abs(gpu(v))); }, a), sign(a));
  const Array of_device = gradient([](const Array& v) { return sum(abs(cpu(v))); }, ca);
  EXPECT_EQ(of_device.device(), ca.device());
  expect_equal(cpu(of_device), sign(a));
  expect_equal(gradient([](const Array& v) { return sum(gpu(cpu(v))); }, a), ones({3, 3}));
  const Array both = gradient([](const Array& v) { return sum(gpu(cpu(v))); }, ca);
  EXPECT_EQ(both.device(), ca.device());
  expect_equal(cpu(both), ones({3, 3}));
  const Array g0 = gradient([&](const Array& v) { return sum(abs(matmul(a, matmul(a, v)))); }, x);
  const Array g1 = gradient([&](const Array& v) { return sum(abs(matmul(a, cpu(matmul(ca, gpu(v)))))); }, x);
  EXPECT_EQ(text_of(g1.device()), "CPU");
  expect_close(g1, g0);
  expect_equal(gradient([](const Array& v) { return select(cpu(2 * gpu(v)), 0, 0); }, x),
               Array({2.0f, 0.0f, 0.0f}, {3}));
  const Array square_matrix({1.0f, 4.0f, 7.0f, 2.0f, 5.0f, 8.0f, 3.0f, 6.0f, 9.0f}, {3, 3});
  expect_equal(gradient(
                   [](const Array& v) {
                     const Array product = cpu(matmul(gpu(v), gpu(v)));
                     return select(select(product, 0, 0), 0, 1);
                   },
                   square_matrix),
               Array({2.0f, 0.0f, 0.0f, 6.0f, 2.0f, 3.0f, 8.0f, 0.0f, 0.0f}, {3, 3}));
}

TEST_F(Seeds, D17CpuKeepsRangesAndMakesTransposedAndFilledArraysDense) {
  const Array range = arange(3), filled = full({2, 2}, 7.0f), M = rand({2, 3});
  EXPECT_TRUE(same(cpu(range), range));
  expect_equal(cpu(gpu(range)), range);
  expect_equal(cpu(gpu(filled)), filled);
  expect_equal(cpu(gpu(transpose(M))), transpose(M));
  EXPECT_TRUE(same(cpu(M), M));
}

struct Elsewhere {
  int64_t d = 1;
  Array c;
};
struct Nested {
  Elsewhere a;
  Array b;
  std::string e = "c", d = "string";
  std::tuple<float, double, Array> mixed{2.0f, 3.0, ones({2, 3})};
  Rng rng{7};
  Array one_element;
  std::vector<Array> list;
  std::map<std::string, Array> named;
  std::optional<Array> maybe, never;
  std::variant<int, Array> either;
  std::unique_ptr<Elsewhere> owned;
  std::shared_ptr<Elsewhere> shared, again;
  BatchNorm norm{2};
};

Nested nested_tree() {
  Nested tree;
  tree.a.c = zeros({10, 1});
  tree.b = rand<double>({4});
  tree.one_element = ones({1});
  tree.list = {rand({2}), rand({3})};
  tree.named = {{"w", rand({5})}};
  tree.maybe = rand({2, 2});
  tree.either = rand({3});
  tree.owned = std::make_unique<Elsewhere>(Elsewhere{2, rand({2})});
  tree.shared = tree.again = std::make_shared<Elsewhere>(Elsewhere{3, rand({2})});
  return tree;
}

TEST_F(Seeds, D23ANestedTreeIsMovedWholeAndComesBackEqual) {
  Nested tree = nested_tree();
  std::vector<Device> targets = gpus();
  targets.push_back(cpu_device());
  for (const Device& device : targets) {
    const Nested there = tree | device;
    for (const NamedArray& entry : state(there)) {
      const bool generator = entry.name == "rng";  // draws are made on any device; its own numbers stay
      EXPECT_EQ(entry.value.device(), generator ? cpu_device() : device) << entry.name;
    }
    EXPECT_EQ(fleaves(there).size(), fleaves(tree).size());
    EXPECT_EQ(device_of(there), device);
    EXPECT_EQ(there.a.d, 1);
    EXPECT_EQ(there.e, "c");
    EXPECT_EQ(there.d, "string");
    EXPECT_EQ(std::get<0>(there.mixed), 2.0f);
    EXPECT_EQ(std::get<1>(there.mixed), 3.0);
    EXPECT_EQ(there.rng, tree.rng);
    EXPECT_FALSE(there.never.has_value());
    EXPECT_EQ(there.shared, there.again);
    EXPECT_NE(there.shared, tree.shared);
    const Nested back = there | cpu;
    const std::vector<Array> before = fleaves(tree), after = fleaves(back);
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) expect_close(before[i], after[i], 1e-7);
  }
}

TEST_F(Seeds, D24DeviceOfNamesTwoPathsOfAModelOnTwoDevices) {
  for (const Device& device : gpus()) {
    const Dense first(2, 3), second = Dense(3, 1) | device;
    const Chain mixed(first, second);
    EXPECT_EQ(error_of([&] { device_of(mixed); }, ErrorKind::device),
              "device_of: all arrays must be on one device; layers[0].weight is on " + to_string(cpu_device()) +
                  ", layers[1].weight on " + to_string(device) + "; move the model with model | device");
    EXPECT_EQ(device_of(mixed | device), device);
  }
}

TEST_F(Seeds, D25AMoveToTheSameDeviceReturnsTheSameObject) {
  for (const Device& device : gpus()) {
    const Array x = device(rand({3}));
    EXPECT_TRUE(same(device(x), x));
    EXPECT_TRUE(same(device.with(keep)(x), x));
    if (!here.float64) continue;
    const Array wide = device.with(keep)(rand<double>({3}));
    EXPECT_TRUE(same(device(wide), wide));
    EXPECT_EQ(device(wide).dtype(), Float64);
  }
  const Array x = rand<double>({3});
  EXPECT_TRUE(same(cpu_device()(x), x));
}

TEST_F(Seeds, D26OneParameterInTwoPlacesStaysOne) {
  const Array x = tied(rand({3}));
  for (const Device& device : gpus()) {
    const auto [a, b] = device(std::tuple{x, x});
    EXPECT_TRUE(same(a, b));
    EXPECT_TRUE(is_tied(a));
    const auto [c, d] = cpu(std::tuple{a, b});
    EXPECT_TRUE(same(c, d));
  }
}

struct NoArrays {
  int n = 3;
};

template <class T>
concept HasDevice = requires(const T& x) { device_of(x); };

TEST_F(Seeds, D29FunctionsHaveNoDevice) {
  static_assert(!HasDevice<double (*)(double)>);
  const auto closure = [x = ones({2})] { return x; };
  static_assert(!HasDevice<decltype(closure)>);
  const Array x = gpu(rand({4, 4}));
  EXPECT_EQ(slice(x, 0, 1, 3).device(), x.device());
}

TEST_F(Seeds, D30WhatHoldsNoArrayIsOfTheCpu) {
  EXPECT_EQ(device_of(NoArrays{}), cpu_device());
  EXPECT_EQ(device_of(std::tuple{gpu(ones({2})), NoArrays{}}), gpu(ones({2})).device());
}

/// A class that says itself what of it is walked.
class Hooked {
 public:
  explicit Hooked(const Array& x) : kept_(x), moved_(x) {}
  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const { visitor.array(moved_, path.field("moved")); }
  void rosin_visit(ModelEditor& editor, const ModelPath& path) { editor.array(moved_, path.field("moved")); }
  const Array& kept() const { return kept_; }
  const Array& moved() const { return moved_; }

 private:
  Array kept_, moved_;
};

TEST_F(Seeds, D34AClassMayWalkItselfAlsoInsideOthers) {
  const Array x = ones({2});
  for (const Device& device : gpus()) {
    const auto [list, other] = std::tuple{std::vector{Hooked(x), Hooked(x)}, Hooked(x)} | device;
    for (const Hooked* hooked : {&list[0], &list[1], &other}) {
      EXPECT_TRUE(same(hooked->kept(), x));
      EXPECT_EQ(hooked->moved().device(), device);
    }
  }
}

TEST_F(Seeds, D35ATiedArrayIsMovedOnce) {
  const Array x = tied(rand({1000}));
  for (const Device& device : gpus()) {
    const int64_t before = memory_stats(device).live;
    const std::vector<Array> there = std::vector{x, x, x} | device;
    const int64_t three = memory_stats(device).live - before;
    const Array one = x | device;
    EXPECT_EQ(memory_stats(device).live - before - three, three);
  }
}

TEST_F(Seeds, D37AMoveHasTheGradientOfTheIdentity) {
  for (const Device& device : gpus()) {
    const Array x = randn({10});
    expect_equal(gradient([&](const Array& v) { return sum(v | device); }, x), ones({10}));
    const Array there = x | device;
    const Array back = gradient([](const Array& v) { return sum(v | cpu_device()); }, there);
    EXPECT_EQ(back.device(), device);
    expect_equal(cpu(back), ones({10}));
    // Also through another element type, and twice.
    const Array wide = randn<double>({10});
    EXPECT_EQ(gradient([&](const Array& v) { return sum(v | device); }, wide).dtype(), Float64);
    const Array second = gradient(
        [&](const Array& v) { return sum(gradient([&](const Array& w) { return sum(cpu(pow(w | device, 3))); }, v)); },
        x);
    expect_close(second, 6 * x, 1e-5);
  }
}

TEST_F(Seeds, D38OneHotArraysAreOnTheDeviceOfTheirLabels) {
  for (const Device& device : gpus()) {
    const Array labels = Array({0, 2, 1}, {3}) | device;
    EXPECT_EQ(onehot(labels, 3).device(), device);
    EXPECT_EQ(onehotbatch(labels, 3).device(), device);
    expect_equal(cpu(onehotbatch(labels, 3)), onehotbatch(cpu(labels), 3));
  }
}

// --- Mixed devices (semantics 1.3)

TEST_F(Seeds, OperandsOnTwoDevicesAreAnError) {
  for (const Device& device : gpus()) {
    const Array host = ones({2}), there = host | device;
    EXPECT_EQ(error_of([&] { host + there; }, ErrorKind::device),
              "add: operands must be on one device; got CPU and " + text_of(device) + "; move one with x | device");
    EXPECT_EQ(error_of([&] { matmul(transpose(there), host); }, ErrorKind::device),
              "matmul: operands must be on one device; got " + text_of(device) + " and CPU; move one with x | device");
  }
}

}  // namespace
}  // namespace rosin::seeds
