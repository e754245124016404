// The progress bar: when to draw, how much fits, how a terminal's line is replaced. Read next: readable_number.hpp.
#include "train/progress.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include <rosin/progress.hpp>

#include "platform/terminal.hpp"
#include "train/readable_number.hpp"

namespace rosin {

namespace {

constexpr double seconds_between_drawings = 0.1;
constexpr std::size_t usual_columns = 80;
constexpr std::size_t shortest_bar = 5;  // cells between the brackets
constexpr std::size_t longest_bar = 30;
constexpr std::size_t bar_frame = 4;  // two spaces and two brackets
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Asked anew for every line: people resize windows. The last column stays free, some terminals wrap when it is used.
std::size_t usable_columns(std::FILE* out) {
  const std::size_t known = platform::terminal_columns(out);
  return std::max<std::size_t>((known > 0 ? known : usual_columns) - 1, 1);
}

std::string bar_text(double share, std::size_t cells) {
  const auto full = static_cast<std::size_t>(share * static_cast<double>(cells));
  return "  [" + std::string(full, '#') + std::string(cells - full, '.') + "]";
}

}  // namespace

std::string progress_line(const ProgressFields& fields, double share, std::size_t columns) {
  const std::string loss = "  loss " + loss_text(fields.loss);
  const std::string accuracy = std::isnan(fields.accuracy) ? "" : "  accuracy " + fixed_text(fields.accuracy, 4);
  const std::string rate =
      fields.rate > 0 ? "  " + fixed_text(fields.rate, fields.rate < 100 ? 1 : 0) + " samples/s" : "";
  const std::string time = fields.time.empty() ? "" : "  " + fields.time;
  const std::array<std::string, 5> choices = {loss + accuracy + rate + time, loss + accuracy + time, loss + time, loss,
                                              ""};
  for (const std::string& choice : choices) {
    const std::size_t used = fields.epoch.size() + choice.size();
    if (used > columns) continue;
    const std::size_t room = columns - used;
    if (share < 0 || room < bar_frame + shortest_bar) return fields.epoch + choice;
    return fields.epoch + bar_text(std::min(share, 1.0), std::min(room - bar_frame, longest_bar)) + choice;
  }
  return fields.epoch.substr(0, columns);
}

Progress::Progress(int64_t epochs, int64_t samples_per_epoch, std::FILE* out, double (*seconds)())
    : epochs_(epochs), samples_per_epoch_(samples_per_epoch), out_(out),
      seconds_(seconds == nullptr ? &steady_seconds : seconds), terminal_(out != nullptr && platform::is_terminal(out)),
      started_(seconds_()), epoch_started_(started_), accuracy_(unknown) {}

Progress::~Progress() {
  if (out_ == nullptr || line_width_ == 0) return;
  std::fputc('\n', out_);
  std::fflush(out_);
}

void Progress::begin(int64_t epoch) {
  if (begun_) return;
  begun_ = true;
  first_epoch_ = epoch;
}

void Progress::update(int64_t epoch, int64_t samples_done, double loss) {
  if (out_ == nullptr) return;
  begin(epoch);
  const double now = seconds_();
  const double passed = now - epoch_started_;
  rate_ = passed > 0 ? static_cast<double>(samples_done) / passed : 0;
  const bool soon = line_width_ > 0 && now - last_drawn_ < seconds_between_drawings;
  if (!terminal_ || (soon && samples_done < samples_per_epoch_)) return;
  last_drawn_ = now;
  const double share =
      samples_per_epoch_ > 0
          ? std::clamp(static_cast<double>(samples_done) / static_cast<double>(samples_per_epoch_), 0.0, 1.0)
          : 0;
  const double left = seconds_left(static_cast<double>(epoch) + share, now);
  const std::string time = left >= 0 ? duration_text(left) + " left" : "";
  replace_line(progress_line({epoch_text(epoch), loss, accuracy_, rate_, time}, share, usable_columns(out_)), false);
}

void Progress::finish_epoch(int64_t epoch, double loss, double accuracy) {
  if (out_ == nullptr) return;
  begin(epoch);
  const double now = seconds_();
  const double passed = now - epoch_started_;
  // Without updates the whole epoch is all that is known; with them the rate is that of training, without evaluation.
  if (rate_ <= 0 && passed > 0) rate_ = static_cast<double>(samples_per_epoch_) / passed;
  const bool last = epoch + 1 >= epochs_;
  const double left = seconds_left(static_cast<double>(epoch + 1), now);
  const std::string time =
      last ? duration_text(now - started_) + " in all" : (left >= 0 ? duration_text(left) + " left" : "");
  const std::size_t columns = terminal_ ? usable_columns(out_) : std::numeric_limits<std::size_t>::max();
  replace_line(progress_line({epoch_text(epoch), loss, accuracy, rate_, time}, -1, columns), true);
  accuracy_ = accuracy;
  epoch_started_ = now;
  rate_ = 0;
}

// Negative while nothing is done yet. Evaluation between epochs counts as part of them.
double Progress::seconds_left(double epochs_done, double now) const {
  const double done = epochs_done - static_cast<double>(first_epoch_);
  if (done <= 0) return -1;
  return (now - started_) / done * std::max(static_cast<double>(epochs_) - epochs_done, 0.0);
}

std::string Progress::epoch_text(int64_t epoch) const {
  const std::string all = std::to_string(epochs_);
  const std::string current = std::to_string(epoch + 1);
  return "epoch " + std::string(all.size() > current.size() ? all.size() - current.size() : 0, ' ') + current + "/" +
         all;
}

// One write per line, so that another writer cannot come between its parts. Spaces cover what the old line leaves.
void Progress::replace_line(const std::string& line, bool finished) {
  std::string text = terminal_ ? "\r" + line : line;
  if (terminal_ && line_width_ > line.size()) {
    const std::size_t room = usable_columns(out_);
    text += std::string(std::max(std::min(line_width_, room), line.size()) - line.size(), ' ');
  }
  if (finished) text += "\n";
  line_width_ = finished ? 0 : line.size();
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

}  // namespace rosin
