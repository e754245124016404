// Checks any plug-in against include/rosin/backend.h:
//   conformance PLUGIN [--device N] [--only PART,PART...]
// Prints a line for each check and `N passed, M failed`; the exit status says whether all passed.
//   conformance PLUGIN [--device N] --features    prints what the plug-in says that it does
// Read next: rig.hpp, checks.hpp; what a plug-in is: docs/how_to_add_backend.md.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

#include "checks.hpp"
#include "features.hpp"

namespace rosin::conformance {
namespace {

const Part* const parts[] = {&device_part, &memory_part,       &streams_part,   &programs_part,  &kernels_part,
                             &later_part,  &operations_part,   &elements_part,  &extras_part,    &services_part,
                             &calls_part,  &convolutions_part, &attention_part, &recurrent_part, &graphs_part};

struct Arguments {
  std::string plugin;
  int32_t device = 0;
  std::string only;
  bool features = false;
};

[[noreturn]] void usage() {
  std::cerr << "usage: conformance PLUGIN [--device N] [--only PART,PART... | --features]\nparts:";
  for (const Part* part : parts) std::cerr << ' ' << part->name;
  std::cerr << '\n';
  std::exit(2);
}

bool is_chosen(std::string_view only, std::string_view name) {
  if (only.empty()) return true;
  for (; !only.empty(); only.remove_prefix(std::min(only.size(), only.find(',') + 1))) {
    if (only.substr(0, only.find(',')) == name) return true;
    if (only.find(',') == only.npos) return false;
  }
  return false;
}

Arguments parse(int count, char** words) {
  Arguments all;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--device" && has_value) all.device = std::atoi(words[++i]);
    else if (word == "--only" && has_value) all.only = words[++i];
    else if (word == "--features") all.features = true;
    else if (all.plugin.empty() && word.substr(0, 2) != "--") all.plugin = word;
    else usage();
  }
  if (all.plugin.empty()) usage();
  return all;
}

/// A cache of one entry, as small as one may be; notices are not shown.
struct Host {
  rosin_host plain{};
  std::string key, bytes;

  static Host& of(const rosin_host* plain) { return *reinterpret_cast<Host*>(const_cast<rosin_host*>(plain)); }
  static void log(const rosin_host*, int32_t, const char*) {}
  static uint64_t get(const rosin_host* plain, const char* key, void* bytes, uint64_t capacity) {
    const Host& host = of(plain);
    if (host.key != key) return 0;
    if (host.bytes.size() <= capacity) std::memcpy(bytes, host.bytes.data(), host.bytes.size());
    return host.bytes.size();
  }
  static void put(const rosin_host* plain, const char* key, const void* bytes, uint64_t count) {
    of(plain).key = key;
    of(plain).bytes.assign(static_cast<const char*>(bytes), count);
  }
};

/// The table in this page's size: what the plug-in's lacks is null.
const rosin_backend* whole(const rosin_backend* given) {
  static rosin_backend all{};
  std::memcpy(static_cast<void*>(&all), given, std::min(given->size, sizeof(all)));
  return &all;
}

const rosin_backend* open_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Broken(dlerror());
  const auto open = reinterpret_cast<rosin_backend_open_function>(dlsym(library, "rosin_backend_open"));
  expect(open != nullptr, "exports no rosin_backend_open");
  expect(open(ROSIN_BACKEND_ABI + 1) == nullptr, "rosin_backend_open accepts another ABI");
  const rosin_backend* table = open(ROSIN_BACKEND_ABI);
  expect(table != nullptr, "rosin_backend_open refuses ABI " + std::to_string(ROSIN_BACKEND_ABI));
  expect(table == open(ROSIN_BACKEND_ABI), "rosin_backend_open gives another table the second time");
  expect(table->abi == ROSIN_BACKEND_ABI, "the table has another ABI");
  expect(table->size >= ROSIN_BACKEND_SMALLEST, "the table ends before `launch`");
  table = whole(table);
  static Host host;
  host.plain = {sizeof(host.plain), Host::log, Host::get, Host::put};
  if (table->attach) table->attach(&host.plain);
  int32_t devices = -1;
  const rosin_status status = table->device_count(&devices);
  if (status != ROSIN_OK) throw Broken(std::string("device_count: ") + table->error_text());
  const std::string why = table->error_text() ? table->error_text() : "";
  expect(devices > 0, "no device to check" + (why.empty() ? "" : ": " + why));
  return table;
}

struct Counts {
  int passed = 0;
  int failed = 0;
};

void run(const Part& part, Rig& rig, Counts& counts) {
  for (const Check& check : part.checks) {
    std::string why;
    try {
      check.run(rig);
      // What a check leaves behind in the stream is its own fault.
      rig.sync();
    } catch (const std::exception& error) {
      why = error.what();
    }
    ++(why.empty() ? counts.passed : counts.failed);
    std::cout << part.name << ": " << check.name << (why.empty() ? "" : ": FAILED: " + why) << std::endl;
  }
}

int run_all(const Arguments& arguments) {
  Counts counts;
  try {
    const rosin_backend* table = open_plugin(arguments.plugin);
    Rig rig(*table, arguments.device);
    if (arguments.features) {
      print_features(rig, std::cout);
      return 0;
    }
    std::cout << table->name << ' ' << table->version << ", " << rig.info.name << ", " << rig.info.driver << '\n';
    for (const Part* part : parts)
      if (is_chosen(arguments.only, part->name)) run(*part, rig, counts);
  } catch (const std::exception& error) {
    std::cout << "FAILED: " << error.what() << '\n';
    ++counts.failed;
  }
  std::cout << counts.passed << " passed, " << counts.failed << " failed\n";
  return counts.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rosin::conformance

int main(int count, char** words) { return rosin::conformance::run_all(rosin::conformance::parse(count, words)); }
