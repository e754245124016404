// Plug-ins: found beside librosin and on ROSIN_PLUGIN_PATH, loaded once, asked for their devices once. What went wrong
// is kept as text, path by path. Read first: include/rosin/backend.h. Read next: plugin.cpp, plugin_table.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/backend.h>
#include <rosin/diagnostics.hpp>

namespace rosin {

/// One file that was tried, and why it could not be used; the reason is empty for the one that is.
struct PluginAttempt {
  std::string path;
  std::string reason;
};

struct Plugin {
  std::string backend;                                  // "CUDA": of one that is not known, as it calls itself
  std::string file;                                     // "librosin_cuda.so"
  std::vector<PluginAttempt> attempts;                  // in the order of the search
  const rosin_backend* functions = nullptr;             // null: not loaded
  std::optional<std::vector<Capability>> capabilities;  // PluginTable asks when they are wanted
  std::vector<int> positions;                           // of its devices, by id, in the table of all devices
  std::string reason;                                   // why it is not functional; empty: it is
};

/// "librosin_cuda.so" of "CUDA".
std::string plugin_file_name(std::string_view backend);
/// "cuda" of "librosin_cuda.so"; empty where the file has no name of a plug-in (letters, digits and underscores), or is
/// a transport, librosin_comm_<name>.so.
std::string name_in_plugin_file(std::string_view file);
/// The folder beside librosin in which plug-ins are installed.
std::string installed_plugin_folder();
/// All folders in which plug-ins are looked for, in order.
std::vector<std::string> plugin_search_folders();

/// Whether one of those folders has a plug-in's file of that name.
bool has_plugin_file(const std::string& file);
/// The names in all plug-in files there, sorted; nothing is opened.
std::vector<std::string> names_of_plugin_files();

/// Looks for the plug-in of a back end and loads it. Never throws but for lack of memory.
Plugin load_plugin(std::string_view backend);
/// The functions of one file, or null with the reason.
const rosin_backend* load_plugin_file(const std::string& path, std::string_view backend, std::string& reason);
/// What a plug-in found beside its driver, once it has counted its devices.
std::vector<Capability> capabilities_of(const rosin_backend& functions);
/// Asks a plug-in how many devices it has; the reason why there are none.
std::string count_devices(const rosin_backend& functions, int& count);

}  // namespace rosin
