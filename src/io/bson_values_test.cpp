// BSON.jl's files: every array of every real file against a table made by an independent reader (pymongo, NumPy).
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include <rosin/complex.hpp>

#include "io/bson_values.hpp"
#include "io/julia_arrays.hpp"
#include "io/real_files_testing.hpp"
#include "io/table_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

TEST(BsonValues, EveryArrayOfRealFilesIsAsPythonReadsIt) {
  // A list without elements, to which Python gives a type.
  const auto untyped = [](const std::vector<std::string>& row) { return row[2] == "<i8" && row[3] == "0"; };
  const size_t rows = expect_table_of_files(real_files("bson/"), read_bson_values, untyped);
  if (rows == 0) GTEST_SKIP() << "no " << real_files("bson/") << " (set ROSIN_FILES)";
  EXPECT_GT(rows, 240u);
}

TEST(BsonValues, FilesOf32And64BitJuliaHoldTheSame) {
  for (const char* name : {"bsonjl_test_41_from_32bit.bson", "bsonjl_test_41_from_64bit.bson"}) {
    const std::string path = real_files("bson/") + name;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << " (set ROSIN_FILES)";
    const InputFile file(path);
    const JuliaTree tree = read_bson_values(file);
    const auto bytes = tree.named_child(tree.values[*tree.named_child(tree.values[tree.root], "obj")], "name");
    ASSERT_TRUE(bytes);
    EXPECT_EQ(array_of(tree, *bytes, file).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 2}));
  }
}

TEST(BsonValues, ComplexNumbersAndTextsAreRead) {
  const std::string path = real_files("bson/bsonjl_test.bson");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << " (set ROSIN_FILES)";
  const InputFile file(path);
  const JuliaTree tree = read_bson_values(file);
  EXPECT_EQ(tree.text_of(tree.values[*tree.named_child(tree.values[tree.root], "b")]), "Hello, World!");
  EXPECT_EQ(tree.values[*tree.named_child(tree.values[tree.root], "a")].kind, JuliaKind::other);  // Complex{Int64}
}

}  // namespace
}  // namespace rosin
