// Every public function that takes sizes, with sizes that no array has: an Error of rosin's or a right result, never
// memory outside an array, another exception or an attempt to compute for hours.
#include <sys/resource.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <rosin/rosin.hpp>

#include "../sanitizer_testing.hpp"

using namespace rosin;

namespace {

constexpr int64_t highest = std::numeric_limits<int64_t>::max();
constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
constexpr int64_t no_sizes[] = {0,       -1,          int64_t{1} << 31, (int64_t{1} << 32) + 1, int64_t{1} << 40,
                                highest, highest - 1, int64_t{1} << 62, (int64_t{1} << 62) + 1, 0x5555555555555556,
                                lowest,  lowest + 1};

/// While it lives, the process can get about `bytes` more: what asks for more is refused at once.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit now = before_;
    now.rlim_cur = pages * 4096 + bytes;
    if (counts_memory) setrlimit(RLIMIT_AS, &now);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

struct Case {
  const char* name;
  Array (*make)(int64_t n);
};

/// Small results are computed; the values of larger ones nobody asks for.
void check(const Case& what, int64_t n) {
  SCOPED_TRACE(std::string(what.name) + " with " + std::to_string(n));
  try {
    const Array made = what.make(n);
    EXPECT_LE(made.count(), int64_t{1} << 58);
    if (!made.is_nothing() && made.count() < 10000) {
      EXPECT_EQ(made.to_vector<double>().size(), static_cast<size_t>(made.count()));
    }
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 1000u) << error.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "an exception of others: " << other.what();
  }
}

void check_all(std::initializer_list<Case> cases) {
  ASSERT_GT(sum(rand({1 << 20})).item(), 0);  // starts the workers, which need memory of their own
  const MemoryLimit limit(uint64_t{1} << 30);
  for (const Case& what : cases) {
    for (const int64_t n : no_sizes) {
      const bool takes_gigabytes = n == int64_t{1} << 31 || n == (int64_t{1} << 32) + 1;
      if (counts_memory || !takes_gigabytes) check(what, n);
    }
  }
}

Array images() { return ones({4, 4, 4, 2}); }

TEST(Sizes, MakersOfArraysRefuseWhatNoArrayHas) {
  check_all({
      {"zeros",
       [](int64_t n) {
         return zeros({n, 4});
       }},
      {"zeros of one dim", [](int64_t n) { return zeros({n}); }},
      {"zeros of nothing",
       [](int64_t n) {
         return zeros({0, n, n});
       }},
      {"full",
       [](int64_t n) {
         return full({n, n}, 2);
       }},
      {"eye", [](int64_t n) { return eye(n); }},
      {"eye of two", [](int64_t n) { return eye(n, 1); }},
      {"eye of two, wide", [](int64_t n) { return eye(1, n); }},
      {"arange", [](int64_t n) { return arange(n); }},
      {"arange from", [](int64_t n) { return arange(-3, n); }},
      {"arange to", [](int64_t n) { return arange(n, highest); }},
      {"arange down", [](int64_t n) { return arange(n, lowest, -1); }},
      {"arange in steps", [](int64_t n) { return arange(lowest, highest, n); }},
      {"arange of doubles", [](int64_t n) { return arange(0.0, static_cast<double>(n), 1.0); }},
      {"linspace", [](int64_t n) { return linspace(0, 1, n); }},
      {"rand",
       [](int64_t n) {
         return rand({n, 3});
       }},
      {"randn", [](int64_t n) { return randn({n}); }},
      {"uniform", [](int64_t n) { return uniform({n}, 0, 1, Float64); }},
      {"bernoulli",
       [](int64_t n) {
         return bernoulli(0.5, {n, n});
       }},
      {"randint", [](int64_t n) { return randint(0, 5, {n}); }},
      {"randint up to", [](int64_t n) { return randint(lowest, n, {2}); }},
      {"randint from", [](int64_t n) { return randint(n, highest, {2}); }},
      {"permutation", [](int64_t n) { return n >= 0 && n < 1000 ? permutation(n) : (permutation(n), Array(0)); }},
      {"onehot",
       [](int64_t n) {
         return onehot(Array({0, 1}, {2}), n);
       }},
      {"onehotbatch",
       [](int64_t n) {
         return onehotbatch(Array({0, 1}, {2}), n);
       }},
      {"Array",
       [](int64_t n) {
         return Array({1.0f, 2.0f}, {2, n});
       }},
  });
}

