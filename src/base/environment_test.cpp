// Tests of the table of environment variables.
#include "base/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <rosin/log.hpp>

#include "base/nearest.hpp"

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
    unsetenv("ROSIN_NUM_THREADS");
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
  }
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

TEST_F(Environment, AnUnknownVariableIsNamedWithTheNearestKnownOne) {
  EXPECT_TRUE(is_unknown_variable("ROSIN_NUM_THREAD"));
  EXPECT_FALSE(is_unknown_variable("ROSIN_NUM_THREADS"));
  EXPECT_FALSE(is_unknown_variable("PATH"));
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
