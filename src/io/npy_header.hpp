// The header of a .npy file: a Python literal with type, order and shape. Read next: npy_header.cpp, npy.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/dtype.hpp>

#include "base/input_file.hpp"

namespace rosin {

/// Bytes of a file, or such that were unpacked from one.
struct NpyBytes {
  const InputFile* file;                  // also of unpacked ones, for messages
  uint64_t place = 0;                     // in the file
  const unsigned char* memory = nullptr;  // not null: unpacked
  uint64_t size = 0;

  void read(uint64_t offset, void* target, uint64_t count) const;
  [[noreturn]] void refuse(uint64_t offset, const std::string& rule, const std::string& what) const;
};

struct NpyHeader {
  DType type = DType::Float32;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<int64_t> sizes;
  uint64_t data = 0;   // where the elements begin
  uint64_t bytes = 0;  // of the elements
};

/// Error (io): it breaks the format, or there are more or fewer bytes than it needs; (dtype): rosin has no such type.
NpyHeader read_npy_header(const NpyBytes& bytes);
/// The header of a row-major little-endian array, padded so that the elements begin at a multiple of 64 bytes.
/// Error (dtype): NumPy has no such type.
std::string npy_header_text(DType type, const std::vector<int64_t>& sizes);
/// NumPy's name for a type ("<f4"); empty where it has none.
std::string npy_type(DType type);

}  // namespace rosin
