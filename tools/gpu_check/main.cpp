// gpu_check: what ./run gpu-check asks a built library. Needs nothing but the library. Read next: checks.hpp.
//   gpu_check devices             a line per device that works, one per back end that does not; status 3: no device
//   gpu_check names               the devices that work, as other programs take them: CUDA:0, one a line
//   gpu_check plugin DEVICE       the plug-in's file that is in use
//   gpu_check ops DEVICE [EVERY]  the table of ops on it, or each EVERYth, against the CPU; status 1: one differs
//   gpu_check facts DEVICE [MIB]  a line of JSON: what it is, its copies (of MIB, 1024) and graphs
//   gpu_check agree DEVICE KIND SIZES...     20 losses against the CPU's; status 1: they differ
//   gpu_check losses DEVICE KIND SIZES...    20 losses with all bits
//   gpu_check measure DEVICE KIND SIZES...   a line of JSON: measure.hpp
//   gpu_check classes             names of classes of kernels, one a line
//   gpu_check class DEVICE NAME   runs the kernels of a class once: kernel_classes.hpp
#include <rosin/diagnostics.hpp>
#include <rosin/rosin.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "checks.hpp"
#include "facts.hpp"
#include "json_line.hpp"
#include "kernel_classes.hpp"
#include "measure.hpp"

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

Status check_ops_on(const std::string& name, size_t every) {
  const BackendReport report = backend_report(name.substr(0, name.find(':')));
  const DeviceReport& device = found(report, name);
  const auto start = std::chrono::steady_clock::now();
  const gpu_check::Report result = gpu_check::check_ops(device.device, device.float64, every);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (const std::string& line : result.lines) std::printf("  %s\n", line.c_str());
  std::printf("ops on %s: %lld of %lld good in %.1f s\n", to_string(device.device).c_str(),
              static_cast<long long>(result.passed), static_cast<long long>(result.passed + result.failed),
              seconds.count());
  return result.failed ? differs : good;
}

Status show_plugin(const std::string& name) {
  const BackendReport report = backend_report(name.substr(0, name.find(':')));
  found(report, name);
  std::printf("%s\n", report.tried.back().path.c_str());
  return good;
}

Status show_facts(const std::string& name, const char* mebibytes) {
  const BackendReport report = backend_report(name.substr(0, name.find(':')));
  const DeviceReport& device = found(report, name);
  const uint64_t bytes = (mebibytes ? std::stoull(mebibytes) : 1024) << 20;
  const gpu_check::Facts facts = gpu_check::facts_of(report, device.device.id(), bytes);
  std::string libraries;
  for (const Capability& one : report.found) {
    libraries += (libraries.empty() ? "" : ", ") + one.name + " " + (one.reason.empty() ? one.version : one.reason);
  }
  gpu_check::JsonLine()
      .text("device", to_string(device.device))
      .text("driver", device.driver)
      .text("capability", device.capability)
      .text("libraries", libraries)
      .whole("memory", device.device.memory())
      .number("copy_tb_s", facts.copy_rate / 1e12)
      .number("graph_launch_us", facts.graph.launch * 1e6)
      .number("graph_update_us", facts.graph.update * 1e6)
      .number("graph_node_us", facts.graph.node * 1e6)
      .print();
  return good;
}

Status run_workload(const std::string& command, int count, char** words) {
  const Device device =
      found(backend_report(std::string(words[2]).substr(0, std::string(words[2]).find(':'))), words[2]).device;
  const std::vector<std::string> sizes(words + 4, words + count);
  if (command == "agree") return gpu_check::losses_agree(device, words[3], sizes) ? good : differs;
  if (command == "losses") gpu_check::print_losses(device, words[3], sizes);
  else gpu_check::measure(device, words[3], sizes);
  return good;
}

Status run_class(const std::string& device, const std::string& name) {
  gpu_check::run_kernel_class(found(backend_report(device.substr(0, device.find(':'))), device).device, name);
  return good;
}

Status list_classes() {
  for (const std::string& name : gpu_check::kernel_class_names()) std::printf("%s\n", name.c_str());
  return good;
}

Status run(int count, char** words) {
  const std::string command = count > 1 ? words[1] : "";
  if (count == 2 && command == "devices") return list(false);
  if (count == 2 && command == "names") return list(true);
  if (count == 3 && command == "plugin") return show_plugin(words[2]);
  if (count == 2 && command == "classes") return list_classes();
  if (count == 4 && command == "class") return run_class(words[2], words[3]);
  if (count >= 3 && command == "ops") return check_ops_on(words[2], count > 3 ? std::stoul(words[3]) : 1);
  if (count >= 3 && command == "facts") return show_facts(words[2], count > 3 ? words[3] : nullptr);
  const bool workload = command == "agree" || command == "losses" || command == "measure";
  if (count >= 4 && workload) return run_workload(command, count, words);
  std::fputs(
      "usage: gpu_check devices | names | plugin DEVICE | ops DEVICE [EVERY] | facts DEVICE [MIB] | agree, losses, "
      "measure DEVICE KIND SIZES... | classes | class DEVICE NAME\n",
      stderr);
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
