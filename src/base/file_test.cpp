// Tests of file.hpp: what stands on the disk after success, after failure, and while a write is under way.
#include "base/file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <rosin/error.hpp>

namespace fs = std::filesystem;

namespace rosin {
namespace {

class FileOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rosin-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory = name;
  }
  void TearDown() override { fs::remove_all(directory); }

  std::string path(const std::string& name) const { return (directory / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
  }
  fs::path directory;
};

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string message_of_write(const std::string& path) {
  try {
    write_file_atomically(path, "new");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    return error.what();
  }
  return "no error";
}

TEST_F(FileOnDisk, WritingCreatesTheFileAndNothingElse) {
  const std::string bytes("line\n\0more\xff", 11);
  write_file_atomically(path("a"), bytes);
  EXPECT_EQ(content(path("a")), bytes);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileOnDisk, WritingAnEmptyTextLeavesAnEmptyFile) {
  write_file_atomically(path("a"), "");
  EXPECT_EQ(fs::file_size(path("a")), 0U);
}

TEST_F(FileOnDisk, WritingReplacesTheContentAndKeepsThePermissions) {
  std::ofstream(path("a")) << "a longer old text";
  ASSERT_EQ(chmod(path("a").c_str(), 0640), 0);
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(content(path("a")), "new");
  EXPECT_EQ(fs::status(path("a")).permissions(), static_cast<fs::perms>(0640));
}

TEST_F(FileOnDisk, TheOldContentStandsUntilCommitAndAfterAnAbandonedWrite) {
  std::ofstream(path("a")) << "old";
  {
    AtomicFile file(path("a"));
    file.write("new", 3);
    EXPECT_EQ(content(path("a")), "old");
    EXPECT_EQ(entries(), 2U);
  }
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileOnDisk, ASymbolicLinkIsFollowed) {
  std::ofstream(path("target")) << "old";
  fs::create_symlink("target", path("link"));
  write_file_atomically(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("target")), "new");
}

TEST_F(FileOnDisk, TheMessagesNameThePathAndTheReason) {
  const std::string missing = path("no/such/a");
  EXPECT_EQ(message_of_write(missing),
            "write: cannot write '" + missing + "'; cannot create a file in its directory: No such file or directory");
  EXPECT_EQ(message_of_write(directory.string()),
            "write: cannot write '" + directory.string() + "'; it is a directory");
  EXPECT_EQ(message_of_write("/dev/null"), "write: cannot write '/dev/null'; it is not a regular file");
  EXPECT_EQ(message_of_write(""), "write: cannot write ''; the path is empty");
  EXPECT_EQ(entries(), 0U);
}

// A limit on the size of files stands in for a full disk.
TEST_F(FileOnDisk, AFailedWriteKeepsTheOldContentAndRemovesTheTemporary) {
  std::ofstream(path("a")) << "old";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message = "no error";
  try {
    write_file_atomically(path("a"), std::string(5000, 'x'));
  } catch (const Error& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "write: cannot write '" + path("a") + "'; the system refused to store the data: File too large");
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileOnDisk, NothingCanBeWrittenAfterCommit) {
  AtomicFile file(path("a"));
  file.commit();
  EXPECT_THROW(file.write("x", 1), Error);
  EXPECT_THROW(file.commit(), Error);
  EXPECT_EQ(content(path("a")), "");
}

TEST_F(FileOnDisk, ReadingGivesEveryByte) {
  const std::string bytes("\0\x01\xff\n\r", 5);
  std::ofstream(path("a"), std::ios::binary) << bytes;
  const std::vector<uint8_t> read = read_whole_file(path("a"));
  EXPECT_EQ(std::string(read.begin(), read.end()), bytes);
  std::ofstream(path("empty")).close();
  EXPECT_TRUE(read_whole_file(path("empty")).empty());
}

TEST_F(FileOnDisk, ReadingWhatIsNoFileIsAnErrorAndNeverWaits) {
  const auto message = [](const std::string& name) -> std::string {
    try {
      read_whole_file(name);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(path("b")), "read: cannot read '" + path("b") + "'; No such file or directory");
  EXPECT_EQ(message(directory.string()), "read: cannot read '" + directory.string() + "'; it is a directory");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(message(path("pipe")), "read: cannot read '" + path("pipe") + "'; it is not a regular file");
}

}  // namespace
}  // namespace rosin
