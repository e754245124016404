// How products are cut: as many chunks as their time is worth, each dim covered once.
#include "engines/cuts.hpp"

#include <gtest/gtest.h>

namespace rosin::engines {
namespace {

TEST(Cuts, ChunksFollowTheTimeOfACall) {
  EXPECT_EQ(worthwhile_chunks(0), 1);
  EXPECT_EQ(worthwhile_chunks(9), 1);
  EXPECT_EQ(worthwhile_chunks(10), 2);
  EXPECT_EQ(worthwhile_chunks(16), 2);  // not three, of which one of two threads would have two
  EXPECT_EQ(worthwhile_chunks(39), 4);
  EXPECT_EQ(worthwhile_chunks(40), 8);
  EXPECT_EQ(worthwhile_chunks(8'000), 8);
  EXPECT_EQ(worthwhile_chunks(20'000), 20);  // many workers take part in long calls
  EXPECT_EQ(worthwhile_chunks(15'500), 14);
  EXPECT_EQ(worthwhile_chunks(1'000'000), 64);
}

TEST(Cuts, PartsCoverEachDimOnce) {
  for (int64_t n : {1, 15, 31, 33, 112, 784, 1000, 4099}) {
    for (int64_t m : {1, 63, 256, 1000}) {
      MatmulSpec spec;
      spec.m = m, spec.n = n, spec.k = 128;
      for (int form = 0; form < 4; ++form) {
        spec.a_transposed = form & 1, spec.b_transposed = form & 2;
        const MatmulCut cut = cut_matmul(spec, 50);
        int64_t places = 0, next_row = 0, next_column = 0;
        for (int64_t i = 0; i < cut.chunks(); ++i) {
          const MatmulPart part = cut.part(i);
          places += (part.last_row - part.first_row) * (part.last_column - part.first_column);
          EXPECT_EQ(part.first_row, cut.axis == MatmulCut::Axis::rows ? next_row : 0);
          EXPECT_EQ(part.first_column, cut.axis == MatmulCut::Axis::columns ? next_column : 0);
          next_row = part.last_row, next_column = part.last_column;
        }
        EXPECT_EQ(places, m * n);
      }
    }
  }
}

TEST(Cuts, TheGradientOfAHiddenLayerOccupiesTwoThreadsAlike) {
  MatmulSpec spec;  // a gradient by the weights of 784 inputs, 256 outputs, batch 128
  spec.m = 256, spec.n = 784, spec.k = 128, spec.b_transposed = true;
  const MatmulCut cut = cut_matmul(spec, 50);
  EXPECT_EQ(cut.axis, MatmulCut::Axis::columns);
  EXPECT_EQ(cut.chunks(), 8);
  EXPECT_GE(cut.tail(), cut.step * 3 / 4);
}

}  // namespace
}  // namespace rosin::engines
