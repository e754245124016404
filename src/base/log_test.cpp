#include <rosin/log.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../tests/run_itself.hpp"

namespace rosin {
namespace {

class Log : public testing::Test {
 protected:
  void SetUp() override {
    forget_said();
    set_log_sink([](const LogMessage& m, void* data) { static_cast<Log*>(data)->said.push_back(std::string(m.text)); },
                 this);
  }
  void TearDown() override {
    set_log_sink(nullptr);
    set_log_enabled("test-id", true);
  }

 public:
  std::vector<std::string> said;
};

TEST_F(Log, SaysAWarningOncePerProcess) {
  warn_once("test-id", "first");
  warn_once("test-id", "second");
  EXPECT_EQ(said, std::vector<std::string>{"first"});
}

TEST_F(Log, SaysAWarningOnceForEachSubject) {
  warn_once("test-id", "of A", "A");
  warn_once("test-id", "of B", "B");
  warn_once("test-id", "of A again", "A");
  EXPECT_EQ(said, (std::vector<std::string>{"of A", "of B"}));
}

TEST_F(Log, CanSwitchAnIdOff) {
  set_log_enabled("test-id", false);
  warn_once("test-id", "unheard");
  inform("asked for");
  EXPECT_EQ(said, std::vector<std::string>{"asked for"});
}

TEST(LogSink, WritesToStderrInTheMannerOfJulia) {
  forget_said();
  testing::internal::CaptureStderr();
  inform("Using backend: CPU.");
  warn_once("test-frame", "one\ntwo\nthree");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[ Info: Using backend: CPU.\n┌ Warning: one\n│ two\n└ three (test-frame)\n");
}

TEST(LogSink, WritesToStderrWhatTheEnvironmentAsksFor) {
  const auto written = [](const char* level) {
    setenv("ROSIN_LOG", level, 1);
    forget_said();
    testing::internal::CaptureStderr();
    inform("news");
    inform_once("test-news", "more");
    warn_once("test-alarm", "alarm");
    unsetenv("ROSIN_LOG");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(written("info"), "[ Info: news\n[ Info: more\n[ Warning: alarm (test-alarm)\n");
  EXPECT_EQ(written("warning"), "[ Warning: alarm (test-alarm)\n");
  EXPECT_EQ(written("none"), "");
}

TEST_F(Log, GivesASinkWhateverTheEnvironmentAsksFor) {
  setenv("ROSIN_LOG", "none", 1);
  inform("news");
  unsetenv("ROSIN_LOG");
  EXPECT_EQ(said, std::vector<std::string>{"news"});
}

TEST(DISABLED_Inside, SaysOneThing) { warn_once("test-one-thing", "one thing"); }

// In a process of its own, since the environment is checked once.
TEST(LogSink, IsWarnedAboutTheEnvironmentFirst) {
  const std::string text = run_itself("SaysOneThing", "ROSIN_LOGG=x ROSIN_LOG=loud timeout 60").text;
  EXPECT_NE(text.find("[ Warning: environment: rosin reads no variable ROSIN_LOGG; did you mean ROSIN_LOG? "
                      "(unknown-variable)\n[ Warning: environment: ROSIN_LOG must be info, warning or none; got "
                      "\"loud\", which is ignored (environment-value)\n[ Warning: one thing (test-one-thing)\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace rosin
