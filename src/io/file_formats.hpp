// Which format a file has: by its extension. Read next: save_load.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace rosin {

enum class FileFormat : uint8_t { safetensors, safetensors_shards, bson, jld2, npz, npy, pytorch };

/// Error (argument): the extension names none; `writes`: none that can be written.
FileFormat format_of(const char* op, const std::string& path, bool writes);
inline bool is_safetensors(FileFormat format) noexcept {
  return format == FileFormat::safetensors || format == FileFormat::safetensors_shards;
}
inline bool is_julias(FileFormat format) noexcept { return format == FileFormat::bson || format == FileFormat::jld2; }

}  // namespace rosin
