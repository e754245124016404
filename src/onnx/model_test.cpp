// Models from ONNX files: calling, walking, training, errors. Files are made by hand (file_testing.hpp).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/chain.hpp>
#include <rosin/compose.hpp>
#include <rosin/dense.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/functor.hpp>
#include <rosin/grad.hpp>
#include <rosin/move.hpp>
#include <rosin/onnx.hpp>
#include <rosin/optim.hpp>
#include <rosin/profile.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rules.hpp>
#include <rosin/show.hpp>

#include "io/real_files_testing.hpp"
#include "onnx/file_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

class OnnxModel : public ScratchFolder {
 protected:
  onnx::Model load(const std::string& bytes) const { return onnx::load(write("model.onnx", bytes)); }
  std::string load_error(const std::string& bytes) const {
    return error_here([&] { load(bytes); });
  }
};

// Rows of the file are columns here: x = (1, 2) and (-1, 1).
// By hand: h = (5.5, 10, -1) and (1.5, 0, 2); y = 5.5 + 100 = 105.5 and 1.5 + 0 + 200 = 201.5.
Array two_rows() { return Array({1.0f, 2.0f, -1.0f, 1.0f}, {2, 2}); }
const std::vector<float> two_results = {105.5f, 201.5f};

TEST_F(OnnxModel, IsCalledWithOneArrayByPositionAndByName) {
  const onnx::Model model = load(small_network());
  EXPECT_EQ(model(two_rows()).to_vector(), two_results);
  EXPECT_EQ(model(two_rows()).shape(), Shape({1, 2}));
  const Array x = two_rows();
  EXPECT_EQ(model(std::span<const Array>(&x, 1))[0].to_vector(), two_results);
  EXPECT_EQ(model({{"x", x}})["y"].to_vector(), two_results);
  EXPECT_EQ(model({{"x", x}})[0].to_vector(), two_results);
}

TEST_F(OnnxModel, SaysWhatGoesInAndComesOut) {
  const onnx::Model model = load(small_network());
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].sizes, (std::vector<int64_t>{2, -1}));
  EXPECT_EQ(model.outputs()[0].name, "y");
  EXPECT_EQ(model.opset(), 13);
}

TEST_F(OnnxModel, HasItsWeightsAsParametersUnderTheNamesOfTheFile) {
  const onnx::Model model = load(small_network());
  std::vector<std::string> names;
  for (const NamedArray& array : named_trainables(model)) names.push_back(array.name);
  EXPECT_EQ(names, (std::vector<std::string>{"first.weight", "first.bias", "second"}));
  EXPECT_EQ(parameter_count(model), 6 + 3 + 3);
  EXPECT_EQ(named_trainables(model)[0].value.shape(), Shape({2, 3}));
}

// y = sum over columns: dy/dsecond = sum of a over the batch = (5.5 + 1.5, 10 + 0, 0 + 2).
// second is (3, 1) in the file, (1, 3) here.
TEST_F(OnnxModel, HasGradientsByItsWeights) {
  const onnx::Model model = load(small_network());
  const onnx::Model g = gradient([](const onnx::Model& m) { return sum(m(two_rows())); }, model);
  EXPECT_EQ(getkeypath(g, "second").to_vector(), (std::vector<float>{7, 10, 2}));
}

TEST_F(OnnxModel, TrainsLikeAnyLayer) {
  onnx::Model model = load(small_network());
  State state = setup(Descent{.eta = 0.5}, model);
  const onnx::Model g = gradient([](const onnx::Model& m) { return sum(m(two_rows())); }, model);
  update(state, model, g);
  EXPECT_EQ(getkeypath(model, "second").to_vector(), (std::vector<float>{1 - 3.5f, 10 - 5, 100 - 1}));
}

TEST_F(OnnxModel, IsALayerOfAChain) {
  const Chain chain(load(small_network()), softmax);
  EXPECT_EQ(chain(two_rows()).to_vector(), (std::vector<float>{1, 1}));
  EXPECT_EQ(parameter_count(chain), 12);
}

TEST_F(OnnxModel, PrintsItsParametersAndMoves) {
  const onnx::Model model = load(small_network());
  const std::string text = to_string(model);
  EXPECT_NE(text.find("Model("), std::string::npos) << text;
  EXPECT_NE(text.find("12 parameters"), std::string::npos) << text;
  EXPECT_EQ((model | cpu)(two_rows()).to_vector(), two_results);
}

