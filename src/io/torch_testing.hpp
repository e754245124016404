// Files of PyTorch, made byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "io/zip.hpp"

namespace rosin::testing {

inline std::string little_bytes(uint64_t value, int width) {
  std::string text;
  for (int i = 0; i < width; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

inline std::string pickled_text(std::string_view text) {
  return "X" + little_bytes(text.size(), 4) + std::string(text);
}
inline std::string pickled_integer(int64_t value) { return "\x8a\x08" + little_bytes(static_cast<uint64_t>(value), 8); }
inline std::string pickled_name(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string pickled_tuple(const std::vector<int64_t>& values) {
  std::string text = "(";
  for (int64_t value : values) text += pickled_integer(value);
  return text + "t";
}
/// What torch.save writes for a storage: its class ("Float"), the name of its bytes, how many elements it has.
inline std::string pickled_storage(const std::string& kind, const std::string& key, int64_t count) {
  return "(" + pickled_text("storage") + pickled_name("torch", kind + "Storage") + pickled_text(key) +
         pickled_text("cpu") + pickled_integer(count) + "tQ";
}
inline std::string pickled_tensor(const std::string& kind, const std::string& key, int64_t count, int64_t offset,
                                  const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  return pickled_name("torch._utils", "_rebuild_tensor_v2") + "(" + pickled_storage(kind, key, count) +
         pickled_integer(offset) + pickled_tuple(sizes) + pickled_tuple(strides) + "\x89" +
         pickled_name("collections", "OrderedDict") + ")RtR";
}

/// An archive of this pickle (its protocol is put before it) and these entries.
inline void write_torch_file(const std::string& path, const std::string& pickle,
                             const std::vector<std::pair<std::string, std::string>>& entries,
                             const std::string& order = "little") {
  AtomicFile file(path);
  ZipWriter zip(file);
  const auto add = [&](const std::string& name, const std::string& bytes) {
    zip.add("archive/" + name, "", bytes.data(), bytes.size());
  };
  add("data.pkl", "\x80\x02" + pickle);
  add("byteorder", order);
  for (const auto& [name, bytes] : entries) add(name, bytes);
  add("version", "3\n");
  zip.finish();
  file.commit();
}

}  // namespace rosin::testing
