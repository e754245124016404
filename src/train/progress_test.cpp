// Tests of the progress bar with a clock that the test turns by hand: plain lines into a file, and the real thing on a
// pseudo terminal of several widths.
#include "train/progress.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rosin/progress.hpp>

#include "train/readable_number.hpp"

namespace rosin {
namespace {

constexpr double no_figure = std::numeric_limits<double>::quiet_NaN();

double shown_time = 0;
double test_seconds() { return shown_time; }

// A terminal whose screen the test reads: output comes raw, without the driver's own changes.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : master_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) return;
    const int slave = open(ptsname(master_), O_RDWR | O_NOCTTY);
    termios settings{};
    tcgetattr(slave, &settings);
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    tcsetattr(slave, TCSANOW, &settings);
    out = fdopen(slave, "w");
    resize(columns);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (out != nullptr) fclose(out);
    if (master_ >= 0) close(master_);
  }

  void resize(unsigned short columns) {
    const winsize size{24, columns, 0, 0};
    ioctl(master_, TIOCSWINSZ, &size);
  }

  // What came since the last call.
  std::string read_text() {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t count = 0; (count = read(master_, buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  std::FILE* out = nullptr;

 private:
  int master_;
};

std::string text_in(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = 0; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  return text;
}

class ShownProgress : public ::testing::Test {
 protected:
  void SetUp() override { shown_time = 100; }
};

TEST_F(ShownProgress, AFileGetsOnePlainLinePerEpoch) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    Progress progress(10, 6000, file, &test_seconds);
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      shown_time += 1;
      progress.update(epoch, 3000, 0.7);
      shown_time += 1;
      progress.update(epoch, 6000, 0.6);
      shown_time += 0.5;  // evaluation
      progress.finish_epoch(epoch, 0.5 / static_cast<double>(epoch + 1), 0.9 + 0.01 * static_cast<double>(epoch));
    }
    shown_time += 2.5;
    progress.finish_epoch(9, 0.125, no_figure);
  }
  EXPECT_EQ(text_in(file),
            "epoch  1/10  loss 0.5000  accuracy 0.9000  3000 samples/s  0:23 left\n"
            "epoch  2/10  loss 0.2500  accuracy 0.9100  3000 samples/s  0:20 left\n"
            "epoch 10/10  loss 0.1250  2400 samples/s  0:08 in all\n");
  std::fclose(file);
}

TEST_F(ShownProgress, WithoutAnOutputNothingHappens) {
  Progress progress(2, 10, nullptr, &test_seconds);
  progress.update(0, 5, 1.0);
  progress.finish_epoch(0, 1.0, 0.5);
}

TEST_F(ShownProgress, ATerminalLineIsRedrawnInPlace) {
  Terminal terminal(80);
  ASSERT_NE(terminal.out, nullptr);
  Progress progress(3, 1000, terminal.out, &test_seconds);
  shown_time += 1;
  progress.update(0, 500, 1.25);
  EXPECT_EQ(terminal.read_text(), "\repoch 1/3  [#############..............]  loss 1.2500  500 samples/s  0:05 left");
  shown_time += 1;
  progress.update(0, 1000, 0.00001);
  EXPECT_EQ(terminal.read_text(), "\repoch 1/3  [#########################]  loss 1.00e-05  500 samples/s  0:04 left");
  progress.finish_epoch(0, 0.5, 0.75);
  EXPECT_EQ(terminal.read_text(),
            "\repoch 1/3  loss 0.5000  accuracy 0.7500  500 samples/s  0:04 left" + std::string(14, ' ') + "\n");
  shown_time += 1;
  progress.update(1, 250, 0.25);
  EXPECT_EQ(terminal.read_text(), "\repoch 2/3  [##........]  loss 0.2500  accuracy 0.7500  250 samples/s  0:04 left");
}

TEST_F(ShownProgress, ATerminalIsNotFloodedButTheEndOfAnEpochShows) {
  Terminal terminal(80);
  ASSERT_NE(terminal.out, nullptr);
  Progress progress(1, 1000, terminal.out, &test_seconds);
  shown_time += 1;
  progress.update(0, 100, 1.0);
  EXPECT_NE(terminal.read_text(), "");
  shown_time += 0.05;
  progress.update(0, 200, 1.0);
  EXPECT_EQ(terminal.read_text(), "");
  progress.update(0, 1000, 1.0);
  EXPECT_NE(terminal.read_text(), "");
  shown_time += 0.15;
  progress.update(0, 300, 1.0);
  EXPECT_NE(terminal.read_text(), "");
}

