// See profile.hpp. Names of what ran are made once for each plan and step.
#include "run/profile.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>

#include <rosin/error.hpp>
#include <rosin/profile.hpp>
#include <rosin/stats.hpp>

#include "base/file.hpp"
#include "plan/step_text.hpp"
#include "run/open_device.hpp"

namespace rosin {
namespace {

using Clock = RunTimer::Clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// What is collected. Runs refer to entries in the order in which these came.
class Collected {
 public:
  void add(const Plan& plan, Clock::time_point begin, std::span<const RunTimer::Timed> timed) {
    const int thread = number_of_this_thread();
    double at = seconds_between(begun_, begin);
    for (const RunTimer::Timed& each : timed) {
      add_run(entry_of(plan, each), thread, at, each.seconds);
      at += each.seconds;
    }
  }

  void add_copy(ProfileEntry copy, Clock::time_point begin) {
    const double seconds = seconds_between(begin, Clock::now());
    add_run(entry_with(std::move(copy)), number_of_this_thread(), seconds_between(begun_, begin), seconds);
  }

  Profile finish() {
    result_.seconds = seconds_between(begun_, Clock::now());
    result_.planning = static_cast<double>(stats().planning_ns - planned_before_) * 1e-9;
    sort();
    return std::move(result_);
  }

 private:
  void add_run(size_t entry, int thread, double begin, double seconds) {
    result_.runs.push_back({static_cast<int64_t>(entry), thread, begin, seconds});
    ++result_.entries[entry].runs;
    result_.entries[entry].seconds += seconds;
  }
  int number_of_this_thread() {
    return threads_.try_emplace(std::this_thread::get_id(), static_cast<int>(threads_.size())).first->second;
  }

  /// Entries of one plan are found by its steps, those of another one by their texts.
  size_t entry_of(const Plan& plan, const RunTimer::Timed& timed) {
    const auto [place, is_new] = by_step_.try_emplace({plan.layout.get(), timed.step, timed.ops}, 0);
    if (is_new) {
      kept_.push_back(plan.layout);
      place->second = entry_with(text_of(plan, timed));
    }
    return place->second;
  }
  static ProfileEntry text_of(const Plan& plan, const RunTimer::Timed& timed) {
    ProfileEntry entry{.ops = timed.ops, .sizes = {}, .device = plan.device ? plan.device->name : "CPU"};
    if (timed.step < 0) return entry;
    const plan::Step& step = plan.layout->structure->steps[static_cast<size_t>(timed.step)];
    if (entry.ops.empty()) entry.ops = plan::ops_of(*plan.layout->structure, step);
    entry.sizes = plan::sizes_of(*plan.layout, step);
    return entry;
  }
  size_t entry_with(ProfileEntry entry) {
    const auto [place, is_new] = by_text_.try_emplace({entry.device, entry.ops, entry.sizes}, result_.entries.size());
    if (is_new) result_.entries.push_back(std::move(entry));
    return place->second;
  }

  /// Entries that took most, and runs that began first, come first.
  void sort() {
    std::vector<size_t> order(result_.entries.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return result_.entries[a].seconds > result_.entries[b].seconds; });
    std::vector<ProfileEntry> sorted;
    std::vector<int64_t> place(order.size());
    for (const size_t old : order) {
      place[old] = static_cast<int64_t>(sorted.size());
      sorted.push_back(std::move(result_.entries[old]));
    }
    result_.entries = std::move(sorted);
    for (ProfileRun& run : result_.runs) run.entry = place[static_cast<size_t>(run.entry)];
    std::stable_sort(result_.runs.begin(), result_.runs.end(),
                     [](const ProfileRun& a, const ProfileRun& b) { return a.begin < b.begin; });
  }

  const Clock::time_point begun_ = Clock::now();
  const int64_t planned_before_ = stats().planning_ns;
  Profile result_;
  std::map<std::thread::id, int> threads_;
  std::map<std::tuple<const plan::Layout*, int32_t, std::string>, size_t> by_step_;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> by_text_;
  std::vector<std::shared_ptr<const plan::Layout>> kept_;  // so that none gets the address of another
};

std::atomic<bool> under_way{false};
std::mutex lock;
std::optional<Collected> collected;  // guarded by lock; there while under_way

void append(std::string& text, double number, int digits) {
  std::array<char, 40> room{};
  const auto end = std::to_chars(room.data(), room.data() + room.size(), number, std::chars_format::fixed, digits);
  text.append(room.data(), end.ptr);
}

/// "12.30 ms", in three digits or so.
std::string time_text(double seconds) {
  std::string text;
  const bool small = seconds < 1e-3, large = seconds >= 1;
  const double number = large ? seconds : seconds * (small ? 1e6 : 1e3);
  append(text, number, number < 10 ? 2 : number < 100 ? 1 : 0);
  return text + (large ? " s" : small ? " us" : " ms");
}

std::string share_text(double share) {
  std::string text;
  append(text, 100 * share, 1);
  return text + "%";
}

std::string in_column(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// As much of a text as there is room for.
std::string cut(std::string text, size_t room) {
  if (text.size() > room) text.replace(room - 3, std::string::npos, "...");
  return text;
}

/// The ops, as far as the sizes leave room for more than a few letters of them, and the sizes.
std::string what_of(const ProfileEntry& entry, size_t room) {
  constexpr size_t least = 12;
  const size_t left = room - std::min(room, entry.sizes.size() + 1);
  const std::string ops = cut(entry.ops, std::max(left, least));
  return entry.sizes.empty() ? cut(entry.ops, room) : cut(ops + " " + entry.sizes, room);
}

/// A name as JSON writes it.
std::string quoted(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string made = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20) made.append("\\u00").append(1, digits[code >> 4]).append(1, digits[code & 15]);
    else if (c == '"' || c == '\\') made.append(1, '\\').append(1, c);
    else made += c;
  }
  return made + "\"";
}

