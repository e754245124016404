// Tensors of ONNX files as arrays. The file's order is row-major; the dims are taken in reverse, so bytes stay.
#include <algorithm>
#include <bit>
#include <cstring>

#include <rosin/error.hpp>

#include "base/input_file.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "onnx/definition.hpp"

namespace rosin::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of tensors are read as they are");

struct ElementType {
  int64_t number;
  const char* name;
  uint64_t bytes;  // 0: several elements in a byte, or no fixed size
  bool known;      // whether arrays have such elements
  DType type;
};

constexpr ElementType element_types[] = {
    {1, "FLOAT", 4, true, Float32},
    {2, "UINT8", 1, true, UInt8},
    {3, "INT8", 1, true, Int8},
    {4, "UINT16", 2, true, UInt16},
    {5, "INT16", 2, true, Int16},
    {6, "INT32", 4, true, Int32},
    {7, "INT64", 8, true, Int64},
    {8, "STRING", 0, false, Float32},
    {9, "BOOL", 1, true, Bool},
    {10, "FLOAT16", 2, true, Float16},
    {11, "DOUBLE", 8, true, Float64},
    {12, "UINT32", 4, true, UInt32},
    {13, "UINT64", 8, true, UInt64},
    {14, "COMPLEX64", 8, true, ComplexF32},
    {15, "COMPLEX128", 16, true, ComplexF64},
    {16, "BFLOAT16", 2, true, BFloat16},
    {17, "FLOAT8E4M3FN", 1, false, Float32},
    {18, "FLOAT8E4M3FNUZ", 1, false, Float32},
    {19, "FLOAT8E5M2", 1, false, Float32},
    {20, "FLOAT8E5M2FNUZ", 1, false, Float32},
    {21, "UINT4", 0, false, Float32},
    {22, "INT4", 0, false, Float32},
    {23, "FLOAT4E2M1", 0, false, Float32},
    {24, "FLOAT8E8M0", 1, false, Float32},
    {25, "UINT2", 0, false, Float32},
    {26, "INT2", 0, false, Float32},
};

const ElementType* find_type(int64_t number) {
  const auto* found = std::find_if(std::begin(element_types), std::end(element_types),
                                   [&](const ElementType& type) { return type.number == number; });
  return found == std::end(element_types) ? nullptr : found;
}

std::string subject_of(const TensorDefinition& tensor, const std::string& path) {
  return "tensor \"" + std::string(tensor.name) + "\" at byte " + std::to_string(tensor.offset) + " of " + path;
}

[[noreturn]] void refuse_tensor(const TensorDefinition& tensor, const std::string& path, const std::string& rule,
                                const std::string& came) {
  throw Error(ErrorKind::io, "onnx: " + rule + "; got " + came + " for the " + subject_of(tensor, path) +
                                 "; the file is damaged or no ONNX model");
}

Shape reversed_shape(const TensorDefinition& tensor, const std::string& path) {
  if (tensor.sizes.size() > static_cast<size_t>(Shape::max_rank)) {
    throw Error(ErrorKind::shape, "onnx: arrays have at most eight dims; got " + std::to_string(tensor.sizes.size()) +
                                      " for the " + subject_of(tensor, path) + "; reshape it in the model");
  }
  const std::vector<int64_t> sizes(tensor.sizes.rbegin(), tensor.sizes.rend());
  try {
    return Shape(std::span<const int64_t>(sizes));
  } catch (const Error& error) {
    refuse_tensor(tensor, path, "sizes must be possible", error.what());
  }
}

void check_count(uint64_t count, uint64_t needed, const TensorDefinition& tensor, const std::string& path) {
  if (count == needed) return;
  refuse_tensor(tensor, path, "a tensor must have as many values as its sizes say",
                std::to_string(count) + " where there must be " + std::to_string(needed));
}

/// Numbers that the file has as int64 values in elements of `type`; halves are bits.
void store_integers(const std::vector<int64_t>& values, DType type, void* target) {
  auto* bytes = static_cast<unsigned char*>(target);
  const size_t size = size_of(type);
  for (int64_t value : values) {
    if (type == Bool) value = value != 0;
    std::memcpy(bytes, &value, size);
    bytes += size;
  }
}

