// See libraries.hpp.
#include "driver/libraries.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace rosin::driver {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t end = std::min(list.find(':'), list.size());
    if (end > 0) parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

void add_folder(std::vector<std::string>& folders, const fs::path& folder) {
  std::error_code ignored;
  if (!folder.is_absolute() || !fs::is_directory(folder, ignored)) return;
  if (std::find(folders.begin(), folders.end(), folder.string()) == folders.end()) folders.push_back(folder.string());
}

/// Folders inside `folder`, sorted.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// NAME/lib and NAME/*/lib of the packages below a prefix of Python: PREFIX/lib/python3*/{site,dist}-packages.
void add_packages(std::vector<std::string>& folders, const char* name, const fs::path& prefix) {
  if (!prefix.is_absolute()) return;
  for (const fs::path& python : folders_in(prefix / "lib")) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const char* kind : {"site-packages", "dist-packages"}) {
      add_folder(folders, python / kind / name / "lib");
      for (const fs::path& package : folders_in(python / kind / name)) add_folder(folders, package / "lib");
    }
  }
}

/// The prefix of the python3 that a shell would start.
fs::path python_prefix() {
  for (const std::string& folder : split(variable("PATH"))) {
    std::error_code failed;
    const fs::path program = fs::canonical(fs::path(folder) / "python3", failed);
    if (!failed) return program.parent_path().parent_path();
  }
  return {};
}

std::vector<std::string> own_folders(const Places& places) {
  std::vector<std::string> folders;
  for (const std::string& folder : split(variable(places.variable))) add_folder(folders, folder);
  return folders;
}

std::vector<std::string> toolkit_folders(const Places& places) {
  std::vector<std::string> folders;
  for (const char* name : places.toolkits) {
    if (!variable(name).empty()) add_folder(folders, fs::path(variable(name)) / places.inside);
  }
  add_folder(folders, places.usual);
  if (!variable("VIRTUAL_ENV").empty()) add_packages(folders, places.package, variable("VIRTUAL_ENV"));
  add_packages(folders, places.package, python_prefix());
  if (!variable("HOME").empty()) add_packages(folders, places.package, fs::path(variable("HOME")) / ".local");
  add_packages(folders, places.package, "/usr/local");
  add_packages(folders, places.package, "/usr");
  return folders;
}

/// dlopen, where a file that is there and cannot be loaded is worth a reason of its own.
void* try_open(const std::string& path, std::string& reason) {
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* said = dlerror();
  std::error_code ignored;
  if (said && fs::exists(path, ignored)) reason = said;
  return nullptr;
}

/// What is wrong with the folder that the variable names, or nothing.
std::string trouble_with(const fs::path& folder) {
  std::error_code ignored;
  if (!folder.is_absolute()) return "is not absolute";
  if (!fs::exists(folder, ignored)) return "does not exist";
  return fs::is_directory(folder, ignored) ? "" : "is no folder";
}

Library open_among(const std::vector<std::string>& names, const std::vector<std::string>& first,
                   const std::vector<std::string>& last) {
  Library library;
  std::string tried;
  for (const std::string& name : names) {
    std::vector<std::string> paths;
    const fs::path file = fs::path(name).filename();
    for (const std::string& folder : first) paths.push_back((folder / file).string());
    paths.push_back(name);
    for (const std::string& folder : last) paths.push_back((folder / file).string());
    for (const std::string& path : paths) {
      library.handle = try_open(path, library.reason);
      if (library.handle) return {library.handle, {}};
    }
    tried.append(tried.empty() ? "" : ", ").append(name);
  }
  if (library.reason.empty()) library.reason = tried + ": not found";
  return library;
}

}  // namespace

std::string variable(const char* name) {
#ifdef __GLIBC__
  const char* value = secure_getenv(name);
#else
  const char* value = issetugid() ? nullptr : std::getenv(name);
#endif
  return value ? value : "";
}

std::string with_folders(const Places& places, std::string reason) {
  for (const std::string& folder : split(variable(places.variable))) {
    const std::string trouble = trouble_with(folder);
    if (trouble.empty()) continue;
    const std::string text = std::string(places.variable) + " names " + folder + ", which " + trouble;
    if (reason.find(text) == reason.npos) reason.append("; ").append(text);
  }
  return reason;
}

void* Library::find(const char* name) const { return handle ? dlsym(handle, name) : nullptr; }

namespace {

Library explained(const Places& places, Library library) {
  if (!library.handle) library.reason = with_folders(places, library.reason);
  return library;
}

}  // namespace

Library open_library(const Places& places, const std::vector<std::string>& names) {
  return explained(places, open_among(names, own_folders(places), toolkit_folders(places)));
}

Library open_driver_library(const Places& places, const std::vector<std::string>& names) {
  return explained(places, open_among(names, own_folders(places), {}));
}

}  // namespace rosin::driver
