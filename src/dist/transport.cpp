// See transport.hpp.
#include "dist/transport.hpp"

#include <cctype>
#include <utility>

#include <rosin/error.hpp>

#include "devices/plugin.hpp"
#include "platform/libraries.hpp"
#include "platform/paths.hpp"

namespace rosin::distributed {
namespace {

constexpr size_t smallest_table = offsetof(rosin_comm_transport, takes_devices);

/// Why the table cannot be used; empty when it can.
std::string fault_of(const rosin_comm_transport* t) {
  if (!t || t->abi != ROSIN_COMM_ABI || t->size < smallest_table) {
    return "is made for another version of rosin (this one has transport ABI " + std::to_string(ROSIN_COMM_ABI) +
           "); rebuild or reinstall it";
  }
  const std::pair<const char*, bool> needed[] = {{"error_text", t->error_text != nullptr},
                                                 {"join", t->join != nullptr},
                                                 {"world", t->world != nullptr},
                                                 {"leave", t->leave != nullptr},
                                                 {"place", t->place != nullptr},
                                                 {"run", t->run != nullptr},
                                                 {"abort", t->abort != nullptr}};
  for (const auto& [name, there] : needed) {
    if (!there) return std::string("lacks the function ") + name;
  }
  return {};
}

const rosin_comm_transport* load_file(const std::string& path, std::string& reason) {
  void* library = platform::open_library(path, reason);
  if (!library) return nullptr;
  auto* open = reinterpret_cast<rosin_comm_open_function>(platform::library_function(library, "rosin_comm_open"));
  if (!open) {
    reason = "is no transport of rosin: it has no function rosin_comm_open";
    return nullptr;
  }
  const rosin_comm_transport* functions = open(ROSIN_COMM_ABI);
  reason = fault_of(functions);
  return reason.empty() ? functions : nullptr;
}

}  // namespace

std::string transport_file_name(std::string_view transport) {
  std::string name = "librosin_comm_";
  for (const char c : transport) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.append(platform::library_suffix);
}

const rosin_comm_transport& load_transport(std::string_view transport) {
  const std::string file = transport_file_name(transport);
  std::string searched, reasons;
  for (const std::string& folder : plugin_search_folders()) {
    const std::string path = folder + "/" + file;
    if (!platform::is_there(path)) {
      searched.append(searched.empty() ? "" : ", ").append(folder);
      continue;
    }
    std::string reason;
    if (const rosin_comm_transport* functions = load_file(path, reason)) return *functions;
    reasons.append(reasons.empty() ? "" : "; ").append(path + ": " + reason);
  }
  throw Error(ErrorKind::distributed, "initialize: the transport " + std::string(transport) +
                                          " must be installed beside librosin; " +
                                          (reasons.empty() ? file + " is not in " + searched : reasons) +
                                          "; reinstall rosin, or name the folder in ROSIN_PLUGIN_PATH");
}

}  // namespace rosin::distributed
