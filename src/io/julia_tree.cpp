// Names of element types, and what is said of damaged files.
#include "io/julia_tree.hpp"

#include <algorithm>
#include <iterator>

#include <rosin/error.hpp>

namespace rosin {
namespace {

struct TypeRow {
  const char* module;
  const char* name;
  DType type;
};

// Complex types are spelled with their parameter in files: Complex{Float32}.
constexpr TypeRow type_rows[] = {
    {"Core", "Bool", DType::Bool},
    {"Core", "UInt8", DType::UInt8},
    {"Core", "Int8", DType::Int8},
    {"Core", "Int16", DType::Int16},
    {"Core", "UInt16", DType::UInt16},
    {"Core", "Int32", DType::Int32},
    {"Core", "UInt32", DType::UInt32},
    {"Core", "Int64", DType::Int64},
    {"Core", "UInt64", DType::UInt64},
    {"Core", "Float16", DType::Float16},
    {"Core", "BFloat16", DType::BFloat16},
    {"Core", "Float32", DType::Float32},
    {"Core", "Float64", DType::Float64},
    {"Base", "ComplexF32", DType::ComplexF32},
    {"Base", "ComplexF64", DType::ComplexF64},
};

}  // namespace

std::optional<DType> julia_type(std::string_view name) noexcept {
  const auto* row =
      std::find_if(std::begin(type_rows), std::end(type_rows), [&](const TypeRow& each) { return name == each.name; });
  if (row == std::end(type_rows)) return std::nullopt;
  return row->type;
}

JuliaTypeName julia_name(DType type) noexcept {
  const TypeRow& row = type_rows[static_cast<int>(type)];
  return {row.module, row.name};
}

std::optional<uint64_t> julia_bytes(const std::vector<int64_t>& sizes, uint64_t width) noexcept {
  uint64_t bytes = width;
  bool overflows = false, empty = false;
  for (int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    overflows = overflows || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size == 0 ? 1 : size), &bytes);
  }
  if (overflows || bytes > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return empty ? 0 : bytes;
}

void refuse_at(const std::string& path, uint64_t place, const std::string& rule, const std::string& what) {
  throw Error(ErrorKind::io, "load: " + rule + "; '" + path + "' at byte " + std::to_string(place) + ": " + what +
                                 "; the file is damaged or of another kind: write or fetch it again");
}

}  // namespace rosin
