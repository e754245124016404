// Pictures in files, judged by Pillow (tests/oracles/images.txt).
#include <gtest/gtest.h>

#include <filesystem>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/image.hpp>
#include <rosin/loader.hpp>
#include <rosin/random.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/oracle_reader.hpp"
#include "io/real_files_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;
using Bytes = std::vector<uint8_t>;

Bytes bytes_of(const std::vector<int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

/// The files of the oracles.
const std::vector<oracles::OracleCase>& cases() {
  static const auto read = oracles::read_oracles(oracles::oracle_path("images.txt"));
  return read;
}

bool readable(const Bytes& file) {
#ifndef ROSIN_HAVE_PNG
  if (file[0] == 0x89) return false;
#endif
#ifndef ROSIN_HAVE_JPEG
  if (file[0] == 0xff) return false;
#endif
  return !file.empty();
}

class Images : public ScratchFolder {};

TEST_F(Images, AreReadAsPillowReadsThem) {
  ASSERT_GT(cases().size(), 60u);
  for (const auto& found : cases()) {
    SCOPED_TRACE("line " + std::to_string(found.line));
    const Bytes file = bytes_of(found.inputs[0].integers);
    if (!readable(file)) continue;
    const Array read = decode_image(file, {.channels = std::stoi(found.attributes.at("channels"))});
    EXPECT_EQ(read.dtype(), UInt8);
    ASSERT_EQ(to_string(read.shape()), to_string(Shape(found.outputs[0].shape)));
    EXPECT_EQ(read.to_vector<int64_t>(), found.outputs[0].integers);
  }
}

TEST_F(Images, AreRefusedWhereTheyAreTruncated) {
  for (const auto& found : cases()) {
    const Bytes file = bytes_of(found.inputs[0].integers);
    if (!readable(file) || found.attributes.at("channels") != "0") continue;
    // Of a JPEG the end mark alone may go, of decimal numbers the digits of the last one.
    const size_t end = file.size() - 3;
    for (size_t length = 0; length < end; length += 1 + end / 60) {
      const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
      const std::string text = error_of([&] { decode_image(part); }, ErrorKind::io);
      EXPECT_EQ(text.rfind("read_image: what came in memory ", 0), 0u) << text;
    }
  }
}

TEST_F(Images, WithFlippedBitsAreReadOrRefused) {
  for (const auto& found : cases()) {
    Bytes file = bytes_of(found.inputs[0].integers);
    if (!readable(file) || found.attributes.at("channels") != "0") continue;
    for (size_t at = 0; at < file.size(); at += 3) {
      file[at] = static_cast<uint8_t>(file[at] ^ (1 << at % 8));
      try {
        decode_image(file);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
      }
      file[at] = static_cast<uint8_t>(file[at] ^ (1 << at % 8));
    }
  }
}

TEST_F(Images, ThatClaimMoreThanTheyHoldTakeNoMemory) {
  EXPECT_EQ(error_here([&] { read_image(write("a.ppm", "P6 100000 100000 255\nabc")); }),
            "read_image: 'DIR/a.ppm' is damaged or truncated: its header claims 100000x100000 pixels, more than its 24 "
            "bytes can hold; fetch the file again");
  EXPECT_EQ(error_here([&] { read_image(write("b.png", "text")); }),
            "read_image: 'DIR/b.png' is no PNG, JPEG, PPM or PGM file by its first bytes; convert it");
  EXPECT_EQ(error_of([] { decode_image(Bytes{}, {.channels = 5}); }, ErrorKind::argument),
            "read_image: channels are 1 to 4, or 0 for those of the file; got 5");
}

#ifdef ROSIN_HAVE_PNG

TEST_F(Images, ComeBackFromPng) {
  Rng rng(1);
  for (const int64_t channels : {1, 2, 3, 4}) {
    const Array x = cast(randint(rng, 0, 256, {7, 5, channels}), UInt8);
    write_png(path("x.png"), x);
    const Array back = read_image(path("x.png"));
    EXPECT_EQ(back.to_vector<int64_t>(), x.to_vector<int64_t>());
    EXPECT_EQ(back.shape(), x.shape());
  }
  const Array line({-1.0f, 0.0f, 0.5f, 1.0f, 7.0f}, {5, 1});
  EXPECT_EQ(decode_image(encode_png(line)).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 128, 255, 255}));
  EXPECT_EQ(
      error_of(
          [] {
            encode_png(zeros({2, 2, 5}));
          },
          ErrorKind::shape),
      "encode_png: a picture is (width, height) or (width, height, channels) with 1 to 4 channels; got (2, 2, 5); "
      "take one of a batch by select(x, -1, i)");
  EXPECT_EQ(error_of(
                [] {
                  encode_png(cast(zeros({2, 2}), Int32));
                },
                ErrorKind::dtype),
            "encode_png: a picture is UInt8, or floating point from 0 to 1; got Int32; convert it with cast(x, UInt8)");
}

#endif

TEST_F(Images, OfAFolderForEachClassAreData) {
  for (const char* name : {"b/deep", "a", "c"}) std::filesystem::create_directories(path(name));
  write("a/2.PGM", "P5 2 1 255\n\1\2");
  write("a/1.pgm", "P5 2 1 255\n\3\4");
  write("a/note.txt", "no picture");
  write("b/deep/x.ppm", "P6 2 1 255\n\1\1\1\2\2\2");
  EXPECT_EQ(error_here([&] { ImageClasses(path("")); }),
            "ImageClasses: 'DIR//c' has no picture (png, jpg, jpeg, ppm, pgm); each folder is a class");
  std::filesystem::remove(path("c"));
  const ImageClasses data(path(""), {.channels = 1});
  EXPECT_EQ(data.classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(data.labels(), (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(data.paths().size(), 3u);
  DataLoader loader(data, {.batchsize = 3, .num_workers = 1});
  for (auto [x, y] : loader) {
    EXPECT_EQ(x.shape(), (Shape{2, 1, 1, 3}));
    EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{3, 4, 1, 2, 1, 2}));
    EXPECT_EQ(y.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 1}));
  }
  EXPECT_EQ(error_here([&] { ImageClasses(path("none")); }),
            "ImageClasses: cannot read 'DIR/none'; No such file or directory");
  EXPECT_EQ(error_here([&] { ImageClasses(path("a")); }),
            "ImageClasses: 'DIR/a' has no folders; give one with a folder for each class");
  EXPECT_EQ(error_of([&] { data.getobs(3); }, ErrorKind::argument),
            "getobs: observation 3 is out of range; there are 3, counted from 0");
}

}  // namespace
}  // namespace rosin
