// See kernel_files.hpp. Layout of a file: magic, bytes of the key, bytes of the payload, hash of the payload, the key,
// the payload. Writers rename a complete file into place, so that processes do not disturb each other.
#include "runtime/kernel_files.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "runtime/cache_folder.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;

constexpr char magic[8] = {'r', 'o', 's', 'i', 'n', 'k', 'c', '1'};
constexpr uint64_t most_bytes = uint64_t{256} << 20;

struct Header {
  char name[8];
  uint64_t key_bytes;
  uint64_t payload_bytes;
  uint64_t payload_hash;
};

std::string_view text_view(const void* bytes, size_t count) { return {static_cast<const char*>(bytes), count}; }

std::optional<fs::path> kernel_folder() {
  const std::optional<std::string> folder = cache_folder();
  return folder ? std::optional<fs::path>(fs::path(*folder) / "kernels") : std::nullopt;
}

fs::path file_of(const fs::path& folder, std::string_view key) {
  const uint64_t hash = hash_text(key);
  return folder / (hex_text(hash) + hex_text(mix(hash, key.size())) + ".bin");
}

/// Removes the files used longest ago until the rest fits.
void keep_bound(const fs::path& folder) {
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::error_code error;
  std::vector<Entry> entries;
  uint64_t total = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    const fs::file_time_type used = file.last_write_time(error);
    const uint64_t bytes = error ? 0 : file.file_size(error);
    if (error) continue;  // another process removed it
    entries.push_back({used, bytes, file.path()});
    total += bytes;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= most_bytes) break;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

void warn_uncached(const std::string& reason) {
  warn_once("kernel-cache", "compiled kernels are not kept: " + reason +
                                "; every process compiles them anew (ROSIN_CACHE_DIR names another folder)");
}

}  // namespace

std::optional<std::vector<uint8_t>> find_kernel_file(std::string_view key) {
  const std::optional<fs::path> folder = kernel_folder();
  if (!folder) return std::nullopt;
  const fs::path path = file_of(*folder, key);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::vector<uint8_t> file;
  try {
    file = read_whole_file(path.string());
  } catch (const Error&) {
    return std::nullopt;  // unreadable: as if it were not there
  }
  Header header;
  if (file.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  const bool sizes =
      std::memcmp(header.name, magic, sizeof magic) == 0 && header.key_bytes == key.size() &&
      header.payload_bytes == file.size() - sizeof header - std::min<size_t>(key.size(), file.size() - sizeof header);
  if (!sizes || text_view(file.data() + sizeof header, key.size()) != key) return std::nullopt;
  const uint8_t* payload = file.data() + sizeof header + key.size();
  if (hash_text(text_view(payload, header.payload_bytes)) != header.payload_hash) return std::nullopt;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return std::vector<uint8_t>(payload, payload + header.payload_bytes);
}

void store_kernel_file(std::string_view key, const void* bytes, size_t count) {
  const std::optional<fs::path> folder = kernel_folder();
  if (!folder) return warn_uncached("there is no folder for them (neither XDG_CACHE_HOME nor HOME is set)");
  std::error_code error;
  fs::create_directories(*folder, error);
  if (error) return warn_uncached(folder->string() + ": " + error.message());
  Header header;
  std::memcpy(header.name, magic, sizeof magic);
  header.key_bytes = key.size();
  header.payload_bytes = count;
  header.payload_hash = hash_text(text_view(bytes, count));
  try {
    AtomicFile file(file_of(*folder, key).string());
    file.write(&header, sizeof header);
    file.write(key.data(), key.size());
    file.write(bytes, count);
    file.commit();
  } catch (const Error& failed) {
    return warn_uncached(failed.what());
  }
  keep_bound(*folder);
}

std::string keep_failed_source(std::string_view text) {
  const std::optional<std::string> folder = cache_folder();
  if (!folder) return {};
  std::error_code error;
  fs::create_directories(*folder, error);
  const std::string path = *folder + "/failed-" + hex_text(hash_text(text)) + ".txt";
  try {
    write_file_atomically(path, text);
  } catch (const Error&) {
    return {};
  }
  return path;
}

}  // namespace rosin
