// Tests of the idx reader and of image folders: small files written here, each broken in one way, and the real data
// sets where they are present. Expected values of those: NumPy.
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rosin/error.hpp>
#include <rosin/idx.hpp>

#include "data/idx_file.hpp"

#include "../tests/error_testing.hpp"

namespace fs = std::filesystem;

namespace rosin {
namespace {

using Bytes = std::vector<uint8_t>;

// A 2x3 matrix of unsigned bytes.
const Bytes small_idx = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 250, 5, 6};

// The same, packed by Python's gzip.
const Bytes small_gzip = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x63, 0x60,
                          0xe0, 0x60, 0x62, 0x60, 0x60, 0x00, 0x61, 0x66, 0x46, 0x26, 0xe6, 0x5f,
                          0xac, 0x6c, 0x00, 0x92, 0xca, 0x64, 0x5a, 0x12, 0x00, 0x00, 0x00};

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes first(const Bytes& bytes, std::size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)};
}

class Idx : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rosin-idx-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory = name;
  }
  void TearDown() override { fs::remove_all(directory); }

  std::string path(const std::string& name) const { return (directory / name).string(); }

  std::string write(const std::string& name, const Bytes& bytes) const {
    std::ofstream out(path(name), std::ios::binary);
    for (const uint8_t byte : bytes) out.put(static_cast<char>(byte));
    return path(name);
  }

  // What reading says, with the path in it replaced by FILE.
  std::string error_of(const Bytes& bytes) const {
    const std::string file = write("broken", bytes);
    try {
      read_idx_file(file);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      std::string text = error.what();
      const std::size_t at = text.find("'" + file + "'");
      if (at == std::string::npos) return "no path in: " + text;
      return text.replace(at, file.size() + 2, "FILE");
    }
    return "no error";
  }

  fs::path directory;
};

template <typename Number> std::vector<Number> numbers_of(const IdxFile& file) {
  std::vector<Number> numbers(file.bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), file.bytes.data(), file.bytes.size());
  return numbers;
}

TEST_F(Idx, AMatrixOfBytesIsReadAsItStands) {
  const IdxFile file = read_idx_file(write("a", small_idx));
  EXPECT_EQ(file.type, 8);
  EXPECT_EQ(file.dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.bytes, (Bytes{1, 2, 3, 250, 5, 6}));
}

TEST_F(Idx, EveryElementTypeComesInTheOrderOfTheMachine) {
  const Bytes dims = {1, 0, 0, 0, 2};
  EXPECT_EQ(numbers_of<int8_t>(read_idx_file(write("a", Bytes{0, 0, 0x09} + dims + Bytes{0xff, 2}))),
            (std::vector<int8_t>{-1, 2}));
  EXPECT_EQ(numbers_of<int16_t>(read_idx_file(write("a", Bytes{0, 0, 0x0B} + dims + Bytes{0xff, 0xfe, 1, 2}))),
            (std::vector<int16_t>{-2, 258}));
  EXPECT_EQ(numbers_of<int32_t>(
                read_idx_file(write("a", Bytes{0, 0, 0x0C} + dims + Bytes{0xff, 0xff, 0xff, 0xfd, 0, 1, 0, 2}))),
            (std::vector<int32_t>{-3, 65538}));
  EXPECT_EQ(
      numbers_of<float>(read_idx_file(write("a", Bytes{0, 0, 0x0D} + dims + Bytes{0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0}))),
      (std::vector<float>{1.5F, -2.0F}));
  EXPECT_EQ(numbers_of<double>(read_idx_file(write("a", Bytes{0, 0, 0x0E} + dims + Bytes{0x3f, 0xf8, 0, 0, 0, 0, 0, 0} +
                                                            Bytes{0xc0, 0, 0, 0, 0, 0, 0, 0}))),
            (std::vector<double>{1.5, -2.0}));
}

