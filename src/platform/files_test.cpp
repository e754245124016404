// Tests of files on every system: what stands on the disk, who holds what, names beyond ASCII. (Links, rights and
// signals: base/file_test.cpp, on POSIX.)
#include "platform/files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <rosin/error.hpp>

#include "base/file.hpp"
#include "base/input_file.hpp"
#include "base/mapped_file.hpp"
#include "platform/paths.hpp"

namespace rosin::platform {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rosin-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string in_folder(const std::string& name) const { return name_of(folder / path_of(name)); }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }
  fs::path folder;
};

std::string content(const std::string& name) {
  const std::vector<uint8_t> bytes = read_whole_file(name);
  return {bytes.begin(), bytes.end()};
}

std::string error_of_write(const std::string& name) {
  try {
    write_file_atomically(name, "x");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(Files, AreWrittenAndReadByteForByteUnderAnyName) {
  for (const char* name : {"plain", "with space.txt", "ärger-чай-茶"}) {
    const std::string bytes("\r\n\0\x1a\n\xff", 6);  // of which Windows would change three in a text
    write_file_atomically(in_folder(name), bytes);
    EXPECT_EQ(content(in_folder(name)), bytes) << name;
    EXPECT_TRUE(fs::exists(folder / path_of(name)));
  }
  EXPECT_EQ(entries(), 3);
}

TEST_F(Files, AreReplacedAsAWholeAndStandUntilThen) {
  const std::string name = in_folder("a");
  write_file_atomically(name, "a longer old text");
  {
    AtomicFile abandoned(name);
    abandoned.write("new", 3);
    EXPECT_EQ(content(name), "a longer old text");
    EXPECT_EQ(entries(), 2);
  }
  EXPECT_EQ(entries(), 1);
  write_file_atomically(name, "new");
  EXPECT_EQ(content(name), "new");
  EXPECT_EQ(entries(), 1);
}

TEST_F(Files, AreReplacedWhileTheyAreOpenAndWhoHasThemOpenKeepsTheOldOnes) {
  const std::string name = in_folder("a");
  write_file_atomically(name, "old");
  const InputFile open(name);
  const std::string error = error_of_write(name);
  char read[3];
  open.read(0, read, 3);
  EXPECT_EQ(std::string(read, 3), "old");
#ifdef _WIN32
  if (error != "no error") GTEST_SKIP() << "only NTFS of Windows 10 and later replaces a file that is open";
#endif
  EXPECT_EQ(content(name), "x");
}

TEST_F(Files, OfManyWritersAreThoseOfOne) {
  const std::string name = in_folder("a");
  std::atomic<int> failed{0};
  std::vector<std::thread> writers;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&, letter] {
      for (int i = 0; i < 10; ++i) {
        if (error_of_write(name) != "no error") ++failed;
        write_file_atomically(name + letter, std::string(1000, letter));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(entries(), 5);
}

TEST_F(Files, ThatNobodyHoldsAnyMoreAreRemoved) {
  OpenFile held;
  ASSERT_FALSE(make_file(in_folder("held"), NewFileAccess::usual, held));
  EXPECT_EQ(make_file(in_folder("held"), NewFileAccess::usual, held), std::errc::file_exists);
  remove_if_abandoned(in_folder("held"));
  EXPECT_TRUE(is_there(in_folder("held")));
  held.close();
  remove_if_abandoned(in_folder("held"));
  EXPECT_FALSE(is_there(in_folder("held")));
}

TEST_F(Files, AreMapped) {
  write_file_atomically(in_folder("a"), "mapped");
  const InputFile file(in_folder("a"));
  const MappedFile map(file);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(map.data()), 6), "mapped");
  write_file_atomically(in_folder("empty"), "");
  EXPECT_THROW(MappedFile{InputFile(in_folder("empty"))}, Error);
}

TEST_F(Files, ThatAreFoldersOrNotThereAreErrorsThatSaySo) {
  EXPECT_EQ(error_of_write(name_of(folder)), "write: cannot write '" + name_of(folder) + "'; it is a directory");
  EXPECT_NE(error_of_write(in_folder("no/such/a")).find("cannot create a file in its directory: "), std::string::npos);
  EXPECT_THROW(read_whole_file(name_of(folder)), Error);
  EXPECT_THROW(read_whole_file(in_folder("b")), Error);
  EXPECT_EQ(entries(), 0);
}

TEST_F(Files, FoldersAreHeldByOneWriterAtATime) {
  OpenFile mine, other;
  ASSERT_FALSE(try_to_hold_folder(name_of(folder), mine));
  EXPECT_EQ(try_to_hold_folder(name_of(folder), other), std::errc::operation_would_block);
  mine.close();
  EXPECT_FALSE(try_to_hold_folder(name_of(folder), other));
  other.close();
  EXPECT_EQ(entries(), 0);
}

}  // namespace
}  // namespace rosin::platform
