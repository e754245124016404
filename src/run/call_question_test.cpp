// How a call of a plan becomes the description that plug-ins get. See call_question.hpp.
#include "run/call_question.hpp"

#include <gtest/gtest.h>

namespace rosin {
namespace {

using plan::CallArray;
using plan::CallDescription;
using plan::CallKind;
using plan::CallRole;

TEST(CallQuestion, CarriesArraysWithTheirPlaces) {
  CallDescription call;
  call.arrays = {{DType::Float32, {3, 4}, {9, 1}, CallRole::left},
                 {DType::Float32, {4, 5}, {1, 4}, CallRole::right},
                 {DType::UInt8, {16, 5}, {1, 16}, CallRole::auxiliary},
                 {DType::Float32, {3, 5}, {1, 3}, CallRole::output}};
  const CallQuestion question(call);
  const rosin_call_description& plain = *question.plain();
  EXPECT_EQ(plain.size, sizeof plain);
  EXPECT_EQ(plain.kind, ROSIN_CALL_MATMUL);
  ASSERT_EQ(plain.array_count, 4u);
  EXPECT_EQ(plain.arrays[0].role, ROSIN_ROLE_LEFT);
  EXPECT_EQ(plain.arrays[0].rank, 2);
  EXPECT_EQ(plain.arrays[0].sizes[1], 4);
  EXPECT_EQ(plain.arrays[0].strides[0], 9);
  EXPECT_EQ(plain.arrays[2].role, ROSIN_ROLE_AUXILIARY);
  EXPECT_EQ(plain.arrays[2].type, ROSIN_UINT8);
  EXPECT_EQ(plain.arrays[3].role, ROSIN_ROLE_OUTPUT);
  EXPECT_EQ(plain.attribute_count, 0u);
  EXPECT_EQ(plain.window.spatial, 0);
}

TEST(CallQuestion, CarriesTheEpilogueAndHowToCompute) {
  CallDescription call;
  call.epilogue = {true, true, true, plan::Activation::tanh, true, true};
  call.accumulate = true;
  call.compute = plan::ComputeMode::tf32;
  call.deterministic = false;
  call.unrounded = true;
  const CallQuestion question(call);
  const rosin_call_description& plain = *question.plain();
  EXPECT_EQ(plain.epilogue.bias, 1);
  EXPECT_EQ(plain.epilogue.residual, 1);
  EXPECT_EQ(plain.epilogue.activation, ROSIN_ACTIVATION_TANH);
  EXPECT_EQ(plain.epilogue.auxiliary, 1);
  EXPECT_EQ(plain.epilogue.bias_gradient, 1);
  EXPECT_EQ(plain.scaled, 1);
  EXPECT_EQ(plain.accumulate, 1);
  EXPECT_EQ(plain.compute, ROSIN_COMPUTE_TF32);
  EXPECT_EQ(plain.deterministic, 0);
  EXPECT_EQ(plain.unrounded, 1);
}

TEST(CallQuestion, CarriesWindows) {
  CallDescription call;
  call.kind = CallKind::convolution_weights;
  call.window = {2, {2, 3, 1}, {1, 2, 1}, {4, 5, 0}, {6, 7, 0}, {8, 9, 0}, 3, true, true};
  const CallQuestion question(call);
  const rosin_call_window& window = question.plain()->window;
  EXPECT_EQ(question.plain()->kind, ROSIN_CALL_CONVOLUTION_WEIGHTS);
  EXPECT_EQ(window.spatial, 2);
  EXPECT_EQ(window.stride[1], 3);
  EXPECT_EQ(window.dilation[1], 2);
  EXPECT_EQ(window.pad_low[0], 4);
  EXPECT_EQ(window.pad_high[1], 7);
  EXPECT_EQ(window.window[1], 9);
  EXPECT_EQ(window.groups, 3);
  EXPECT_EQ(window.flipped, 1);
  EXPECT_EQ(window.mean, 1);
}

TEST(CallQuestion, CarriesTheNumbersThatAreNotTheUsualOnes) {
  CallDescription norm;
  norm.kind = CallKind::normalisation;
  norm.attributes.epsilon = 1e-5;
  const CallQuestion of_norm(norm);
  ASSERT_EQ(of_norm.plain()->attribute_count, 1u);
  EXPECT_EQ(of_norm.plain()->attributes[0].key, ROSIN_ATTRIBUTE_EPSILON);
  EXPECT_EQ(of_norm.plain()->attributes[0].real, 1e-5);

  CallDescription attention;
  attention.kind = CallKind::attention_data;
  attention.attributes = {.scale = 0.125, .causal = true, .dropout = 0.1};
  const CallQuestion of_attention(attention);
  EXPECT_EQ(of_attention.plain()->kind, ROSIN_CALL_ATTENTION_DATA);
  ASSERT_EQ(of_attention.plain()->attribute_count, 3u);
  const rosin_attribute* all = of_attention.plain()->attributes;
  EXPECT_EQ(all[0].key, ROSIN_ATTRIBUTE_SCALE);
  EXPECT_EQ(all[0].real, 0.125);
  EXPECT_EQ(all[1].key, ROSIN_ATTRIBUTE_CAUSAL);
  EXPECT_EQ(all[1].integer, 1);
  EXPECT_EQ(all[2].key, ROSIN_ATTRIBUTE_DROPOUT);
  EXPECT_EQ(all[2].real, 0.1);
}

}  // namespace
}  // namespace rosin
