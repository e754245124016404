// The command `rosin devices`: every back end, its plug-in files, its devices, and a brief self-test of each.
#include <rosin/device.hpp>

#include "commands.hpp"
#include "selftest.hpp"
#include "survey.hpp"
#include "text.hpp"

namespace command {
namespace {

constexpr size_t indent = 12;

/// A device with the result of its self-test.
struct Tested {
  const rosin::DeviceReport* report;
  DeviceResult result;
};

void print_device(const Tested& device, bool verbose) {
  const rosin::DeviceReport& report = *device.report;
  std::string facts = report.device.name() + ": " + bytes_text(static_cast<uint64_t>(report.device.memory()));
  if (!report.capability.empty()) facts += ", " + report.capability;
  if (!report.pci.empty()) facts += ", PCI " + report.pci;
  facts += report.float64 ? ", Float64" : ", no Float64";
  say("  " + device.result.device, indent, printable(facts));
  if (!report.driver.empty()) say({}, indent, printable("driver " + report.driver));
  for (const rosin::DeviceFact& fact : verbose ? report.facts : std::vector<rosin::DeviceFact>()) {
    say({}, indent, printable(fact.name + ": " + fact.value));
  }
  std::string names;
  for (const CheckResult& check : device.result.checks) {
    names += (names.empty() ? "" : ", ") + check.name;
    if (check.outcome == Outcome::failed) {
      names += " FAILED (" + (check.reason.empty() ? figures_text(check) : check.reason) + ")";
    }
  }
  const std::string head = device.result.ok() ? "self-test OK: " : "self-test FAILED: ";
  if (!device.result.trouble.empty()) names += (names.empty() ? "" : "; ") + device.result.trouble;
  say({}, indent, printable(head + names + " (" + duration_text(device.result.milliseconds()) + ")"));
}

void print_backend(const Survey& found, const std::vector<Tested>& devices, bool verbose) {
  const rosin::BackendReport& report = found.report;
  const bool works = report.reason.empty();
  say(report.backend, indent, works ? "works: " + count_text(devices.size(), "device") : "not functional");
  for (const rosin::TriedFile& tried : report.tried) {
    if (tried.reason.empty()) say("  plug-in", indent, tried.path);
    else say("  tried", indent, printable(tried.path + ": " + tried.reason));
  }
  if (!report.version.empty()) say({}, indent, printable(report.version));
  for (const rosin::Capability& one : report.found) {
    if (one.reason.empty()) say("  with", indent, printable(one.name + " " + one.version));
    else say("  without", indent, printable(one.name + ": " + one.reason));
  }
  if (!works && has_plugin(report)) say("  reason", indent, printable(report.reason));
  for (const Tested& device : devices) print_device(device, verbose);
  say("");
}

Json json_of(const Tested& device) {
  const rosin::DeviceReport& report = *device.report;
  Json facts = Json::object();
  for (const rosin::DeviceFact& fact : report.facts) facts[fact.name] = fact.value;
  return {{"device", device.result.device},    {"hardware", report.device.name()}, {"memory", report.device.memory()},
          {"driver", report.driver},           {"capability", report.capability},  {"pci", report.pci},
          {"float64", report.float64},         {"gpu", report.device.is_gpu()},    {"facts", facts},
          {"selftest", json_of(device.result)}};
}

Json json_of(const Survey& found, const std::vector<Tested>& devices) {
  Json tried = Json::array(), rows = Json::array(), capabilities = Json::array();
  for (const rosin::Capability& one : found.report.found) {
    capabilities.push_back({{"name", one.name}, {"version", one.version}, {"reason", one.reason}});
  }
  for (const rosin::TriedFile& file : found.report.tried) {
    tried.push_back({{"path", file.path}, {"reason", file.reason}});
  }
  for (const Tested& device : devices) rows.push_back(json_of(device));
  return {{"backend", found.report.backend},
          {"functional", found.report.reason.empty()},
          {"reason", found.report.reason},
          {"crashed", found.crashed},
          {"version", found.report.version},
          {"found", capabilities},
          {"tried", tried},
          {"devices", rows}};
}

}  // namespace

Status show_devices(const std::vector<std::string>& backends, const Style& style) {
  Json all = Json::array();
  bool ok = true;
  for (const std::string& name : backends.empty() ? rosin::supported_devices() : backends) {
    const Survey found = survey(name, style.limit);
    ok = ok && !found.crashed && (backends.empty() || found.report.reason.empty());
    std::vector<Tested> devices;
    for (const rosin::DeviceReport& report : found.report.devices) {
      devices.push_back({&report, test_device(report.device, true, style.limit)});
      ok = ok && devices.back().result.ok();
    }
    if (style.json) all.push_back(json_of(found, devices));
    else print_backend(found, devices, style.verbose);
  }
  if (style.json) print_json({{"rosin", rosin::library_report().version}, {"ok", ok}, {"backends", all}});
  return ok ? all_fine : not_functional;
}

}  // namespace command
