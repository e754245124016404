// JLD2's files: every array of every real file against a table made by libhdf5, and models loaded from them.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/io.hpp>

#include "io/hdf5_objects.hpp"
#include "io/jld2_values.hpp"
#include "io/python_testing.hpp"
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

#ifdef ROSIN_HAVE_ZLIB

/// Files of libhdf5 with data as JLD2 compresses it: one chunk, whose place stands in the object.
class CompressedJld2 : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    python_ = python_with("h5py, numpy");
    if (python_.empty()) GTEST_SKIP() << "no python3 with h5py and numpy (set PYTHON)";
  }

  /// Writes x.jld2; `options` are those of h5py's create_dataset.
  void write_with(const std::string& options) {
    write("write.py",
          "import h5py, numpy, sys\n"
          "with h5py.File(sys.argv[1], 'w', libver=('v110', 'v110'), userblock_size=512) as file:\n"
          "    for name, kind in ('singles', 'f4'), ('doubles', 'f8'), ('numbers', 'i8'), ('small', 'u1'):\n"
          "        x = (numpy.arange(600) * 7 % 251).reshape(30, 20).astype(kind)\n"
          "        file.create_dataset(name, data=x, " +
              options + ")\n");
    ASSERT_EQ(output_of(python_ + " " + path("write.py") + " " + path("new.jld2")), "");
    write("x.jld2", with_older_superblock(bytes_of_file("new.jld2")));
  }

 private:
  /// Of version 2, as JLD2 has it: version 3 differs in that number and in a byte of flags.
  static std::string with_older_superblock(std::string bytes) {
    const std::string head = "HDF5-based Julia Data Format, version 0.1.1";
    bytes.replace(0, head.size(), head);
    auto* block = reinterpret_cast<unsigned char*>(bytes.data()) + 512;
    block[8] = 2;
    block[11] = 0;
    const uint32_t sum = lookup3(block, 44);
    std::memcpy(block + 44, &sum, sizeof sum);
    return bytes;
  }

  std::string python_;
};

TEST_F(CompressedJld2, ComesBackWithItsValues) {
  std::vector<double> expected;
  for (int i = 0; i < 600; ++i) expected.push_back(i * 7 % 251);
  for (const char* options : {"compression='gzip', chunks=(30, 20)",
                              "compression='gzip', compression_opts=9, shuffle=True, chunks=(30, 20)", "chunks=None"}) {
    SCOPED_TRACE(options);
    write_with(options);
    const SavedFile file = load(path("x.jld2"));
    for (const char* name : {"singles", "doubles", "numbers", "small"}) {
      EXPECT_EQ(file[name].shape(), (Shape{20, 30}));
      EXPECT_EQ(file[name].to_vector<double>(), expected) << name;
    }
    EXPECT_EQ(file["singles"].dtype(), Float32);
    EXPECT_EQ(file["small"].dtype(), UInt8);
  }
}

TEST_F(CompressedJld2, OtherFormsAreRefusedByName) {
  write_with("compression='gzip', chunks=(7, 3)");
  EXPECT_NE(error_here([&] { load(path("x.jld2")); }).find("in several"), std::string::npos);
  write_with("compression='lzf', chunks=(30, 20)");
  EXPECT_NE(error_here([&] { load(path("x.jld2")); }).find("filter 32000, which rosin lacks"), std::string::npos);
}

TEST_F(CompressedJld2, DamageIsAnError) {
  write_with("compression='gzip', shuffle=True, chunks=(30, 20)");
  const std::string whole = bytes_of_file("x.jld2");
  size_t refused = 0;
  for (size_t at = 512; at < whole.size(); at += 29) {
    std::string turned = whole;
    turned[at] = static_cast<char>(turned[at] ^ 1 << at % 8);
    write("x.jld2", turned);
    try {
      load(path("x.jld2"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50u);
}

#endif

}  // namespace
}  // namespace rosin
