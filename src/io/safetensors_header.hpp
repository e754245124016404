// The header of a safetensors file: what it says, and every rule that it must obey. The format: 8 bytes with the length
// of the header (little-endian), the header (JSON), then the tensors' bytes, row-major and without gaps.
// Read next: safetensors_json.cpp (text to struct), safetensors_header.cpp (the rules), safetensors.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rosin/dtype.hpp>
#include <rosin/shape.hpp>

namespace rosin {

/// One tensor as the header states it; places count from the end of the header.
struct TensorInfo {
  std::string name;
  std::string type;  // as in files: "F32"
  std::vector<uint64_t> sizes;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

inline constexpr uint64_t longest_header = 100'000'000;  // the format's own bound
inline constexpr size_t most_tensors = 1'000'000;        // ours: a small file must not ask for much memory

/// Throws Error (io): `load: RULE; 'path': WHAT; CURE`. The tensor may be empty.
[[noreturn]] void refuse_file(const std::string& path, const std::string& tensor, const std::string& rule,
                              const std::string& what);

/// Reads the JSON text. Refuses anything but the format's own keys, a name used twice, and what is no JSON or UTF-8.
/// The places of tensors are not looked at.
SafetensorsHeader parse_header(std::string_view json, const std::string& path);
/// The JSON text of a header, padded with spaces so that the data starts at a multiple of 8 bytes.
std::string header_text(const SafetensorsHeader& header);

/// What `model.safetensors.index.json` says: which file of the same folder holds which tensor.
struct ShardIndex {
  std::vector<std::pair<std::string, std::string>> files;     // name of a tensor, name of its file
  std::vector<std::pair<std::string, std::string>> metadata;  // numbers as texts; what is neither is passed by
};
/// Error (io): the text is no JSON, or no object with a weight_map of texts; a name occurs twice.
ShardIndex parse_index(std::string_view json, const std::string& path);
std::string index_text(const ShardIndex& index, uint64_t total_bytes);

/// A list of texts as one text (JSON), and the way back. Error (io): `json` is no list of texts.
std::string list_text(const std::vector<std::string>& texts);
std::vector<std::string> parse_list(const std::string& json, std::string_view name);

/// Checks types, sizes and places, and puts the tensors into the order of their data. `bytes`: length of the data.
void check_header(SafetensorsHeader& header, uint64_t bytes, const std::string& path);

/// Name of an element type in files; empty where the format has none (ComplexF64).
const char* file_type(DType type) noexcept;
/// The element type and shape of a tensor of a checked header. Refuses what arrays cannot hold.
DType array_type(const TensorInfo& tensor, const std::string& path);
Shape array_shape(const TensorInfo& tensor, const std::string& path);

}  // namespace rosin