TEST(Sizes, MovementsRefuseWhatNoArrayHas) {
  check_all({
      {"reshape",
       [](int64_t n) {
         return reshape(ones({4}), {n, 4});
       }},
      {"reshape of nothing",
       [](int64_t n) {
         return reshape(ones({0}), {n, n});
       }},
      {"reshape, one open",
       [](int64_t n) {
         return reshape(ones({4}), {n, n, -1});
       }},
      {"expand",
       [](int64_t n) {
         return expand(ones({3}), {3, n});
       }},
      {"expand of a dim",
       [](int64_t n) {
         return expand(ones({1, 3}), {n, 3});
       }},
      {"broadcast",
       [](int64_t n) {
         return expand(ones({1}), {n}) + ones({1, 3});
       }},
      {"broadcast of three",
       [](int64_t n) {
         return where(Array({true}, {1, 1}), expand(ones({1}), {n}), expand(ones({1, 1}), {1, n}));
       }},
      {"slice to", [](int64_t n) { return slice(ones({3}), 0, 0, n); }},
      {"slice from", [](int64_t n) { return slice(ones({3}), 0, n, to_end); }},
      {"slice in steps", [](int64_t n) { return slice(ones({3}), 0, 0, 3, n); }},
      {"slice down", [](int64_t n) { return slice(ones({3}), 0, 2, n, -1); }},
      {"slice with all", [](int64_t n) { return slice(ones({3}), 0, n, n, n); }},
      {"index", [](int64_t n) { return index(ones({3}), {n}); }},
      {"select", [](int64_t n) { return select(ones({3}), 0, n); }},
  });
}

TEST(Sizes, WhatMakesArraysLargerRefusesWhatNoArrayHas) {
  check_all({
      {"pad", [](int64_t n) { return pad(ones({4}), 0, n, n); }},
      {"pad before", [](int64_t n) { return pad(ones({4}), 0, n, 0); }},
      {"pad of dims",
       [](int64_t n) {
         return pad(ones({4, 2}), {{0, n}, {n, 1}});
       }},
      {"concat",
       [](int64_t n) {
         return concat({zeros({n}), zeros({n})}, 0);
       }},
      {"stack",
       [](int64_t n) {
         return stack({zeros({n}), zeros({n}), zeros({n})}, 0);
       }},
      {"repeat", [](int64_t n) { return repeat(ones({3}), n, 0); }},
      {"tile", [](int64_t n) { return tile(ones({3}), n, 0); }},
      {"tile of dims",
       [](int64_t n) {
         return tile(ones({3}), {n, n});
       }},
      {"tile of nothing",
       [](int64_t n) {
         return tile(ones({0, 3}), n, 1);
       }},
  });
}

TEST(Sizes, PartsAndOrdersRefuseWhatNoArrayHas) {
  check_all({
      {"split",
       [](int64_t n) {
         return split(ones({4}), {n, 4 - (n < 4 ? n + 1 : 0)}, 0)[0];
       }},
      {"split in three",
       [](int64_t n) {
         return split(ones({4}), {n, n, 4}, 0)[0];
       }},
      {"chunk", [](int64_t n) { return chunk(ones({4}), n)[0]; }},
      {"flip", [](int64_t n) { return flip(zeros({n}), 0); }},
      {"dims",
       [](int64_t n) {
         return unsqueeze(squeeze(ones({1, 3}), static_cast<int>(n)), static_cast<int>(n));
       }},
      {"permute",
       [](int64_t n) {
         return permute(ones({1, 3}), {static_cast<int>(n), 0});
       }},
  });
}

