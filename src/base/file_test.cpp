// Tests of file.hpp: what stands on the disk after success, after failure, and while a write is under way.
#include "base/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <rosin/error.hpp>

#include "base/input_file.hpp"

namespace fs = std::filesystem;

// So many calls of these say that a signal interrupted them. (A program's own functions stand before the system's.)
static std::atomic<int> interruptions{0};

static bool interrupted() {
  if (interruptions == 0) return false;
  --interruptions;
  errno = EINTR;
  return true;
}

extern "C" int fsync(int descriptor) { return interrupted() ? -1 : static_cast<int>(syscall(SYS_fsync, descriptor)); }
extern "C" int rename(const char* from, const char* to) noexcept {
  return interrupted() ? -1 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
extern "C" int flock(int descriptor, int operation) noexcept {
  return interrupted() ? -1 : static_cast<int>(syscall(SYS_flock, descriptor, operation));
}

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

TEST_F(FileOnDisk, ALinkThatLeadsNowhereIsRefusedAndStays) {
  fs::create_symlink("nowhere/target", path("link"));
  EXPECT_EQ(message_of_write(path("link")),
            "write: cannot write '" + path("link") + "'; it is a symbolic link that leads nowhere; remove or mend it");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  fs::create_symlink("around", path("around"));
  EXPECT_EQ(message_of_write(path("around")),
            "write: cannot write '" + path("around") +
                "'; it is a symbolic link that leads nowhere; remove or mend it: Too many levels of symbolic links");
  EXPECT_EQ(entries(), 2U);
}

TEST_F(FileOnDisk, AReadOnlyFileIsRefused) {
  std::ofstream(path("a")) << "old";
  ASSERT_EQ(chmod(path("a").c_str(), 0444), 0);
  EXPECT_EQ(message_of_write(path("a")),
            "write: cannot write '" + path("a") + "'; it is read-only; allow writing or choose another name");
  fs::create_symlink("a", path("link"));
  EXPECT_NE(message_of_write(path("link")).find("it is read-only"), std::string::npos);
  EXPECT_EQ(content(path("a")), "old");
}

TEST_F(FileOnDisk, TheOwnerIsKept) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
  std::ofstream(path("a")) << "old";
  ASSERT_EQ(chown(path("a").c_str(), 65534, 65533), 0);
  ASSERT_EQ(chmod(path("a").c_str(), 02664), 0);
  write_file_atomically(path("a"), "new");
  struct stat info {};
  ASSERT_EQ(stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 65534U);
  EXPECT_EQ(info.st_gid, 65533U);
  EXPECT_EQ(info.st_mode & 07777, 02664U);
}

// Root gives the file to somebody else and becomes a third one who may write it, but cannot give files away.
TEST_F(FileOnDisk, AFileWhoseOwnerCannotBeKeptIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
  std::ofstream(path("a")) << "old";
  ASSERT_EQ(chown(path("a").c_str(), 65534, 65534), 0);
  fs::permissions(path("a"), fs::perms(0666));
  fs::permissions(directory, fs::perms(0777));
  ASSERT_EQ(seteuid(65533), 0);
  const std::string message = message_of_write(path("a"));
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_NE(message.find("its owner and group cannot be kept; remove it first or choose another name"),
            std::string::npos)
      << message;
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileOnDisk, ANameOfTheLongestKindIsWrittenAndALongerOneRefused) {
  const std::string longest(255, 'n');
  for (const char* text : {"old", "new"}) {
    write_file_atomically(path(longest), text);
    EXPECT_EQ(content(path(longest)), text);
  }
  EXPECT_EQ(message_of_write(path(longest + "n")),
            "write: cannot write '" + path(longest + "n") + "'; its name is too long: File name too long");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileOnDisk, WhatAKilledProcessLeftGoesWithTheNextWriteInTheFolder) {
  AtomicFile living(path("living"));
  const pid_t child = fork();
  if (child == 0) {
    auto* file = new AtomicFile(path("dying"));
    file->write("x", 1);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  std::ofstream(path(".rosin-unfinished-notes")) << "of somebody else";
  EXPECT_EQ(entries(), 3U);
  write_file_atomically(path("another"), "x");
  EXPECT_EQ(entries(), 3U);  // the new one, the living one, the notes
  EXPECT_TRUE(fs::exists(path(".rosin-unfinished-notes")));
  living.write("y", 1);
  living.commit();
  EXPECT_EQ(content(path("living")), "y");
}

TEST_F(FileOnDisk, AWriteThatSignalsInterruptGoesOn) {
  std::ofstream(path("a")) << "old";
  interruptions = 3;
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(interruptions, 0);
  EXPECT_EQ(content(path("a")), "new");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileOnDisk, AFileOfTheOwnerAloneIsClosedToOthersWhateverStoodThere) {
  std::ofstream(path("a")) << "old";
  fs::permissions(path("a"), fs::perms(0444));
  fs::create_symlink("a", path("link"));
  for (const char* name : {"a", "link", "fresh"}) {
    write_file_atomically(path(name), "new", FileAccess::owner_only);
    EXPECT_EQ(fs::symlink_status(path(name)).type(), fs::file_type::regular) << name;
    EXPECT_EQ(fs::status(path(name)).permissions(), fs::perms(0600)) << name;
    EXPECT_TRUE(InputFile(path(name)).is_private()) << name;
  }
  fs::permissions(path("a"), fs::perms(0604));
  EXPECT_FALSE(InputFile(path("a")).is_private());
}

TEST_F(FileOnDisk, APrivateFolderIsMadeAndJudged) {
  const std::string folder = path("over/there");
  EXPECT_EQ(trouble_with_private_folder(folder), "No such file or directory");
  EXPECT_EQ(make_private_folder(folder), "");
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms(0700));
  EXPECT_EQ(make_private_folder(folder), "");
  fs::permissions(folder, fs::perms(0710));
  EXPECT_EQ(make_private_folder(folder), "others have rights to it (chmod 700 takes them away)");
  fs::create_directory_symlink("over/there", path("link"));
  EXPECT_EQ(make_private_folder(path("link")), "it is no folder");
  EXPECT_EQ(make_private_folder(path("link") + "/no/folder"), "");  // what stands above may be a link
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

TEST_F(FileOnDisk, ReadingStopsAtABound) {
  std::ofstream(path("a")) << "12345";
  EXPECT_EQ(read_whole_file(path("a"), 5).size(), 5U);
  fs::resize_file(path("a"), uint64_t{1} << 42);  // more than memory holds: it is not tried
  EXPECT_THROW(read_whole_file(path("a"), 5), Error);
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
  EXPECT_EQ(message(path("b")),
            "read: the file must be readable; '" + path("b") + "': No such file or directory; check the path");
  EXPECT_EQ(message(directory.string()),
            "read: the file must be readable; '" + directory.string() + "': it is a directory; check the path");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(message(path("pipe")),
            "read: the file must be readable; '" + path("pipe") + "': it is not a regular file; check the path");
}

}  // namespace
}  // namespace rosin
