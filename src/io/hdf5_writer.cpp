// Superblock 2, object headers 2, layouts 4: what JLD2 writes, byte for byte where it has no choice.
#include "io/hdf5_writer.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "graph/leaf.hpp"
#include "io/hdf5_objects.hpp"

namespace rosin {
namespace {

constexpr uint64_t most_inside = 8192;  // bytes of data that stand in an object's header

std::string bytes_of_numbers(std::initializer_list<std::pair<uint64_t, int>> numbers) {
  std::string bytes;
  for (const auto& [value, width] : numbers) append_little(bytes, value, width);
  return bytes;
}

void set_little(std::string& text, size_t place, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) text[place + static_cast<size_t>(i)] = static_cast<char>(value >> (8 * i));
}

uint32_t checksum_of(std::string_view bytes) {
  return lookup3(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

/// Where `bytes` bytes at an address are.
std::string contiguous(uint64_t address, uint64_t bytes) {
  return hdf5::message(8, 0, bytes_of_numbers({{4, 1}, {1, 1}, {address, 8}, {bytes, 8}}));
}

std::string compact(const std::string& data) {
  return hdf5::message(8, 0, bytes_of_numbers({{4, 1}, {0, 1}, {data.size(), 2}}) + data);
}

const std::string& no_fill() {
  static const std::string fill = hdf5::message(5, 0, bytes_of_numbers({{3, 1}, {9, 1}}));
  return fill;
}

}  // namespace

void append_little(std::string& bytes, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

namespace hdf5 {

std::string integer_type(int bytes, bool is_signed) {
  const auto width = static_cast<uint64_t>(bytes);
  return bytes_of_numbers({{0x30, 1}, {is_signed ? 8 : 0, 3}, {width, 4}, {0, 2}, {8 * width, 2}});
}

std::string real_type(int bytes) {
  struct Row {
    uint64_t bits, exponent_at, exponent_bits, bias;
  };
  const Row row = bytes == 2 ? Row{16, 10, 5, 15} : bytes == 4 ? Row{32, 23, 8, 127} : Row{64, 52, 11, 1023};
  return bytes_of_numbers({{0x31, 1},
                           {0x20, 1},
                           {row.bits - 1, 2},
                           {row.bits / 8, 4},
                           {0, 2},
                           {row.bits, 2},
                           {row.exponent_at, 1},
                           {row.exponent_bits, 1},
                           {0, 1},
                           {row.exponent_at, 1},
                           {row.bias, 4}});
}

std::string bool_type() { return bytes_of_numbers({{0x34, 1}, {0, 3}, {1, 4}, {0, 2}, {8, 2}}); }
std::string text_type() { return bytes_of_numbers({{0x39, 1}, {0x111, 3}, {16, 4}}) + integer_type(1, false); }
std::string reference_type() { return bytes_of_numbers({{0x37, 1}, {0, 3}, {8, 4}}); }
std::string references_type() { return bytes_of_numbers({{0x39, 1}, {0, 3}, {16, 4}}) + reference_type(); }

std::string compound_type(uint64_t size, const std::vector<Member>& members) {
  if (members.size() > 0xffff || size > UINT32_MAX) {
    throw Error(ErrorKind::argument, "save: a part of a JLD2 file has at most 65535 fields; got one with " +
                                         std::to_string(members.size()) + "; save it as .bson or .safetensors");
  }
  std::string bytes = bytes_of_numbers({{0x36, 1}, {members.size(), 3}, {size, 4}});
  const int width = size < 256 ? 1 : size < 65536 ? 2 : size < 16777216 ? 3 : 4;
  for (const Member& member : members) {
    bytes += member.name;
    bytes.push_back('\0');
    append_little(bytes, member.offset, width);
    bytes += member.type;
  }
  return bytes;
}

std::string scalar_space() { return bytes_of_numbers({{2, 1}, {0, 3}}); }

std::string simple_space(const std::vector<uint64_t>& sizes) {
  std::string bytes = bytes_of_numbers({{2, 1}, {sizes.size(), 1}, {0, 1}, {1, 1}});
  for (uint64_t size : sizes) append_little(bytes, size, 8);
  return bytes;
}

std::string message(int kind, int flags, const std::string& body) {
  if (body.size() > 0xffff) {
    throw Error(ErrorKind::argument,
                "save: the types of a JLD2 file take at most 64 KiB each; got a model with more "
                "parts; save it as .bson or .safetensors");
  }
  return bytes_of_numbers({{static_cast<uint64_t>(kind), 1}, {body.size(), 2}, {static_cast<uint64_t>(flags), 1}}) +
         body;
}

std::string shared_type(uint64_t address) { return bytes_of_numbers({{3, 1}, {2, 1}, {address, 8}}); }

std::string attribute(std::string_view name, const std::string& type, bool shared, const std::string& space,
                      const std::string& data) {
  const std::string head =
      bytes_of_numbers({{2, 1}, {shared, 1}, {name.size() + 1, 2}, {type.size(), 2}, {space.size(), 2}});
  return message(12, 0, head + std::string(name) + '\0' + type + space + data);
}

}  // namespace hdf5

Hdf5Text::Hdf5Text() : text_(base + 48, '\0') {}

uint64_t Hdf5Text::object(const std::string& messages) {
  const uint64_t place = address();
  const int flags = messages.size() < 256 ? 0 : messages.size() < 65536 ? 1 : 2;
  std::string header = "OHDR" + bytes_of_numbers({{2, 1}, {static_cast<uint64_t>(flags), 1}});
  append_little(header, messages.size(), 1 << flags);
  header += messages;
  append_little(header, checksum_of(header), 4);
  text_ += header;
  return place;
}

uint64_t Hdf5Text::dataset(const std::string& type, const std::string& space, const std::string& data) {
  std::string layout;
  if (data.size() <= most_inside) {
    layout = compact(data);
  } else {
    layout = contiguous(address(), data.size());
    text_ += data;
  }
  return object(no_fill() + hdf5::message(1, 0, space) + type + layout);
}

uint64_t Hdf5Text::dataset(const std::string& type, const Array& x) {
  std::vector<uint64_t> sizes;
  for (int d = x.rank(); d-- > 0;) sizes.push_back(static_cast<uint64_t>(x.size(d)));
  const uint64_t bytes = bytes_of(x.dtype(), x.shape());
  std::string layout = compact("");
  if (bytes > 0) {
    text_.append((8 - address() % 8) % 8, '\0');  // where they may be mapped
    layout = contiguous(address(), bytes);
    gaps_.push_back({text_.size(), x});
    elements_ += bytes;
  }
  return object(no_fill() + hdf5::message(1, 0, hdf5::simple_space(sizes)) + type + layout);
}

void Hdf5Text::new_heap(uint64_t needed) {
  const uint64_t size = std::max<uint64_t>(4096, needed + 16);
  heap_ = address();
  heap_next_ = text_.size() + 16;
  heap_end_ = text_.size() + size;
  heap_index_ = 0;
  text_ += "GCOL" + bytes_of_numbers({{1, 4}, {size, 8}});
  text_.resize(heap_end_, '\0');
}

std::string Hdf5Text::sequence(uint64_t count, std::string_view data) {
  if (data.empty()) return std::string(16, '\0');
  const uint64_t needed = 16 + (data.size() + 7) / 8 * 8;
  if (heap_end_ - heap_next_ < needed) new_heap(needed);
  set_little(text_, heap_next_, ++heap_index_, 2);
  set_little(text_, heap_next_ + 2, 1, 2);  // it is referred to once
  set_little(text_, heap_next_ + 8, data.size(), 8);
  text_.replace(heap_next_ + 16, data.size(), data);
  heap_next_ += needed;
  // What is free is an object too, of index 0.
  if (heap_end_ - heap_next_ >= 16) set_little(text_, heap_next_ + 8, heap_end_ - heap_next_, 8);
  return bytes_of_numbers({{count, 4}, {heap_, 8}, {heap_index_, 4}});
}

uint64_t Hdf5Text::group(const std::vector<std::pair<std::string, uint64_t>>& links) {
  std::string messages = hdf5::message(2, 0, bytes_of_numbers({{0, 2}, {UINT64_MAX, 8}, {UINT64_MAX, 8}}));
  messages += hdf5::message(10, 0, std::string(2, '\0'));
  for (const auto& [name, place] : links) {
    const int width = name.size() < 256 ? 0 : 1;  // a byte for the length, or two
    std::string body = bytes_of_numbers({{1, 1}, {static_cast<uint64_t>(0x10 | width), 1}, {1, 1}});
    append_little(body, name.size(), 1 << width);
    body += name;
    append_little(body, place, 8);
    messages += hdf5::message(6, 0, body);
  }
  return object(messages);
}

void Hdf5Text::finish(uint64_t root) {
  const std::string title =
      std::string("HDF5-based Julia Data Format, version 0.1.1") + '\0' + " (rosin " ROSIN_VERSION " 64-bit LE)";
  text_.replace(0, title.size(), title);
  std::string block = "\x89HDF\r\n\x1a\n" + bytes_of_numbers({{2, 1}, {8, 1}, {8, 1}, {0, 1}, {base, 8}});
  for (uint64_t number : {UINT64_MAX, uint64_t{text_.size() + elements_}, root}) append_little(block, number, 8);
  append_little(block, checksum_of(block), 4);
  text_.replace(base, block.size(), block);
}

}  // namespace rosin
