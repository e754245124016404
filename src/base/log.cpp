// The log: which notices were said, which are switched off, and the sink that writes to stderr.
#include <rosin/log.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

#include "base/environment.hpp"

namespace rosin {
namespace {

/// As Julia shows messages: one line after "[ Info: ", several lines in a frame.
void write_to_stderr(const LogMessage& message, void*) {
  std::string text(message.level == LogLevel::info ? "Info: " : "Warning: ");
  text.append(message.text);
  if (message.level == LogLevel::warning && !message.id.empty()) text.append(" (").append(message.id).append(")");
  std::string framed;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const bool first = begin == 0, last = end == text.size();
    framed += first ? (last ? "[ " : "┌ ") : (last ? "└ " : "│ ");
    framed.append(text, begin, end - begin).append("\n");
    begin = end + 1;
  }
  std::fputs(framed.c_str(), stderr);
}

struct Log {
  std::mutex lock;
  LogSink sink = write_to_stderr;
  void* data = nullptr;
  std::set<std::string, std::less<>> said;
  std::set<std::string, std::less<>> off;
};

/// Never freed: notices may come from destructors of user objects at namespace scope.
Log& the_log() {
  static Log* log = new Log;
  return *log;
}

/// What ROSIN_LOG lets through. Asked before the log is locked: the first look at the environment may itself warn.
bool may_go_to_stderr(LogLevel level) {
  const std::string least = environment(Setting::log).value_or("info");
  return least != "none" && (least != "warning" || level == LogLevel::warning);
}

/// With the lock held.
void deliver(Log& log, const LogMessage& message, bool to_stderr) {
  if (log.sink != write_to_stderr || to_stderr) log.sink(message, log.data);
}

void say_once(LogLevel level, std::string_view id, std::string_view text, std::string_view subject) {
  const bool to_stderr = may_go_to_stderr(level);
  Log& log = the_log();
  std::lock_guard<std::mutex> hold(log.lock);
  if (log.off.contains(id)) return;
  std::string key(id);
  key.append("\n").append(subject);
  if (log.said.insert(std::move(key)).second) deliver(log, {level, id, text}, to_stderr);
}

std::atomic<bool>& strict() {
  static std::atomic<bool> on{environment_switch(Setting::strict).value_or(false)};
  return on;
}

}  // namespace

void set_strict(bool on) { strict() = on; }
bool is_strict() { return strict(); }

void set_log_sink(LogSink sink, void* data) {
  Log& log = the_log();
  std::lock_guard<std::mutex> hold(log.lock);
  log.sink = sink ? sink : write_to_stderr;
  log.data = sink ? data : nullptr;
}

void set_log_enabled(std::string_view id, bool enabled) {
  Log& log = the_log();
  std::lock_guard<std::mutex> hold(log.lock);
  if (enabled) log.off.erase(std::string(id));
  else log.off.insert(std::string(id));
}

void warn_once(std::string_view id, std::string_view text, std::string_view subject) {
  say_once(LogLevel::warning, id, text, subject);
}

void inform_once(std::string_view id, std::string_view text, std::string_view subject) {
  say_once(LogLevel::info, id, text, subject);
}

void inform(std::string_view text) {
  const bool to_stderr = may_go_to_stderr(LogLevel::info);
  Log& log = the_log();
  std::lock_guard<std::mutex> hold(log.lock);
  deliver(log, {LogLevel::info, {}, text}, to_stderr);
}

void forget_said() {
  Log& log = the_log();
  std::lock_guard<std::mutex> hold(log.lock);
  log.said.clear();
}

}  // namespace rosin
