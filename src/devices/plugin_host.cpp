// See plugin_host.hpp.
#include "devices/plugin_host.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "run/kernel_files.hpp"

namespace rosin {
namespace {

/// rosin_host and whose it is: functions get the address of `plain`, which comes first.
struct Host {
  rosin_host plain{};
  std::string name;  // of the plug-in
  std::string keys;  // what its keys begin with
};

const Host& host_of(const rosin_host* plain) { return *reinterpret_cast<const Host*>(plain); }

void log(const rosin_host* host, int32_t level, const char* text) {
  if (!text) return;
  const std::string said = host_of(host).name + ": " + text;
  if (level == ROSIN_LOG_WARNING) warn_once("plug-in", said, said);
  else inform_once("plug-in", said, said);
}

uint64_t cache_get(const rosin_host* host, const char* key, void* bytes, uint64_t capacity) {
  try {
    const auto found = find_kernel_file(host_of(host).keys + key);
    if (!found) return 0;
    if (found->size() <= capacity) std::copy(found->begin(), found->end(), static_cast<uint8_t*>(bytes));
    return found->size();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void cache_put(const rosin_host* host, const char* key, const void* bytes, uint64_t count) {
  try {
    store_kernel_file(host_of(host).keys + key, bytes, static_cast<size_t>(count));
  } catch (const std::bad_alloc&) {  // then it is not kept
  }
}

/// What stays until the process ends: plug-ins are never unloaded, and threads of theirs may call.
struct Kept {
  std::mutex lock;
  std::deque<Host> hosts;
  std::deque<rosin_backend> tables;
};

Kept& kept() {
  static auto* all = new Kept;
  return *all;
}

/// Clears all of them where one is missing.
template <class... Functions> void all_or_none(Functions&... functions) {
  if ((functions && ...)) return;
  ((functions = nullptr), ...);
}

}  // namespace

const rosin_host& host_for(const rosin_backend& functions) {
  const std::lock_guard guard(kept().lock);
  Host& host = kept().hosts.emplace_back();
  host.name = functions.name;
  host.keys = "plug-in " + host.name + " " + (functions.version ? functions.version : "") + "\n";
  host.plain = {sizeof host.plain, log, cache_get, cache_put};
  return host.plain;
}

const rosin_backend* whole_table(const rosin_backend& given) {
  const std::lock_guard guard(kept().lock);
  rosin_backend* whole = &kept().tables.emplace_back();
  std::memcpy(static_cast<void*>(whole), &given, std::min(given.size, sizeof *whole));
  whole->size = sizeof *whole;
  all_or_none(whole->call_takes, whole->call_prepare, whole->call_destroy, whole->call_run);
  if (!whole->call_prepare) whole->call_tune = nullptr;
  all_or_none(whole->call_tune, whole->call_choice);
  all_or_none(whole->graph_create, whole->graph_add, whole->graph_finish, whole->graph_update, whole->graph_launch,
              whole->graph_destroy);
  all_or_none(whole->alloc_ordered, whole->release_ordered);
  all_or_none(whole->pin, whole->unpin);
  all_or_none(whole->event_create_timed, whole->event_elapsed);
  all_or_none(whole->range_begin, whole->range_end);
  return whole;
}

}  // namespace rosin