TEST_F(OnnxModel, DoesNotTrainStatisticsSettingsAndIntegers) {
  const onnx::Model model = load(model_file(
      node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"n"}) + node("Clip", {"n", "low", ""}, {"c"}) +
      node("Gather", {"c", "order"}, {"y"}, integer_attribute("axis", 1)) + floats("scale", {2}, {1, 2}) +
      floats("bias", {2}, {0, 1}) + floats("mean", {2}, {1, 1}) + floats("var", {2}, {4, 1}) +
      floats("low", {}, {-0.25}) + integers("order", {2}, {1, 0}) + input("x", {-1, 2}) + output("y", {-1, 2})));
  EXPECT_EQ(parameter_count(model), 4);
  std::vector<std::string> names;
  for (const NamedArray& array : state(model)) names.push_back(array.name);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "bias", "mean", "var"}));
  // ((0 - 1) / 2, 2 (3 - 1) + 1) = (-0.5, 5), clipped to (-0.25, 5), in the other order.
  const std::vector<float> y = model(Array({0.0f, 3.0f}, {2, 1})).to_vector();
  EXPECT_NEAR(y[0], 5, 1e-4);
  EXPECT_EQ(y[1], -0.25f);
}

// relu6 is one op, which calls compute on their way; others are two. NaN stays.
TEST_F(OnnxModel, ClipsBetweenConstants) {
  const Array x({-1.0f, 3.0f, 7.0f, std::numeric_limits<float>::quiet_NaN()}, {4, 1});
  for (const float high : {6.0f, 5.0f}) {
    const onnx::Model model = load(model_file(node("Clip", {"x", "low", "high"}, {"y"}) + floats("low", {}, {0}) +
                                              floats("high", {}, {high}) + input("x", {-1, 4}) + output("y", {-1, 4})));
    const std::vector<float> y = model(x).to_vector();
    EXPECT_EQ((std::vector<float>{y[0], y[1], y[2]}), (std::vector<float>{0, 3, high}));
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(profile([&] { eval(model(x)); }).entries.at(0).ops, high == 6 ? "relu6" : "max min");
  }
}

