// JLD2's files: every array of every real file against a table made by libhdf5, and models loaded from them.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/io.hpp>

#include "io/hdf5_objects.hpp"
#include "io/jld2_values.hpp"
#include "io/real_files_testing.hpp"
#include "io/table_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

TEST(Jld2Values, EveryArrayOfRealFilesIsAsLibhdf5ReadsIt) {
  const auto none = [](const std::vector<std::string>&) { return false; };
  const size_t rows = expect_table_of_files(real_files("jld2/"), read_jld2_values, none);
  if (rows == 0) GTEST_SKIP() << "no " << real_files("jld2/") << " (set ROSIN_FILES)";
  EXPECT_GT(rows, 95u);
}

TEST(Jld2Values, AStateOfFluxFillsAModel) {
  const std::string path = real_files("jld2/juliahepnet_model.jld2");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << " (set ROSIN_FILES)";
  Chain model(Dense(3, 64, sigmoid), Dense(64, 1, sigmoid)), other = model;
  load(path, model);
  load(path, {{"model_state", other}});
  EXPECT_FLOAT_EQ(model[0].get_if<Dense>()->weight.to_vector()[0], -0.5384594202041626f);
  EXPECT_FLOAT_EQ(model[1].get_if<Dense>()->bias.to_vector()[0], 0.10303958505392075f);
  EXPECT_EQ(other(ones({3, 2})).to_vector(), model(ones({3, 2})).to_vector());
  const SavedFile file = load(path);
  EXPECT_EQ(file["model_state.layers.0.weight"].shape(), (Shape{64, 3}));
  loadmodel(other, file.part("model_state"));
}

TEST(Jld2Values, TrackedParametersAreTheirData) {
  const std::string path = real_files("jld2/modelzoo_mnist_temp.jld2");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << " (set ROSIN_FILES)";
  Dense model(784, 32);
  load(path, model);
  EXPECT_FLOAT_EQ(model.weight.to_vector()[0], 0.07082647830247879f);
  EXPECT_FLOAT_EQ(model.bias.to_vector()[31], 0.00995141826570034f);
}

TEST(Jld2Values, AUserStructTakesTheFieldsByName) {
  const std::string path = real_files("jld2/isingrbm_model.jld2");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << " (set ROSIN_FILES)";
  struct Machine {
    Array W = zeros({32, 49}, Float64), vbias = zeros({49}, Float64), hbias = zeros({32}, Float64);
  } machine;
  load(path, machine);
  EXPECT_EQ(machine.hbias.to_vector<double>()[0], 2.3954999999999984);
}

TEST(Jld2Values, ChecksumsAreJenkinsLookup3) {
  // Values of the function's own source, lookup3.c, driver5.
  const std::string text = "Four score and seven years ago";
  EXPECT_EQ(lookup3(nullptr, 0), 0xdeadbeefu);
  EXPECT_EQ(lookup3(reinterpret_cast<const unsigned char*>(text.data()), text.size()), 0x17770551u);
}

TEST(Jld2Values, AChangedHeaderIsNoticed) {
  const std::string path = real_files("jld2/juliahepnet_model.jld2");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << " (set ROSIN_FILES)";
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t header = bytes.find("OHDR");
  ASSERT_NE(header, std::string::npos);
  bytes[header + 10] = static_cast<char>(bytes[header + 10] ^ 1);
  const std::string changed = (std::filesystem::temp_directory_path() / "rosin-changed.jld2").string();
  std::ofstream(changed, std::ios::binary) << bytes;
  const std::string text = error_of([&] { load(changed); }, ErrorKind::io);
  std::filesystem::remove(changed);
  EXPECT_NE(text.find("a header must have its checksum"), std::string::npos) << text;
}

}  // namespace
}  // namespace rosin
