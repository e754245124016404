// The rules of a safetensors header beyond its JSON: types, sizes and places of the tensors.
#include "io/safetensors_header.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <rosin/error.hpp>

#include "base/sizes.hpp"

namespace rosin {
namespace {

struct FileType {
  const char* name;
  uint64_t bits;
  int dtype;  // -1: the format has it, arrays do not
};

constexpr int type_of(DType type) { return static_cast<int>(type); }

// One row per type of the format.
constexpr FileType file_types[] = {
    {"BOOL", 8, type_of(Bool)},
    {"U8", 8, type_of(UInt8)},
    {"I8", 8, type_of(Int8)},
    {"I16", 16, type_of(Int16)},
    {"U16", 16, type_of(UInt16)},
    {"F16", 16, type_of(Float16)},
    {"BF16", 16, type_of(BFloat16)},
    {"I32", 32, type_of(Int32)},
    {"U32", 32, type_of(UInt32)},
    {"F32", 32, type_of(Float32)},
    {"I64", 64, type_of(Int64)},
    {"U64", 64, type_of(UInt64)},
    {"F64", 64, type_of(Float64)},
    {"C64", 64, type_of(ComplexF32)},
    {"F8_E5M2", 8, -1},
    {"F8_E4M3", 8, -1},
    {"F8_E8M0", 8, -1},
    {"F8_E4M3FNUZ", 8, -1},
    {"F8_E5M2FNUZ", 8, -1},
    {"F4", 4, -1},
    {"F6_E2M3", 6, -1},
    {"F6_E3M2", 6, -1},
};

const FileType* find_type(const std::string& name) {
  const auto* found = std::find_if(std::begin(file_types), std::end(file_types),
                                   [&](const FileType& type) { return name == type.name; });
  return found == std::end(file_types) ? nullptr : found;
}

std::string text_of(const std::vector<uint64_t>& sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size() && i < 16; ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + (sizes.size() > 16 ? ", ...)" : ")");
}

/// Bytes of the tensor by type and sizes.
uint64_t bytes_of(const TensorInfo& tensor, const std::string& path) {
  const FileType* type = find_type(tensor.type);
  if (!type) refuse_file(path, tensor.name, "its type must be one of the format's", "it is '" + tensor.type + "'");
  uint64_t bits = type->bits;
  for (uint64_t size : tensor.sizes) {
    if (__builtin_mul_overflow(bits, size, &bits)) {
      refuse_file(path, tensor.name, "its size must not overflow", "the shape is " + text_of(tensor.sizes));
    }
  }
  if (bits % 8 != 0)
    refuse_file(path, tensor.name, "it must fill whole bytes", "it has " + std::to_string(bits) + " bits");
  return bits / 8;
}

std::string range_text(const TensorInfo& tensor) {
  return "[" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + ")";
}

}  // namespace

void refuse_file(const std::string& path, const std::string& tensor, const std::string& rule, const std::string& what) {
  const std::string subject = tensor.empty() ? "" : ", tensor '" + tensor.substr(0, 200) + "'";
  throw Error(ErrorKind::io, "load: " + rule + "; '" + path + "'" + subject + ": " + what +
                                 "; the file is damaged or no safetensors file: write or fetch it again");
}

void check_header(SafetensorsHeader& header, uint64_t bytes, const std::string& path) {
  std::vector<TensorInfo>& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t place = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != place || tensor.end < tensor.begin) {
      refuse_file(path, tensor.name, "tensors must follow each other without gap or overlap",
                  "its data is at " + range_text(tensor) + " and should start at " + std::to_string(place));
    }
    const uint64_t needed = bytes_of(tensor, path);
    if (tensor.end - tensor.begin != needed) {
      refuse_file(path, tensor.name, "its data must have as many bytes as its shape",
                  tensor.type + " " + text_of(tensor.sizes) + " needs " + std::to_string(needed) + ", its data is at " +
                      range_text(tensor));
    }
    place = tensor.end;
  }
  if (place != bytes) {
    refuse_file(path, "", "the tensors must fill the file exactly",
                "they have " + std::to_string(place) + " bytes and the file has " + std::to_string(bytes) +
                    " after its header");
  }
}

const char* file_type(DType dtype) noexcept {
  for (const FileType& type : file_types) {
    if (type.dtype == type_of(dtype)) return type.name;
  }
  return "";
}

DType array_type(const TensorInfo& tensor, const std::string& path) {
  const FileType* type = find_type(tensor.type);
  if (type && type->dtype >= 0) return static_cast<DType>(type->dtype);
  throw Error(ErrorKind::dtype, "load: the element type must be one of rosin's; '" + path + "', tensor '" +
                                    tensor.name + "' is " + tensor.type +
                                    "; convert it to F32, BF16 or F16 where it was made");
}

Shape array_shape(const TensorInfo& tensor, const std::string& path) {
  if (tensor.sizes.size() > Shape::max_rank) {
    throw Error(ErrorKind::shape, "load: an array has at most eight dims; '" + path + "', tensor '" + tensor.name +
                                      "' is " + text_of(tensor.sizes) + "; reshape it where it was made");
  }
  int64_t sizes[Shape::max_rank] = {};
  for (size_t d = 0; d < tensor.sizes.size(); ++d) {
    if (tensor.sizes[d] > static_cast<uint64_t>(INT64_MAX)) {
      refuse_file(path, tensor.name, "its size must not overflow", "the shape is " + text_of(tensor.sizes));
    }
    sizes[d] = static_cast<int64_t>(tensor.sizes[d]);
  }
  const auto rank = static_cast<int>(tensor.sizes.size());
  if (!can_be_sizes(sizes, rank)) {
    refuse_file(path, tensor.name, "an array has at most 2^58 elements", "the shape is " + text_of(tensor.sizes));
  }
  return Shape(std::span<const int64_t>(sizes, tensor.sizes.size()));
}

}  // namespace rosin
