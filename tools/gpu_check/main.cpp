// gpu_check: what ./run gpu-check asks a built library. Needs nothing but the library. Read next: checks.hpp.
//   gpu_check devices             a line per device that works, one per back end that does not; status 3: no device
//   gpu_check names               the devices that work, as other programs take them: CUDA:0, one a line
//   gpu_check ops DEVICE          the table of ops on it, against the CPU; status 1: something differs
#include <rosin/diagnostics.hpp>
#include <rosin/rosin.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include "checks.hpp"

namespace {

using namespace rosin;

enum Status { good = 0, differs = 1, misused = 2, no_device = 3 };

std::string short_name(const Device& device) {
  return std::string(device.backend()) + ":" + std::to_string(device.id());
}

void say_reason(const BackendReport& report) {
  std::printf("%s: not functional; %s\n", report.backend.c_str(), report.reason.c_str());
}

void say(const BackendReport& report, const DeviceReport& each) {
  const double gib = static_cast<double>(each.device.memory()) / static_cast<double>(int64_t{1} << 30);
  std::printf("%s, %.1f GiB, %s%s%s, Float64: %s, back end %s\n", to_string(each.device).c_str(), gib,
              each.driver.c_str(), each.capability.empty() ? "" : ", ", each.capability.c_str(),
              each.float64 ? "yes" : "no", report.version.c_str());
}

Status list(bool names_only) {
  Status status = no_device;
  for (const std::string& backend : supported_gpu_backends()) {
    const BackendReport report = backend_report(backend);
    if (report.devices.empty() && !names_only) say_reason(report);
    for (const DeviceReport& each : report.devices) {
      status = good;
      if (names_only) std::printf("%s\n", short_name(each.device).c_str());
      else say(report, each);
    }
  }
  return status;
}

/// "CUDA:1", or "CUDA" for its first one. Error: there is no such device.
const DeviceReport& found(const BackendReport& report, const std::string& name) {
  const size_t colon = name.find(':');
  const size_t id = colon == std::string::npos ? 0 : std::stoul(name.substr(colon + 1));
  if (id < report.devices.size()) return report.devices[id];
  throw Error(ErrorKind::device, "ops: there is no device " + name + "; " + report.reason);
}

Status check_ops_on(const std::string& name) {
  const BackendReport report = backend_report(name.substr(0, name.find(':')));
  const DeviceReport& device = found(report, name);
  const auto start = std::chrono::steady_clock::now();
  const gpu_check::Report result = gpu_check::check_ops(device.device, device.float64);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (const std::string& line : result.lines) std::printf("  %s\n", line.c_str());
  std::printf("ops on %s: %lld of %lld good in %.1f s\n", to_string(device.device).c_str(),
              static_cast<long long>(result.passed), static_cast<long long>(result.passed + result.failed),
              seconds.count());
  return result.failed ? differs : good;
}

Status run(int count, char** words) {
  const std::string command = count > 1 ? words[1] : "";
  if (count == 2 && command == "devices") return list(false);
  if (count == 2 && command == "names") return list(true);
  if (count == 3 && command == "ops") return check_ops_on(words[2]);
  std::fputs("usage: gpu_check devices | names | ops DEVICE\n", stderr);
  return misused;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_check: %s\n", error.what());
    return differs;
  }
}