TEST(Sizes, FunctionsOfSeveralArraysRefuseWhatNoArrayHas) {
  check_all({
      {"outer", [](int64_t n) { return outer(ones({3}), zeros({n})); }},
      {"matmul",
       [](int64_t n) {
         return matmul(zeros({n, 1}), zeros({1, n}));
       }},
      {"matmul of batches",
       [](int64_t n) {
         return matmul(zeros({n, 1}), zeros({1, 2, n}));
       }},
      {"gather",
       [](int64_t n) {
         return gather(zeros({n, 2}), Array({0}, {1}), 1);
       }},
      {"gather at", [](int64_t n) { return gather(ones({3}), Array({n}, {1})); }},
      {"gather of many",
       [](int64_t n) {
         return gather(zeros({3, 2}), expand(Array({0}, {1}), {n}), 0);
       }},
      {"scatter at", [](int64_t n) { return scatter(ones({3}), Array({n}, {1}), ones({1})); }},
      {"topk", [](int64_t n) { return topk(ones({3}), n).values; }},
      {"tril",
       [](int64_t n) {
         return tril(ones({3, 3}), n);
       }},
      {"triu",
       [](int64_t n) {
         return triu(ones({3, 3}), n);
       }},
      {"sum over",
       [](int64_t n) {
         return sum(ones({3, 3}), static_cast<int>(n));
       }},
      {"sort of",
       [](int64_t n) {
         return sort(zeros({n, 2}), 0);
       }},
      {"argmax of",
       [](int64_t n) {
         return argmax(zeros({n, 2}), 1);
       }},
  });
}

TEST(Sizes, WindowsRefuseWhatNoArrayHas) {
  const auto kernel = [] { return ones({3, 3, 4, 2}); };
  static const auto made = kernel;
  check_all({
      {"conv, pad", [](int64_t n) { return conv(images(), made(), {.pad = n}); }},
      {"conv, stride", [](int64_t n) { return conv(images(), made(), {.stride = n}); }},
      {"conv, dilation", [](int64_t n) { return conv(images(), made(), {.dilation = n}); }},
      {"conv, groups", [](int64_t n) { return conv(images(), made(), {.groups = n}); }},
      {"conv, all", [](int64_t n) { return conv(images(), made(), {.stride = n, .pad = n, .dilation = n}); }},
      {"crosscor, pads",
       [](int64_t n) {
         return crosscor(images(), made(), {.pad = {n, 0, 0, n}});
       }},
      {"conv_transpose, stride",
       [](int64_t n) {
         return conv_transpose(ones({4, 4, 2, 2}), made(), {.stride = n});
       }},
      {"conv_transpose, pad",
       [](int64_t n) {
         return conv_transpose(ones({4, 4, 2, 2}), made(), {.pad = n});
       }},
      {"conv_transpose, groups",
       [](int64_t n) {
         return conv_transpose(ones({4, 4, 2, 2}), made(), {.groups = n});
       }},
      {"conv_transpose, outpad",
       [](int64_t n) {
         return conv_transpose(ones({4, 4, 2, 2}), made(), {}, n);
       }},
      {"conv_transpose of images",
       [](int64_t n) {
         return conv_transpose(zeros({n, 2, 1}), ones({2, 1, 2}));
       }},
      {"maxpool", [](int64_t n) { return maxpool(images(), n); }},
      {"maxpool, stride", [](int64_t n) { return maxpool(images(), 2, n); }},
      {"maxpool, pad", [](int64_t n) { return maxpool(images(), 2, 2, n); }},
      {"meanpool, pads",
       [](int64_t n) {
         return meanpool(images(), 2, n, {0, n, n, 0});
       }},
      {"adaptive_maxpool", [](int64_t n) { return adaptive_maxpool(images(), n); }},
      {"adaptive_meanpool", [](int64_t n) { return adaptive_meanpool(images(), n); }},
  });
}