TEST_F(ShownProgress, AnAbandonedLineIsEnded) {
  Terminal terminal(80);
  ASSERT_NE(terminal.out, nullptr);
  {
    Progress progress(1, 10, terminal.out, &test_seconds);
    progress.update(0, 5, 1.0);
    terminal.read_text();
  }
  EXPECT_EQ(terminal.read_text(), "\n");
}

TEST_F(ShownProgress, NoLineReachesTheWidthOfItsTerminal) {
  for (unsigned short columns = 1; columns <= 200; ++columns) {
    shown_time = 100;
    Terminal terminal(columns);
    ASSERT_NE(terminal.out, nullptr);
    Progress progress(100, 60000, terminal.out, &test_seconds);
    std::string text;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      shown_time += 1;
      progress.update(epoch, 60000, -123456.789);
      progress.finish_epoch(epoch, 0.5, 0.75);
    }
    text = terminal.read_text();
    std::size_t width = 0;
    for (const char c : text) {
      width = c == '\r' || c == '\n' ? 0 : width + 1;
      ASSERT_LE(width, std::max(columns - 1, 1)) << text;
    }
  }
}

TEST_F(ShownProgress, AWindowThatShrinksIsFollowed) {
  Terminal terminal(100);
  ASSERT_NE(terminal.out, nullptr);
  Progress progress(3, 1000, terminal.out, &test_seconds);
  shown_time += 1;
  progress.update(0, 500, 1.25);
  terminal.read_text();
  terminal.resize(30);
  shown_time += 1;
  progress.update(0, 600, 1.25);
  const std::string text = terminal.read_text();
  EXPECT_EQ(text, "\repoch 1/3  loss 1.2500" + std::string(7, ' '));
}

TEST(ProgressLine, LosesFieldsInOrderAsItNarrows) {
  const ProgressFields fields{"epoch 1/3", 0.5, 0.75, 1234.5, "0:12 left"};
  EXPECT_EQ(progress_line(fields, -1, 200), "epoch 1/3  loss 0.5000  accuracy 0.7500  1234 samples/s  0:12 left");
  EXPECT_EQ(progress_line(fields, -1, 60), "epoch 1/3  loss 0.5000  accuracy 0.7500  0:12 left");
  EXPECT_EQ(progress_line(fields, -1, 40), "epoch 1/3  loss 0.5000  0:12 left");
  EXPECT_EQ(progress_line(fields, -1, 30), "epoch 1/3  loss 0.5000");
  EXPECT_EQ(progress_line(fields, -1, 20), "epoch 1/3");
  EXPECT_EQ(progress_line(fields, -1, 4), "epoc");
}

TEST(ProgressLine, TheBarFillsTheRoomThatIsLeft) {
  const ProgressFields fields{"epoch 1/3", 0.5, no_figure, 0, ""};
  EXPECT_EQ(progress_line(fields, 0.5, 200), "epoch 1/3  [###############...............]  loss 0.5000");
  EXPECT_EQ(progress_line(fields, 0, 31), "epoch 1/3  [.....]  loss 0.5000");
  EXPECT_EQ(progress_line(fields, 7, 32), "epoch 1/3  [######]  loss 0.5000");
  EXPECT_EQ(progress_line(fields, 1, 30), "epoch 1/3  loss 0.5000");
}

TEST(ReadableNumber, LossesStayShort) {
  EXPECT_EQ(loss_text(0.31234), "0.3123");
  EXPECT_EQ(loss_text(0), "0.0000");
  EXPECT_EQ(loss_text(123.456), "123.46");
  EXPECT_EQ(loss_text(1234.56), "1234.6");
  EXPECT_EQ(loss_text(1.5e30), "1.50e+30");
  EXPECT_EQ(loss_text(1.5e-6), "1.50e-06");
  EXPECT_EQ(loss_text(-2), "-2.0000");
  EXPECT_EQ(loss_text(no_figure), "nan");
  EXPECT_EQ(loss_text(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(ReadableNumber, EveryDoubleHasAShortText) {
  for (const double value : {1e15, -1.7976931348623157e308, 5e-324, 1e100}) {
    EXPECT_LE(fixed_text(value, 4).size(), 24U);
    EXPECT_LE(loss_text(value).size(), 10U);
  }
}

TEST(ReadableNumber, DurationsAreRounded) {
  EXPECT_EQ(duration_text(0), "0:00");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(3725), "1:02:05");
  EXPECT_EQ(duration_text(-1), "-");
  EXPECT_EQ(duration_text(no_figure), "-");
  EXPECT_EQ(duration_text(1e300), "-");
}

}  // namespace
}  // namespace rosin