/// Of each device its number in the order of their entries; the trace shows them as processes.
std::map<std::string, int> devices_of(const Profile& profile) {
  std::map<std::string, int> numbers;
  for (const ProfileEntry& entry : profile.entries) {
    numbers.try_emplace(entry.device, static_cast<int>(numbers.size()));
  }
  return numbers;
}

}  // namespace

bool profile_is_under_way() noexcept { return under_way.load(std::memory_order_relaxed); }

void add_to_profile(const Plan& plan, Clock::time_point begin, std::span<const RunTimer::Timed> timed) {
  std::lock_guard guard(lock);
  if (collected) collected->add(plan, begin, timed);
}

void add_copy_to_profile(const std::string& device, const std::string& what, size_t bytes, Clock::time_point begin) {
  std::lock_guard guard(lock);
  if (!collected) return;
  collected->add_copy({.ops = what, .sizes = std::to_string(bytes) + " bytes", .device = device}, begin);
}

detail::ProfileUnderWay::ProfileUnderWay() {
  std::lock_guard guard(lock);
  if (collected) {
    throw Error(ErrorKind::argument,
                "profile: there is one at a time; another one is under way; wait for that, or take both in one");
  }
  collected.emplace();
  under_way.store(true, std::memory_order_relaxed);
}

detail::ProfileUnderWay::~ProfileUnderWay() {
  std::lock_guard guard(lock);
  under_way.store(false, std::memory_order_relaxed);
  collected.reset();
}

Profile detail::ProfileUnderWay::finish() {
  std::lock_guard guard(lock);
  return collected->finish();
}

std::string to_string(const Profile& profile) {
  constexpr size_t most = 20, columns = 80, before_what = 39;
  double computing = 0, others = 0;
  for (const ProfileEntry& entry : profile.entries) computing += entry.seconds;
  std::string text = "profile of " + time_text(profile.seconds) + ": " + time_text(computing) + " in " +
                     std::to_string(profile.runs.size()) + " kernels and calls, " + time_text(profile.planning) +
                     " planning\n    time  share   runs     each  device what\n";
  for (size_t i = 0; i < profile.entries.size(); ++i) {
    const ProfileEntry& entry = profile.entries[i];
    if (i >= most) {
      others += entry.seconds;
      continue;
    }
    std::string line = in_column(time_text(entry.seconds), 8) + in_column(share_text(entry.seconds / computing), 7) +
                       in_column(std::to_string(entry.runs), 7) +
                       in_column(time_text(entry.seconds / static_cast<double>(entry.runs)), 9) + "  " + entry.device;
    line.resize(std::max(line.size() + 1, before_what + 1), ' ');
    text += line + what_of(entry, columns - line.size()) + "\n";
  }
  if (profile.entries.size() > most) {
    text += in_column(time_text(others), 8) + "  in " + std::to_string(profile.entries.size() - most) + " others\n";
  }
  return text;
}

void save_trace(const std::string& path, const Profile& profile) {
  const std::map<std::string, int> devices = devices_of(profile);
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char* between = "\n";
  for (const auto& [name, number] : devices) {
    text += between + ("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": " + std::to_string(number)) +
            ", \"args\": {\"name\": " + quoted(name) + "}}";
    between = ",\n";
  }
  for (const ProfileRun& run : profile.runs) {
    const ProfileEntry& entry = profile.entries[static_cast<size_t>(run.entry)];
    text += between + ("{\"ph\": \"X\", \"name\": " + quoted(entry.ops)) +
            ", \"pid\": " + std::to_string(devices.at(entry.device)) + ", \"tid\": " + std::to_string(run.thread) +
            ", \"ts\": ";
    append(text, run.begin * 1e6, 3);
    text += ", \"dur\": ";
    append(text, run.seconds * 1e6, 3);
    text += ", \"args\": {\"sizes\": " + quoted(entry.sizes) + "}}";
  }
  write_file_atomically(path, text + "\n]}\n");
}

}  // namespace rosin
