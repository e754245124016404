#include <rosin/log.hpp>

#include <vector>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rosin