TEST_F(Idx, AnEmptyDimensionGivesNoElements) {
  const IdxFile file = read_idx_file(write("a", {0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3}));
  EXPECT_EQ(file.dims, (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(file.bytes.empty());
}

TEST_F(Idx, AMissingPathOrADirectoryIsNamed) {
  const auto message = [](const std::string& name) -> std::string {
    try {
      read_idx_file(name);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(path("no")),
            "read: the file must be readable; '" + path("no") + "': " + no_such_file() + "; check the path");
  EXPECT_EQ(message(directory.string()),
            "read: the file must be readable; '" + directory.string() + "': it is a directory; check the path");
}

TEST_F(Idx, AForeignFileIsRefused) {
  EXPECT_EQ(error_of({}), "read_idx: FILE is empty; an idx file begins with the bytes 0x00 0x00");
  EXPECT_EQ(error_of({0x89, 'P', 'N', 'G'}),
            "read_idx: FILE is no idx file: it begins with the bytes 0x89 0x50, not 0x00 0x00");
  EXPECT_EQ(error_of({0, 1, 8, 1}), "read_idx: FILE is no idx file: it begins with the bytes 0x00 0x01, not 0x00 0x00");
  EXPECT_EQ(error_of({7}), "read_idx: FILE is no idx file: it begins with the bytes 0x07, not 0x00 0x00");
  EXPECT_EQ(error_of({0, 0, 0x0A, 1, 0, 0, 0, 0}),
            "read_idx: FILE has element type 0x0a, which idx does not know; expected one of 0x08 0x09 0x0b 0x0c 0x0d "
            "0x0e");
  EXPECT_EQ(error_of({0, 0, 8, 0, 1}), "read_idx: FILE has no dimensions; an idx file has at least one");
}

TEST_F(Idx, EveryTruncationIsAnError) {
  EXPECT_EQ(error_of({0, 0, 8}), "read_idx: FILE is truncated: its header ends after 3 bytes, too early");
  EXPECT_EQ(error_of(first(small_idx, 9)), "read_idx: FILE is truncated: its header has 12 bytes, only 9 came");
  EXPECT_EQ(error_of(first(small_idx, 17)),
            "read_idx: FILE is truncated: its sizes (2, 3) need 6 bytes of data, only 5 came; fetch the file again");
  for (std::size_t count = 0; count < small_idx.size(); ++count) {
    EXPECT_NE(error_of(first(small_idx, count)), "no error") << count;
  }
}

TEST_F(Idx, BytesAfterTheEndAreAnError) {
  EXPECT_EQ(error_of(small_idx + Bytes{0}),
            "read_idx: FILE has bytes after its end: its sizes (2, 3) need 6 bytes of data, more came; fetch the file "
            "again");
}

TEST_F(Idx, SizesThatNoFileCanHaveAreRefusedWithoutTakingMemory) {
  const Bytes most = {0xff, 0xff, 0xff, 0xff};
  EXPECT_EQ(error_of(Bytes{0, 0, 8, 3} + most + most + most),
            "read_idx: FILE claims impossible sizes (4294967295, 4294967295, 4294967295): their product overflows; the "
            "header is damaged");
  EXPECT_EQ(error_of(Bytes{0, 0, 0x0E, 3} + most + most + Bytes{0, 0, 0, 0}),
            "read_idx: FILE claims impossible sizes (4294967295, 4294967295, 0): their product overflows; the header "
            "is damaged");
  EXPECT_EQ(error_of(Bytes{0, 0, 8, 2} + Bytes{0x7f, 0xff, 0xff, 0xff} + most + Bytes{1}),
            "read_idx: FILE is truncated: its sizes (2147483647, 4294967295) need 9223372030412324865 bytes of data, "
            "only 1 came; fetch the file again");
}

#ifdef ROSIN_HAVE_ZLIB

TEST_F(Idx, ACompressedFileIsTheSameFile) {
  const IdxFile plain = read_idx_file(write("a", small_idx));
  const IdxFile packed = read_idx_file(write("a.gz", small_gzip));
  EXPECT_EQ(packed.type, plain.type);
  EXPECT_EQ(packed.dims, plain.dims);
  EXPECT_EQ(packed.bytes, plain.bytes);
}

TEST_F(Idx, EveryTruncatedGzipIsAnError) {
  EXPECT_EQ(error_of(first(small_gzip, 20)),
            "read_idx: FILE is truncated: its gzip data ends after 20 bytes, too early; fetch the file again");
  for (std::size_t count = 0; count < small_gzip.size(); ++count) {
    EXPECT_NE(error_of(first(small_gzip, count)), "no error") << count;
  }
}

TEST_F(Idx, DamagedGzipIsAnError) {
  Bytes damaged = small_gzip;
  damaged[28] ^= 1;  // in the checksum
  EXPECT_EQ(error_of(damaged), "read_idx: FILE is damaged (gzip: incorrect data check); fetch the file again");
  EXPECT_EQ(error_of(small_gzip + Bytes{1, 2, 3}),
            "read_idx: FILE is damaged (gzip: incorrect header check); fetch the file again");
}

TEST_F(Idx, GzipOfSomethingElseOrTooMuchIsAnError) {
  // Python: gzip.compress(b"hello", mtime=0)
  const Bytes hello = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd,
                       0xc9, 0xc9, 0x07, 0x00, 0x86, 0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00};
  EXPECT_EQ(error_of(hello), "read_idx: FILE is no idx file: it begins with the bytes 0x68 0x65, not 0x00 0x00");
  EXPECT_EQ(error_of(small_gzip + hello),
            "read_idx: FILE has bytes after its end: its sizes (2, 3) need 6 bytes of data, more came; fetch the file "
            "again");
}

#else

TEST_F(Idx, WithoutZlibACompressedFileSaysHowToReadIt) {
  EXPECT_EQ(error_of(small_gzip),
            "read_idx: FILE is compressed and this rosin was built without zlib; unpack it with gunzip, or install "
            "zlib1g-dev and build again");
}

#endif

// Two images of 2x3 pixels and their labels, for both halves.
class ImageFolders : public Idx {
 protected:
  void SetUp() override {
    Idx::SetUp();
    for (const char* half : {"train", "t10k"}) {
      write(half + std::string("-images-idx3-ubyte"), images);
      write(half + std::string("-labels-idx1-ubyte"), labels);
    }
  }

  // What reading says, with the folder's path replaced by DIR.
  std::string folder_error() const {
    try {
      read_image_folder(directory.string());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      std::string text = error.what();
      for (std::size_t at = 0; (at = text.find(directory.string())) != std::string::npos;) {
        text.replace(at, directory.string().size(), "DIR");
      }
      return text;
    }
    return "no error";
  }

  const Bytes images = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Bytes labels = {0, 0, 8, 1, 0, 0, 0, 2, 9, 4};
};

TEST_F(ImageFolders, TheFourFilesMakeADataSet) {
  const ImageFolder folder = read_image_folder(directory.string() + "/");
  EXPECT_EQ(folder.train.count, 2);
  EXPECT_EQ(folder.train.rows, 2);
  EXPECT_EQ(folder.train.columns, 3);
  EXPECT_EQ(folder.train.pixels, (Bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(folder.test.labels, (Bytes{9, 4}));
}

TEST_F(ImageFolders, AWrongPathIsNamed) {
  EXPECT_THROW(read_image_folder(""), Error);
  fs::remove_all(directory);
  EXPECT_EQ(folder_error(), "read_image_folder: cannot open 'DIR'; No such file or directory; check the path");
  std::ofstream(directory) << "a file";
  EXPECT_EQ(folder_error(), "read_image_folder: 'DIR' is not a folder; give the folder that holds the idx files");
}

TEST_F(ImageFolders, AMissingFileIsNamedInBothSpellings) {
  fs::remove(directory / "t10k-labels-idx1-ubyte");
  EXPECT_EQ(folder_error(),
            "read_image_folder: 'DIR' has neither 't10k-labels-idx1-ubyte' nor 't10k-labels-idx1-ubyte.gz'");
}

TEST_F(ImageFolders, LabelsThatDoNotMatchAreNamed) {
  write("t10k-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 3, 9, 4, 1});
  EXPECT_EQ(folder_error(),
            "read_image_folder: 'DIR/t10k-labels-idx1-ubyte' does not match its images; it has 3 labels, "
            "'DIR/t10k-images-idx3-ubyte' has 2 images");
}

TEST_F(ImageFolders, FilesOfTheWrongSortAreNamed) {
  write("train-labels-idx1-ubyte", images);
  EXPECT_EQ(folder_error(), "read_image_folder: 'DIR/train-labels-idx1-ubyte' has 3 dimensions; labels have 1");
  write("train-labels-idx1-ubyte", {0, 0, 9, 1, 0, 0, 0, 2, 9, 4});
  EXPECT_EQ(folder_error(),
            "read_image_folder: 'DIR/train-labels-idx1-ubyte' does not hold unsigned bytes, so it cannot be labels");
}

TEST_F(ImageFolders, TestImagesOfAnotherSizeAreRefused) {
  write("t10k-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4});
  EXPECT_EQ(folder_error(),
            "read_image_folder: 'DIR' holds training images of 2x3 and test images of 1x2 pixels; they must be equal");
}

TEST_F(ImageFolders, ImagesWithoutPixelsAreRefused) {
  write("train-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2});
  EXPECT_EQ(folder_error(), "read_image_folder: 'DIR/train-images-idx3-ubyte' holds no pixels");
}

#ifdef ROSIN_HAVE_ZLIB

std::string data_directory(const std::string& name) {
  const char* root = std::getenv("ROSIN_DATA");
  return (root != nullptr ? std::string(root) : std::string(ROSIN_SOURCE_DIR) + "/../shared/data") + "/" + name;
}

// Sums that notice a byte that is lost, changed or moved.
struct Sums {
  uint64_t plain = 0;
  uint64_t weighted = 0;  // byte k counts k mod 1009 times
  bool operator==(const Sums&) const = default;
};

Sums sums_of(const Bytes& bytes) {
  Sums sums;
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    sums.plain += bytes[k];
    sums.weighted += bytes[k] * (k % 1009);
  }
  return sums;
}

TEST(RealImages, MnistComesWhole) {
  const std::string directory = data_directory("mnist");
  if (!fs::exists(directory)) GTEST_SKIP() << "no MNIST in " << directory << " (set ROSIN_DATA to its parent)";
  const ImageFolder folder = read_image_folder(directory);
  EXPECT_EQ(folder.train.count, 60000);
  EXPECT_EQ(folder.test.count, 10000);
  EXPECT_EQ(folder.train.rows, 28);
  EXPECT_EQ(folder.train.columns, 28);
  EXPECT_EQ(sums_of(folder.train.pixels), (Sums{1567298545, 789919562401}));
  EXPECT_EQ(sums_of(folder.test.pixels), (Sums{264923200, 133545266114}));
  EXPECT_EQ(sums_of(folder.train.labels).weighted, 134179957U);
  EXPECT_EQ(sums_of(folder.test.labels).weighted, 22205544U);
  EXPECT_EQ(first(folder.train.labels, 10), (Bytes{5, 0, 4, 1, 9, 2, 1, 3, 1, 4}));
}

TEST(RealImages, FashionMnistComesWhole) {
  const std::string directory = data_directory("fashion-mnist");
  if (!fs::exists(directory)) GTEST_SKIP() << "no Fashion-MNIST in " << directory << " (set ROSIN_DATA to its parent)";
  const ImageFolder folder = read_image_folder(directory);
  EXPECT_EQ(folder.train.count, 60000);
  EXPECT_EQ(folder.test.count, 10000);
  EXPECT_EQ(sums_of(folder.train.pixels), (Sums{3431114169, 1729192650007}));
  EXPECT_EQ(sums_of(folder.test.pixels), (Sums{573469082, 289573900493}));
  EXPECT_EQ(sums_of(folder.train.labels).weighted, 135316688U);
  EXPECT_EQ(sums_of(folder.test.labels).weighted, 22473327U);
}

#endif

}  // namespace
}  // namespace rosin
