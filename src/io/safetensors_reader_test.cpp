// The reader: verdicts on files made to be refused, values of real files, and rules that no file of others breaks.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include <rosin/io.hpp>

#include "io/real_files_testing.hpp"

#include "../tests/error_testing.hpp"

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

using namespace rosin::testing;

// Verdict of the reference reader -> the rule that our message states.
const std::map<std::string, std::string> rules = {
    {"HeaderTooSmall", "a safetensors file begins with 8 bytes that give the length of its header"},
    {"HeaderTooLarge", "a header has at most 100000000 bytes"},
    {"InvalidHeaderLength", "the header must be inside the file"},
    {"InvalidHeader", "the header must be JSON in UTF-8"},
    {"InvalidHeaderDeserialization", "the header must be JSON in UTF-8"},
    {"InvalidOffset", "tensors must follow each other without gap or overlap"},
    {"TensorInvalidInfo", "its data must have as many bytes as its shape"},
    {"ValidationOverflow", "its size must not overflow"},
    {"MetadataIncompleteBuffer", "the tensors must fill the file exactly"},
};

TEST(SafetensorsReader, GivesTheVerdictsOfTheReferenceReader) {
  const std::string folder = real_files("safetensors/conformance/");
  const auto rows = table_rows(folder + "VERDICTS.tsv");
  if (rows.empty()) GTEST_SKIP() << "no files in " << folder << " (set ROSIN_FILES)";
  int checked = 0;
  for (const auto& row : rows) {
    const std::string path = folder + row[0];
    const std::string text = error_of([&] { load(path); });
    ++checked;
    if (row[1].starts_with("OK")) {
      EXPECT_EQ(text, "no error") << path;
      if (text != "no error") continue;
      const SavedFile file = load(path);
      const bool one = row[1].find("test I32") != std::string::npos;
      EXPECT_EQ(file.arrays().size(), one ? 1u : 0u) << path;
      if (!one) continue;
      EXPECT_EQ(file["test"].dtype(), Int32) << path;
      EXPECT_EQ(file["test"].count(), row[1].find("[2,0]") == std::string::npos ? 4 : 0) << path;
    } else {
      const auto rule = rules.find(row[1].substr(0, row[1].find(' ')));
      ASSERT_NE(rule, rules.end()) << row[1];
      EXPECT_NE(text.find(rule->second), std::string::npos) << path << "\n" << text;
      EXPECT_NE(text.find(path), std::string::npos) << text;
    }
  }
  EXPECT_EQ(checked, 15);
}

/// The values in the order of the file.
std::vector<double> row_major(const Array& x) {
  const std::vector<double> values = x.to_vector<double>();
  const Shape shape = x.shape();
  std::vector<double> rows(values.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    size_t rest = i, at = 0, stride = values.size();
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const auto size = static_cast<size_t>(shape[d]);
      stride /= size;
      at += rest % size * stride;
      rest /= size;
    }
    rows[i] = values[at];
  }
  return rows;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.rank(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

TEST(SafetensorsReader, ReadsEveryTensorOfTheRealFiles) {
  const std::string folder = real_files("safetensors/");
  const auto rows = table_rows(folder + "EXPECTED.tsv");
  if (rows.empty()) GTEST_SKIP() << "no files in " << folder << " (set ROSIN_FILES)";
  const std::map<std::string, DType> types = {{"F32", Float32}, {"F64", Float64}, {"I64", Int64}, {"U8", UInt8}};
  std::map<std::string, size_t> tensors;
  for (const auto& row : rows) {
    const SavedFile file = load(folder + row[0]);
    const Array& x = file[row[1]];
    EXPECT_EQ(x.dtype(), types.at(row[2])) << row[0] << " " << row[1];
    EXPECT_EQ(shape_text(x.shape()), row[3]) << row[0] << " " << row[1];
    const std::vector<double> values = row_major(x);
    const double sum = std::stod(row[4]);
    EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0), sum, 1e-9 * (1 + std::abs(sum))) << row[1];
    EXPECT_EQ(values.front(), std::stod(row[5])) << row[0] << " " << row[1];
    EXPECT_EQ(values.back(), std::stod(row[6])) << row[0] << " " << row[1];
    ++tensors[row[0]];
  }
  for (const auto& [name, count] : tensors) EXPECT_EQ(load(folder + name).arrays().size(), count) << name;
}

