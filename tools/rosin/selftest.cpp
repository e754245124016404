// See selftest.hpp; and the command `rosin selftest`.
#include "selftest.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "child.hpp"
#include "survey.hpp"
#include "text.hpp"

namespace command {
namespace {

constexpr double test_to_probe = 10;  // a self-test may take that much longer than a probe: it compiles kernels
constexpr const char* outcome_names[] = {"ok", "failed", "left out"};

Json json_of(const CheckResult& result) {
  return {{"name", result.name},    {"outcome", outcome_names[static_cast<int>(result.outcome)]},
          {"error", result.error},  // null where it is infinite
          {"bound", result.bound},  {"milliseconds", result.milliseconds},
          {"reason", result.reason}};
}

CheckResult result_of(const Json& json) {
  const auto* name = std::find(std::begin(outcome_names), std::end(outcome_names), json.at("outcome"));
  const double error = json.at("error").is_null() ? HUGE_VAL : json.at("error").get<double>();
  return {json.at("name"),
          static_cast<Outcome>(name - std::begin(outcome_names)),
          error,
          json.at("bound"),
          json.at("milliseconds"),
          json.at("reason")};
}

/// The checks that run on a device, in their order.
std::vector<const Check*> checks_of(bool brief) {
  std::vector<const Check*> chosen;
  for (const Check& check : all_checks()) {
    if (check.brief || !brief) chosen.push_back(&check);
  }
  return chosen;
}

/// A device as the user or a parent process writes it: "CUDA", "CUDA:1".
struct DeviceName {
  std::string backend;
  int id = -1;  // all of the back end
};

DeviceName parsed(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {text};
  DeviceName name{text.substr(0, colon)};
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, name.id);
  if (error == std::errc() && last == end && name.id >= 0) return name;
  throw UsageError{"--device: takes a back end, as CUDA, or one of its devices, as CUDA:0; got \"" + text + "\""};
}

/// The devices that are meant; makes sure that their plug-ins can be loaded. Error (device): there is none.
std::vector<rosin::Device> devices_of(const std::string& text, double seconds) {
  std::vector<rosin::Device> devices;
  if (text.empty()) {
    for (const std::string& backend : rosin::supported_devices()) {
      for (const auto& report : survey(backend, seconds).report.devices) devices.push_back(report.device);
    }
    return devices;
  }
  const DeviceName name = parsed(text);
  const Survey found = survey(name.backend, seconds);
  if (found.report.devices.empty()) {
    throw rosin::Error(rosin::ErrorKind::device,
                       "selftest: " + found.report.backend + " is not functional; " + found.report.reason);
  }
  if (name.id >= 0) return {rosin::get_device(name.backend, name.id)};
  for (const auto& report : found.report.devices) devices.push_back(report.device);
  return devices;
}

void print_check(const CheckResult& check) {
  constexpr size_t indent = 24;
  std::string head = "  " + check.name;
  head.resize(14, ' ');
  if (check.outcome == Outcome::left_out) return say(head + "left out", indent, check.reason);
  const bool ok = check.outcome == Outcome::ok;
  std::string figures = check.reason;
  if (figures.empty()) {
    figures = figures_text(check) + "; " + duration_text(check.milliseconds);
  }
  say(head + (ok ? "OK" : "FAILED"), indent, figures);
}

void print_result(const DeviceResult& result) {
  say(result.device + " (" + result.hardware + ")");
  for (const CheckResult& check : result.checks) print_check(check);
  if (!result.trouble.empty()) say("  FAILED", 14, result.trouble);
  const auto count = [&](Outcome outcome) {
    return std::count_if(result.checks.begin(), result.checks.end(),
                         [outcome](const CheckResult& check) { return check.outcome == outcome; });
  };
  const auto good = count(Outcome::ok), of = good + count(Outcome::failed) + (result.trouble.empty() ? 0 : 1);
  say({}, 2, std::to_string(good) + " of " + std::to_string(of) + " checks OK");
  say("");
}

}  // namespace

std::string figures_text(const CheckResult& check) {
  if (check.bound == 0) return check.error == 0 ? "exact" : "error " + number_text(check.error) + ", must be exact";
  return "error " + number_text(check.error) + ", at most " + number_text(check.bound);
}

bool DeviceResult::ok() const {
  return trouble.empty() && std::none_of(checks.begin(), checks.end(),
                                         [](const CheckResult& check) { return check.outcome == Outcome::failed; });
}

double DeviceResult::milliseconds() const {
  double total = 0;
  for (const CheckResult& check : checks) total += check.milliseconds;
  return total;
}

DeviceResult test_device(const rosin::Device& device, bool brief, double seconds) {
  DeviceResult result{name_of(device), device.name(), {}, {}};
  std::vector<std::string> arguments = {"check", result.device};
  if (brief) arguments.emplace_back("--brief");
  ChildResult child = run_self(arguments, seconds * test_to_probe);
  std::istringstream lines(child.output);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) result.checks.push_back(result_of(json));
  }
  const std::vector<const Check*> checks = checks_of(brief);
  if (child.trouble.empty() && result.checks.size() != checks.size()) child.trouble = "ended before its end";
  if (!child.trouble.empty()) {
    const size_t done = std::min(result.checks.size(), checks.size() - 1);
    result.trouble = "the self-test " + child.trouble + " (in " + checks[done]->name + ")";
  }
  return result;
}

Json json_of(const DeviceResult& result) {
  Json checks = Json::array();
  for (const CheckResult& check : result.checks) checks.push_back(json_of(check));
  return {{"device", result.device},
          {"hardware", result.hardware},
          {"ok", result.ok()},
          {"trouble", result.trouble},
          {"checks", checks}};
}

Status self_test(const std::string& device, const Style& style) {
  Json all = Json::array();
  bool ok = true;
  for (const rosin::Device& each : devices_of(device, style.limit)) {
    const DeviceResult result = test_device(each, false, style.limit);
    ok = ok && result.ok();
    if (style.json) all.push_back(json_of(result));
    else print_result(result);
  }
  if (style.json) print_json({{"ok", ok}, {"devices", all}});
  return ok ? all_fine : not_functional;
}

Status check(const std::string& device, bool brief) {
  const int answers = take_stdout();
  const DeviceName name = parsed(device);
  const rosin::BackendReport report = rosin::backend_report(name.backend);
  const auto id = static_cast<size_t>(std::max(name.id, 0));
  if (id >= report.devices.size()) throw rosin::Error(rosin::ErrorKind::device, "check: " + report.reason);
  const rosin::DeviceReport& one = report.devices[id];
  for (const Check* each : checks_of(brief)) {
    const Json json = json_of(run_check(*each, one.device, one.float64));
    write_line(answers, json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return all_fine;
}

}  // namespace command
