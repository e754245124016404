// See kernel_files.hpp. Layout of a file: magic, bytes of the key, bytes of the payload, hash of the payload, the key,
// the payload. Writers rename a complete file into place, so that processes do not disturb each other.
#include "run/kernel_files.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <system_error>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/input_file.hpp"
#include "platform/paths.hpp"
#include "run/cache_folder.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;
using platform::name_of;
using platform::path_of;

constexpr char magic[8] = {'r', 'o', 's', 'i', 'n', 'k', 'c', '1'};
constexpr uint64_t most_bytes = uint64_t{256} << 20;

struct Header {
  char name[8];
  uint64_t key_bytes;
  uint64_t payload_bytes;
  uint64_t payload_hash;
};

std::string_view text_view(const void* bytes, size_t count) { return {static_cast<const char*>(bytes), count}; }

void warn_uncached(const std::string& reason) {
  warn_once("kernel-cache", "compiled kernels are not kept: " + reason +
                                "; every process compiles them anew (ROSIN_CACHE_DIR names another folder)");
}

/// Where kernels stand; others may have made it, or it may not be there.
std::optional<fs::path> kernel_folder() {
  const std::optional<std::string> folder = cache_folder();
  return folder ? std::optional<fs::path>(path_of(*folder) / "kernels") : std::nullopt;
}

/// Whether it is ours alone. Kernels are code: one that somebody else wrote would run with the rights of this process.
bool is_usable(const fs::path& folder, const std::string& trouble) {
  if (!trouble.empty()) warn_uncached(name_of(folder) + ": " + trouble);
  return trouble.empty();
}

/// The folder, made where it is missing, if it is ours alone.
std::optional<fs::path> made_kernel_folder() {
  const std::optional<fs::path> folder = kernel_folder();
  if (!folder) warn_uncached("there is no folder for them (neither XDG_CACHE_HOME nor HOME is set)");
  return folder && is_usable(*folder, make_private_folder(name_of(*folder))) ? folder : std::nullopt;
}

fs::path file_of(const fs::path& folder, std::string_view key) {
  const uint64_t hash = hash_text(key);
  return folder / (hex_text(hash) + hex_text(mix(hash, key.size())) + ".bin");
}

/// Whether the name is one that file_of gives.
bool has_our_name(const fs::path& path) {
  const std::string name = name_of(path.filename());
  constexpr size_t digits = 32;
  return name.size() == digits + 4 && name.ends_with(".bin") && name.find_first_not_of("0123456789abcdef") == digits;
}

/// Whether the file is ours by its content too.
bool has_our_magic(const fs::path& path) {
  try {
    const InputFile file(name_of(path));
    char begin[sizeof magic] = {};
    if (file.size() >= sizeof magic) file.read(0, begin, sizeof magic);
    return std::memcmp(begin, magic, sizeof magic) == 0;
  } catch (const Error&) {
    return false;
  }
}

struct Entry {
  fs::file_time_type used;
  uint64_t bytes;
  fs::path path;
};

std::vector<Entry> entries_with_our_name(const fs::path& folder) {
  std::error_code error;
  std::vector<Entry> entries;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    if (!has_our_name(file.path())) continue;
    const fs::file_time_type used = file.last_write_time(error);
    const uint64_t bytes = error ? 0 : file.file_size(error);
    if (!error) entries.push_back({used, bytes, file.path()});  // (else another process removed it)
  }
  return entries;
}

uint64_t sum_of_bytes(const std::vector<Entry>& entries) {
  return std::accumulate(entries.begin(), entries.end(), uint64_t{0},
                         [](uint64_t sum, const Entry& entry) { return sum + entry.bytes; });
}

/// Removes the files used longest ago until the rest fits; those of others are neither counted nor touched.
void keep_bound(const fs::path& folder) {
  std::vector<Entry> entries = entries_with_our_name(folder);
  if (sum_of_bytes(entries) <= most_bytes) return;
  std::erase_if(entries, [](const Entry& entry) { return !has_our_magic(entry.path); });
  uint64_t total = sum_of_bytes(entries);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= most_bytes) break;
    std::error_code error;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

/// The payload if the file is private, its header fits its size and this key, and its checksum holds. Sizes come first:
/// nothing is read, nor memory taken, for what cannot be right. Error (io): it cannot be read.
std::optional<std::vector<uint8_t>> payload_of(const fs::path& path, std::string_view key) {
  const InputFile file(name_of(path));
  Header header;
  if (!file.is_private() || file.size() < sizeof header + key.size()) return std::nullopt;
  file.read(0, &header, sizeof header);
  const uint64_t payload = file.size() - sizeof header - key.size();
  if (std::memcmp(header.name, magic, sizeof magic) != 0 || header.key_bytes != key.size() ||
      header.payload_bytes != payload || payload > most_bytes)
    return std::nullopt;
  std::string stored(key.size(), '\0');
  file.read(sizeof header, stored.data(), stored.size());
  if (stored != key) return std::nullopt;
  std::vector<uint8_t> bytes(static_cast<size_t>(payload));
  file.read(sizeof header + key.size(), bytes.data(), bytes.size());
  if (hash_text(text_view(bytes.data(), bytes.size())) != header.payload_hash) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<std::vector<uint8_t>> find_kernel_file(std::string_view key) {
  const std::optional<fs::path> folder = kernel_folder();
  if (!folder) return std::nullopt;
  const fs::path path = file_of(*folder, key);
  std::error_code error;
  if (!fs::is_regular_file(path, error) || !is_usable(*folder, trouble_with_private_folder(name_of(*folder))))
    return std::nullopt;
  try {
    std::optional<std::vector<uint8_t>> payload = payload_of(path, key);
    if (payload) fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return payload;
  } catch (const Error&) {
    return std::nullopt;  // unreadable: as if it were not there
  }
}

void store_kernel_file(std::string_view key, const void* bytes, size_t count) {
  const std::optional<fs::path> folder = made_kernel_folder();
  if (!folder) return;
  Header header;
  std::memcpy(header.name, magic, sizeof magic);
  header.key_bytes = key.size();
  header.payload_bytes = count;
  header.payload_hash = hash_text(text_view(bytes, count));
  try {
    AtomicFile file(name_of(file_of(*folder, key)), FileAccess::owner_only);
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
  const std::optional<fs::path> folder = made_kernel_folder();
  if (!folder) return {};
  const std::string path = name_of(*folder / ("failed-" + hex_text(hash_text(text)) + ".txt"));
  try {
    write_file_atomically(path, text, FileAccess::owner_only);
  } catch (const Error&) {
    return {};
  }
  return path;
}

}  // namespace rosin
