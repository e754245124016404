// Superblock and object headers. Addresses count from the superblock's base. Read next: hdf5_types.cpp.
#include "io/hdf5_objects.hpp"

#include <algorithm>
#include <cstring>

#include "io/hdf5_cursor.hpp"
#include "io/julia_tree.hpp"

namespace rosin {

const Hdf5Attribute* Hdf5Object::attribute(std::string_view name) const {
  for (const Hdf5Attribute& each : attributes) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

Hdf5File::Hdf5File(const InputFile& file) : file_(file) { find_superblock(); }

void Hdf5File::refuse(uint64_t place, const std::string& rule, const std::string& what) const {
  refuse_at(file_.path(), place, rule, what);
}

std::vector<unsigned char> Hdf5File::bytes(uint64_t place, uint64_t count) {
  if (place > file_.size() || count > file_.size() - place) {
    refuse(place, "what is referred to must lie in the file", "it is cut off");
  }
  // Headers, heaps and small values are read once; arrays' elements do not count.
  if (count > file_.size() - taken_) refuse(place, "parts of a file must not overlap", "they do");
  taken_ += count;
  std::vector<unsigned char> read(static_cast<size_t>(count));
  file_.read(place, read.data(), read.size());
  return read;
}

uint64_t Hdf5File::absolute(uint64_t address) const {
  uint64_t place = 0;
  if (__builtin_add_overflow(address, base_, &place) || place >= file_.size()) {
    refuse(0, "an address must lie in the file", "one is " + std::to_string(address));
  }
  return place;
}

/// Bytes whose last four are the checksum of the others.
std::vector<unsigned char> Hdf5File::checked(uint64_t place, uint64_t count) {
  std::vector<unsigned char> block = bytes(place, count);
  if (block.size() < 8) refuse(place, "a header has at least eight bytes", "this one has fewer");
  uint32_t stated = 0;
  std::memcpy(&stated, block.data() + block.size() - 4, 4);
  if (stated != lookup3(block.data(), block.size() - 4)) {
    refuse(place, "a header must have its checksum", "it has another one");
  }
  block.resize(block.size() - 4);
  return block;
}

void Hdf5File::find_superblock() {
  constexpr unsigned char mark[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  for (const uint64_t place : {0, 512, 1024, 2048, 4096}) {
    if (file_.size() < place + 48) break;
    unsigned char found[8];
    file_.read(place, found, sizeof found);
    if (std::memcmp(found, mark, sizeof mark) != 0) continue;
    const std::vector<unsigned char> block = checked(place, 48);
    if (block[8] != 2 || block[9] != 8 || block[10] != 8) {
      refuse(place + 8, "the superblock is of version 2 with numbers of 64 bits", "it is another one");
    }
    std::memcpy(&base_, block.data() + 12, 8);
    std::memcpy(&root_, block.data() + 36, 8);
    if (base_ > place) refuse(place + 12, "addresses count from the superblock or before", "they do not");
    return;
  }
  refuse(0, "a JLD2 file has a superblock of HDF5", "there is none");
}

Hdf5Object Hdf5File::object(uint64_t address) {
  const uint64_t place = absolute(address);
  std::vector<unsigned char> head(static_cast<size_t>(std::min<uint64_t>(34, file_.size() - place)));
  file_.read(place, head.data(), head.size());
  if (head.size() < 16 || std::memcmp(head.data(), "OHDR\2", 5) != 0) {
    refuse(place, "an object has a header of version 2", "there is none");
  }
  const unsigned flags = head[5];
  const size_t at = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0), width = size_t{1} << (flags & 3);
  if (head.size() < at + width) refuse(place, "an object's header must lie in the file", "it is cut off");
  uint64_t size = 0;
  std::memcpy(&size, head.data() + at, width);
  if (size > file_.size() - place) refuse(place, "an object's header must lie in the file", "it is cut off");
  Hdf5Object object;
  std::vector<std::pair<uint64_t, uint64_t>> more;
  read_messages(object, checked(place, at + width + size + 4), place, at + width, flags & 4, more);
  for (size_t i = 0; i < more.size(); ++i) {
    const uint64_t next = absolute(more[i].first);
    const std::vector<unsigned char> block = checked(next, more[i].second);
    if (std::memcmp(block.data(), "OCHK", 4) != 0) refuse(next, "a header goes on with OCHK", "it does not");
    read_messages(object, block, next, 4, flags & 4, more);
  }
  return object;
}

void Hdf5File::read_messages(Hdf5Object& object, const std::vector<unsigned char>& block, uint64_t place, size_t first,
                             bool ordered, std::vector<std::pair<uint64_t, uint64_t>>& more) {
  Cursor cursor(*this, block, place, first, block.size());
  while (cursor.left() >= (ordered ? 6u : 4u)) {
    const auto kind = static_cast<unsigned>(cursor.number(1));
    const uint64_t size = cursor.number(2);
    const auto flags = static_cast<unsigned>(cursor.number(1));
    if (ordered) cursor.number(2);
    Cursor body = cursor.part(size);
    read_message(object, kind, flags, body, more);
  }
}

void Hdf5File::read_message(Hdf5Object& object, unsigned kind, unsigned flags, Cursor& body,
                            std::vector<std::pair<uint64_t, uint64_t>>& more) {
  switch (kind) {
    case 1: object.space = read_space(body); break;
    case 2:
    case 10: object.is_group = true; break;
    case 3: object.type = read_type(body, flags & 2, 0); break;
    case 6:
      object.is_group = true;
      read_link(object, body);
      break;
    case 8: read_layout(object, body); break;
    case 11: read_filters(object, body); break;
    case 12: read_attribute(object, body); break;
    case 16: {
      const uint64_t address = body.number(8);
      more.emplace_back(address, body.number(8));
      break;
    }
    default: break;  // padding, fill values, comments
  }
}

void Hdf5File::read_link(Hdf5Object& object, Cursor& body) {
  if (body.number(1) != 1) body.refuse("a link is of version 1", "it is another one");
  const uint64_t flags = body.number(1);
  const uint64_t kind = flags & 8 ? body.number(1) : 0;
  if (flags & 4) body.number(8);
  if (flags & 16) body.number(1);
  const std::string name = body.text(body.number(1 << (flags & 3)));
  if (kind == 0) object.links.emplace_back(name, body.number(8));  // links to names and files are passed by
}

Hdf5Space Hdf5File::read_space(Cursor& body) {
  if (body.number(1) != 2) body.refuse("a data space is of version 2", "it is another one");
  Hdf5Space space;
  const uint64_t rank = body.number(1);
  body.number(1);
  const uint64_t kind = body.number(1);
  if (kind > 2) body.refuse("a data space is a scalar, simple or nothing", "it is another one");
  space.kind = static_cast<Hdf5Space::Kind>(kind);
  for (uint64_t d = 0; d < rank; ++d) space.sizes.push_back(body.number(8));
  return space;
}

void Hdf5File::read_layout(Hdf5Object& object, Cursor& body) {
  const uint64_t version = body.number(1);
  if (version != 3 && version != 4) body.refuse("a layout is of version 3 or 4", "it is another one");
  const uint64_t kind = body.number(1);
  if (kind == 0) {
    object.data.bytes = body.number(2);
    object.data.place = body.place();
    body.part(object.data.bytes);
  } else if (kind == 1) {
    const uint64_t address = body.number(8);
    object.data.bytes = body.number(8);
    if (address == UINT64_MAX) object.data.bytes = 0;
    else object.data.place = absolute(address);
  } else if (kind == 2 && version == 4) {
    read_chunk(object, body);
  } else {
    body.refuse("data is compact, contiguous or in one chunk", "it is not");
  }
  if (object.data.bytes > file_.size() - object.data.place) {
    body.refuse("data must lie in the file", "it is cut off");
  }
}

void Hdf5File::read_chunk(Hdf5Object& object, Cursor& body) {
  const uint64_t flags = body.number(1), rank = body.number(1), width = body.number(1);
  if (width < 1 || width > 8) body.refuse("sizes of chunks have one to eight bytes", "they have not");
  for (uint64_t d = 0; d < rank; ++d) body.number(width);
  if (body.number(1) != 1 || !(flags & 2)) body.refuse("compressed data is in one chunk", "it is in several");
  object.data.bytes = body.number(8);
  if (body.number(4) != 0) body.refuse("a chunk went through all filters", "it did not");
  object.data.place = absolute(body.number(8));
  object.data.compressed = true;
}

void Hdf5File::read_filters(Hdf5Object& object, Cursor& body) {
  if (body.number(1) != 2) body.refuse("a filter pipeline is of version 2", "it is another one");
  const uint64_t count = body.number(1);
  bool deflates = false;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t kind = body.number(2);
    const uint64_t name = kind >= 256 ? body.number(2) : 0;
    body.number(2);
    const uint64_t values = body.number(2);
    body.part(name);
    body.part(4 * values);
    if (kind == 1 && !deflates) deflates = true;
    else if (kind == 2 && !deflates) object.data.shuffled = true;
    else
      body.refuse("data is compressed by deflate", "it is by filter " + std::to_string(kind) + ", which rosin lacks");
  }
  if (!deflates) body.refuse("data is compressed by deflate", "it is not");
}

void Hdf5File::read_attribute(Hdf5Object& object, Cursor& body) {
  const uint64_t version = body.number(1);
  if (version != 2 && version != 3) body.refuse("an attribute is of version 2 or 3", "it is another one");
  const uint64_t flags = body.number(1);
  const uint64_t name = body.number(2), type = body.number(2), space = body.number(2);
  if (version == 3) body.number(1);
  Hdf5Attribute made;
  made.name = body.text(name);
  while (!made.name.empty() && made.name.back() == '\0') made.name.pop_back();
  Cursor type_body = body.part(type);
  made.type = read_type(type_body, flags & 1, 0);
  Cursor space_body = body.part(space);
  made.space = read_space(space_body);
  made.data.place = body.place();
  made.data.bytes = body.left();
  object.attributes.push_back(std::move(made));
}

uint32_t lookup3(const unsigned char* bytes, size_t count) noexcept {
  const auto rotated = [](uint32_t x, int n) { return x << n | x >> (32 - n); };
  uint32_t a = 0xdeadbeef + static_cast<uint32_t>(count), b = a, c = a;
  const auto word = [&](size_t place) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4 && place + i < count; ++i) value |= uint32_t{bytes[place + i]} << (8 * i);
    return value;
  };
  size_t at = 0;
  for (; count - at > 12; at += 12) {
    a += word(at), b += word(at + 4), c += word(at + 8);
    a -= c, a ^= rotated(c, 4), c += b;
    b -= a, b ^= rotated(a, 6), a += c;
    c -= b, c ^= rotated(b, 8), b += a;
    a -= c, a ^= rotated(c, 16), c += b;
    b -= a, b ^= rotated(a, 19), a += c;
    c -= b, c ^= rotated(b, 4), b += a;
  }
  if (at == count) return c;
  a += word(at), b += word(at + 4), c += word(at + 8);
  c ^= b, c -= rotated(b, 14);
  a ^= c, a -= rotated(c, 11);
  b ^= a, b -= rotated(a, 25);
  c ^= b, c -= rotated(b, 16);
  a ^= c, a -= rotated(c, 4);
  b ^= a, b -= rotated(a, 14);
  c ^= b, c -= rotated(b, 24);
  return c;
}

}  // namespace rosin
