// See survey.hpp.
#include "survey.hpp"

#include <unistd.h>

#include <algorithm>

#include "child.hpp"
#include "commands.hpp"

namespace command {
namespace {

/// How the probe of a file crashed; empty: it did not. `loaded`: it is a plug-in.
std::string crash_of(const std::string& path, double seconds, bool& loaded) {
  const ChildResult child = run_self({"probe", path}, seconds);
  const Json result = Json::parse(child.output, nullptr, false);
  loaded = child.trouble.empty() && result.is_object() && result.value("loaded", false);
  if (!child.trouble.empty()) return child.trouble;
  return result.is_object() ? std::string() : "ended the process before it had answered";
}

}  // namespace

std::vector<rosin::TriedFile> probe_files(std::string_view backend, double seconds) {
  std::vector<rosin::TriedFile> crashed;
  for (const std::string& path : rosin::detail::plugin_files(backend)) {
    if (access(path.c_str(), F_OK) != 0) continue;
    bool loaded = false;
    const std::string crash = crash_of(path, seconds, loaded);
    rosin::detail::note_probe(path, !crash.empty());
    if (!crash.empty()) crashed.push_back({path, crash});
    if (loaded) break;
  }
  return crashed;
}

Survey survey(const std::string& backend, double seconds) {
  const auto crashed = as_usage([&] { return probe_files(backend, seconds); });
  Survey result{rosin::backend_report(backend), !crashed.empty()};
  for (const rosin::TriedFile& crash : crashed) {
    for (rosin::TriedFile& tried : result.report.tried) {
      if (tried.path == crash.path) tried.reason = crash.reason;
    }
    if (!has_plugin(result.report)) result.report.reason = crash.path + ": " + crash.reason;
  }
  return result;
}

bool has_plugin(const rosin::BackendReport& report) {
  return !report.tried.empty() && report.tried.back().reason.empty();
}

std::string name_of(const rosin::Device& device) {
  const std::string backend(device.backend());
  return device.position() == 0 ? backend : backend + ":" + std::to_string(device.id());
}

Status probe(const std::string& file) {
  const int answers = take_stdout();
  const rosin::detail::PluginProbe probe = rosin::detail::probe_plugin(file);
  const Json json = {
      {"loaded", probe.loaded}, {"reason", probe.reason}, {"version", probe.version}, {"devices", probe.devices}};
  write_line(answers, json.dump(-1, ' ', false, Json::error_handler_t::replace));
  return all_fine;
}

}  // namespace command
