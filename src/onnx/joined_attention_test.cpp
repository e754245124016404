// Attention that a file has in steps: beside the same file in which something else reads the logits, so that the steps
// stay. (Whole files of others: tests/check_onnx.py.)
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/onnx.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "io/real_files_testing.hpp"
#include "onnx/file_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

using Sizes = std::vector<int64_t>;  // in the order of the file

struct AttentionCase {
  std::string name;
  Sizes q, k, v, bias;  // k turned over; no bias: empty
  std::string between;  // op with a constant behind the first product: "Mul", "Div" or none
  bool joins = true;    // blocks compute it
};

const AttentionCase attention_cases[] = {
    {"heads", {2, 3, 20, 8}, {2, 3, 8, 31}, {2, 3, 31, 8}, {}, "", true},
    {"scaled", {2, 3, 20, 8}, {2, 3, 8, 31}, {2, 3, 31, 8}, {}, "Mul", true},
    {"divided, biased", {2, 3, 20, 8}, {2, 3, 8, 31}, {2, 3, 31, 8}, {1, 1, 20, 31}, "Div", true},
    {"biases of heads", {2, 3, 20, 8}, {2, 3, 8, 31}, {2, 3, 31, 8}, {3, 20, 31}, "", true},
    {"biases of keys", {2, 3, 20, 8}, {2, 3, 8, 31}, {2, 3, 31, 8}, {2, 1, 1, 31}, "Mul", true},
    {"lists", {6, 20, 8}, {6, 8, 31}, {6, 31, 12}, {6, 1, 31}, "Div", true},
    {"lists, one bias", {6, 20, 8}, {6, 8, 31}, {6, 31, 8}, {20, 31}, "", true},
    {"values of another batch", {2, 3, 20, 8}, {2, 3, 8, 31}, {1, 3, 31, 8}, {}, "", false},
    {"matrices", {20, 8}, {8, 31}, {31, 8}, {}, "Mul", false},
    {"biases that repeat the logits", {1, 3, 20, 8}, {1, 3, 8, 31}, {1, 3, 31, 8}, {2, 1, 20, 31}, "", false},
};

/// `shown`: the logits are an output too.
std::string attention_file(const AttentionCase& c, bool shown, int64_t axis = -1) {
  std::string logits = "qk", steps = node("MatMul", {"q", "k"}, {"qk"}), constants;
  if (!c.between.empty()) {
    steps += node(c.between, {logits, "factor"}, {"scaled"});
    constants = floats("factor", {}, {c.between == "Mul" ? 0.3f : 3.0f});
    logits = "scaled";
  }
  std::string ports = input("q", c.q) + input("k", c.k) + input("v", c.v);
  if (!c.bias.empty()) {
    steps += node("Add", {"bias", logits}, {"biased"});
    ports += input("bias", c.bias);
    logits = "biased";
  }
  steps +=
      node("Softmax", {logits}, {"weights"}, integer_attribute("axis", axis)) + node("MatMul", {"weights", "v"}, {"y"});
  const Sizes any(c.q.size(), -1);
  if (shown) ports += output(logits, any);
  return model_file(steps + constants + ports + output("y", any));
}

Array drawn_as(Rng& rng, const Sizes& sizes) {
  const Sizes turned(sizes.rbegin(), sizes.rend());
  Array x = randn(rng, Shape(std::span<const int64_t>(turned)));
  eval(x);
  return x;
}

std::vector<Array> inputs_of(const AttentionCase& c) {
  Rng rng(3);
  std::vector<Array> inputs{drawn_as(rng, c.q), drawn_as(rng, c.k), drawn_as(rng, c.v)};
  if (!c.bias.empty()) inputs.push_back(drawn_as(rng, c.bias));
  return inputs;
}

class JoinedAttention : public ScratchFolder {
 protected:
  onnx::Model made(const std::string& bytes) const { return onnx::load(write("attention.onnx", bytes)); }
};

void expect_near(const Array& got, const Array& wanted, const std::string& name) {
  ASSERT_EQ(got.shape(), wanted.shape()) << name;
  EXPECT_LT(maximum(abs(got - wanted)).item<float>(), 2e-6f * (1 + maximum(abs(wanted)).item<float>())) << name;
}

TEST_F(JoinedAttention, IsWhatTheStepsAre) {
  for (const AttentionCase& c : attention_cases) {
    const onnx::Model joined = made(attention_file(c, false)), apart = made(attention_file(c, true));
    const std::vector<Array> inputs = inputs_of(c);
    expect_near(joined(std::span<const Array>(inputs))[0], apart(std::span<const Array>(inputs)).back(), c.name);
    const auto loss = [&](const onnx::Model& model) {
      return [&](const std::vector<Array>& x) { return sum(sin(model(std::span<const Array>(x)).back())); };
    };
    const std::vector<Array> slopes = gradient(loss(joined), inputs), wanted = gradient(loss(apart), inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      expect_near(slopes[i], wanted[i], c.name + ", input " + std::to_string(i));
  }
}

TEST_F(JoinedAttention, IsOneCallWhereBlocksComputeIt) {
  for (const AttentionCase& c : attention_cases) {
    const onnx::Model joined = made(attention_file(c, false));
    const std::vector<Array> inputs = inputs_of(c);
    const int64_t before = stats().calls;
    eval(joined(std::span<const Array>(inputs))[0]);
    EXPECT_EQ(stats().calls - before, c.joins ? 1 : 2) << c.name;
  }
}

TEST_F(JoinedAttention, IsNotMadeOfASoftmaxOverQueries) {
  const AttentionCase& c = attention_cases[0];
  const onnx::Model model = made(attention_file(c, false, 2));
  const std::vector<Array> inputs = inputs_of(c);
  const int64_t before = stats().calls;
  eval(model(std::span<const Array>(inputs))[0]);
  EXPECT_EQ(stats().calls - before, 2);
}

TEST_F(JoinedAttention, BeginsErrorsWithTheLastNode) {
  const onnx::Model model =
      made(attention_file({"", {2, 3, 20, 8}, {2, 3, 8, -1}, {2, 3, -1, 8}, {}, "", false}, false));
  Rng rng(3);
  const std::vector<Array> inputs{drawn_as(rng, {2, 3, 20, 8}), drawn_as(rng, {2, 3, 8, 31}),
                                  drawn_as(rng, {2, 3, 30, 8})};
  const std::string text = error_here([&] { model(std::span<const Array>(inputs)); });
  EXPECT_EQ(text.find("onnx: node 2 \"y_node\" (MatMul)"), size_t{0}) << text;
}

}  // namespace
}  // namespace rosin
