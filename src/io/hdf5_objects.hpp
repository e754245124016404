// The part of HDF5 that JLD2 writes: superblock 2, object headers 2, links, attributes, data types, compact, contiguous
// and single-chunk data, global heaps. A reader of our own: libhdf5 trusts what it reads, and a damaged file may bring
// it down. Checksums are checked, and no byte of the file is taken as part of two headers.
// Read next: hdf5_objects.cpp, jld2_values.hpp (the user).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_file.hpp"

namespace rosin {

enum class Hdf5Class : uint8_t {
  integer = 0,
  real = 1,
  fixed_text = 3,
  bits = 4,
  opaque = 5,
  compound = 6,
  reference = 7,
  sequence = 9,
  array = 10
};

struct Hdf5Type {
  struct Member {
    std::string name;
    uint32_t offset;
    uint32_t type;  // in Hdf5File::types
  };
  Hdf5Class kind = Hdf5Class::opaque;
  bool is_signed = false;
  bool is_text = false;  // a sequence of characters
  bool big_endian = false;
  uint32_t size = 0;
  uint32_t base = 0;   // of sequences and arrays
  uint64_t count = 0;  // elements of an array
  // Of a committed type: its attribute julia_type.
  uint32_t description_type = 0;
  uint64_t description_place = 0;
  uint64_t description_bytes = 0;
  std::vector<Member> members;
};

struct Hdf5Space {
  enum class Kind : uint8_t { scalar, simple, null };
  Kind kind = Kind::null;
  std::vector<uint64_t> sizes;  // slowest first
};

/// Where the data of a dataset or attribute is.
struct Hdf5Data {
  uint64_t place = 0;       // in the file
  uint64_t bytes = 0;       // in the file
  bool compressed = false;  // by deflate
  bool shuffled = false;
};

struct Hdf5Attribute {
  std::string name;
  uint32_t type = 0;
  Hdf5Space space;
  Hdf5Data data;
};

struct Hdf5Object {
  bool is_group = false;
  std::vector<std::pair<std::string, uint64_t>> links;  // name and address
  std::optional<uint32_t> type;
  Hdf5Space space;
  Hdf5Data data;
  std::vector<Hdf5Attribute> attributes;

  const Hdf5Attribute* attribute(std::string_view name) const;
};

class Hdf5File {
 public:
  explicit Hdf5File(const InputFile& file);

  uint64_t root() const noexcept { return root_; }
  const Hdf5Type& type(uint32_t index) const { return types_[index]; }
  /// The object at this address (as references have it). Each is read once.
  Hdf5Object object(uint64_t address);
  /// The bytes of an object of a global heap.
  std::vector<unsigned char> heap_bytes(uint64_t address, uint32_t index);
  /// Bytes of the file at a place, of which the sum of all calls is not more than the file's size.
  std::vector<unsigned char> bytes(uint64_t place, uint64_t count);
  [[noreturn]] void refuse(uint64_t place, const std::string& rule, const std::string& what) const;

 private:
  class Cursor;
  struct HeapObject {
    uint64_t place;
    uint64_t bytes;
  };

  uint64_t absolute(uint64_t address) const;
  void find_superblock();
  std::vector<unsigned char> checked(uint64_t place, uint64_t count);
  void read_messages(Hdf5Object& object, const std::vector<unsigned char>& block, uint64_t place, size_t first,
                     bool ordered, std::vector<std::pair<uint64_t, uint64_t>>& more);
  void read_message(Hdf5Object& object, unsigned kind, unsigned flags, Cursor& body,
                    std::vector<std::pair<uint64_t, uint64_t>>& more);
  void read_link(Hdf5Object& object, Cursor& body);
  void read_layout(Hdf5Object& object, Cursor& body);
  void read_chunk(Hdf5Object& object, Cursor& body);
  void read_filters(Hdf5Object& object, Cursor& body);
  void read_attribute(Hdf5Object& object, Cursor& body);
  Hdf5Space read_space(Cursor& body);
  uint32_t read_type(Cursor& body, bool shared, int depth);
  uint32_t read_inline_type(Cursor& body, int depth);
  void read_compound(Hdf5Type& type, Cursor& body, uint32_t count, int depth);
  const std::map<uint32_t, HeapObject>& heap(uint64_t address);

  const InputFile& file_;
  uint64_t base_ = 0;
  uint64_t root_ = 0;
  uint64_t taken_ = 0;          // bytes of headers and data that were read
  std::deque<Hdf5Type> types_;  // stay where they are
  std::map<uint64_t, uint32_t> committed_;
  std::map<uint64_t, std::map<uint32_t, HeapObject>> heaps_;
  int depth_ = 0;
};

/// Jenkins' lookup3, with which HDF5 checks its metadata.
uint32_t lookup3(const unsigned char* bytes, size_t count) noexcept;

}  // namespace rosin
