// Tests of kernel_files.hpp: what is kept is found again, what others could have written is not, and files of others
// stay.
#include "run/kernel_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <rosin/log.hpp>

#include "base/environment.hpp"
#include "run/cache_folder.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;

class KernelFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rosin-kernels-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    cache_ = name;
    kernels_ = cache_ / "kernels";
    setenv("ROSIN_CACHE_DIR", name.c_str(), 1);
    forget_said();
    set_log_sink(
        [](const LogMessage& m, void* said) { static_cast<std::vector<std::string>*>(said)->emplace_back(m.text); },
        &said_);
  }
  void TearDown() override {
    set_log_sink(nullptr);
    unsetenv("ROSIN_CACHE_DIR");
    fs::remove_all(cache_);
  }
  static void store(const std::string& key, const std::string& text) {
    store_kernel_file(key, text.data(), text.size());
  }
  static std::string find(const std::string& key) {
    const auto bytes = find_kernel_file(key);
    return bytes ? std::string(bytes->begin(), bytes->end()) : "nothing";
  }
  fs::path only_file() const { return fs::directory_iterator(kernels_)->path(); }

  fs::path cache_, kernels_;
  std::vector<std::string> said_;
};

TEST_F(KernelFiles, AreFoundAgainAndClosedToOthers) {
  EXPECT_EQ(find("key"), "nothing");
  EXPECT_FALSE(fs::exists(kernels_));  // looking makes no folder
  store("key", "code");
  EXPECT_EQ(find("key"), "code");
  EXPECT_EQ(find("other"), "nothing");
  EXPECT_EQ(fs::status(kernels_).permissions(), fs::perms(0700));
  EXPECT_EQ(fs::status(only_file()).permissions(), fs::perms(0600));
  EXPECT_TRUE(said_.empty());
}

TEST_F(KernelFiles, AFolderThatOthersMayEnterIsPassedOverWithOneWarning) {
  store("key", "code");
  fs::permissions(kernels_, fs::perms(0750));
  EXPECT_EQ(find("key"), "nothing");
  store("other", "code");
  EXPECT_EQ(std::distance(fs::directory_iterator(kernels_), fs::directory_iterator()), 1);
  EXPECT_EQ(said_, std::vector<std::string>{
                       "compiled kernels are not kept: " + kernels_.string() +
                       ": others have rights to it (chmod 700 takes them away); every process compiles them anew "
                       "(ROSIN_CACHE_DIR names another folder)"});
  fs::permissions(kernels_, fs::perms(0700));
  EXPECT_EQ(find("key"), "code");
}

TEST_F(KernelFiles, AFolderOfAnotherUserAndALinkArePassedOver) {
  fs::create_directory(cache_ / "real");
  fs::permissions(cache_ / "real", fs::perms(0700));
  fs::create_directory_symlink("real", kernels_);
  store("key", "code");
  EXPECT_TRUE(fs::is_empty(cache_ / "real"));
  fs::remove(kernels_);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to somebody else";
  store("key", "code");
  ASSERT_EQ(chown(kernels_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(find("key"), "nothing");
}

TEST_F(KernelFiles, AnEntryThatOthersHaveRightsToIsNoEntry) {
  store("key", "code");
  fs::permissions(only_file(), fs::perms(0644));
  EXPECT_EQ(find("key"), "nothing");
  store("key", "code");  // written anew, and closed
  EXPECT_EQ(find("key"), "code");
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
  ASSERT_EQ(chown(only_file().c_str(), 65534, 65534), 0);
  EXPECT_EQ(find("key"), "nothing");
}

// A size of 2^42 bytes could not be read into memory: that nothing is thrown shows that it was not tried.
TEST_F(KernelFiles, AnEntryWhoseSizeIsNotThatOfItsHeaderIsNotRead) {
  store("key", "code");
  fs::resize_file(only_file(), uint64_t{1} << 42);
  EXPECT_EQ(find("key"), "nothing");
  uint64_t payload = (uint64_t{1} << 42) - 32 - 3;  // as the header would have it
  std::fstream file(only_file(), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(16);
  file.write(reinterpret_cast<const char*>(&payload), sizeof payload);
  file.close();
  EXPECT_EQ(find("key"), "nothing");
  fs::resize_file(only_file(), 10);
  EXPECT_EQ(find("key"), "nothing");
}

TEST_F(KernelFiles, WhatIsTooMuchGoesAndFilesOfOthersStay) {
  store("old", "code");
  const fs::path old = only_file();
  const std::string of_others = std::string(32, 'a') + ".bin";  // our name without our magic
  for (const char* name : {"thesis.tar", of_others.c_str(), "0123.bin"}) {
    std::ofstream(kernels_ / name) << "text";
    fs::resize_file(kernels_ / name, uint64_t{300} << 20);  // no blocks on the disk
    fs::last_write_time(kernels_ / name, fs::file_time_type::clock::now() - std::chrono::hours(9000));
  }
  store("new", "code");
  EXPECT_EQ(find("old"), "code");  // what belongs to others does not count
  fs::resize_file(old, uint64_t{300} << 20);
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  store("newer", "code");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(find("new") + find("newer"), "codecode");
  for (const char* name : {"thesis.tar", of_others.c_str(), "0123.bin"}) EXPECT_TRUE(fs::exists(kernels_ / name));
}

TEST_F(KernelFiles, ARelativeFolderIsSaidAndIgnored) {
  const std::string usual = user_cache_folder().value_or("none");
  setenv("ROSIN_CACHE_DIR", "here/cache", 1);
  EXPECT_EQ(cache_folder().value_or("none"), usual);
  EXPECT_EQ(cache_folder().value_or("none"), usual);
  EXPECT_EQ(said_, std::vector<std::string>{"environment: ROSIN_CACHE_DIR must be an absolute folder; got "
                                            "\"here/cache\", which is ignored"});
}

}  // namespace
}  // namespace rosin
