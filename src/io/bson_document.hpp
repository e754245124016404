// The outer layer of a BSON file: documents of named elements. Only the nine types that BSON.jl writes are taken. The
// reader is our own: libbson wants a whole file in memory, and then a second copy of every array; here the elements of
// arrays stay in the file until they are wanted, and every complaint knows its byte.
// Read next: bson_values.hpp (what the documents mean).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.hpp"

namespace rosin {

/// The types of elements; their bytes in files.
enum class BsonType : uint8_t {
  real = 0x01,
  text = 0x02,
  document = 0x03,
  array = 0x04,
  binary = 0x05,
  boolean = 0x08,
  nothing = 0x0A,
  int32 = 0x10,
  int64 = 0x12
};

struct BsonElement {
  static constexpr uint32_t no_text = UINT32_MAX;

  BsonType type = BsonType::nothing;
  uint32_t key = 0;    // in BsonFile::texts
  uint32_t text = 0;   // of texts; of documents the text of their key "tag", or no_text
  uint32_t first = 0;  // children of documents and arrays: elements first ... first + count - 1 of `order`
  uint32_t count = 0;
  uint64_t place = 0;  // of the element in the file; of binaries, of their bytes
  union {
    int64_t integer;
    double real;
    uint64_t bytes;  // of a binary
  };
};

/// A whole file, less the content of binaries. Element 0 is the root document.
struct BsonFile {
  std::vector<BsonElement> elements;
  std::vector<uint32_t> order;  // of the children of each document, as in the file
  std::vector<std::string> texts;

  std::span<const uint32_t> children(const BsonElement& element) const {
    return std::span(order).subspan(element.first, element.count);
  }
  const std::string& key(uint32_t element) const { return texts[elements[element].key]; }
  /// The child of that key, or null.
  const BsonElement* child(const BsonElement& element, std::string_view key) const;
};

/// Error (io): the file breaks the format, is nested deeper than 500 documents, or has more than 2^22 elements.
BsonFile read_bson(const InputFile& file);

}  // namespace rosin
