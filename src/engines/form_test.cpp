// Forms of operands: calls that are given one compute the same bits as without, and do not look at the operand itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/instruction_set.hpp"
#include "engines/conv_cuts.hpp"
#include "engines/onednn.hpp"
#include "engines/tile.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

/// Values whose sums are rounded, so that another order of sums has other bits.
template <class T> std::vector<T> tenths(int64_t count) {
  std::vector<double> values = random_values(count);
  for (double& value : values) value *= 0.1;
  return converted<T>(values);
}

struct Counts {
  int64_t first, second, result;
};

/// How many of the two operands have a form. Where one has, the call is given other values in the operand's place.
template <class T> int expect_bits_with_forms(const VendorCall& call, const Counts& counts, const std::string& name) {
  const std::vector<T> operands[] = {tenths<T>(counts.first), tenths<T>(counts.second)};
  const std::vector<T> others[] = {std::vector<T>(operands[0].size(), T(3)), std::vector<T>(operands[1].size(), T(3))};
  std::vector<T> wanted(static_cast<size_t>(counts.result), T(0.5f));
  execute(call, {operands[0].data(), operands[1].data(), nullptr, wanted.data(), nullptr});
  int found = 0;
  for (const int threads : {1, 3}) {
    for (int which = 1; which < 4; ++which) {  // bit i: the form of operand i is made before
      std::vector<T> got(static_cast<size_t>(counts.result), T(0.5f));
      VendorBuffers buffers{operands[0].data(), operands[1].data(), nullptr, got.data(), nullptr};
      const Form forms[] = {call.form(0), call.form(1)};
      Block made[] = {Block(forms[0].bytes), Block(forms[1].bytes)};
      for (int i = 0; i < 2; ++i) {
        if (!(which >> i & 1) || forms[i].bytes == 0) continue;
        call.make_form(i, operands[i].data(), made[i].data());
        buffers.forms[i] = made[i].data();
        (i == 0 ? buffers.first : buffers.second) = others[i].data();
        found |= 1 << i;
      }
      execute(call, buffers, threads, threads > 1);
      EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(T)), 0)
          << call.engine() << " " << name << " operands " << which << " threads " << threads;
    }
  }
  return (found & 1) + (found >> 1);
}

constexpr int64_t product_sizes[][3] = {{49, 9, 17},    {130, 257, 70}, {97, 100, 513},   {300, 40, 1030},
                                        {900, 33, 300}, {128, 96, 64},  {2000, 130, 129}, {64, 512, 256}};

template <class T> int products_with_forms(DType type, Engine engine) {
  int found = 0;
  for (const auto& [m, n, k] : product_sizes) {
    for (int order = 0; order < 8; ++order) {
      MatmulSpec spec = matmul(type, m, n, k, order & 1, order & 2, order & 4 ? 3 : 0);
      spec.accumulate = order == 5;
      const Counts counts{spec.lda * (spec.a_transposed ? m : k), spec.ldb * (spec.b_transposed ? k : n), spec.ldc * n};
      found += expect_bits_with_forms<T>(*prepare_matmul(spec, engine), counts,
                                         to_string(Shape{m, n, k}) + " order " + std::to_string(order));
    }
  }
  return found;
}

TEST(OperandForms, OfPanelsGiveTheSameBits) {
  if (tile_kernels().packed.vectors == 0) GTEST_SKIP() << "this processor has no kernels of panels";
  // Of both operands, but of a B along memory with more columns than A has rows (in 2 of 8 sizes that are wide).
  EXPECT_GE(products_with_forms<float>(DType::Float32, Engine::packed), 8 * 8 * 3 / 2);
  EXPECT_GE(products_with_forms<double>(DType::Float64, Engine::packed), 8 * 8 * 3 / 2);
}

TEST(OperandForms, OfItemsThatShareTheirSecondOperandGiveTheSameBits) {
  if (tile_kernels().packed.vectors == 0) GTEST_SKIP() << "this processor has no kernels of panels";
  for (const bool transposed : {false, true}) {
    MatmulSpec spec = matmul(DType::Float32, 130, 70, 90, false, transposed);
    spec.batch = 3;
    spec.a_batch_stride = 130 * 90;
    spec.c_batch_stride = 130 * 70;
    EXPECT_EQ(expect_bits_with_forms<float>(*prepare_matmul(spec, Engine::packed),
                                            {3 * 130 * 90, 90 * 70, 3 * 130 * 70}, "items"),
              1);
  }
}

TEST(OperandForms, OfMatrixRegistersGiveTheSameBits) {
  if (!amx_can(matmul(DType::BFloat16, 64, 64, 64, false, false))) GTEST_SKIP() << "this processor has no AMX";
  EXPECT_GE(products_with_forms<BFloat>(DType::BFloat16, Engine::amx), 8 * 8 * 3 / 2);
}

ConvSpec square_convolution(ConvKind kind, int64_t batch, int64_t in, int64_t out, int64_t side, int64_t taps = 3) {
  ConvSpec spec;
  spec.kind = kind;
  spec.batch = batch, spec.in_channels = in, spec.out_channels = out;
  for (int d = 0; d < 2; ++d) {
    spec.in[d] = spec.out[d] = side;
    spec.kernel[d] = taps, spec.pad_low[d] = spec.pad_high[d] = taps / 2;
  }
  return spec;
}

