// See plugin.hpp.
#include "devices/plugin.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/environment.hpp"
#include "base/nearest.hpp"
#include "devices/plugin_host.hpp"
#include "devices/plugin_record.hpp"
#include "platform/libraries.hpp"
#include "platform/paths.hpp"

namespace rosin {
namespace {

constexpr std::string_view file_prefix = "librosin_";
constexpr std::string_view transport_prefix = "comm_";  // librosin_comm_mpi.so is none of a device; see comm.h

/// What every plug-in must offer, with the names for messages.
std::string missing_function(const rosin_backend& b) {
  const std::pair<const char*, bool> needed[] = {{"error_text", b.error_text != nullptr},
                                                 {"device_count", b.device_count != nullptr},
                                                 {"device_info", b.device_info != nullptr},
                                                 {"open", b.open != nullptr},
                                                 {"close", b.close != nullptr},
                                                 {"alloc", b.alloc != nullptr},
                                                 {"release", b.release != nullptr},
                                                 {"alloc_pinned", b.alloc_pinned != nullptr},
                                                 {"release_pinned", b.release_pinned != nullptr},
                                                 {"stream_create", b.stream_create != nullptr},
                                                 {"stream_destroy", b.stream_destroy != nullptr},
                                                 {"stream_sync", b.stream_sync != nullptr},
                                                 {"event_create", b.event_create != nullptr},
                                                 {"event_destroy", b.event_destroy != nullptr},
                                                 {"event_record", b.event_record != nullptr},
                                                 {"event_query", b.event_query != nullptr},
                                                 {"event_sync", b.event_sync != nullptr},
                                                 {"stream_wait", b.stream_wait != nullptr},
                                                 {"copy_in", b.copy_in != nullptr},
                                                 {"copy_out", b.copy_out != nullptr},
                                                 {"copy", b.copy != nullptr},
                                                 {"compile", b.compile != nullptr},
                                                 {"free_bytes", b.free_bytes != nullptr},
                                                 {"load", b.load != nullptr},
                                                 {"unload", b.unload != nullptr},
                                                 {"kernel", b.kernel != nullptr},
                                                 {"launch", b.launch != nullptr}};
  for (const auto& [name, there] : needed) {
    if (!there) return name;
  }
  return {};
}

/// Why the table of functions cannot be used; empty when it can.
std::string fault_of(const rosin_backend* b, std::string_view backend) {
  if (!b)
    return "is made for another version of rosin (this one has back-end ABI " + std::to_string(ROSIN_BACKEND_ABI) +
           "); rebuild or reinstall it";
  if (b->abi != ROSIN_BACKEND_ABI)
    return "has back-end ABI " + std::to_string(b->abi) + ", rosin has " + std::to_string(ROSIN_BACKEND_ABI) +
           "; rebuild or reinstall it";
  if (b->size < ROSIN_BACKEND_SMALLEST) {
    return "has a table of " + std::to_string(b->size) + " bytes, which ends before the last function that every " +
           "plug-in has (at least " + std::to_string(ROSIN_BACKEND_SMALLEST) + " bytes are needed); rebuild it";
  }
  if (!b->name || !equal_without_case(b->name, backend)) {
    return std::string("says that it is the back end ") + (b->name ? b->name : "(none)") + ", not " +
           std::string(backend);
  }
  const std::string missing = missing_function(*b);
  return missing.empty() ? std::string() : "lacks the function " + missing;
}

std::string text_of(const rosin_backend& functions, const char* otherwise) {
  const char* text = functions.error_text();
  return text && *text ? text : otherwise;
}

}  // namespace

std::string count_devices(const rosin_backend& functions, int& count) {
  int32_t counted = 0;
  try {
    if (functions.device_count(&counted) != ROSIN_OK) return text_of(functions, "the driver gives no reason");
  } catch (const std::exception& error) {
    return std::string("threw an exception when asked for its devices: ") + error.what();
  } catch (...) {
    return "threw an exception when asked for its devices";
  }
  if (counted <= 0) return text_of(functions, "there is no such device");
  count = counted;
  return {};
}

std::vector<Capability> capabilities_of(const rosin_backend& functions) {
  const rosin_capability* list = nullptr;
  uint32_t count = 0;
  if (!functions.capabilities || functions.capabilities(&list, &count) != ROSIN_OK) return {};
  std::vector<Capability> found;
  for (uint32_t i = 0; i < count; ++i) {
    found.push_back({list[i].name, list[i].version, list[i].reason ? list[i].reason : ""});
  }
  return found;
}

std::string plugin_file_name(std::string_view backend) {
  std::string name(backend);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::string(file_prefix).append(name).append(platform::library_suffix);
}

std::string name_in_plugin_file(std::string_view file) {
  const std::string_view suffix = platform::library_suffix;
  if (!file.starts_with(file_prefix) || !file.ends_with(suffix)) return {};
  file.remove_prefix(file_prefix.size());
  if (file.size() <= suffix.size()) return {};
  file.remove_suffix(suffix.size());
  if (file.starts_with(transport_prefix)) return {};
  const auto belongs = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return std::all_of(file.begin(), file.end(), belongs) ? std::string(file) : std::string();
}

std::string installed_plugin_folder() {
  std::error_code ignored;
  const std::filesystem::path file = platform::path_of(platform::file_of_this_library());
  return platform::name_of((std::filesystem::absolute(file, ignored).parent_path() / "rosin").lexically_normal());
}

std::vector<std::string> plugin_search_folders() {
  std::vector<std::string> folders = plugin_folders();
  folders.push_back(installed_plugin_folder());
  return folders;
}

bool has_plugin_file(const std::string& file) {
  if (name_in_plugin_file(file).empty()) return false;
  const std::vector<std::string> folders = plugin_search_folders();
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return platform::is_there(folder + "/" + file); });
}

