// Checksums keep changed files from the code behind them: they are set right before a file is read. (That wrong ones
// are refused is tested beside the readers.)
#include <cstring>

#include "io/hdf5_objects.hpp"
#include "io/zip.hpp"
#include "targets.hpp"

namespace rosin::fuzz {
namespace {

uint64_t number_at(const FileBytes& file, size_t place, size_t width) {
  uint64_t value = 0;
  if (place <= file.size() && width <= file.size() - place) std::memcpy(&value, file.data() + place, width);
  return value;
}

void set_number(FileBytes& file, size_t place, uint32_t value) {
  std::memcpy(file.data() + place, &value, sizeof value);
}

bool stands_at(const FileBytes& file, size_t place, const char* mark, size_t count) {
  return place <= file.size() && count <= file.size() - place && std::memcmp(file.data() + place, mark, count) == 0;
}

/// The checksum of `count` bytes stands behind them.
void repair_block(FileBytes& file, size_t place, uint64_t count) {
  if (place > file.size() || count > file.size() - place || file.size() - place - count < 4) return;
  const auto bytes = static_cast<size_t>(count);
  set_number(file, place + bytes, lookup3(file.data() + place, bytes));
}

void repair_entry(FileBytes& file, size_t central) {
  const uint64_t method = number_at(file, central + 10, 2), packed = number_at(file, central + 20, 4);
  const auto local = static_cast<size_t>(number_at(file, central + 42, 4));
  const uint64_t data = local + 30 + number_at(file, local + 26, 2) + number_at(file, local + 28, 2);
  if (method != 0 || data > file.size() || packed > file.size() - data || central + 46 > file.size()) return;
  set_number(file, central + 16, crc32_of(file.data() + data, packed));
}

}  // namespace

void repair_zip(FileBytes& file) {
  for (size_t place = 0; place + 46 <= file.size(); ++place) {
    if (stands_at(file, place, "PK\1\2", 4)) repair_entry(file, place);
  }
}

void repair_png(FileBytes& file) {
  const auto big_endian = [&](size_t place) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | file[place + i];
    return value;
  };
  if (!stands_at(file, 0, "\x89PNG", 4)) return;
  for (size_t place = 8; place + 12 <= file.size();) {
    const size_t length = big_endian(place), end = place + 8 + length;
    if (length > file.size() || end + 4 > file.size()) return;
    const uint32_t sum = crc32_of(file.data() + place + 4, length + 4);
    for (size_t i = 0; i < 4; ++i) file[end + i] = static_cast<unsigned char>(sum >> (24 - 8 * i));
    place = end + 4;
  }
}

void repair_hdf5(FileBytes& file) {
  for (size_t place = 0; place + 8 <= file.size(); ++place) {
    if (stands_at(file, place, "\x89HDF\r\n\x1a\n", 8)) repair_block(file, place, 44);
    if (!stands_at(file, place, "OHDR\2", 5)) continue;
    const uint64_t flags = number_at(file, place + 5, 1);
    const size_t at = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0), width = size_t{1} << (flags & 3);
    const uint64_t size = number_at(file, place + at, width);
    if (size < file.size()) repair_block(file, place, at + width + size);
  }
}

}  // namespace rosin::fuzz
