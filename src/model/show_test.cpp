// Golden texts of models and arrays: rows 10, 26 and 41 of the acceptance list, Flux's layout, Julia's tables.
#include <rosin/show.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <ostream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include <rosin/error.hpp>
#include <rosin/model.hpp>

namespace rosin {
namespace {

Array ones_of(const Shape& shape, float value = 1) {
  return Array(std::vector<float>(static_cast<size_t>(shape.count()), value), shape);
}

struct Toy {
  Array weight, bias;
  std::string act;
  Toy(int in, int out, std::string f = "") : weight(ones_of({out, in})), bias(ones_of({out})), act(std::move(f)) {}
  static constexpr auto rosin_fields = rosin::fields<&Toy::weight, &Toy::bias>{};
  std::string rosin_show() const {
    return "Dense(" + std::to_string(weight.size(1)) + " => " + std::to_string(weight.size(0)) +
           (act.empty() ? "" : ", " + act) + ")";
  }
};

/// Prints as Flux's Chain: its layers stand in it without names.
struct Chain {
  std::vector<Toy> layers;
  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const {
    const ModelPart part = reflect::part_of(*this, PartKind::fields);
    visitor.enter(part, path);
    const ModelPath inside = path.field("layers");
    int64_t i = 0;
    for (const Toy& layer : layers) visit(layer, visitor, inside.item(i++));
    visitor.leave(part, path);
  }
};

TEST(ShowModel, ALayerIsOneLineWithItsParameterCount) {
  EXPECT_EQ(to_string(Toy(10, 5)), "Dense(10 => 5)      # 55 parameters");
  EXPECT_EQ(to_string(Toy(2, 3)), "Dense(2 => 3)       # 9 parameters");
}

TEST(ShowModel, AChainShowsItsLayersAndTheTotal) {
  EXPECT_EQ(to_string(Chain{{Toy(1, 256, "tanh"), Toy(256, 1)}}),
            "Chain(\n"
            "  Dense(1 => 256, tanh),                # 512 parameters\n"
            "  Dense(256 => 1),                      # 257 parameters\n"
            ")                   # Total: 4 arrays, 769 parameters, 3.004 KiB.");
}

TEST(ShowModel, AChainOfOneLayerHasNoTotal) {
  EXPECT_EQ(to_string(Chain{{Toy(2, 3)}}), "Chain(\n  Dense(2 => 3),                        # 9 parameters\n)");
}

struct Net {
  Toy hidden{2, 3, "relu"};
  std::vector<Toy> blocks{Toy(3, 3), Toy(3, 3)};
  Array scale = ones_of({3});
  int heads = 2;
  Buffer mean{ones_of({4})};
};

TEST(ShowModel, AStructPrintsItsFieldsByNameAndItsBuffersInTheTotal) {
  EXPECT_EQ(to_string(Net{}),
            "Net(\n"
            "  hidden = Dense(2 => 3, relu),         # 9 parameters\n"
            "  blocks = [\n"
            "    Dense(3 => 3),                      # 12 parameters\n"
            "    Dense(3 => 3),                      # 12 parameters\n"
            "  ],\n"
            "  scale = 3-element Array{Float32},     # 3 parameters\n"
            "  heads = 2,\n"
            ")         # Total: 7 trainable arrays, 36 parameters,\n"
            "          # plus 1 non-trainable, 4 parameters, summarysize 160 bytes.");
}

TEST(ShowModel, AStructOfArraysIsOneLine) {
  struct Affine {
    Array w = ones_of({2, 3});
    Array b;
  };
  EXPECT_EQ(to_string(Affine{}), "Affine(w = 2×3 Array{Float32})  # 6 parameters");
}

TEST(ShowModel, TiedArraysCountOnceAndAreMarked) {
  Chain model{{Toy(2, 2), Toy(2, 2)}};
  model.layers[1].weight = tied(model.layers[0].weight);
  EXPECT_EQ(to_string(model),
            "Chain(\n"
            "  Dense(2 => 2),                        # 6 parameters\n"
            "  Dense(2 => 2),                        # 2 parameters  (weight tied to layers[0].weight)\n"
            ")                   # Total: 3 arrays, 8 parameters, 32 bytes.");
}

TEST(ShowModel, MarksZeroNaNAndInf) {
  Toy layer(1, 1);
  layer.weight = layer.bias = ones_of({1}, 0);
  layer.weight = ones_of({1, 1}, 0);
  EXPECT_EQ(to_string(layer), "Dense(1 => 1)       # 2 parameters  (all zero)");
  layer.bias = ones_of({1}, std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_string(layer), "Dense(1 => 1)       # 2 parameters  (some Inf)");
  layer.weight = ones_of({1, 1}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(to_string(layer), "Dense(1 => 1)       # 2 parameters  (some NaN)");
}

TEST(ShowModel, StreamsTakeShownTextArraysAndLayers) {
  std::ostringstream stream;
  stream << show(Toy(2, 3)) << "\n" << Toy(2, 3) << "\n" << Array(1.5);
  EXPECT_EQ(stream.str(), "Dense(2 => 3)       # 9 parameters\nDense(2 => 3)       # 9 parameters\n1.5");
}

TEST(ShowArray, AMatrixHasAHeadingAndAlignedColumns) {
  EXPECT_EQ(to_string(Array({1.0f, 20.0f, -3.5f, 4.25f, 0.0f, 6.0f}, {2, 3})),
            "2×3 Array{Float32} on CPU:\n"
            "  1.0  -3.5   0.0\n"
            " 20.0   4.25  6.0");
}

TEST(ShowArray, AVectorIsAColumnWithAllDigits) {
  EXPECT_EQ(to_string(Array({0.333333333333, 10.0}, {2})), "2-element Array{Float64} on CPU:\n  0.333333333333\n 10.0");
}

TEST(ShowArray, InfAndNaNAlignAsInJulia) {
  EXPECT_EQ(to_string(Array({1.0, std::numeric_limits<double>::infinity()}, {2})),
            "2-element Array{Float64} on CPU:\n  1.0\n Inf");
  EXPECT_EQ(to_string(Array({1.0, std::numeric_limits<double>::quiet_NaN()}, {2})),
            "2-element Array{Float64} on CPU:\n   1.0\n NaN");
}

TEST(ShowArray, IntegersAlignToTheRight) {
  EXPECT_EQ(to_string(Array({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 6})),
            "2×6 Array{Int32} on CPU:\n 1  3  5  7   9  11\n 2  4  6  8  10  12");
}

TEST(ShowArray, ScalarsAreBareNumbersAndEmptyArraysHaveNoRows) {
  EXPECT_EQ(to_string(Array(0.5)), "0.5");
  EXPECT_EQ(to_string(Array(3)), "3");
  EXPECT_EQ(to_string(Array(true)), "true");
  EXPECT_EQ(to_string(Array()), "nothing");
  EXPECT_EQ(to_string(ones_of({0, 5})), "0×5 Array{Float32} on CPU");
}

TEST(ShowArray, HigherDimsAreShownSliceBySlice) {
  EXPECT_EQ(to_string(Array({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2})),
            "2×2×2 Array{Int32} on CPU:\n[:, :, 0] =\n 1  3\n 2  4\n\n[:, :, 1] =\n 5  7\n 6  8");
}

TEST(ShowArray, LongAndWideMatricesAreElided) {
  const std::string text = to_string(ones_of({1000, 1000}, 0));
  std::string row = " 0.0  0.0  0.0  0.0  0.0  0.0  0.0  0.0", right = "0.0  0.0  0.0  0.0  0.0  0.0  0.0";
  const std::string dotted = row + "  …  " + right, plain = row + "     " + right;
  std::string expected = "1000×1000 Array{Float32} on CPU:";
  for (int i = 0; i < 10; ++i) expected += "\n" + (i % 5 == 0 ? dotted : plain);
  expected += "\n ⋮                        ⋮              ⋱            ⋮                   ";
  // Rows 991 to 999 follow; the fifth row after each multiple of five has dots.
  for (int i = 991; i < 1000; ++i) expected += "\n" + (i % 5 == 0 ? dotted : plain);
  EXPECT_EQ(text.substr(0, 900), expected.substr(0, 900));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20);
}

TEST(ShowArray, LongVectorsAreElidedInTheMiddle) {
  std::vector<int32_t> values(100);
  for (int i = 0; i < 100; ++i) values[static_cast<size_t>(i)] = i;
  const std::string text = to_string(Array(values, {100}));
  EXPECT_EQ(text,
            "100-element Array{Int32} on CPU:\n  0\n  1\n  2\n  3\n  4\n  5\n  6\n  7\n  8\n  9\n  ⋮\n 91\n 92\n 93\n "
            "94\n 95\n"
            " 96\n 97\n 98\n 99");
}

/// What a program's own classes print stays theirs.
struct Coded {
  Array codes;
  int flags[2] = {1, 2};
  friend std::ostream& operator<<(std::ostream& stream, const Coded&) { return stream << "coded"; }
};

struct Plain {
  Array a = ones_of({2}), b = ones_of({3});
};

TEST(Streams, TakeModelsShapesAndTypes) {
  const auto text = [](const auto& x) {
    std::ostringstream stream;
    stream << x;
    return stream.str();
  };
  EXPECT_EQ(text(Plain()), to_string(Plain()));
  EXPECT_NE(text(Plain()).find("Plain(a = 2-element Array{Float32}"), std::string::npos) << text(Plain());
  EXPECT_EQ(text(Shape{2, 3}), "(2, 3)");
  EXPECT_EQ(text(Shape()), "()");
  EXPECT_EQ(text(Float32), "Float32");
  EXPECT_EQ(text(Coded()), "coded");
}

TEST(Shapes, TakeSizesOfAnyIntegralType) {
  const std::vector<float> v(3);
  const unsigned char few = 2;
  EXPECT_EQ(Shape({v.size(), 2}), Shape({3, 2}));
  EXPECT_EQ(Shape({few, 4u, short{5}, 6LL}), Shape({2, 4, 5, 6}));
  EXPECT_EQ(ones_of({v.size()}).shape(), Shape{3});
  EXPECT_EQ(Array(v, {v.size()}).count(), 3);
  EXPECT_THROW(Shape({SIZE_MAX, 2}), Error);
}

}  // namespace
}  // namespace rosin
