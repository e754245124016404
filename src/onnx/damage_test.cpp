// Damaged ONNX files: every truncation, every flipped bit (of real files some, and with ROSIN_ALL_DAMAGE=1 all in their
// first 4 KiB). What is read is a model or an Error; nothing else happens.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <rosin/error.hpp>

#include "io/real_files_testing.hpp"
#include "onnx/definition.hpp"
#include "onnx/file_testing.hpp"
#include "onnx/program.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

/// Whether the bytes make a program; else an Error with a text says why not.
bool is_read(const std::string& bytes) {
  static const std::string path = "damaged.onnx";
  const std::span<const uint8_t> view(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  try {
    onnx::make_program(onnx::parse_model(view, path), path);
    return true;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()), "");
    return false;
  }
}

void expect_errors_or_models(const std::string& whole, size_t step, size_t flipped) {
  EXPECT_TRUE(is_read(whole));
  size_t refused = 0;
  for (size_t length = 0; length < whole.size(); length += step) refused += !is_read(whole.substr(0, length));
  EXPECT_GT(refused, 0u);
  for (size_t at = 0; at < std::min(whole.size(), flipped); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      is_read(damaged);
    }
  }
}

TEST(DamagedOnnx, SmallNetworkIsAModelOrAnError) { expect_errors_or_models(small_network(), 1, 4096); }

TEST(DamagedOnnx, OpsWithSettingsAreAModelOrAnError) {
  expect_errors_or_models(
      model_file(node("ConstantOfShape", {"a"}, {"c"}) + node("Pad", {"c", "widths"}, {"p"}) +
                 node("Slice", {"p", "from", "to"}, {"s"}) + node("Expand", {"s", "from"}, {"e"}) +
                 node("Tile", {"e", "a"}, {"t"}) + node("Reshape", {"t", "flat"}, {"r"}) +
                 node("Add", {"x", "r"}, {"y"}) + integers("a", {2}, {2, 3}) + integers("from", {2}, {1, 1}) +
                 integers("to", {2}, {4, 4}) + integers("widths", {4}, {1, 1, 1, 1}) + integers("flat", {1}, {-1}) +
                 input("x", {1}) + output("y", {-1})),
      1, 4096);
}

TEST(DamagedOnnx, RealModelsAreModelsOrErrors) {
  const std::string folder = real_files("onnx/mnist");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "there is no " << folder;
  const bool all = std::getenv("ROSIN_ALL_DAMAGE") != nullptr;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    expect_errors_or_models({std::istreambuf_iterator<char>(file), {}}, all ? 1 : 37, all ? 4096 : 300);
  }
}

TEST(DamagedOnnx, GraphsInsideEachOtherAreRefusedBeforeTheStackEnds) {
  std::string graph = node("Relu", {"x"}, {"y"});
  for (int depth = 0; depth < 1000; ++depth) {
    const std::string attribute = bytes_field(5, bytes_field(1, "then_branch") + bytes_field(6, graph));
    graph = bytes_field(1, bytes_field(4, "If") + attribute);
  }
  EXPECT_FALSE(is_read(model_file(graph)));
}

TEST(DamagedOnnx, ErrorsNameTheByte) {
  const std::string path = "f.onnx", bytes = "\x3a\x05\x0a";
  const std::span<const uint8_t> view(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  EXPECT_EQ(
      error_of([&] { onnx::parse_model(view, path); }),
      "onnx: what a message holds must be inside it; got 5 bytes where 1 are left at byte 2 of f.onnx, in ModelProto; "
      "the file is damaged or no ONNX model");
}

TEST(DamagedOnnx, HugeSizesAreRefusedBeforeMemoryIsTaken) {
  std::string sizes;
  for (int i = 0; i < 4; ++i) sizes += number_field(1, int64_t{1} << 40);
  const std::string tensor = bytes_field(5, sizes + number_field(2, 1) + bytes_field(8, "w"));
  EXPECT_FALSE(is_read(model_file(node("Relu", {"w"}, {"y"}) + tensor + output("y", {1}))));
}

}  // namespace
}  // namespace rosin