class SafetensorsRules : public ScratchFolder {
 protected:
  /// What the reader says of a file with this header and so many bytes of data.
  std::string verdict(const std::string& header, size_t bytes = 4) {
    write("x.safetensors", safetensors_bytes(header, std::string(bytes, '\0')));
    return error_here([&] { load(path("x.safetensors")); });
  }
};

std::string tensor(const std::string& name, const std::string& type, const std::string& sizes,
                   const std::string& place) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + sizes + "],\"data_offsets\":[" + place + "]}";
}

TEST_F(SafetensorsRules, AMessageNamesFileTensorRuleAndCure) {
  EXPECT_EQ(
      verdict("{" + tensor("layers.0.weight", "F32", "2", "0,4") + "}"),
      "load: its data must have as many bytes as its shape; 'DIR/x.safetensors', tensor 'layers.0.weight': F32 (2) "
      "needs 8, its data is at [0, 4); the file is damaged or no safetensors file: write or fetch it again");
}

TEST_F(SafetensorsRules, NamesUsedTwiceAreRefused) {
  const std::string a = tensor("a", "F32", "1", "0,4"), empty = tensor("a", "F32", "0", "4,4");
  EXPECT_NE(verdict("{" + a + "," + empty + "}").find("a name may be used once"), std::string::npos);
  EXPECT_NE(verdict("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}").find("twice"),
            std::string::npos);
  EXPECT_NE(verdict("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0).find("a name may be used once"),
            std::string::npos);
  EXPECT_NE(verdict("{\"__metadata__\":{},\"__metadata__\":{}}", 0).find("twice"), std::string::npos);
}

TEST_F(SafetensorsRules, WhatTheFormatDoesNotHaveIsRefused) {
  const char* bad[] = {"[]",
                       "1",
                       "null",
                       "{\"a\":1}",
                       "{\"a\":[]}",
                       "{\"a\":null}",
                       "{\"a\":\"b\"}",
                       "{\"a\":{}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}",
                       "{\"a\":{\"dtype\":[\"F32\"],\"shape\":[1],\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":[[1]],\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":true,\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}",
                       "{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                       "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}",
                       "{\"__metadata__\":{\"a\":1}}",
                       "{\"__metadata__\":{\"a\":{}}}",
                       "{\"__metadata__\":[]}",
                       "{\"a\":{}}{}"};
  for (const char* header : bad) {
    const std::string text = verdict(header);
    EXPECT_TRUE(text.starts_with("load: ")) << header << "\n" << text;
    EXPECT_NE(text.find("'DIR/x.safetensors'"), std::string::npos) << header << "\n" << text;
  }
}

TEST_F(SafetensorsRules, DepthCostsNoStack) {
  const std::string text = verdict(std::string(1000000, '['));
  EXPECT_NE(text.find("a list is not expected"), std::string::npos) << text;
}

TEST_F(SafetensorsRules, BoolsMustBeZeroOrOne) {
  write("x.safetensors", safetensors_bytes("{" + tensor("a", "BOOL", "2", "0,2") + "}", std::string("\1\2", 2)));
  EXPECT_EQ(
      error_here([&] { load(path("x.safetensors")); }),
      "load: the bytes of a BOOL tensor must be 0 or 1; 'DIR/x.safetensors', tensor 'a': one is larger; the file is "
      "damaged or no safetensors file: write or fetch it again");
}

TEST_F(SafetensorsRules, TypesAndRanksThatArraysLackAreNamed) {
  EXPECT_EQ(verdict("{" + tensor("a", "F8_E4M3", "4", "0,4") + "}"),
            "load: the element type must be one of rosin's; 'DIR/x.safetensors', tensor 'a' is F8_E4M3; convert it to "
            "F32, BF16 or F16 where it was made");
  EXPECT_EQ(verdict("{" + tensor("a", "F32", "1,1,1,1,1,1,1,1,1", "0,4") + "}"),
            "load: an array has at most eight dims; 'DIR/x.safetensors', tensor 'a' is (1, 1, 1, 1, 1, 1, 1, 1, 1); "
            "reshape it where it was made");
}