std::vector<std::string> names_of_plugin_files() {
  std::set<std::string> names;
  for (const std::string& folder : plugin_search_folders()) {
    std::error_code failed;
    for (std::filesystem::directory_iterator entry(platform::path_of(folder), failed), end; !failed && entry != end;
         entry.increment(failed)) {
      std::string name = name_in_plugin_file(platform::name_of(entry->path().filename()));
      if (!name.empty()) names.insert(std::move(name));
    }
  }
  return {names.begin(), names.end()};
}

const rosin_backend* load_plugin_file(const std::string& path, std::string_view backend, std::string& reason) {
  void* library = platform::open_library(path, reason);
  if (!library) return nullptr;
  auto* open = reinterpret_cast<rosin_backend_open_function>(platform::library_function(library, "rosin_backend_open"));
  if (!open) {
    reason = "is no plug-in of rosin: it has no function rosin_backend_open";
    return nullptr;
  }
  const rosin_backend* functions = nullptr;
  try {
    functions = open(ROSIN_BACKEND_ABI);
  } catch (...) {
    reason = "threw an exception in rosin_backend_open";
    return nullptr;
  }
  reason = fault_of(functions, backend);
  if (!reason.empty()) return nullptr;
  functions = whole_table(*functions);
  if (functions->attach) functions->attach(&host_for(*functions));
  return functions;
}

Plugin load_plugin(std::string_view backend) {
  Plugin plugin;
  plugin.backend = backend;
  plugin.file = plugin_file_name(backend);
  std::string not_in;
  for (const std::string& folder : plugin_search_folders()) {
    PluginAttempt& attempt = plugin.attempts.emplace_back();
    attempt.path = folder + "/" + plugin.file;
    if (!platform::is_there(attempt.path)) {
      attempt.reason = "not there";
      not_in.append(not_in.empty() ? "" : ", ").append(folder);
    } else if (crashed_in_last_probe(attempt.path)) {
      attempt.reason = "crashed when it was probed last; \"rosin devices\" probes it again";
    } else {
      plugin.functions = load_plugin_file(attempt.path, backend, attempt.reason);
    }
    if (plugin.functions) break;
    if (attempt.reason != "not there")
      plugin.reason.append(plugin.reason.empty() ? "" : "; ").append(attempt.path + ": " + attempt.reason);
  }
  if (plugin.functions) plugin.reason.clear();
  else if (plugin.reason.empty()) plugin.reason = plugin.file + ": not in " + not_in;
  return plugin;
}

}  // namespace rosin
