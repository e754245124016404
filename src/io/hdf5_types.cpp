// Data types and global heaps. Read first: hdf5_objects.hpp.
#include <cstring>

#include "io/hdf5_cursor.hpp"

namespace rosin {
namespace {

constexpr int deepest = 64;  // types in types

}  // namespace

uint32_t Hdf5File::read_type(Cursor& body, bool shared, int depth) {
  if (!shared) return read_inline_type(body, depth);
  body.number(1);
  if (body.number(1) != 2) body.refuse("a shared type is a committed one", "it is not");
  const uint64_t address = body.number(8);
  const auto known = committed_.find(address);
  if (known != committed_.end()) return known->second;
  if (++depth_ > deepest) body.refuse("types are nested at most 64 deep", "these are deeper");
  // It is known before it is read: the type of the types' descriptions describes itself.
  const auto index = static_cast<uint32_t>(types_.size());
  types_.emplace_back();
  committed_.emplace(address, index);
  const Hdf5Object object = this->object(address);
  --depth_;
  if (!object.type || *object.type == index) body.refuse("a committed type is one", "it is another object");
  types_[index] = Hdf5Type(types_[*object.type]);
  if (const Hdf5Attribute* description = object.attribute("julia_type")) {
    types_[index].description_type = description->type;
    types_[index].description_place = description->data.place;
    types_[index].description_bytes = description->data.bytes;
  }
  return index;
}

uint32_t Hdf5File::read_inline_type(Cursor& body, int depth) {
  if (depth > deepest) body.refuse("types are nested at most 64 deep", "these are deeper");
  const uint64_t head = body.number(1), low = body.number(1), middle = body.number(1);
  body.number(1);
  const uint64_t version = head >> 4;
  if (version < 1 || version > 4) body.refuse("a type is of version 1 to 4", "it is another one");
  Hdf5Type type;
  type.kind = static_cast<Hdf5Class>(head & 15);
  type.size = static_cast<uint32_t>(body.number(4));
  switch (type.kind) {
    case Hdf5Class::integer:
    case Hdf5Class::bits:
      type.is_signed = low & 8, type.big_endian = low & 1;
      body.number(4);
      break;
    case Hdf5Class::real:
      type.big_endian = low & 1;
      body.part(12);
      break;
    case Hdf5Class::fixed_text:
    case Hdf5Class::reference: break;
    case Hdf5Class::opaque: body.part(low); break;  // its tag
    case Hdf5Class::compound:
      if (version < 3) body.refuse("a compound type is of version 3", "it is an older one");
      read_compound(type, body, static_cast<uint32_t>(low | middle << 8), depth);
      break;
    case Hdf5Class::sequence:
      type.is_text = (low & 15) == 1;
      type.base = read_inline_type(body, depth + 1);
      break;
    case Hdf5Class::array: {
      const uint64_t rank = body.number(1);
      type.count = 1;
      for (uint64_t d = 0; d < rank; ++d) {
        if (__builtin_mul_overflow(type.count, body.number(4), &type.count)) {
          body.refuse("sizes of an array must not overflow", "they do");
        }
      }
      type.base = read_inline_type(body, depth + 1);
      break;
    }
    default: body.refuse("a type is of a class that JLD2 writes", "it is " + std::to_string(head & 15));
  }
  if (types_.size() > file_.size()) body.refuse("types are stored once", "they are not");
  types_.push_back(std::move(type));
  return static_cast<uint32_t>(types_.size() - 1);
}

void Hdf5File::read_compound(Hdf5Type& type, Cursor& body, uint32_t count, int depth) {
  const uint64_t width = type.size < 256 ? 1 : type.size < 65536 ? 2 : type.size < 16777216 ? 3 : 4;
  for (uint32_t i = 0; i < count; ++i) {
    Hdf5Type::Member member{body.text(), static_cast<uint32_t>(body.number(width)), 0};
    member.type = read_inline_type(body, depth + 1);
    const uint32_t size = types_[member.type].size;
    if (member.offset > type.size || size > type.size - member.offset) {
      body.refuse("a member must lie in its type", "'" + member.name + "' does not");
    }
    type.members.push_back(std::move(member));
  }
}

const std::map<uint32_t, Hdf5File::HeapObject>& Hdf5File::heap(uint64_t address) {
  const auto [entry, fresh] = heaps_.try_emplace(address);
  if (!fresh) return entry->second;
  const uint64_t place = absolute(address);
  unsigned char head[16] = {};
  if (file_.size() - place < sizeof head) refuse(place, "a heap must lie in the file", "it is cut off");
  file_.read(place, head, sizeof head);
  uint64_t size = 0;
  std::memcpy(&size, head + 8, 8);
  if (std::memcmp(head, "GCOL\1", 5) != 0 || size > file_.size() - place || size < 16) {
    refuse(place, "a heap begins with GCOL and lies in the file", "it does not");
  }
  for (uint64_t at = 16; size - at >= 16;) {
    unsigned char object[16];
    file_.read(place + at, object, sizeof object);
    uint16_t index = 0;
    uint64_t bytes = 0;
    std::memcpy(&index, object, 2);
    std::memcpy(&bytes, object + 8, 8);
    if (index == 0) break;  // free space to the end
    if (bytes > size - at - 16) refuse(place + at, "an object must lie in its heap", "it is cut off");
    entry->second[index] = {place + at + 16, bytes};
    const uint64_t step = 16 + (bytes + 7) / 8 * 8;
    if (step > size - at) break;
    at += step;
  }
  return entry->second;
}

std::vector<unsigned char> Hdf5File::heap_bytes(uint64_t address, uint32_t index) {
  const auto& objects = heap(address);
  const auto found = objects.find(index);
  if (found == objects.end()) refuse(address, "a heap has the objects that are referred to", "one is missing");
  return bytes(found->second.place, found->second.bytes);
}

}  // namespace rosin
