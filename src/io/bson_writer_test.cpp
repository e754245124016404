// What we write, read by Python from the format's description alone, and compared with bytes that BSON.jl wrote.
#include <gtest/gtest.h>

#include <cstring>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/dropout.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/io.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/pool_layers.hpp>

#include "io/python_testing.hpp"
#include "io/real_files_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

class BsonWriting : public ScratchFolder {
 protected:
  std::string read_by_python(const std::string& name) const {
    return output_of(python_with("struct") + " " + std::string(ROSIN_SOURCE_DIR) + "/tests/read_bson.py " + path(name));
  }
};

TEST_F(BsonWriting, PythonReadsTheStateOfFlux) {
  if (python_with("struct").empty()) GTEST_SKIP() << "no python3 (set PYTHON)";
  const Array weight = cast(reshape(arange(6), {2, 3}), Float32);
  const Chain model(Dense(weight, ones({2}), relu), Dense(ones({1, 2}), false), softmax);
  save(path("m.bson"), model);
  EXPECT_EQ(read_by_python("m.bson"),
            "model_state.layers(1).weight Float32 2x3 0 1 2 3 4 5\n"
            "model_state.layers(1).bias Float32 2 1 1\n"
            "model_state.layers(1).σ ()\n"
            "model_state.layers(2).weight Float32 1x2 1 1\n"
            "model_state.layers(2).bias False\n"
            "model_state.layers(2).σ ()\n"
            "model_state.layers(3) ()\n");
}

TEST_F(BsonWriting, LayersHaveTheFieldsThatFluxExpectsInItsOrder) {
  if (python_with("struct").empty()) GTEST_SKIP() << "no python3 (set PYTHON)";
  const Chain model(Conv({3, 3}, 1, 2, relu, {.stride = {2, 1}, .pad = {1, 2}, .init = ones32}), MaxPool(2),
                    BatchNorm(2, {.eps = 1e-3, .momentum = 0.25}), Dropout(0.25), LayerNorm(2));
  save(path("m.bson"), {{"model", model}, {"step", 7}, {"rate", 0.5}, {"note", "ok"}});
  EXPECT_EQ(read_by_python("m.bson"),
            "model.layers(1).σ ()\n"
            "model.layers(1).weight Float32 3x3x1x2 1 1 1 1 1 1\n"
            "model.layers(1).bias Float32 2 0 0\n"
            "model.layers(1).stride(1) 2\n"
            "model.layers(1).stride(2) 1\n"
            "model.layers(1).pad(1) 1\n"
            "model.layers(1).pad(2) 1\n"
            "model.layers(1).pad(3) 2\n"
            "model.layers(1).pad(4) 2\n"
            "model.layers(1).dilation(1) 1\n"
            "model.layers(1).dilation(2) 1\n"
            "model.layers(1).groups 1\n"
            "model.layers(2) ()\n"
            "model.layers(3).λ ()\n"
            "model.layers(3).β Float32 2 0 0\n"
            "model.layers(3).γ Float32 2 1 1\n"
            "model.layers(3).μ Float32 2 0 0\n"
            "model.layers(3).σ² Float32 2 1 1\n"
            "model.layers(3).ϵ Core.Float32 0.001\n"
            "model.layers(3).momentum Core.Float32 0.25\n"
            "model.layers(3).affine True\n"
            "model.layers(3).track_stats True\n"
            "model.layers(3).active None\n"
            "model.layers(3).chs 2\n"
            "model.layers(4).p 0.25\n"
            "model.layers(4).dims ()\n"
            "model.layers(4).active None\n"
            "model.layers(4).rng ()\n"
            "model.layers(5).λ ()\n"
            "model.layers(5).diag.scale Float32 2 1 1\n"
            "model.layers(5).diag.bias Float32 2 0 0\n"
            "model.layers(5).diag.σ ()\n"
            "model.layers(5).ϵ Core.Float32 1e-05\n"
            "model.layers(5).size(1) 2\n"
            "model.layers(5).affine True\n"
            "step 7\n"
            "rate 0.5\n"
            "note 'ok'\n");
}

TEST_F(BsonWriting, SharedArraysAreReferences) {
  if (python_with("struct").empty()) GTEST_SKIP() << "no python3 (set PYTHON)";
  struct Model {
    Array in = tied(ones({2}));
    Array out = in;
  } model;
  save(path("m.bson"), {{"m", model}});
  EXPECT_EQ(read_by_python("m.bson"), "m.in Float32 2 1 1 shared\nm.out Float32 2 1 1 shared\n");
}

/// The bytes of the element `key` in a file of BSON.jl: the document after its key.
std::string document_at(const std::string& bytes, size_t place) {
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + place, 4);
  return bytes.substr(place, length);
}

TEST_F(BsonWriting, AnArrayHasTheBytesThatBsonJlWrites) {
  // {tag: "array", type: {tag: "datatype", params: [], name: ["Core", "Float32"]}, size: [1, 2], data: 8 bytes}
  const auto text = [](const char* key, const std::string& value) {
    std::string bytes = "\2" + std::string(key) + '\0' + static_cast<char>(value.size() + 1);
    return bytes + std::string(3, '\0') + value + '\0';
  };
  const auto document = [](const std::string& content) {
    return std::string(1, static_cast<char>(content.size() + 5)) + std::string(3, '\0') + content + '\0';
  };
  const auto number = [](const char* key, char value) {
    return "\x12" + std::string(key) + '\0' + value + std::string(7, '\0');
  };
  const std::string type = document(text("tag", "datatype") + "\4params" + '\0' + document("") + "\4name" + '\0' +
                                    document(text("0", "Core") + text("1", "Float32")));
  const std::string data("\5data\0\x08\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 19);
  const std::string array = document(text("tag", "array") + "\3type" + '\0' + type + "\4size" + '\0' +
                                     document(number("0", 1) + number("1", 2)) + data);
  save(path("a.bson"), {{"a", Array({1.0f, 2.0f}, {1, 2})}});
  const std::string expected = "\3a" + std::string(1, '\0') + array;
  const std::string bytes = bytes_of_file("a.bson");
  ASSERT_EQ(bytes.size(), expected.size() + 5);
  EXPECT_EQ(bytes.substr(4, expected.size()), expected);
}

TEST_F(BsonWriting, AnArrayOfARealFileComesOutAsItWas) {
  const std::string real = real_files("bson/houseprediction.bson");
  if (!std::filesystem::exists(real)) GTEST_SKIP() << "no " << real << " (set ROSIN_FILES)";
  std::ifstream file(real, std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  const Array weight = load(real)["model.weight"];
  save(path("w.bson"), {{"w", weight}});
  const std::string ours = document_at(bytes_of_file("w.bson"), 7);
  EXPECT_NE(golden.find(ours), std::string::npos);
}

TEST_F(BsonWriting, WhatBsonCannotHoldIsRefused) {
  EXPECT_EQ(error_here([&] { save(path("m.bson"), Dense(2, 1), {.names = torch}); }),
            "save: files of Julia have Flux's names; got {.names = torch} for 'DIR/m.bson'; save it as .safetensors");
  EXPECT_TRUE(names_in_folder().empty());
}

}  // namespace
}  // namespace rosin
