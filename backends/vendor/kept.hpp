// What rosin keeps on disk for a plug-in, from one process to the next. Read first: rosin/backend.h (rosin_host).
#pragma once

#include <string>

#include <rosin/backend.h>

namespace rosin::vendor {

/// What stands under this key; empty: nothing, or there is no host.
inline std::string kept(const rosin_host* host, const std::string& key) {
  if (!host) return {};
  std::string bytes(host->cache_get(host, key.c_str(), nullptr, 0), '\0');
  const uint64_t count = bytes.empty() ? 0 : host->cache_get(host, key.c_str(), bytes.data(), bytes.size());
  return count == bytes.size() ? bytes : std::string();
}

inline void keep(const rosin_host* host, const std::string& key, const std::string& bytes) {
  if (host && !bytes.empty()) host->cache_put(host, key.c_str(), bytes.data(), bytes.size());
}

}  // namespace rosin::vendor
