// The op suite, execution: big arrays give the same bits for any number of threads, with and without the plan cache,
// fused and one node at a time. Read first: op_suite.hpp.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/pool.hpp>
#include <rosin/random.hpp>
#include <rosin/sort.hpp>
#include <rosin/stats.hpp>

#include "machine_code_bits.hpp"
#include "op_suite.hpp"

namespace rosin::suite {
namespace {

Array drawn(const Shape& shape, uint64_t key, DType type = Float32) {
  Rng rng(key);
  return there(evaluated(normal(rng, shape, 0, 1, type)));
}

DType widest_there() { return has_type_there(Float64) ? Float64 : Float32; }

struct Program {
  const char* name;
  std::function<Arrays()> run;
};

std::vector<Program> rows_and_reductions() {
  const Array x = drawn({700, 300}, 1), wide = drawn({700, 300}, 2, widest_there()), cube = drawn({30, 50, 70}, 3);
  const Array flat = drawn({1000003}, 4), tall = drawn({3, 100000}, 5);
  return {{"sums of everything",
           [=] {
             return Arrays{sum(flat), sum(flat * flat), mean(flat)};
           }},
          {"sums over dims",
           [=] {
             return Arrays{sum(x, 0), sum(x, 1), sum(cube, {0, 2}), sum(cube, 1), sum(tall, 1), sum(tall, 0)};
           }},
          {"sums of expressions",
           [=] {
             return Arrays{sum(exp(x) * 2, 0), sum(exp(x) + 1, 1), sum(relu(cube) - 1)};
           }},
          {"Float64",
           [=] {
             return Arrays{sum(wide), sum(wide, 1), var(wide), logsumexp(wide, 0)};
           }},
          {"moments",
           [=] {
             return Arrays{var(flat), stddev(x, 0), mean(cube, {0, 1}), norm(x, 1), norm(flat)};
           }},
          {"extremes",
           [=] {
             return Arrays{maximum(flat), minimum(x, 1), argmax(x, 0), argmin(flat), argmax(x, 1)};
           }},
          {"products",
           [=] {
             return Arrays{prod(x * 0.01 + 1, 0), prod(cube * 0.01 + 1, {1, 2})};
           }},
          {"scans",
           [=] {
             return Arrays{cumsum(x, 0), cumsum(x, 1), cumsum(flat, 0), cumprod(x * 0.01 + 1, 1)};
           }},
          {"softmax",
           [=] {
             return Arrays{softmax(x), logsoftmax(x, 1), logsumexp(x, 0), softmax(tall)};
           }},
          {"normalise",
           [=] {
             return Arrays{normalise(x, 0), normalise(cube, {0, 2}), normalise(x, 1)};
           }},
          {"halves",
           [=] {
             return Arrays{sum(cast(x, Float16), 0), softmax(cast(x, BFloat16))};
           }},
          {"any and all", [=] {
             return Arrays{any(x > 4, 0), all(x > -4, 1), sum(x > 0), sum(x > 0, 1)};
           }}};
}

std::vector<Program> contractions_and_movements() {
  const Array a = drawn({200, 311}, 1), b = drawn({311, 150}, 2), bias = drawn({200}, 3);
  const Array images = drawn({28, 28, 6, 17}, 4), kernels = drawn({5, 5, 6, 16}, 5), flat = drawn({300007}, 6);
  const Array x = drawn({700, 300}, 7);
  const Array places = evaluated(cast(abs(drawn({5000}, 8)) * 70, Int32));
  return {{"matmul",
           [=] {
             return Arrays{matmul(a, b), matmul(transpose(b), transpose(a)), relu(matmul(a, b) + bias)};
           }},
          {"matmul of Float64", [=] { return Arrays{matmul(cast(a, widest_there()), cast(b, widest_there()))}; }},
          {"matmul in batches",
           [=] {
             return Arrays{matmul(drawn({30, 40, 50}, 9), drawn({40, 20, 50}, 10))};
           }},
          {"conv",
           [=] {
             return Arrays{conv(images, kernels), conv(images, kernels, {.stride = 2, .pad = 2})};
           }},
          {"pools",
           [=] {
             return Arrays{maxpool(images, 2), meanpool(relu(images), {3, 3}, 2, 1)};
           }},
          {"elementwise",
           [=] {
             return Arrays{tanh(flat) * 2 + exp(flat), where(flat > 0, flat, flat * flat), flat - mean(flat)};
           }},
          {"movements",
           [=] {
             return Arrays{transpose(x) + 1, concat({x, x * 2}, 1), flip(x, 0), slice(x, 0, 3, 690, 7) * x.size(1)};
           }},
          {"sorting",
           [=] {
             return Arrays{sort(x), sort(x, 1, true), topk(x, 10).values, argsort(flat)};
           }},
          {"indices",
           [=] {
             return Arrays{gather(x, mod(places, 300), 1),
                           scatter_add(there(zeros({300})), mod(places, 300), drawn({5000}, 11), 0),
                           onehot(mod(places, 10), 10)};
           }},
          {"draws", [=] {
             Rng rng(3);
             const Array u = uniform(rng, {100003}, 0, 1);
             return Arrays{u, normal(rng, {70001}, 0, 1), permutation(rng, 1000), u > 0.5};
           }}};
}

std::vector<Program> gradients() {
  const Array w = drawn({100, 200}, 1), x = drawn({200, 300}, 2),
              y = evaluated(onehot(mod(cast(abs(drawn({300}, 3)) * 30, Int32), 100), 100));
  const Array images = drawn({14, 14, 6, 32}, 4), kernels = drawn({5, 5, 6, 16}, 5), big = drawn({500, 400}, 6);
  const auto cross = [=](const Array& v) { return -mean(sum(logsoftmax(matmul(v, x)) * y, 0)); };
  const auto through_conv = [=](const Array& k) { return mean(square(maxpool(relu(conv(images, k)), 2))); };
  const auto through_images = [=](const Array& i) { return mean(square(meanpool(tanh(conv(i, kernels)), 2))); };
  const auto rows = [](const Array& v) {
    return sum(square(normalise(v, 0)) * sigmoid(v)) + sum(maximum(v, 1)) + norm(v);
  };
  return {{"gradient of a dense layer", [=] { return Arrays{gradient(cross, w)}; }},
          {"gradient by kernels", [=] { return Arrays{gradient(through_conv, kernels)}; }},
          {"gradient by images", [=] { return Arrays{gradient(through_images, images)}; }},
          {"gradient of rows", [=] { return Arrays{gradient(rows, big)}; }}};
}

std::vector<Program> programs() {
  std::vector<Program> all = rows_and_reductions();
  for (const auto& family : {contractions_and_movements(), gradients()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

Arrays computed(const Program& program) {
  const Arrays results = program.run();
  eval();
  return results;
}

void expect_same(const Arrays& a, const Arrays& b, const std::string& where) {
  ASSERT_EQ(a.size(), b.size()) << where;
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(bit_difference(a[i], b[i]), "") << where << ", result " << i;
}

TEST(OpSuiteExecution, ResultsAreTheSameBitsForAnyNumberOfThreads) {
  if (on_other_device()) GTEST_SKIP() << "about the threads of the CPU";
  for (const Program& program : programs()) {
    set_num_threads(1);
    const Arrays one = computed(program);
    for (const int threads : {2, 3, 7}) {
      set_num_threads(threads);
      expect_same(one, computed(program), std::string(program.name) + ", " + std::to_string(threads) + " threads");
    }
  }
  set_num_threads(0);
}

TEST(DISABLED_Inside, EveryProgramSaysItsBits) {
  for (const Program& program : programs()) say_bits(computed(program), program.name);
}

TEST(OpSuiteExecution, ResultsAreTheSameBitsWithAnyMachineCode) {
  expect_same_bits_with_any_machine_code("EveryProgramSaysItsBits", 60);
}

TEST(OpSuiteExecution, ResultsAreTheSameBitsWithoutThePlanCache) {
  if (compiles_there()) GTEST_SKIP() << "about evaluation, which is the same on the reference device";
  const std::vector<Program> all = programs();
  run_checks(all.size(), [&](size_t i) {
    const Program& program = all[i];
    const Arrays cached = computed(program);
    set_plan_cache(false);
    const Arrays fresh = computed(program);
    set_plan_cache(true);
    expect_same(cached, fresh, program.name);
  });
}

/// Where something goes along with a product, a real library may add in another order (docs/cuda.md).
void expect_same_or_near(const Arrays& a, const Arrays& b, const std::string& where, bool by_library) {
  const bool pretended = to_string(test_device()).find("Pretended") != std::string::npos;
  if (!by_library || pretended) return expect_same(a, b, where);
  ASSERT_EQ(a.size(), b.size()) << where;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(allclose(a[i], b[i], {.rtol = 1e-4, .atol = 1e-4})) << where << ", result " << i;
  }
}

TEST(OpSuiteExecution, ResultsAreTheSameBitsFusedAndAlone) {
  const std::vector<Program> all = programs();
  run_checks(all.size(), [&](size_t i) {
    const int64_t calls = stats().library_calls;
    const Arrays fused = computed(all[i]);
    const bool by_library = stats().library_calls > calls;
    expect_same_or_near(fused, one_by_one(all[i].run), all[i].name, by_library);
  });
}

TEST(OpSuiteExecution, ASecondRunOfAProgramPlansNothing) {
  if (compiles_there()) GTEST_SKIP() << "about evaluation, which is the same on the reference device";
  for (const Program& program : programs()) {
    computed(program);
    const Stats before = stats();
    computed(program);
    EXPECT_EQ(stats().layouts, before.layouts) << program.name;
  }
}

}  // namespace
}  // namespace rosin::suite
