// Checks and reads one idx file. Read next: image_folder.cpp.
#include "data/idx_file.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include <rosin/error.hpp>

#include "base/input_file.hpp"
#include "data/gzip.hpp"

namespace rosin {

namespace {

constexpr std::size_t type_at = 2;
constexpr std::size_t rank_at = 3;
constexpr std::size_t dims_at = 4;
constexpr std::size_t longest_header = dims_at + 4 * 255;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::io, "read_idx: '" + path + "' " + why);
}

std::string hexadecimal(uint8_t byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

std::string text_of(const std::vector<int64_t>& dims) {
  std::string text = "(";
  for (const int64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + ")";
}

std::size_t element_size(int type, const std::string& path) {
  switch (type) {
    case 0x08:
    case 0x09: return 1;
    case 0x0B: return 2;
    case 0x0C:
    case 0x0D: return 4;
    case 0x0E: return 8;
    default: break;
  }
  fail(path, "has element type " + hexadecimal(static_cast<uint8_t>(type)) +
                 ", which idx does not know; expected one of 0x08 0x09 0x0b 0x0c 0x0d 0x0e");
}

uint32_t big_endian(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
         static_cast<uint32_t>(bytes[2]) << 8 | static_cast<uint32_t>(bytes[3]);
}

struct Header {
  IdxFile file;  // without its elements
  std::size_t begin = 0;
  std::size_t element = 0;
  std::size_t data = 0;  // bytes of elements
};

// The product of element size and dimensions; it must fit the address space even where one dimension is 0.
std::size_t checked_size(std::size_t element, const std::vector<int64_t>& dims, const std::string& path) {
  const std::size_t most = static_cast<std::size_t>(std::numeric_limits<int64_t>::max());
  std::size_t size = element;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim == 0) {
      empty = true;
    } else if (size > most / static_cast<std::size_t>(dim)) {
      fail(path, "claims impossible sizes " + text_of(dims) + ": their product overflows; the header is damaged");
    } else {
      size *= static_cast<std::size_t>(dim);
    }
  }
  return empty ? 0 : size;
}

Header read_header(const std::vector<uint8_t>& bytes, const std::string& path) {
  if (bytes.empty()) fail(path, "is empty; an idx file begins with the bytes 0x00 0x00");
  const bool magic = bytes[0] == 0 && (bytes.size() < 2 || bytes[1] == 0);
  if (!magic) {
    fail(path, "is no idx file: it begins with the bytes " + hexadecimal(bytes[0]) +
                   (bytes.size() > 1 ? " " + hexadecimal(bytes[1]) : "") + ", not 0x00 0x00");
  }
  if (bytes.size() < dims_at) {
    fail(path, "is truncated: its header ends after " + std::to_string(bytes.size()) + " bytes, too early");
  }
  Header header;
  header.file.type = bytes[type_at];
  header.element = element_size(header.file.type, path);
  const std::size_t rank = bytes[rank_at];
  if (rank == 0) fail(path, "has no dimensions; an idx file has at least one");
  header.begin = dims_at + 4 * rank;
  if (bytes.size() < header.begin) {
    fail(path, "is truncated: its header has " + std::to_string(header.begin) + " bytes, only " +
                   std::to_string(bytes.size()) + " came");
  }
  for (std::size_t at = dims_at; at < header.begin; at += 4) header.file.dims.push_back(big_endian(&bytes[at]));
  header.data = checked_size(header.element, header.file.dims, path);
  return header;
}

// The file holds big-endian elements.
void to_machine_order(std::vector<uint8_t>& bytes, std::size_t element) {
  if (element == 1 || std::endian::native == std::endian::big) return;
  for (auto at = bytes.begin(); at != bytes.end(); at += static_cast<std::ptrdiff_t>(element)) {
    std::reverse(at, at + static_cast<std::ptrdiff_t>(element));
  }
}

void check_length(const Header& header, std::size_t have, const std::string& path) {
  const std::string claim =
      "its sizes " + text_of(header.file.dims) + " need " + std::to_string(header.data) + " bytes of data, ";
  if (have < header.data) {
    fail(path, "is truncated: " + claim + "only " + std::to_string(have) + " came; fetch the file again");
  }
  if (have > header.data) fail(path, "has bytes after its end: " + claim + "more came; fetch the file again");
}

}  // namespace

IdxFile read_idx_file(const std::string& path) {
  std::vector<uint8_t> bytes = read_whole_file(path);
  Header header;
  if (looks_like_gzip(bytes)) {
    // Once for the header, which says how much the whole may be.
    header = read_header(unpack_gzip(bytes, longest_header, path), path);
    bytes = unpack_gzip(bytes, header.begin + header.data, path);
  } else {
    header = read_header(bytes, path);
  }
  check_length(header, bytes.size() - header.begin, path);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.begin));
  to_machine_order(bytes, header.element);
  IdxFile file = std::move(header.file);
  file.bytes = std::move(bytes);
  return file;
}

}  // namespace rosin