void store_typed(const TensorDefinition& tensor, DType type, uint64_t count, void* target, const std::string& path) {
  const uint64_t parts = is_complex(type) ? 2 * count : count;
  const DType part = part_type(type);
  if (part == Float32) {
    check_count(tensor.floats.size(), parts, tensor, path);
    std::copy(tensor.floats.begin(), tensor.floats.end(), static_cast<float*>(target));
  } else if (part == Float64) {
    check_count(tensor.doubles.size(), parts, tensor, path);
    std::copy(tensor.doubles.begin(), tensor.doubles.end(), static_cast<double*>(target));
  } else {
    check_count(tensor.integers.size(), parts, tensor, path);
    store_integers(tensor.integers, type, target);
  }
}

std::string_view external_entry(const TensorDefinition& tensor, std::string_view key) {
  for (const auto& [name, value] : tensor.external) {
    if (name == key) return value;
  }
  return {};
}

uint64_t external_number(const TensorDefinition& tensor, std::string_view key, uint64_t fallback,
                         const std::string& path) {
  const std::string_view text = external_entry(tensor, key);
  if (text.empty()) return fallback;
  uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9' || value > UINT64_MAX / 10 - 1) {
      refuse_tensor(tensor, path, "places of external data must be numbers", "\"" + std::string(text) + "\"");
    }
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

/// External data lies beside the model or in folders below; names that lead elsewhere are refused.
std::string external_path(const TensorDefinition& tensor, const std::string& path) {
  const std::string location(external_entry(tensor, "location"));
  const bool leaves = ("/" + location + "/").find("/../") != std::string::npos;
  if (location.empty() || location[0] == '/' || leaves || location.find('\0') != std::string::npos) {
    refuse_tensor(tensor, path, "external data must lie in the folder of the model", "\"" + location + "\"");
  }
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? location : path.substr(0, slash + 1) + location;
}

void read_external(const TensorDefinition& tensor, uint64_t bytes, Array& made, DType type, const Shape& shape,
                   const std::string& path) {
  const InputFile file(external_path(tensor, path), "onnx");
  const uint64_t offset = external_number(tensor, "offset", 0, path);
  const uint64_t length = external_number(tensor, "length", bytes, path);
  check_count(length, bytes, tensor, path);
  if (offset > file.size() || bytes > file.size() - offset) {
    refuse_tensor(
        tensor, path, "external data must be inside its file",
        std::to_string(bytes) + " bytes from " + std::to_string(offset) + " on of " + std::to_string(file.size()));
  }
  made = fresh_leaf(type, shape);
  file.read(offset, made.node()->data(), static_cast<size_t>(bytes));
}

}  // namespace

std::string type_name(int64_t type) {
  const ElementType* found = find_type(type);
  return found ? found->name : "type " + std::to_string(type);
}

uint64_t bytes_of_type(int64_t type) {
  const ElementType* found = find_type(type);
  return found ? found->bytes : 0;
}

DType array_type(int64_t type, const std::string& subject) {
  const ElementType* found = find_type(type);
  if (found && found->known) return found->type;
  throw Error(ErrorKind::dtype,
              "onnx: arrays have no elements of type " + type_name(type) + "; got " + subject + "; convert the model");
}

int64_t type_number(DType type) {
  return std::find_if(std::begin(element_types), std::end(element_types),
                      [&](const ElementType& row) { return row.known && row.type == type; })
      ->number;
}

Array array_of(const TensorDefinition& tensor, const std::string& path) {
  const DType type = array_type(tensor.type, subject_of(tensor, path));
  const Shape shape = reversed_shape(tensor, path);
  const auto count = static_cast<uint64_t>(shape.count());
  const uint64_t bytes = count * size_of(type);
  Array made;
  if (tensor.is_external) {
    read_external(tensor, bytes, made, type, shape, path);
  } else if (tensor.is_raw) {
    check_count(tensor.raw.bytes.size(), bytes, tensor, path);
    made = fresh_leaf(type, shape);
    if (bytes > 0) std::memcpy(made.node()->data(), tensor.raw.bytes.data(), tensor.raw.bytes.size());
  } else {
    const uint64_t values = tensor.floats.size() + tensor.doubles.size() + tensor.integers.size();
    check_count(values, (is_complex(type) ? 2 : 1) * count, tensor, path);
    made = fresh_leaf(type, shape);
    store_typed(tensor, type, count, made.node()->data(), path);
  }
  if (type == Bool) {
    auto* values = static_cast<unsigned char*>(made.node()->data());
    std::transform(values, values + count, values, [](unsigned char byte) { return byte != 0 ? 1 : 0; });
  }
  return made;
}

}  // namespace rosin::onnx
