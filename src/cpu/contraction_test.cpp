// Matmul and convolution as calls: PyTorch's values (tests/oracles/matmul.txt, conv.txt) for operands that stand in
// memory in other ways: transposed, with gaps, reversed, broadcast over batches.
#include "cpu/contraction.hpp"

#include <gtest/gtest.h>

#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "../tests/op_oracles.hpp"

namespace rosin::cpu {
namespace {

using oracles::OracleCall;
using oracles::OracleCase;
using Arrays = std::vector<Array>;
using View = Array (*)(const Array&);

// The same values as x, read from memory in which they stand in another way.
Array transposed_in_memory(const Array& x) {
  if (x.rank() < 2) return x;
  const Array turned = transpose(x);
  eval(turned);
  return transpose(turned);
}

Array with_gaps(const Array& x) {
  if (x.rank() < 2) return x;
  const Array apart = repeat(repeat(x, 2, 0), 3, 1);
  eval(apart);
  return slice(slice(apart, 0, 0, to_end, 2), 1, 0, to_end, 3);
}

Array reversed_in_memory(const Array& x) {
  if (x.rank() < 2 || x.count() == 0) return x;
  const Array back = flip(flip(x, 0), 1);
  eval(back);
  return flip(flip(back, 0), 1);
}

Array batches_apart(const Array& x) {
  if (x.rank() < 3) return x;
  const Array apart = repeat(x, 2, 2);
  eval(apart);
  return slice(apart, 2, 0, to_end, 2);
}

OracleCall product_of(View first, View second) {
  return [=](const OracleCase&, const Arrays& x) { return Arrays{matmul(first(x[0]), second(x[1]))}; };
}

TEST(Contraction, MatmulReadsTransposedOperandsWhereTheyStand) {
  const View same = [](const Array& x) { return x; };
  oracles::run_oracles("matmul.txt", {{"matmul", product_of(same, same)}});
  oracles::run_oracles("matmul.txt", {{"matmul", product_of(transposed_in_memory, same)}});
  oracles::run_oracles("matmul.txt", {{"matmul", product_of(same, transposed_in_memory)}});
  oracles::run_oracles("matmul.txt", {{"matmul", product_of(transposed_in_memory, transposed_in_memory)}});
}

TEST(Contraction, MatmulCopiesWhatIsNeitherColumnsNorRows) {
  oracles::run_oracles("matmul.txt", {{"matmul", product_of(with_gaps, transposed_in_memory)}});
  oracles::run_oracles("matmul.txt", {{"matmul", product_of(transposed_in_memory, reversed_in_memory)}});
  oracles::run_oracles("matmul.txt", {{"matmul", product_of(batches_apart, with_gaps)}});
}

// Sizes at which the engine of Float32 is given a copy; Float64 has an engine of its own.
TEST(Contraction, LargeTransposedOperandsAreTurnedFirst) {
  const Array a = rand({700, 256}), b = rand({700, 320}), c = rand({700, 1300});
  const auto check = [](const Array& x, const Array& y) {
    const Array exact = matmul(cast(x, Float64), cast(y, Float64));
    EXPECT_LT(maximum(abs(cast(matmul(x, y), Float64) / exact - 1)).item(), 1e-5);
  };
  check(transpose(a), b);
  check(transpose(transpose(b)), matmul(transpose(b), a));
  check(transpose(c), transpose(rand({300, 700})));
}

TEST(Contraction, BatchDimsThatBroadcastCrosswiseAreExpanded) {
  const Array a = cast(reshape(arange(2 * 3 * 2), {2, 3, 2, 1}), Float64);
  const Array b = cast(reshape(arange(3 * 1 * 3), {3, 1, 1, 3}), Float64);
  const Array whole = matmul(a, b);
  ASSERT_EQ(whole.shape(), (Shape{2, 1, 2, 3}));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      const Array item = matmul(reshape(slice(a, 2, i, i + 1), {2, 3}), reshape(slice(b, 3, j, j + 1), {3, 1}));
      const Array found = reshape(slice(slice(whole, 2, i, i + 1), 3, j, j + 1), {2, 1});
      EXPECT_EQ(found.to_vector<double>(), item.to_vector<double>());
    }
  }
}

Extents extents(const OracleCase& entry, const std::string& key) {
  return Extents(std::span<const int64_t>(entry.integers(key)));
}

TEST(Contraction, ConvolutionsOfLogicalImagesAgreeWithPyTorch) {
  oracles::run_oracles("conv.txt",
                       {{"conv", [](const OracleCase& e, const Arrays& x) {
                           const ConvOptions options{extents(e, "stride"), extents(e, "pad"), extents(e, "dilation"),
                                                     e.integers("groups")[0]};
                           const bool flipped = e.attributes.at("mode") == "convolution";
                           return Arrays{flipped ? conv(x[0], x[1], options) : crosscor(x[0], x[1], options)};
                         }}});
}

// The batch is cut by its length, so one image's result may not depend on its neighbours.
TEST(Contraction, ImagesOfALargeBatchAreThoseOfSmallOnes) {
  const Array x = cast(reshape(arange(12 * 12 * 3 * 32), {12, 12, 3, 32}), Float32) / 1000;
  const Array w = cast(reshape(arange(5 * 5 * 3 * 16), {5, 5, 3, 16}), Float32) / 100;
  const std::vector<float> whole = conv(x, w).to_vector();
  const std::vector<float> last = conv(slice(x, 3, 31, 32), w).to_vector();
  const size_t start = whole.size() - last.size();
  for (size_t i = 0; i < last.size(); ++i) EXPECT_NEAR(whole[start + i], last[i], 1e-5 * std::abs(last[i]));
}

}  // namespace
}  // namespace rosin::cpu
