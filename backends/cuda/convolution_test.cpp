// How descriptions of convolutions become what cuDNN is told, and that the real cuDNN, where it is installed, has plans
// for that: it builds them for a device that is described, and need not be there. See vendor/convolution.hpp,
// cudnn_plan.hpp.
#include "vendor/convolution.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/real_dnn_testing.hpp"

namespace rosin::cuda {
namespace {

using Numbers = std::vector<int64_t>;
using vendor::convolution_of;

enum Order { channels_first, planes };

/// A convolution of images (w, h, in, batch) and what it makes.
struct Asked {
  int32_t kind = ROSIN_CALL_CONVOLUTION;
  int32_t type = ROSIN_FLOAT32;
  Numbers x{28, 26, 6, 4}, w{5, 3, 6, 16}, y{24, 24, 16, 4};
  Order order = channels_first;
  bool bias = false, relu = false, unrounded = false;
  int32_t stride = 1, dilation = 1, pad_low = 0, pad_high = 0, groups = 1, flipped = 1;
  int32_t compute = ROSIN_COMPUTE_EXACT;
};

/// Its description; it owns what it points to.
class Described {
 public:
  explicit Described(const Asked& asked) {
    const bool data = asked.kind == ROSIN_CALL_CONVOLUTION_DATA, weights = asked.kind == ROSIN_CALL_CONVOLUTION_WEIGHTS;
    const auto image = [&](int32_t role, const Numbers& sizes) { add(role, asked, sizes, asked.order); };
    const auto kernel = [&](int32_t role) { add(role, asked, asked.w, planes); };
    if (!data) image(ROSIN_ROLE_INPUT, asked.x);
    if (data || weights) image(ROSIN_ROLE_OUTPUT_GRADIENT, asked.y);
    if (!weights) kernel(ROSIN_ROLE_WEIGHTS);
    if (asked.bias) add(ROSIN_ROLE_BIAS, asked, {asked.y[asked.y.size() - 2]}, planes);
    if (data) image(ROSIN_ROLE_INPUT_GRADIENT, asked.x);
    else if (weights) kernel(ROSIN_ROLE_WEIGHTS_GRADIENT);
    else image(ROSIN_ROLE_OUTPUT, asked.y);
    call.size = sizeof call;
    call.kind = asked.kind;
    call.arrays = arrays_.data();
    call.array_count = static_cast<uint32_t>(arrays_.size());
    call.epilogue.bias = asked.bias;
    call.epilogue.activation = asked.relu ? ROSIN_ACTIVATION_RELU : ROSIN_ACTIVATION_NONE;
    call.unrounded = asked.unrounded;
    call.compute = asked.compute;
    call.deterministic = 1;
    call.window.spatial = static_cast<int32_t>(asked.x.size()) - 2;
    for (int d = 0; d < 3; ++d) {
      const bool used = d < call.window.spatial;
      call.window.stride[d] = used ? asked.stride : 1;
      call.window.dilation[d] = used ? asked.dilation : 1;
      call.window.pad_low[d] = used ? asked.pad_low : 0;
      call.window.pad_high[d] = used ? asked.pad_high : 0;
    }
    call.window.groups = asked.groups;
    call.window.flipped = asked.flipped;
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  rosin_call_description call{};

 private:
  void add(int32_t role, const Asked& asked, const Numbers& sizes, Order order) {
    rosin_call_array made{role, asked.type, static_cast<int32_t>(sizes.size()), {}, {}};
    std::vector<size_t> dims;
    for (size_t d = 0; d < sizes.size(); ++d) dims.push_back(d);
    if (order == channels_first && sizes.size() > 2) {
      dims.insert(dims.begin(), sizes.size() - 2);
      dims.erase(dims.end() - 2);
    }
    int64_t stride = 1;
    for (const size_t d : dims) {
      made.sizes[d] = sizes[d];
      made.strides[d] = stride;
      stride *= sizes[d];
    }
    arrays_.push_back(made);
  }

  std::vector<rosin_call_array> arrays_;
};

Convolution convolution(const Asked& asked) { return convolution_of(Described(asked).call); }

/// The status with which a convolution is refused.
rosin_status refusal(const Asked& asked) {
  try {
    convolution(asked);
  } catch (const plugin::Failure& failure) {
    return failure.status;
  }
  return ROSIN_OK;
}

TEST(CudaConvolution, PutsTheSlowestDimFirst) {
  const Convolution c = convolution({.y = {26, 26, 16, 4}, .pad_low = 1, .pad_high = 1});
  EXPECT_EQ(c.x.sizes, (Numbers{4, 6, 26, 28}));
  EXPECT_EQ(c.x.strides, (Numbers{6 * 26 * 28, 1, 6 * 28, 6}));
  EXPECT_EQ(c.w.sizes, (Numbers{16, 6, 3, 5}));
  EXPECT_EQ(c.w.strides, (Numbers{90, 15, 5, 1}));
  EXPECT_EQ(c.y.sizes, (Numbers{4, 16, 26, 26}));
  EXPECT_EQ(c.bytes, (std::vector<uint64_t>{4 * 28 * 26 * 6 * 4, 4 * 5 * 3 * 6 * 16, 4 * 26 * 26 * 16 * 4}));
  EXPECT_TRUE(c.flipped);
}

TEST(CudaConvolution, CallsImagesOfOneChannelAndKernelsOfOneElementChannelsFirst) {
  const Convolution c = convolution({.x = {7, 6, 1, 2}, .w = {1, 1, 1, 3}, .y = {7, 6, 3, 2}, .order = planes});
  EXPECT_EQ(c.x.strides, (Numbers{42, 1, 7, 1}));
  EXPECT_EQ(c.w.strides, (Numbers{1, 1, 1, 1}));
  EXPECT_EQ(c.y.strides, (Numbers{126, 42, 7, 1}));  // these do stand as planes
}

TEST(CudaConvolution, RefusesWhatCudnnHasNoEnginesFor) {
  EXPECT_EQ(refusal({}), ROSIN_OK);
  EXPECT_EQ(refusal({.bias = true, .relu = true}), ROSIN_OK);
  EXPECT_EQ(refusal({.relu = true}), ROSIN_UNSUPPORTED);  // its engines have relu behind a bias alone
  EXPECT_EQ(refusal({.type = ROSIN_BFLOAT16, .bias = true}), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal({.type = ROSIN_BFLOAT16, .bias = true, .unrounded = true}), ROSIN_OK);
  EXPECT_EQ(refusal({.kind = ROSIN_CALL_CONVOLUTION_DATA, .bias = true}), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal({.type = ROSIN_UINT8}), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal({.y = {20, 20, 16, 4}, .pad_low = -2, .pad_high = -2}), ROSIN_UNSUPPORTED);
  Described gaps{Asked{}};
  auto* const first = const_cast<rosin_call_array*>(gaps.call.arrays);
  first->strides[3] += 2;
  EXPECT_THROW(convolution_of(gaps.call), plugin::Failure);
}

TEST(CudaConvolution, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(refusal({.y = {23, 24, 16, 4}}), ROSIN_INVALID);
  EXPECT_EQ(refusal({.y = {24, 24, 15, 4}}), ROSIN_INVALID);
  EXPECT_EQ(refusal({.w = {5, 3, 3, 16}}), ROSIN_INVALID);
  EXPECT_EQ(refusal({.w = {5, 3, 3, 16}, .groups = 2}), ROSIN_OK);
  EXPECT_EQ(refusal({.w = {5, 3, 2, 16}, .groups = 3}), ROSIN_INVALID);  // 16 channels in three groups
}

class RealDnnConvolution : public RealDnn {
 protected:
  DnnWays ways(const Asked& asked) const { return RealDnn::ways(convolution(asked)); }
};

std::string name_of(const Asked& a) {
  return "kind " + std::to_string(a.kind) + " type " + std::to_string(a.type) + " of " + std::to_string(a.x.size()) +
         " dims, groups " + std::to_string(a.groups) + ", stride " + std::to_string(a.stride) + ", dilation " +
         std::to_string(a.dilation) + (a.flipped ? ", flipped" : "") + (a.bias ? ", bias" : "");
}

TEST_F(RealDnnConvolution, BuildsPlansForEveryKindOfConvolution) {
  const auto build = [&](const Asked& asked) {
    DnnWays all = ways(asked);
    const size_t first = all.first();
    EXPECT_NE(all.plan(first), nullptr) << name_of(asked);
    EXPECT_LE(all.workspace(first), room) << name_of(asked);
  };
  for (const int32_t kind : {ROSIN_CALL_CONVOLUTION, ROSIN_CALL_CONVOLUTION_DATA, ROSIN_CALL_CONVOLUTION_WEIGHTS}) {
    for (const int32_t type : {ROSIN_FLOAT32, ROSIN_FLOAT16, ROSIN_BFLOAT16}) {
      const Asked plain{.kind = kind, .type = type};
      std::vector<Asked> all(6, plain);
      all[1].flipped = 0;
      all[2].w = {5, 3, 3, 16}, all[2].groups = 2;
      all[3].dilation = 2, all[3].y = {20, 22, 16, 4};
      all[4].stride = 2, all[4].pad_high = 1, all[4].y = {13, 13, 16, 4};  // uneven
      all[5].x = {28, 1, 4}, all[5].w = {5, 1, 6}, all[5].y = {24, 6, 4};  // sounds
      all.push_back(plain);
      all[6].x = {9, 9, 9, 4, 2}, all[6].w = {3, 3, 3, 4, 8}, all[6].y = {7, 7, 7, 8, 2};
      for (const Asked& asked : all) build(asked);
    }
  }
  build({.type = ROSIN_FLOAT64});
}

TEST_F(RealDnnConvolution, BuildsPlansWithBiasAndRelu) {
  for (const bool relu : {false, true}) {
    for (const int32_t type : {ROSIN_FLOAT32, ROSIN_FLOAT16, ROSIN_BFLOAT16}) {
      const Asked asked{.type = type, .bias = true, .relu = relu, .unrounded = true};
      DnnWays all = ways(asked);
      EXPECT_NE(all.plan(all.first()), nullptr) << name_of(asked);
    }
  }
}

TEST_F(RealDnnConvolution, NamesTheSameWaysAgain) {
  const DnnWays first = ways({}), again = ways({});
  ASSERT_EQ(first.count(), again.count());
  ASSERT_GE(first.count(), 2u);
  for (size_t i = 0; i < first.count(); ++i) {
    EXPECT_EQ(first.mark(i), again.mark(i));
    for (size_t k = 0; k < i; ++k) EXPECT_NE(first.mark(i), first.mark(k));
  }
}

TEST_F(RealDnnConvolution, LeavesOutEnginesThatRoundFloat32ToTf32) {
  const Asked large{.x = {28, 28, 64, 32}, .w = {3, 3, 64, 64}, .y = {26, 26, 64, 32}};
  Asked quick = large;
  quick.compute = ROSIN_COMPUTE_TF32;
  const DnnWays exact = ways(large), other = ways(quick);
  EXPECT_GE(exact.count(), 1u);
  for (size_t i = 0; i < exact.count(); ++i) EXPECT_NE(exact.mark(i), other.mark(0));
}

}  // namespace
}  // namespace rosin::cuda
