// The command `rosin env`: versions, the machine, folders, and every environment variable.
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include <rosin/device.hpp>
#include <rosin/diagnostics.hpp>
#include <rosin/stats.hpp>

#include "commands.hpp"
#include "text.hpp"

namespace command {
namespace {

namespace fs = std::filesystem;

/// The shared libraries of this process: their files' own names tell versions ("libdnnl.so.2.7").
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        std::error_code error;
        const fs::path file = info->dlpi_name ? fs::canonical(info->dlpi_name, error) : fs::path();
        if (!error && file.is_absolute()) static_cast<std::vector<std::string>*>(found)->push_back(file.string());
        return 0;
      },
      &files);
  return files;
}

/// What of the instruction sets that matter here the processor has.
std::string instruction_sets() {
  std::string found;
#ifdef __x86_64__
  const auto add = [&](bool has, const char* name) {
    if (has) found += std::string(found.empty() ? "" : " ") + name;
  };
  add(__builtin_cpu_supports("sse4.2"), "sse4.2");
  add(__builtin_cpu_supports("avx"), "avx");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
#elif defined(__ARM_NEON)
  found = "neon";
#endif
  return found.empty() ? "not known" : found;
}

struct Folder {
  bool there = false;
  size_t files = 0;
  uint64_t bytes = 0;
};

Folder folder_at(const std::string& path) {
  Folder folder;
  std::error_code error;
  folder.there = fs::is_directory(path, error);
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    const auto bytes = at->file_size(ignored);
    if (ignored) continue;
    ++folder.files;
    folder.bytes += bytes;
  }
  return folder;
}

void print_library(const rosin::LibraryReport& library) {
  constexpr size_t indent = 16;
  std::string names;
  for (const std::string& file : loaded_libraries()) names += fs::path(file).filename().string() + " ";
  const rosin::Device cpu;
  say("rosin " + library.version);
  say("");
  say("  libraries", indent, names);
  say("  processor", indent, cpu.name() + ": " + bytes_text(static_cast<uint64_t>(cpu.memory())));
  say("  instructions", indent, instruction_sets());
  say("  threads", indent, std::to_string(rosin::num_threads()));
  say("  preferences", indent, library.preference_file.empty() ? "no file" : library.preference_file);
  const Folder cache = folder_at(library.cache_folder);
  const std::string size = cache.there ? count_text(cache.files, "file") + ", " + bytes_text(cache.bytes) : "not there";
  say("  cache", indent, library.cache_folder.empty() ? "none" : library.cache_folder + ": " + size);
  std::string head = "  plug-ins";
  for (const std::string& folder : library.plugin_folders) {
    say(head, indent, folder + (folder_at(folder).there ? "" : ": not there"));
    head.clear();
  }
}

Json json_of(const rosin::LibraryReport& library) {
  const rosin::Device cpu;
  const Folder cache = folder_at(library.cache_folder);
  Json folders = Json::array(), variables = Json::array();
  for (const std::string& folder : library.plugin_folders) {
    folders.push_back({{"path", folder}, {"there", folder_at(folder).there}});
  }
  for (const rosin::VariableReport& variable : rosin::environment_report()) {
    variables.push_back({{"name", variable.name},
                         {"meaning", variable.meaning},
                         {"value", variable.value.empty() ? Json() : Json(variable.value)},
                         {"when_unset", variable.when_unset}});
  }
  return {{"rosin", library.version},
          {"libraries", loaded_libraries()},
          {"processor", {{"name", cpu.name()}, {"memory", cpu.memory()}, {"instructions", instruction_sets()}}},
          {"threads", rosin::num_threads()},
          {"preferences", library.preference_file.empty() ? Json() : Json(library.preference_file)},
          {"cache", {{"path", library.cache_folder}, {"files", cache.files}, {"bytes", cache.bytes}}},
          {"plugin_folders", folders},
          {"variables", variables}};
}

}  // namespace

Status show_environment(const Style& style) {
  const rosin::LibraryReport library = rosin::library_report();
  if (style.json) {
    print_json(json_of(library));
    return all_fine;
  }
  print_library(library);
  say("");
  say("Environment variables");
  say("");
  for (const rosin::VariableReport& variable : rosin::environment_report()) {
    const std::string value =
        variable.value.empty() ? "not set: " + variable.when_unset : "= " + printable(variable.value);
    say("  " + variable.name, 22, value);
    say({}, 22, variable.meaning);
  }
  return all_fine;
}

}  // namespace command
