// The wire format of protocol buffers, written: fields are put behind one another into a string.
// Read next: file_graph.hpp, which makes ONNX's messages of them. Read beside it: wire.hpp, which reads.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace rosin::onnx {

/// The fields of one message, in the order in which they are put.
class WireWriter {
 public:
  void integer(int field, int64_t value) {
    tag(field, 0);
    varint(static_cast<uint64_t>(value));
  }
  void real(int field, float value) {
    tag(field, 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  }
  void text(int field, std::string_view value) {
    head(field, value.size());
    bytes_ += value;
  }
  void message(int field, const WireWriter& value) { text(field, value.bytes_); }
  /// Of a text or message whose bytes, so many, are written elsewhere.
  void head(int field, uint64_t count) {
    tag(field, 2);
    varint(count);
  }

  const std::string& bytes() const noexcept { return bytes_; }

 private:
  void tag(int field, unsigned wire) { varint(static_cast<uint64_t>(field) << 3 | wire); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace rosin::onnx