TEST_F(OnnxModel, ComputesWhatDependsOnConstantsAlone) {
  // The sizes (2, 3) are put together from (1, 3) + (1, 0): nothing of it is left in the model.
  const onnx::Model model =
      load(model_file(node("Add", {"a", "b"}, {"sizes"}) + node("Reshape", {"x", "sizes"}, {"y"}) +
                      integers("a", {2}, {1, 3}) + integers("b", {2}, {1, 0}) + input("x", {6}) + output("y", {2, 3})));
  EXPECT_TRUE(fleaves(model).empty());
  EXPECT_EQ(model(Array({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {6})).shape(), Shape({3, 2}));
}

TEST_F(OnnxModel, TakesShapesFromArraysThatGoIn) {
  const onnx::Model model = load(model_file(
      node("Shape", {"x"}, {"s"}) + node("Gather", {"s", "zero"}, {"n"}) +
      node("Concat", {"n", "rest"}, {"sizes"}, integer_attribute("axis", 0)) + node("Reshape", {"x", "sizes"}, {"y"}) +
      integers("zero", {1}, {0}) + integers("rest", {1}, {-1}) + input("x", {-1, 2, 2}) + output("y", {-1, 4})));
  EXPECT_EQ(model(Array({1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f}, {2, 2, 2})).shape(), Shape({4, 2}));
  EXPECT_EQ(model(Array({1.f, 2.f, 3.f, 4.f}, {2, 2, 1})).shape(), Shape({4, 1}));
}

TEST_F(OnnxModel, NamesAllOpsThatItLacksAtOnce) {
  EXPECT_EQ(load_error(model_file(node("Blur", {"x"}, {"a"}) + node("Relu", {"a"}, {"b"}) +
                                  node("Sharpen", {"b"}, {"y"}) + input("x", {1}) + output("y", {1}))),
            "onnx: every op must be one that rosin has (docs/onnx.md); got node 0 \"a_node\" (Blur), node 2 \"y_node\" "
            "(Sharpen) of version 13 in DIR/model.onnx; replace these in the model");
}

TEST_F(OnnxModel, SaysWhatAFileDoesWrong) {
  const std::string relu = node("Relu", {"x"}, {"y"}), ports = input("x", {1}) + output("y", {1});
  EXPECT_EQ(
      load_error(model_file(relu + ports, 99)),
      "onnx: ops must be of version 1 to 28; got version 99 in DIR/model.onnx; write the model for an older version");
  EXPECT_EQ(
      load_error(model_file(node("Relu", {"z"}, {"y"}) + ports)),
      "onnx: what is read must be made before; got \"z\", which node 0 \"y_node\" (Relu) reads, in DIR/model.onnx; "
      "the file is damaged");
  EXPECT_EQ(load_error(model_file(relu + relu + ports)),
            "onnx: a name must be made once; got \"y\" twice in DIR/model.onnx; the file is damaged");
  EXPECT_EQ(load_error(model_file(relu + floats("w", {2}, {1}) + ports)).substr(0, 92),
            "onnx: a tensor must have as many values as its sizes say; got 4 where there must be 8 for th");
  EXPECT_EQ(load_error(""),
            "onnx: a model must have a graph; got none at byte 0 of DIR/model.onnx, in ModelProto; the "
            "file is damaged or no ONNX model");
}

TEST_F(OnnxModel, SaysWhatACallDoesWrong) {
  const onnx::Model model = load(small_network());
  const auto error = [&](auto f) { return error_here(f); };
  EXPECT_EQ(
      error([&] {
        model(Array({1.f, 2.f, 3.f}, {3, 1}));
      }),
      "onnx::Model: the input \"x\" is (2, any); got (3, 1); dims are those of the file in reverse, the batch last");
  EXPECT_EQ(error([&] {
              model(Array({1.0, 2.0}, {2, 1}));
            }),
            "onnx::Model: the input \"x\" is Float32; got Float64; write cast(x, Float32)");
  EXPECT_EQ(error([&] {
              model({{"z", two_rows()}});
            }),
            "onnx::Model: an input must have a name of the model's; got \"z\"; the inputs are x");
  EXPECT_EQ(error([&] {
              model({{"x", two_rows()}})["z"];
            }),
            "onnx::Results: no output has that name; got \"z\"; the names are y");
}

TEST_F(OnnxModel, BeginsErrorsOfOpsWithTheNode) {
  const onnx::Model model = load(model_file(node("MatMul", {"a", "b"}, {"y"}) + input("a", {-1, -1}) +
                                            input("b", {-1, -1}) + output("y", {-1, -1})));
  const Arrays inputs = {Array({1.f, 2.f}, {2, 1}), Array({1.f, 2.f, 3.f}, {1, 3})};
  EXPECT_EQ(error_here([&] { model(std::span<const Array>(inputs)); }).substr(0, 40),
            "onnx: node 0 \"y_node\" (MatMul): matmul: ");
}

TEST_F(OnnxModel, ReadsExternalDataBesideTheModelAndNowhereElse) {
  const auto external = [](const std::string& location) {
    const std::string tensor = number_field(1, 2) + number_field(2, 1) + bytes_field(8, "w") +
                               bytes_field(13, bytes_field(1, "location") + bytes_field(2, location)) +
                               bytes_field(13, bytes_field(1, "offset") + bytes_field(2, "4")) + number_field(14, 1);
    return model_file(node("Mul", {"x", "w"}, {"y"}) + bytes_field(5, tensor) + input("x", {2}) + output("y", {2}));
  };
  const float numbers[] = {7, 2, 3};
  write("weights.bin", std::string(reinterpret_cast<const char*>(numbers), sizeof numbers));
  EXPECT_EQ(load(external("weights.bin"))(Array({1.f, 10.f}, {2})).to_vector(), (std::vector<float>{2, 30}));
  EXPECT_NE(load_error(external("../weights.bin")).find("external data must lie in the folder of the model"),
            std::string::npos);
  EXPECT_NE(load_error(external("/etc/passwd")).find("external data must lie in the folder of the model"),
            std::string::npos);
}

TEST_F(OnnxModel, IsListedWithoutBeingMade) {
  const FileListing listing = onnx::list_file(write("model.onnx", small_network()));
  ASSERT_EQ(listing.tensors.size(), 3u);
  EXPECT_EQ(listing.tensors[0].name, "first.weight");
  EXPECT_EQ(listing.tensors[0].type, "FLOAT");
  EXPECT_EQ(listing.tensors[0].sizes, (std::vector<uint64_t>{3, 2}));
  EXPECT_EQ(listing.tensors[0].bytes, 24u);
  const std::vector<std::pair<std::string, std::string>> texts = {{"input x", "FLOAT (N, 2)"},
                                                                  {"output y", "FLOAT (N, 1)"},
                                                                  {"opset", "13"},
                                                                  {"nodes", "1 Gemm, 1 MatMul, 1 Relu"}};
  EXPECT_EQ(listing.metadata, texts);
}

}  // namespace
}  // namespace rosin
