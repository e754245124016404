// Numbers are little-endian. Only the central directory is believed; a local header gives the place of its data alone.
#include "io/zip.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <rosin/host_vector.hpp>

#include "io/julia_tree.hpp"
#include "io/unpack.hpp"

namespace rosin {
namespace {

constexpr uint64_t unknown = 0xffffffff;
constexpr uint32_t local_mark = 0x04034b50, central_mark = 0x02014b50, end_mark = 0x06054b50;
constexpr uint32_t end64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr uint64_t most_entries = 100000;

uint64_t number_at(const unsigned char* bytes, int width) {
  uint64_t value = 0;
  for (int i = width; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

void append(std::string& text, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
}

class ZipReader {
 public:
  explicit ZipReader(const InputFile& file) : file_(file) {}

  std::vector<ZipEntry> entries() {
    find_directory();
    std::vector<unsigned char> directory = part(directory_, directory_bytes_);
    std::vector<ZipEntry> found;
    std::set<std::string> names;
    uint64_t packed = 0;
    const unsigned char* next = directory.data();
    const unsigned char* end = next + directory.size();
    for (uint64_t i = 0; i < count_; ++i) {
      found.push_back(entry(next, end));
      if (!names.insert(found.back().name).second) refuse(directory_, "entries have names of their own", "two do not");
      packed += found.back().packed;
      if (packed > file_.size()) refuse(directory_, "entries must not overlap", "they have more bytes than the file");
    }
    return found;
  }

 private:
  [[noreturn]] void refuse(uint64_t place, const std::string& rule, const std::string& what) const {
    refuse_at(file_.path(), place, rule, what);
  }
  std::vector<unsigned char> part(uint64_t place, uint64_t count) const {
    if (place > file_.size() || count > file_.size() - place) {
      refuse(place, "a part of a zip file must lie in it", "it is cut off");
    }
    std::vector<unsigned char> bytes(static_cast<size_t>(count));
    file_.read(place, bytes.data(), bytes.size());
    return bytes;
  }

  /// The end record is the last one in the file; a comment may follow.
  void find_directory() {
    const uint64_t tail = std::min<uint64_t>(file_.size(), 65535 + 22);
    const std::vector<unsigned char> bytes = part(file_.size() - tail, tail);
    for (size_t at = bytes.size() >= 22 ? bytes.size() - 21 : 0; at-- > 0;) {
      const unsigned char* record = bytes.data() + at;
      if (number_at(record, 4) != end_mark || number_at(record + 20, 2) != bytes.size() - at - 22) continue;
      const uint64_t place = file_.size() - tail + at;
      count_ = number_at(record + 10, 2);
      directory_bytes_ = number_at(record + 12, 4);
      directory_ = number_at(record + 16, 4);
      if (number_at(record + 4, 2) != 0 || number_at(record + 8, 2) != count_) {
        refuse(place, "a zip file must be in one part", "it is in several");
      }
      if (count_ == 0xffff || directory_bytes_ == unknown || directory_ == unknown) find_directory64(place);
      if (count_ > most_entries) refuse(place, "a zip file has at most 100000 entries", "it has more");
      return;
    }
    refuse(0, "a zip file ends with its directory", "there is none");
  }

  void find_directory64(uint64_t end) {
    if (end < 20) refuse(end, "a large zip file has a locator", "there is none");
    const std::vector<unsigned char> locator = part(end - 20, 20);
    if (number_at(locator.data(), 4) != locator_mark) return;  // numbers that happen to be these
    const uint64_t place = number_at(locator.data() + 8, 8);
    const std::vector<unsigned char> record = part(place, 56);
    if (number_at(record.data(), 4) != end64_mark) refuse(place, "a locator leads to a record", "it does not");
    count_ = number_at(record.data() + 32, 8);
    directory_bytes_ = number_at(record.data() + 40, 8);
    directory_ = number_at(record.data() + 48, 8);
  }

  ZipEntry entry(const unsigned char*& next, const unsigned char* end) {
    if (end - next < 46 || number_at(next, 4) != central_mark) {
      refuse(directory_, "the directory has a record for each entry", "one is missing");
    }
    const uint64_t flags = number_at(next + 8, 2), method = number_at(next + 10, 2);
    const uint64_t name = number_at(next + 28, 2), extra = number_at(next + 30, 2), comment = number_at(next + 32, 2);
    if (static_cast<uint64_t>(end - next) < 46 + name + extra + comment) {
      refuse(directory_, "a record must end within the directory", "it is cut off");
    }
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(next + 46), static_cast<size_t>(name));
    entry.checksum = static_cast<uint32_t>(number_at(next + 16, 4));
    entry.packed = number_at(next + 20, 4);
    entry.bytes = number_at(next + 24, 4);
    uint64_t local = number_at(next + 42, 4);
    read_wide_numbers(next + 46 + name, extra, entry, local);
    entry.deflated = method == 8;
    if (flags & 1) refuse(local, "entries must not be encrypted", "'" + entry.name + "' is");
    if (method != 0 && method != 8) {
      refuse(local, "entries are stored or deflated", "'" + entry.name + "' has method " + std::to_string(method));
    }
    next += 46 + name + extra + comment;
    entry.place = data_place(local, entry);
    check_size(entry);
    return entry;
  }

  /// Numbers that do not fit 32 bits stand in an extra field, in this order.
  void read_wide_numbers(const unsigned char* extra, uint64_t count, ZipEntry& entry, uint64_t& local) const {
    for (const unsigned char* end = extra + count; end - extra >= 4;) {
      const uint64_t kind = number_at(extra, 2), size = number_at(extra + 2, 2);
      extra += 4;
      if (size > static_cast<uint64_t>(end - extra)) refuse(directory_, "an extra field must end", "it is cut off");
      const unsigned char* field = extra;
      extra += size;
      if (kind != 1) continue;
      for (uint64_t* wide : {&entry.bytes, &entry.packed, &local}) {
        if (*wide != unknown) continue;
        if (extra - field < 8) refuse(directory_, "a large entry has its numbers", "one is missing");
        *wide = number_at(field, 8);
        field += 8;
      }
    }
  }

  uint64_t data_place(uint64_t local, const ZipEntry& entry) const {
    const std::vector<unsigned char> head = part(local, 30);
    if (number_at(head.data(), 4) != local_mark) refuse(local, "an entry has a header", "there is none");
    const uint64_t place = local + 30 + number_at(head.data() + 26, 2) + number_at(head.data() + 28, 2);
    if (place > file_.size() || entry.packed > file_.size() - place) {
      refuse(place, "an entry must lie in the file", "'" + entry.name + "' is cut off");
    }
    return place;
  }

  void check_size(const ZipEntry& entry) const {
    constexpr uint64_t best_ratio = 1032;  // of deflate
    const bool fits = entry.deflated ? entry.bytes / best_ratio <= entry.packed : entry.bytes == entry.packed;
    if (!fits) refuse(entry.place, "an entry unpacks to what it says", "'" + entry.name + "' cannot");
  }

  const InputFile& file_;
  uint64_t directory_ = 0;
  uint64_t directory_bytes_ = 0;
  uint64_t count_ = 0;
};

}  // namespace

std::vector<ZipEntry> read_zip(const InputFile& file) { return ZipReader(file).entries(); }

std::vector<unsigned char> unpack_entry(const InputFile& file, const ZipEntry& entry) {
  auto bytes = detail::host_vector<unsigned char>("load", static_cast<int64_t>(entry.bytes));
  if (entry.deflated) unpack_deflate(file, entry.place, entry.packed, false, bytes.data(), entry.bytes);
  else file.read(entry.place, bytes.data(), bytes.size());
  if (crc32_of(bytes.data(), bytes.size()) != entry.checksum) {
    refuse_at(file.path(), entry.place, "an entry must have its checksum", "'" + entry.name + "' has not");
  }
  return bytes;
}

uint32_t crc32_of(const void* bytes, uint64_t count, uint32_t before) noexcept {
  static constexpr auto table = [] {
    std::array<std::array<uint32_t, 256>, 8> rows{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
      rows[0][i] = value;
    }
    for (size_t row = 1; row < 8; ++row) {
      for (size_t i = 0; i < 256; ++i) rows[row][i] = rows[row - 1][i] >> 8 ^ rows[0][rows[row - 1][i] & 255];
    }
    return rows;
  }();
  uint32_t value = ~before;
  const auto* next = static_cast<const unsigned char*>(bytes);
  for (; count >= 8; count -= 8, next += 8) {
    const auto low = static_cast<uint32_t>(number_at(next, 4)) ^ value;
    value = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
            table[3][next[4]] ^ table[2][next[5]] ^ table[1][next[6]] ^ table[0][next[7]];
  }
  for (; count > 0; --count) value = value >> 8 ^ table[0][(value ^ *next++) & 255];
  return ~value;
}

void ZipWriter::write(const std::string& bytes) {
  file_.write(bytes.data(), bytes.size());
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view head, const void* bytes, uint64_t count, bool deflated) {
  const auto packed = deflated ? pack_deflate(head, bytes, count) : std::vector<unsigned char>();
  const uint64_t size = head.size() + count, local = at_, stored = deflated ? packed.size() : size;
  const uint32_t checksum = crc32_of(bytes, count, crc32_of(head.data(), head.size()));
  const bool wide = std::max(size, stored) >= limit_, far = local >= limit_;
  std::string common;  // what both headers have: version, flags (names are UTF-8), method, 1 January 1980
  for (uint64_t value : {45, 0x800, deflated ? 8 : 0, 0, 0x21}) append(common, value, 2);
  append(common, checksum, 4);
  for (uint64_t value : {stored, size}) append(common, wide ? unknown : value, 4);
  append(common, name.size(), 2);
  std::string header, sizes;
  append(header, local_mark, 4);
  header += common;
  append(header, wide ? 20 : 0, 2);
  header += name;
  if (wide) {
    for (uint64_t value : {size, stored}) append(sizes, value, 8);
    append(header, 1, 2);
    append(header, 16, 2);
    header += sizes;
  }
  write(header);
  if (!deflated) {
    file_.write(head.data(), head.size());
    file_.write(bytes, static_cast<size_t>(count));
  } else {
    file_.write(packed.data(), packed.size());
  }
  at_ += stored;
  if (far) append(sizes, local, 8);
  append(directory_, central_mark, 4);
  append(directory_, 45, 2);
  directory_ += common;
  append(directory_, sizes.empty() ? 0 : sizes.size() + 4, 2);
  for (int i = 0; i < 5; ++i) append(directory_, 0, 2);  // comment, part, attributes
  append(directory_, far ? unknown : local, 4);
  directory_ += name;
  if (!sizes.empty()) {
    append(directory_, 1, 2);
    append(directory_, sizes.size(), 2);
    directory_ += sizes;
  }
  ++count_;
}

void ZipWriter::finish() {
  const uint64_t start = at_, size = directory_.size();
  write(directory_);
  const bool wide = start >= limit_ || size >= limit_ || count_ >= 0xffff;
  std::string end;
  if (wide) {
    const uint64_t record = at_;
    append(end, end64_mark, 4);
    append(end, 44, 8);
    for (uint64_t value : {45, 45}) append(end, value, 2);
    append(end, 0, 8);
    for (uint64_t value : {count_, count_, size, start}) append(end, value, 8);
    append(end, locator_mark, 4);
    append(end, 0, 4);
    append(end, record, 8);
    append(end, 1, 4);
  }
  append(end, end_mark, 4);
  append(end, 0, 4);
  for (int i = 0; i < 2; ++i) append(end, wide ? 0xffff : count_, 2);
  append(end, wide ? unknown : size, 4);
  append(end, wide ? unknown : start, 4);
  append(end, 0, 2);
  write(end);
}

}  // namespace rosin
