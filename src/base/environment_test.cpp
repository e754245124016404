// Tests of the table of environment variables.
#include "base/environment.hpp"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <rosin/log.hpp>

#include "../tests/sanitizer_testing.hpp"
#include "base/nearest.hpp"
#include "platform/environment.hpp"

namespace rosin {
namespace {

class Environment : public testing::Test {
 protected:
  void SetUp() override {
    forget_said();
    set_log_sink(
        [](const LogMessage& m, void* said) { static_cast<std::vector<std::string>*>(said)->emplace_back(m.text); },
        &said_);
  }
  void TearDown() override {
    for (const EnvironmentVariable& variable : environment_variables()) unsetenv(variable.name.data());
    set_log_sink(nullptr);
  }
  std::vector<std::string> said_;
};

TEST_F(Environment, TheTableStandsInTheOrderOfTheSettings) {
  int position = 0;
  for (const EnvironmentVariable& variable : environment_variables()) {
    EXPECT_EQ(static_cast<int>(variable.setting), position++) << variable.name;
    EXPECT_TRUE(variable.name.starts_with("ROSIN_"));
    EXPECT_FALSE(variable.meaning.empty());
    EXPECT_FALSE(variable.when_unset.empty());
  }
}

TEST_F(Environment, ThePageListsTheTable) {
  std::ifstream file(ROSIN_SOURCE_DIR "/docs/preferences.md");
  std::string row, rows, expected;
  while (std::getline(file, row)) {
    if (row.starts_with("| `ROSIN_")) rows.append(row).append("\n");
  }
  for (const EnvironmentVariable& variable : environment_variables()) {
    expected.append("| `").append(variable.name).append("` | ").append(variable.meaning).append(" | ");
    expected.append(variable.when_unset).append(" |\n");
  }
  EXPECT_EQ(rows, expected);
}

TEST_F(Environment, AnUnsetOrEmptyVariableIsNothing) {
  unsetenv("ROSIN_NUM_THREADS");
  EXPECT_FALSE(environment(Setting::num_threads));
  setenv("ROSIN_NUM_THREADS", "", 1);
  EXPECT_FALSE(environment(Setting::num_threads));
}

TEST_F(Environment, ANumberIsRead) {
  setenv("ROSIN_NUM_THREADS", "7", 1);
  EXPECT_EQ(environment_number(Setting::num_threads, 1), 7);
  EXPECT_TRUE(said_.empty());
}

TEST_F(Environment, AValueThatIsNoNumberIsIgnoredWithOneWarning) {
  for (const char* value : {"many", "0", "-3", "2x"}) {
    setenv("ROSIN_NUM_THREADS", value, 1);
    EXPECT_FALSE(environment_number(Setting::num_threads, 1)) << value;
  }
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0],
            "environment: ROSIN_NUM_THREADS must be a whole number of at least 1; got \"many\", which is ignored");
}

TEST_F(Environment, ASwitchIsZeroOrOne) {
  EXPECT_EQ(environment_switch(Setting::sync), std::nullopt);
  setenv("ROSIN_SYNC", "1", 1);
  EXPECT_EQ(environment_switch(Setting::sync), true);
  setenv("ROSIN_SYNC", "0", 1);
  EXPECT_EQ(environment_switch(Setting::sync), false);
  EXPECT_TRUE(said_.empty());
  setenv("ROSIN_SYNC", "yes", 1);
  EXPECT_EQ(environment_switch(Setting::sync), std::nullopt);
  EXPECT_EQ(said_, std::vector<std::string>{"environment: ROSIN_SYNC must be 0 or 1; got \"yes\", which is ignored"});
}

TEST_F(Environment, OnlyAbsoluteFoldersArePluginFolders) {
  EXPECT_TRUE(plugin_folders().empty());
  setenv("ROSIN_PLUGIN_PATH", "/a b:/c", 1);
  EXPECT_EQ(plugin_folders(), (std::vector<std::string>{"/a b", "/c"}));
  EXPECT_TRUE(said_.empty());
  setenv("ROSIN_PLUGIN_PATH", "lib:/a::./b", 1);
  EXPECT_EQ(plugin_folders(), std::vector<std::string>{"/a"});
  EXPECT_EQ(said_,
            (std::vector<std::string>{
                "environment: ROSIN_PLUGIN_PATH takes absolute folders; got the relative folder \"lib\", which is "
                "ignored",
                "environment: ROSIN_PLUGIN_PATH takes absolute folders; got an empty element, which is ignored",
                "environment: ROSIN_PLUGIN_PATH takes absolute folders; got the relative folder \"./b\", which "
                "is ignored"}));
}

