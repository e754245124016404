// list_file: what the header says, without reading the arrays.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/io.hpp>

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

class ListFile : public ::testing::Test {
 protected:
  ListFile()
      : path_((std::filesystem::temp_directory_path() / ("rosin-list-" + std::to_string(getpid()) + ".safetensors"))
                  .string()) {}
  ~ListFile() override { std::filesystem::remove(path_); }

  void write(const std::string& header, const std::string& data) const {
    std::ofstream stream(path_, std::ios::binary);
    const uint64_t length = header.size();
    for (int i = 0; i < 8; ++i) stream.put(static_cast<char>(length >> (8 * i) & 255));
    stream << header << data;
  }

  std::string path_;
};

TEST_F(ListFile, GivesNamesTypesShapesAndBytesInTheOrderOfTheFile) {
  save(path_, {{"weight", ones({3, 4})}, {"step", 12}});
  const FileListing listing = list_file(path_);
  ASSERT_EQ(listing.tensors.size(), 2u);
  EXPECT_EQ(listing.tensors[0].name, "step");
  EXPECT_EQ(listing.tensors[0].type, "I64");
  EXPECT_TRUE(listing.tensors[0].sizes.empty());
  EXPECT_EQ(listing.tensors[0].bytes, 8u);
  EXPECT_EQ(listing.tensors[1].name, "weight");
  EXPECT_EQ(listing.tensors[1].sizes, (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(listing.tensors[1].bytes, 48u);
  EXPECT_EQ(listing.metadata, load(path_).metadata());
}

TEST_F(ListFile, ListsTypesThatArraysLack) {
  write(R"({"x":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]}})", "abc");
  EXPECT_EQ(list_file(path_).tensors.at(0).type, "F8_E4M3");
  EXPECT_THROW(load(path_), Error);
}

TEST_F(ListFile, RefusesWhatBreaksTheFormat) {
  write(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,3]}})", "abc");
  EXPECT_THROW(list_file(path_), Error);
  EXPECT_THROW(list_file(path_ + ".bin"), Error);
}

}  // namespace
}  // namespace rosin

#endif
