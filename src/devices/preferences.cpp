// What the keys of the preference file mean. [rosin] is ours: what is wrong there is an error or a warning about a
// name; the other tables belong to other programs, and what rosin cannot use in them is passed over with one warning.
#include "devices/preferences.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <rosin/device.hpp>
#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "base/environment.hpp"
#include "base/nearest.hpp"
#include "devices/preference_file.hpp"
#include "devices/toml_text.hpp"

namespace rosin {
namespace {

constexpr const char* own_table = "rosin";
constexpr std::array<const char*, 5> tables = {own_table, "MLDataDevices", "Flux", "Lux", "LuxDeviceUtils"};
constexpr const char* gpu_backend_key = "gpu_backend";
constexpr const char* autoload_key = "autoload";
constexpr const char* mpi_gpu_aware_key = "mpi_gpu_aware";
constexpr std::array<std::string_view, 3> own_keys = {gpu_backend_key, autoload_key, mpi_gpu_aware_key};

/// The entries of the preference file; none where there is no file.
class Preferences {
 public:
  Preferences() {
    const std::optional<std::string> file = preference_file();
    if (!file) return;
    path_ = *file;
    if (!can_read_toml()) {
      warn_once("unread-preferences", "preferences: this build has no TOML reader; " + path_ +
                                          " is not read; install toml++ (Debian: libtomlplusplus-dev) and build rosin "
                                          "again");
      return;
    }
    entries_ = toml_entries(path_, preference_text(path_));
    check_own_table();
  }

  /// The entry if it is there and of this type. In [rosin] another type is an error, elsewhere it is passed over.
  const TomlEntry* find(std::string_view table, std::string_view key, std::string_view type) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const TomlEntry& entry) { return entry.table == table && entry.key == key; });
    if (found == entries_.end()) return nullptr;
    if (found->type == type) return &*found;
    const std::string rule = std::string(key) + " in [" + found->table + "] must be a " + std::string(type);
    if (table == own_table) fail(*found, rule + "; got a value of type " + found->type + "; correct the line");
    pass_over(*found, rule + "; got a value of type " + found->type);
    return nullptr;
  }

  Preference preference(const TomlEntry& entry) const { return {entry.text, path_, entry.line, entry.table}; }

  void pass_over(const TomlEntry& entry, const std::string& why) const {
    warn_once("foreign-preference", place(entry) + why + "; the line is passed over", path_ + "\n" + entry.table);
  }

 private:
  std::string place(const TomlEntry& entry) const {
    return "preferences: " + path_ + ":" + std::to_string(entry.line) + ": ";
  }

  [[noreturn]] void fail(const TomlEntry& entry, const std::string& what) const {
    throw Error(ErrorKind::argument, place(entry) + what);
  }

  void check_own_table() const {
    for (const TomlEntry& entry : entries_) {
      if (entry.table.empty() && entry.key == own_table) {
        fail(entry, "rosin must be a table; got a value of type " + entry.type + "; write [rosin]");
      }
      if (entry.table != own_table || std::count(own_keys.begin(), own_keys.end(), entry.key) > 0) continue;
      std::string text = place(entry) + "rosin reads no key " + entry.key;
      const std::string_view meant = nearest_name(entry.key, own_keys);
      if (!meant.empty()) text.append("; did you mean ").append(meant).append("?");
      warn_once("unknown-preference", text, path_ + "\n" + entry.key);
    }
  }

  std::string path_;
  std::vector<TomlEntry> entries_;
};

bool names_backend(const std::string& value) {
  const std::vector<std::string>& names = supported_devices();
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return equal_without_case(name, value); });
}

}  // namespace

std::optional<Preference> gpu_backend_preference() {
  if (std::optional<std::string> asked = environment(Setting::gpu_backend)) {
    return Preference{std::move(*asked), {}, 0, "ROSIN_GPU_BACKEND"};
  }
  const Preferences preferences;
  for (const char* table : tables) {
    const TomlEntry* entry = preferences.find(table, gpu_backend_key, "string");
    if (!entry) continue;
    if (table == own_table || names_backend(entry->text)) return preferences.preference(*entry);
    preferences.pass_over(*entry, "gpu_backend = \"" + entry->text + "\" in [" + table + "] is no back end of rosin");
  }
  return std::nullopt;
}

void write_gpu_backend_preference(std::optional<std::string_view> backend) {
  write_preference(gpu_backend_key, backend);
}

bool autoload_preference() {
  if (const std::optional<bool> asked = environment_switch(Setting::autoload)) return *asked;
  const Preferences preferences;
  const TomlEntry* entry = preferences.find(own_table, autoload_key, "boolean");
  return !entry || entry->text == "true";
}

bool mpi_gpu_aware_preference() {
  if (const std::optional<bool> asked = environment_switch(Setting::mpi_gpu_aware)) return *asked;
  const Preferences preferences;
  const TomlEntry* entry = preferences.find(own_table, mpi_gpu_aware_key, "boolean");
  if (!entry) entry = preferences.find("Flux", "FluxDistributedMPICUDAAware", "boolean");
  return entry && entry->text == "true";
}

void write_mpi_gpu_aware_preference(bool aware) { write_preference(mpi_gpu_aware_key, aware); }

}  // namespace rosin
