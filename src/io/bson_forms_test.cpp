// The forms that BSON.jl's files have and no real file at hand shows, made byte by byte from the format's description.
#include <gtest/gtest.h>

#include <cstring>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/io.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/pool_layers.hpp>

#include "io/real_files_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

/// An element without its key: type byte and value.
struct Value {
  char type;
  std::string bytes;
};

std::string raw(int32_t value) { return std::string(reinterpret_cast<const char*>(&value), 4); }
std::string raw(int64_t value) { return std::string(reinterpret_cast<const char*>(&value), 8); }

Value text(const std::string& value) {
  return {2, raw(static_cast<int32_t>(value.size() + 1)) + value + std::string(1, '\0')};
}
Value number(int64_t value) { return {0x12, raw(value)}; }
Value boolean(bool value) { return {8, std::string(1, value ? '\1' : '\0')}; }
Value binary(const std::string& bytes) {
  return {5, raw(static_cast<int32_t>(bytes.size())) + std::string(1, '\0') + bytes};
}
Value document(const std::vector<std::pair<std::string, Value>>& elements) {
  std::string content;
  for (const auto& [key, value] : elements) content += value.type + key + std::string(1, '\0') + value.bytes;
  return {3, raw(static_cast<int32_t>(content.size() + 5)) + content + std::string(1, '\0')};
}
Value array(const std::vector<Value>& elements) {
  std::vector<std::pair<std::string, Value>> numbered;
  for (size_t i = 0; i < elements.size(); ++i) numbered.emplace_back(std::to_string(i), elements[i]);
  Value made = document(numbered);
  made.type = 4;
  return made;
}
Value type(const std::vector<std::string>& name, const std::vector<Value>& params = {}) {
  std::vector<Value> path;
  for (const std::string& step : name) path.push_back(text(step));
  // The tag last: keys stand in any order.
  return document({{"params", array(params)}, {"name", array(path)}, {"tag", text("datatype")}});
}
Value structure(const Value& of, const std::vector<Value>& data) {
  return document({{"data", array(data)}, {"type", of}, {"tag", text("struct")}});
}
Value flux(const std::string& name, const std::vector<Value>& data) { return structure(type({"Flux", name}), data); }
Value tuple(const std::vector<Value>& data) { return document({{"tag", text("tuple")}, {"data", array(data)}}); }
Value symbol(const std::string& name) { return document({{"tag", text("symbol")}, {"name", text(name)}}); }
Value floats(const std::vector<int64_t>& sizes, const std::vector<float>& values) {
  std::vector<Value> list;
  for (int64_t size : sizes) list.push_back(number(size));
  const std::string bytes(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  return document({{"data", binary(bytes)},
                   {"size", array(list)},
                   {"type", type({"Main", "Core", "Float32"})},
                   {"tag", text("array")}});
}
Value float32(float value) {
  return document({{"tag", text("struct")},
                   {"type", type({"Core", "Float32"})},
                   {"data", binary(std::string(reinterpret_cast<const char*>(&value), 4))}});
}
Value backref(int64_t index) { return document({{"ref", number(index)}, {"tag", text("backref")}}); }
Value nothing() { return {0x0A, ""}; }
Value identity() { return structure(type({"Main", "Base", "#identity"}), {}); }

class BsonForms : public ScratchFolder {
 protected:
  std::string file(const std::vector<std::pair<std::string, Value>>& elements) const {
    return write("x.bson", document(elements).bytes);
  }
  static Value tracked(const Value& data) {
    return structure(type({"Flux", "Tracker", "TrackedArray"}), {nothing(), data, nothing()});
  }
  const std::vector<float> weight_{1, 2, 3, 4, 5, 6};
};

TEST_F(BsonForms, ParametersOfZygoteAreLoadedInFluxsOrder) {
  const Value list = array({floats({2, 3}, weight_), floats({2}, {7, 8}), floats({2}, {9, 10}), floats({2}, {11, 12})});
  const Value params =
      structure(type({"Zygote", "Params"}), {structure(type({"Zygote", "Buffer"}), {list, boolean(false)}), nothing()});
  for (const Value& stored : {params, list}) {
    Chain model(Dense(3, 2), BatchNorm(2));
    load(file({{"params", stored}}), model);
    EXPECT_EQ(model[0].get_if<Dense>()->weight.to_vector(), weight_);
    EXPECT_EQ(model[0].get_if<Dense>()->bias.to_vector(), (std::vector<float>{7, 8}));
    EXPECT_EQ(model[1].get_if<BatchNorm>()->bias.to_vector(), (std::vector<float>{9, 10}));  // β comes first
    EXPECT_EQ(model[1].get_if<BatchNorm>()->scale.to_vector(), (std::vector<float>{11, 12}));
  }
}

TEST_F(BsonForms, ClosuresAndFunctionsKeepTheirPlacesInAChain) {
  const Value closure =
      structure(document({{"tag", text("jl_anonymous")},
                          {"params", array({})},
                          {"typename", structure(type({"Main", "Core", "TypeName"}), {symbol("##5#9"), number(3)})}}),
                {});
  // MaxPool{2,4}: all parameters are integers, so that they are an array of bytes.
  const Value pool =
      structure(document({{"tag", text("datatype")},
                          {"params", document({{"tag", text("array")},
                                               {"type", type({"Core", "Int64"})},
                                               {"size", array({number(2)})},
                                               {"data", binary(raw(int64_t{2}) + raw(int64_t{4}))}})},
                          {"name", array({text("Flux"), text("MaxPool")})}}),
                {tuple({number(2), number(2)}), tuple({number(0), number(0)}), tuple({number(2), number(2)})});
  const Value chain = flux(
      "Chain", {tuple({closure, pool, flux("Dense", {floats({2, 3}, weight_), floats({2}, {7, 8}), identity()})})});
  Chain model(flatten, MaxPool(2), Dense(3, 2));
  load(file({{"model", chain}}), model);
  EXPECT_EQ(model[2].get_if<Dense>()->weight.to_vector(), weight_);
  EXPECT_EQ(load(path("x.bson")).arrays().size(), 2u);  // windows are no arrays
}

TEST_F(BsonForms, BatchNormOfEveryVersion) {
  const Value beta = floats({2}, {1, 2}), gamma = floats({2}, {3, 4}), mean = floats({2}, {5, 6});
  const Value spread = floats({2}, {2, 3});
  const std::vector<Value> newest{identity(),    beta,          gamma,         mean,      spread,   float32(1e-5f),
                                  float32(0.1f), boolean(true), boolean(true), nothing(), number(2)};
  const std::vector<Value> middle{identity(), beta, gamma, mean, spread, float32(1e-5f), float32(0.1f), boolean(true)};
  const std::vector<Value> oldest{identity(), tracked(beta),  tracked(gamma), mean,
                                  spread,     float32(0.25f), float32(0.1f),  boolean(true)};
  for (const auto* fields : {&newest, &middle, &oldest}) {
    BatchNorm model(2);
    load(file({{"model", flux("BatchNorm", *fields)}}), model);
    EXPECT_EQ(model.bias.to_vector(), (std::vector<float>{1, 2}));
    EXPECT_EQ(model.scale.to_vector(), (std::vector<float>{3, 4}));
    EXPECT_EQ(model.mean.value().to_vector(), (std::vector<float>{5, 6}));
    // Flux 0.6 kept the deviation, with ϵ in it.
    const std::vector<float> variance = fields == &oldest ? std::vector<float>{3.75, 8.75} : std::vector<float>{2, 3};
    EXPECT_EQ(model.variance.value().to_vector(), variance);
  }
}

TEST_F(BsonForms, LayerNormKeepsItsArraysInALayerOfItsOwn) {
  const Value diagonal = flux("Diagonal", {floats({2}, {1, 2}), floats({2}, {3, 4})});
  const Value scale = flux("Scale", {floats({2}, {1, 2}), floats({2}, {3, 4}), identity()});
  for (const Value& layer : {flux("LayerNorm", {diagonal}), flux("LayerNorm", {identity(), scale, float32(1e-5f),
                                                                               tuple({number(2)}), boolean(true)})}) {
    LayerNorm model(2);
    load(file({{"model", layer}}), model);
    EXPECT_EQ(model.scale.to_vector(), (std::vector<float>{1, 2}));
    EXPECT_EQ(model.bias.to_vector(), (std::vector<float>{3, 4}));
  }
}

TEST_F(BsonForms, AbsentBiasesOfBothKinds) {
  for (const Value& bias : {boolean(false), flux("Zeros", {})}) {
    Dense model(3, 2, {.bias = ones({2})});
    load(file({{"model", flux("Dense", {floats({2, 3}, weight_), bias, identity()})}}), model);
    EXPECT_EQ(model.bias.to_vector(), (std::vector<float>{0, 0}));
  }
}

TEST_F(BsonForms, TransposesAreTurned) {
  const Value adjoint = structure(type({"LinearAlgebra", "Adjoint"}), {floats({3, 2}, {1, 3, 5, 2, 4, 6})});
  Dense model(3, 2, {.bias = false});
  load(file({{"model", flux("Dense", {adjoint, boolean(false), identity()})}}), model);
  EXPECT_EQ(model.weight.to_vector(), weight_);
}

TEST_F(BsonForms, SharedArraysAndObjectsThatContainThemselves) {
  const Value self = structure(type({"Main", "Node"}), {backref(1), backref(2), number(7)});
  file({{"_backrefs", array({self, floats({2}, {1, 2})})}, {"a", backref(1)}, {"b", backref(2)}});
  const SavedFile read = load(path("x.bson"));
  ASSERT_EQ(read.arrays().size(), 3u);
  EXPECT_EQ(read.arrays()[0].name, "a.1");
  EXPECT_EQ(read.arrays()[1].name, "a.2");
  EXPECT_EQ(read["a.2"].item<int64_t>(), 7);
  EXPECT_TRUE(same(read["a.1"], read["b"]));
  EXPECT_TRUE(is_tied(read["b"]));
}

TEST_F(BsonForms, AFileThatUnfoldsBeyondBoundsIsRefused) {
  std::vector<Value> shared;
  for (int64_t i = 0; i < 40; ++i) shared.push_back(array({backref(i + 2), backref(i + 2)}));
  shared.push_back(floats({1}, {1}));
  file({{"a", backref(1)}, {"_backrefs", array(shared)}});
  EXPECT_NE(error_here([&] { load(path("x.bson")); }).find("a file has at most 2^20 values, shared ones counted"),
            std::string::npos);
  file({{"a", backref(2)}, {"_backrefs", array({nothing()})}});
  const std::string rule = "a reference must mean an entry of _backrefs; 'DIR/x.bson'";
  EXPECT_NE(error_here([&] { load(path("x.bson")); }).find(rule), std::string::npos);
  file({{"a", structure(backref(1), {number(7)})}});  // of a file without _backrefs, where a type is looked for
  EXPECT_NE(error_here([&] { load(path("x.bson")); }).find(rule), std::string::npos);
}

TEST_F(BsonForms, ARootThatIsADictionaryWithTextsAsKeys) {
  const Value root = structure(type({"Main", "Base", "Dict"}, {type({"Core", "String"}), type({"Core", "Any"})}),
                               {array({text("weights"), text("μ")}), array({floats({1}, {3}), number(4)})});
  write("x.bson", root.bytes);
  const SavedFile read = load(path("x.bson"));
  EXPECT_EQ(read["weights"].item<float>(), 3.0f);
  EXPECT_EQ(read["μ"].item<int64_t>(), 4);
}

TEST_F(BsonForms, AnArrayWithOtherBytesThanItsSizesNeedIsRefused) {
  file({{"a", floats({3}, {1, 2})}});
  EXPECT_NE(error_here([&] { load(path("x.bson")); }).find("an array must have as many bytes as its sizes need"),
            std::string::npos);
  file({{"a", floats({int64_t{1} << 62, 8}, {1, 2})}});
  EXPECT_NE(error_here([&] { load(path("x.bson")); }).find("an array must have as many bytes as its sizes need"),
            std::string::npos);
}

}  // namespace
}  // namespace rosin
