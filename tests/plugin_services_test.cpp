// What a plug-in is given by rosin (rosin_host of backend.h): its log is rosin's, and what it keeps is there again in
// another process. The reference plug-in with keep=1 counts on disk how often it opened a device, and says so.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/move.hpp>

#include "run_itself.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;

TEST(DISABLED_Inside, ADeviceIsOpened) {
  EXPECT_EQ((ones({2}) | get_device("reference", 0)).to_vector<float>(), (std::vector<float>{1, 1}));
}

/// A folder for what is kept, of this test alone.
class PluginServices : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  /// What another process says; it opens a device once.
  std::string said(const std::string& log = "info") const {
    const Outcome outcome = run_itself(
        "ADeviceIsOpened", "ROSIN_REFERENCE=keep=1 ROSIN_LOG=" + log + " ROSIN_CACHE_DIR='" + folder_.string() + "'");
    expect_success(outcome);
    return outcome.text;
  }
  static bool says(const std::string& text, int openings) {
    return text.find("reference: opened " + std::to_string(openings) + " times") != text.npos;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("rosin-services-" + std::to_string(getpid()));
};

TEST_F(PluginServices, KeepBytesFromProcessToProcess) {
  for (int openings = 1; openings <= 3; ++openings) {
    const std::string text = said();
    EXPECT_TRUE(says(text, openings)) << text;
    EXPECT_FALSE(says(text, openings + 1)) << text;
  }
}

TEST_F(PluginServices, LogWhereTheProgramWantsNotices) {
  for (const char* log : {"warning", "none"}) EXPECT_EQ(said(log).find("opened"), std::string::npos) << log;
  const std::string text = said();
  EXPECT_TRUE(says(text, 3)) << text;  // what is not said is counted all the same
}

TEST_F(PluginServices, BeginAgainWhereWhatWasKeptIsDamaged) {
  EXPECT_TRUE(says(said(), 1));
  for (const auto& file : fs::recursive_directory_iterator(folder_)) {
    if (file.is_regular_file()) std::ofstream(file.path(), std::ios::binary) << "damaged";
  }
  const std::string text = said();
  EXPECT_TRUE(says(text, 1)) << text;
}

}  // namespace
}  // namespace rosin