TEST_F(Environment, TheCacheFolderMustBeAbsolute) {
  EXPECT_FALSE(cache_dir_setting());
  setenv("ROSIN_CACHE_DIR", "/a b", 1);
  EXPECT_EQ(cache_dir_setting(), "/a b");
  EXPECT_TRUE(said_.empty());
  setenv("ROSIN_CACHE_DIR", "a", 1);
  EXPECT_FALSE(cache_dir_setting());
  EXPECT_EQ(said_, std::vector<std::string>{
                       "environment: ROSIN_CACHE_DIR must be an absolute folder; got \"a\", which is ignored"});
}

TEST_F(Environment, DISABLED_WithMoreRightsNamesNoFolders) {
  ASSERT_NE(getauxval(AT_SECURE), 0u) << "no more rights";
  for (const char* name : {"ROSIN_CACHE_DIR", "ROSIN_PLUGIN_PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME"})
    setenv(name, "/a", 1);
  EXPECT_FALSE(cache_dir_setting());
  EXPECT_FALSE(user_cache_folder());
  EXPECT_FALSE(platform::settings_folder());
  EXPECT_TRUE(plugin_folders().empty());
  EXPECT_EQ(said_, (std::vector<std::string>{
                       "environment: ROSIN_CACHE_DIR is ignored in a program with more rights than its user",
                       "environment: ROSIN_PLUGIN_PATH is ignored in a program with more rights than its user"}));
}

// A copy of this program that takes on the rights of somebody else when root starts it.
TEST_F(Environment, AProgramWithMoreRightsThanItsUserTakesNoFolderFromIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program with more rights";
  if (!runs_with_more_rights) GTEST_SKIP() << "no sanitizer or emulator runs such a program";
  std::string name = "/tmp/rosin-environment-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path copy = std::filesystem::path(name) / "program";
  std::filesystem::copy_file("/proc/self/exe", copy);
  ASSERT_EQ(chown(copy.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  ASSERT_EQ(chmod(name.c_str(), 0755), 0);
  const std::string command =
      copy.string() + " --gtest_also_run_disabled_tests --gtest_filter='*MoreRightsNames*' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (char part[4096]; size_t count = fread(part, 1, sizeof part, pipe);) text.append(part, count);
  const int status = pclose(pipe);
  std::filesystem::remove_all(name);
  if (text.find("no more rights") != std::string::npos) GTEST_SKIP() << "this file system takes no such programs";
  EXPECT_EQ(status, 0) << text;
}

TEST(ConfigFolder, IsThatOfXdgOrInTheHome) {
  const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
  const std::string config_before = config ? config : "", home_before = home ? home : "";
  setenv("HOME", "/home/somebody", 1);
  setenv("XDG_CONFIG_HOME", "/etc/xdg", 1);
  EXPECT_EQ(platform::settings_folder(), "/etc/xdg");
  setenv("XDG_CONFIG_HOME", "relative", 1);
  EXPECT_EQ(platform::settings_folder(), "/home/somebody/.config");
  setenv("HOME", "", 1);
  EXPECT_EQ(platform::settings_folder(), std::nullopt);
  config ? setenv("XDG_CONFIG_HOME", config_before.c_str(), 1) : unsetenv("XDG_CONFIG_HOME");
  home ? setenv("HOME", home_before.c_str(), 1) : unsetenv("HOME");
}

TEST_F(Environment, AnUnknownVariableIsNamedWithTheNearestKnownOne) {
  EXPECT_TRUE(is_unknown_variable("ROSIN_NUM_THREAD"));
  EXPECT_FALSE(is_unknown_variable("ROSIN_NUM_THREADS"));
  EXPECT_FALSE(is_unknown_variable("PATH"));
  EXPECT_FALSE(is_unknown_variable("ROSIN_REFERENCE_CUDA"));  // the reference back end reads it
  EXPECT_FALSE(is_unknown_variable("ROSIN_FILES"));           // and these the tests
  EXPECT_FALSE(is_unknown_variable("ROSIN_DATA"));
  EXPECT_EQ(unknown_variable_text("ROSIN_NUM_THREAD"),
            "environment: rosin reads no variable ROSIN_NUM_THREAD; did you mean ROSIN_NUM_THREADS?");
  EXPECT_EQ(unknown_variable_text("ROSIN_SOMETHING_ELSE"), "environment: rosin reads no variable ROSIN_SOMETHING_ELSE");
}

TEST(NearestName, TakesTheFewestChangedLettersAndIgnoresCase) {
  const std::vector<std::string_view> names = {"CUDA", "AMDGPU", "Metal"};
  EXPECT_EQ(nearest_name("CUDO", names), "CUDA");
  EXPECT_EQ(nearest_name("metall", names), "Metal");
  EXPECT_EQ(nearest_name("quite else", names), "");
  EXPECT_TRUE(equal_without_case("cuda", "CUDA"));
  EXPECT_FALSE(equal_without_case("cuda", "CUD"));
}

}  // namespace
}  // namespace rosin