template <class T> int conv_with_forms(const ConvSpec& spec, Engine engine) {
  const int64_t x = spec.batch * spec.in_channels * spec.in[0] * spec.in[1],
                y = spec.batch * spec.out_channels * spec.out[0] * spec.out[1],
                w = spec.in_channels / spec.groups * spec.out_channels * spec.kernel[0] * spec.kernel[1];
  const Counts counts = spec.kind == ConvKind::forward ? Counts{x, w, y} : Counts{y, w, x};
  return expect_bits_with_forms<T>(*prepare_conv(spec, engine), counts,
                                   "channels " + std::to_string(spec.in_channels) + " " +
                                       std::to_string(spec.out_channels) + " flipped " + std::to_string(spec.flipped));
}

TEST(OperandForms, OfConvolutionsGiveTheSameBits) {
  for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data}) {
    for (const bool flipped : {false, true}) {
      for (const int64_t side : {7, 14, 21}) {
        ConvSpec spec = square_convolution(kind, 2, 37, 67, side);
        spec.flipped = flipped;
        EXPECT_EQ(conv_with_forms<float>(spec, Engine::winograd), 1);
        if (!have_onednn) continue;
        EXPECT_EQ(conv_with_forms<float>(spec, Engine::onednn), 1);
        spec.in_channels = spec.out_channels = 64, spec.batch = 1;
        EXPECT_EQ(conv_with_forms<float>(spec, Engine::onednn), 1);
        spec.groups = 4;
        EXPECT_EQ(conv_with_forms<float>(spec, Engine::onednn), 1);
      }
    }
  }
}

TEST(OperandForms, OfWindowsThatAreSinglePointsAreThoseOfProducts) {
  ConvSpec spec = square_convolution(ConvKind::forward, 2, 128, 256, 14, 1);
  if (multiplies_widest_in_pairs()) {
    spec.logical = true;
    EXPECT_STREQ(prepare_conv(spec)->engine(), "packed");
    EXPECT_GE(conv_with_forms<float>(spec, Engine::best), 1);
  }
  spec.logical = false;
  spec.type = DType::BFloat16;  // whose operands are exchanged
  if (!amx_can(matmul(DType::BFloat16, 64, 64, 64, false, false))) GTEST_SKIP() << "this processor has no AMX";
  EXPECT_STREQ(prepare_conv(spec)->engine(), "amx");
  EXPECT_GE(conv_with_forms<BFloat>(spec, Engine::best), 1);
}

TEST(OperandForms, SayWhetherWeightsAreFinite) {
  if (!have_onednn) GTEST_SKIP() << "built without oneDNN";
  const ConvSpec spec = square_convolution(ConvKind::forward, 1, 16, 32, 6);
  const auto call = prepare_conv(spec, Engine::onednn);
  const std::vector<float> x(16 * 36, 1.0f);
  std::vector<float> w(9 * 16 * 32, 1.0f);
  w[5] = HUGE_VALF;
  Block form(call->form(1).bytes);
  call->make_form(1, w.data(), form.data());
  std::vector<float> got(32 * 36), wanted(32 * 36);
  VendorBuffers buffers{x.data(), w.data(), nullptr, wanted.data(), nullptr};
  execute(*call, buffers);
  buffers.result = got.data();
  buffers.forms[1] = form.data();
  execute(*call, buffers);
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)), 0);
  EXPECT_FALSE(std::isnan(got[0]));  // at the border that weight meets padding, which is no factor
}

TEST(OperandForms, AreNamedByWhatTheyAreMadeOf) {
  if (tile_kernels().packed.vectors == 0) GTEST_SKIP() << "this processor has no kernels of panels";
  const auto form = [](const MatmulSpec& spec) { return prepare_matmul(spec, Engine::packed)->form(0); };
  const Form one = form(matmul(DType::Float32, 200, 100, 300, false, false));
  const Form wider = form(matmul(DType::Float32, 200, 150, 300, false, false));
  const Form turned = form(matmul(DType::Float32, 200, 100, 300, true, false));
  EXPECT_EQ(one.name, wider.name);  // of other columns of B
  EXPECT_EQ(one.bytes, wider.bytes);
  EXPECT_NE(one.name, turned.name);
}

/// Whether pieces cover every image's rows once, each with the windows that its results have in the whole.
TEST(ConvCuts, PiecesAreThePartsOfTheConvolution) {
  int cut = 0;
  for (const int64_t batch : {1, 2, 3, 9}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t pad : {0, 1, 2}) {
        ConvSpec spec = square_convolution(ConvKind::forward, batch, 32, 48, 29);
        spec.stride[1] = stride;
        spec.pad_low[1] = pad;
        spec.pad_high[1] = 2 - pad;
        spec.out[1] = (29 + 2 - 3) / stride + 1;
        const ConvCuts cuts(spec, 4);
        int64_t column = 0;
        for (int64_t chunk = 0; chunk < cuts.chunks(); ++chunk) {
          const ConvPiece piece = cuts.piece(chunk);
          EXPECT_EQ(piece.part.first_column, column);
          EXPECT_EQ(piece.y, column * 48);
          column = piece.part.last_column;
          EXPECT_EQ(column - piece.part.first_column, piece.spec.batch * piece.spec.out[0] * piece.spec.out[1]);
          const int64_t room = piece.spec.in[1] + piece.spec.pad_low[1] + piece.spec.pad_high[1] - 3;
          EXPECT_EQ(piece.spec.out[1], room / stride + 1);
        }
        EXPECT_EQ(column, batch * 29 * spec.out[1]);
        cut += cuts.chunks() > batch;
      }
    }
  }
  EXPECT_EQ(cut, 3 * 3 * 3);  // all but those of nine images
}

}  // namespace
}  // namespace rosin::engines