TEST_F(SafetensorsRules, SizesThatNoArrayHasAreRefusedBesideASizeOfZeroToo) {
  for (const char* sizes : {"0,4611686018427387904,4", "0,9223372036854775807", "4294967296,0,4294967296"}) {
    EXPECT_NE(verdict("{" + tensor("a", "F32", sizes, "0,0") + "}", 0).find("an array has at most 2^58 elements"),
              std::string::npos)
        << sizes;
  }
}

TEST_F(SafetensorsRules, EveryTypeOfTheFormatThatArraysHaveIsRead) {
  // 1 in each type, little-endian; the oracle is the definition of the types.
  const struct {
    const char* name;
    DType type;
    std::string bytes;
  } ones[] = {
      {"BOOL", Bool, std::string("\1", 1)},
      {"U8", UInt8, std::string("\1", 1)},
      {"I8", Int8, std::string("\1", 1)},
      {"I16", Int16, std::string("\1\0", 2)},
      {"U16", UInt16, std::string("\1\0", 2)},
      {"F16", Float16, std::string("\x00\x3c", 2)},
      {"BF16", BFloat16, std::string("\x80\x3f", 2)},
      {"I32", Int32, std::string("\1\0\0\0", 4)},
      {"U32", UInt32, std::string("\1\0\0\0", 4)},
      {"F32", Float32, std::string("\x00\x00\x80\x3f", 4)},
      {"I64", Int64, std::string("\1\0\0\0\0\0\0\0", 8)},
      {"U64", UInt64, std::string("\1\0\0\0\0\0\0\0", 8)},
      {"F64", Float64, std::string("\0\0\0\0\0\0\xf0\x3f", 8)},
  };
  for (const auto& one : ones) {
    const std::string place = "0," + std::to_string(one.bytes.size());
    write("x.safetensors", safetensors_bytes("{" + tensor("a", one.name, "", place) + "}", one.bytes));
    const SavedFile file = load(path("x.safetensors"));
    EXPECT_EQ(file["a"].dtype(), one.type) << one.name;
    EXPECT_EQ(file["a"].rank(), 0) << one.name;
    EXPECT_EQ(file["a"].item(), 1.0) << one.name;
  }
}

TEST_F(SafetensorsRules, AMissingFileAndAFolderAreNamed) {
  EXPECT_EQ(error_here([&] { load(path("no.safetensors")); }),
            "load: the file must be readable; 'DIR/no.safetensors': " + no_such_file() + "; check the path");
  std::filesystem::create_directory(path("d.safetensors"));
  EXPECT_EQ(error_here([&] { load(path("d.safetensors")); }),
            "load: the file must be readable; 'DIR/d.safetensors': it is a directory; check the path");
}

TEST_F(SafetensorsRules, DamagedFilesAreRefusedOrReadButNeverCrash) {
  const std::string real = real_files("safetensors/burn_multi_layer.safetensors");
  std::ifstream stream(real, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  if (whole.empty()) GTEST_SKIP() << "no " << real << " (set ROSIN_FILES)";
  const size_t header = 8 + static_cast<unsigned char>(whole[0]) + 256u * static_cast<unsigned char>(whole[1]);
  for (size_t cut = 0; cut < whole.size(); cut += cut < header ? 7 : 997) {
    write("x.safetensors", whole.substr(0, cut));
    EXPECT_NE(error_of([&] { load(path("x.safetensors")); }), "no error") << cut;
  }
  uint64_t random = 1;
  for (int i = 0; i < 400; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    std::string bytes = whole;
    char& hit = bytes[(random >> 33) % header];
    hit = static_cast<char>(hit ^ (1 << (random >> 61)));
    write("x.safetensors", bytes);
    const std::string text = error_here([&] { load(path("x.safetensors")); });
    EXPECT_TRUE(text == "no error" || text.find("'DIR/x.safetensors'") != std::string::npos) << text;
  }
}

}  // namespace
}  // namespace rosin

#endif