TEST(Sizes, LayersWithWeightsRefuseWhatNoArrayHas) {
  check_all({
      {"Dense", [](int64_t n) { return Dense(n, 2).weight; }},
      {"Dense, out", [](int64_t n) { return Dense(n, n).weight; }},
      {"Bilinear", [](int64_t n) { return Bilinear(n, n, n).weight; }},
      {"Scale", [](int64_t n) { return Scale(n).scale; }},
      {"Embedding", [](int64_t n) { return Embedding(n, n).weight; }},
      {"EmbeddingBag at",
       [](int64_t n) {
         return EmbeddingBag(3, 2)(Array({0, 1}, {2}), Array({int64_t{0}, n}, {2}));
       }},
      {"Conv",
       [](int64_t n) {
         return Conv({n, n}, 4, 2).weight;
       }},
      {"Conv, channels",
       [](int64_t n) {
         return Conv({3, 3}, n, n).weight;
       }},
      {"Conv, window",
       [](int64_t n) {
         return Conv({3, 3}, 4, 2, {.stride = n, .pad = n, .dilation = n})(images());
       }},
      {"Conv, same",
       [](int64_t n) {
         return Conv({3, 3}, 4, 2, {.pad = SamePad(), .dilation = n})(images());
       }},
      {"Conv, groups",
       [](int64_t n) {
         return Conv({3, 3}, 4, 4, {.groups = n}).weight;
       }},
      {"Conv of a weight",
       [](int64_t n) {
         return Conv(ones({3, 3, 4, 2}), true, {}, {.groups = n})(images());
       }},
      {"CrossCor", [](int64_t n) { return CrossCor({n}, 4, 2).weight; }},
      {"ConvTranspose",
       [](int64_t n) {
         return ConvTranspose({3, 3}, 4, 4, {.stride = n, .groups = n}).weight;
       }},
      {"ConvTranspose of a weight",
       [](int64_t n) {
         return ConvTranspose(ones({3, 3, 2, 4}), true, {}, {.groups = n}).bias;
       }},
      {"CrossCorTranspose",
       [](int64_t n) {
         return CrossCorTranspose(ones({3, 3, 2, 4}), true, {}, {.stride = n, .groups = n}).bias;
       }},
      {"DepthwiseConv", [](int64_t n) { return DepthwiseConv({3}, n, n).weight; }},
  });
}

TEST(Sizes, LayersAndInitialisersRefuseWhatNoArrayHas) {
  check_all({
      {"BatchNorm", [](int64_t n) { return BatchNorm(n).scale; }},
      {"BatchNorm, plain",
       [](int64_t n) {
         return BatchNorm(n, {.affine = false, .track_stats = false})(ones({4, 2}));
       }},
      {"LayerNorm", [](int64_t n) { return LayerNorm(n).scale; }},
      {"InstanceNorm", [](int64_t n) { return InstanceNorm(n, {.affine = true}).scale; }},
      {"GroupNorm", [](int64_t n) { return GroupNorm(n, n).scale; }},
      {"GroupNorm, groups", [](int64_t n) { return GroupNorm(4, n)(images()); }},
      {"MaxPool", [](int64_t n) { return MaxPool(n, {.pad = SamePad()})(images()); }},
      {"Upsample", [](int64_t n) { return Upsample(n)(images()); }},
      {"Upsample, size", [](int64_t n) { return Upsample(UpsampleMode::bilinear, {.size = n})(images()); }},
      {"Upsample, nearest size", [](int64_t n) { return Upsample(UpsampleMode::nearest, {.size = n})(images()); }},
      {"PixelShuffle", [](int64_t n) { return PixelShuffle(n)(images()); }},
      {"PixelShuffle of an image",
       [](int64_t n) {
         return PixelShuffle(2)(zeros({n, n, 4, 1}));
       }},
      {"orthogonal",
       [](int64_t n) {
         return orthogonal({n, 2});
       }},
      {"orthogonal, wide",
       [](int64_t n) {
         return orthogonal({2, n});
       }},
      {"sparse_init",
       [](int64_t n) {
         return sparse_init({n, 0}, {.sparsity = 0.5});
       }},
      {"identity_init",
       [](int64_t n) {
         return identity_init({n, 2});
       }},
      {"identity_init, shift",
       [](int64_t n) {
         return identity_init({2, 2}, {.shift = n});
       }},
      {"truncated_normal",
       [](int64_t n) {
         return truncated_normal({n, n});
       }},
  });
}

TEST(Sizes, DataRefusesWhatNobodyHas) {
  check_all({
      {"batchsize",
       [](int64_t n) {
         return *DataLoader(ones({2, 4}), {.batchsize = n}).begin();
       }},
      {"num_workers",
       [](int64_t n) {
         return n == 0 ? Array(0) : *DataLoader(ones({2, 4}), {.batchsize = 2, .num_workers = n}).begin();
       }},
      {"seek",
       [](int64_t n) {
         DataLoader loader(ones({2, 4}), {.batchsize = 2});
         loader.seek(n, 2);
         return *loader.begin();
       }},
      {"getobs",
       [](int64_t n) {
         return getobs(ones({2, 4}), std::vector<int64_t>{n});
       }},
      {"draw_digits",
       [](int64_t n) {
         const LabelledImages drawn = draw_digits(n, 1);
         return Array(static_cast<int>(drawn.count));
       }},
      {"Chain", [](int64_t n) { return Array(static_cast<int>(Chain(Dense(2, 2)).slice(n, n).size())); }},
  });
}

/// Observations of as many dims as an array can have, so that a batch would have one more.
struct OfEightDims {
  int64_t numobs() const { return 2; }
  Array getobs(int64_t) const { return ones({1, 1, 1, 1, 1, 1, 1, 1}); }
};

TEST(Sizes, ABatchHasNoMoreDimsThanAnArray) {
  EXPECT_THROW(getobs(OfEightDims{}, std::vector<int64_t>{0, 1}), Error);
  EXPECT_THROW(stack({OfEightDims{}.getobs(0), OfEightDims{}.getobs(1)}, -1), Error);
  EXPECT_THROW(onehot(zeros({1, 1, 1, 1, 1, 1, 1, 1}, Int32), 3), Error);
  EXPECT_THROW(tile(ones({2}), std::vector<int64_t>(9, 1)), Error);
}

TEST(Sizes, WhatFitsIsRight) {
  EXPECT_EQ(slice(ones({3}), 0, 0, 3, highest).count(), 1);
  EXPECT_EQ(slice(ones({3}), 0, 2, to_end, lowest).count(), 1);
  EXPECT_EQ(sum(triu(ones({3, 3}), lowest)).item(), 9);
  EXPECT_EQ(sum(triu(ones({3, 3}), highest)).item(), 0);
  EXPECT_EQ(sum(tril(ones({3, 3}), highest)).item(), 9);
  const Array far = arange(lowest, highest, highest);
  EXPECT_EQ(far.to_vector<int64_t>(), (std::vector<int64_t>{lowest, -1, highest - 1}));
  EXPECT_EQ(arange(highest, lowest, lowest).to_vector<int64_t>(), (std::vector<int64_t>{highest, -1}));
  EXPECT_EQ(chunk(ones({4}), highest).size(), 4u);
  const Array seen = crosscor(ones({5, 1, 1}), ones({3, 1, 1}), {.stride = 1 << 16, .pad = 1 << 16});
  EXPECT_EQ(seen.to_vector<double>(), (std::vector<double>{0, 3, 0}));
  EXPECT_EQ(zeros({0, int64_t{1} << 58}).count(), 0);
}

/// The text of the Error of f.
template <class F> std::string text_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sizes, ErrorsHaveFigures) {
  EXPECT_EQ(text_of([] {
              zeros({(int64_t{1} << 62) + 1, 4});
            }),
            "shape: an array has at most 2^58 elements; got (4611686018427387905, 4); use smaller sizes");
  EXPECT_EQ(text_of([] { pad(ones({4}), 0, highest, highest); }),
            "pad: an array has at most 2^58 elements; got 9223372036854775807 + 4 + 9223372036854775807; use smaller "
            "sizes");
  EXPECT_EQ(text_of([] {
              ones({int64_t{1} << 40}) + ones({1, int64_t{1} << 40});
            }),
            "add: an array has at most 2^58 elements; got (1099511627776, 1099511627776); use smaller sizes");
  EXPECT_EQ(text_of([] {
              split(ones({3}), {-1, 4}, 0);
            }),
            "split: a size cannot be negative; got 0 + -1; use smaller sizes");
  EXPECT_EQ(text_of([] {
              conv(ones({5, 5, 2, 1}), ones({3, 3, 2, 1}), {.pad = (int64_t{1} << 32) + 1});
            }),
            "conv: pad can be at most 2147483647; got 4294967297; use a smaller number");
  EXPECT_EQ(text_of([] { arange(lowest, highest); }),
            "arange: an array has at most 2^58 elements; got 18446744073709551615 numbers from -9223372036854775808 "
            "to 9223372036854775807; use a smaller range or a larger step");
  EXPECT_EQ(text_of([] { arange(0, 1e300, 1e-300); }),
            "arange: the range must have fewer than 9e15 numbers; got start 0, stop 1e+300, step 1e-300; use linspace "
            "for a number of points");
  EXPECT_EQ(text_of([] {
              reshape(ones({4}), {-1, -1});
            }),
            "reshape: only one size can be left open; got (4) -> (-1, -1); state all other sizes");
  EXPECT_EQ(text_of([] { eye(-1); }), "eye: a size cannot be negative; got -1 * -1; use smaller sizes");
}

}  // namespace
