// Reading the wire format: see wire.hpp.
#include "onnx/wire.hpp"

#include <cstring>

#include <rosin/error.hpp>

namespace rosin::onnx {

bool WireReader::next() {
  if (at_ == message_.bytes.size()) return false;
  const uint64_t tag = varint();
  field_ = static_cast<int>(tag >> 3 & 0x1fffffff);
  wire_ = static_cast<int>(tag & 7);
  if (field_ == 0 || tag >> 32 != 0)
    refuse("a field's number must be in 1 .. 2^29 - 1", "the tag " + std::to_string(tag));
  return true;
}

int64_t WireReader::integer() {
  expect(0);
  return static_cast<int64_t>(varint());
}

float WireReader::real() {
  expect(5);
  float value;
  std::memcpy(&value, take(4).data(), 4);
  return value;
}

double WireReader::fixed64() {
  double value;
  std::memcpy(&value, take(8).data(), 8);
  return value;
}

Bytes WireReader::bytes() {
  expect(2);
  const uint64_t count = varint();
  const uint64_t begin = offset();
  return {take(count), begin};
}

std::string_view WireReader::text() {
  const Bytes value = bytes();
  return {reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()};
}

void WireReader::skip() {
  switch (wire_) {
    case 0: varint(); return;
    case 1: take(8); return;
    case 2: bytes(); return;
    case 5: take(4); return;
    default: refuse("a field must be a number, text or message", "wire type " + std::to_string(wire_));
  }
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = take(1)[0];
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
  refuse("a number has at most ten bytes", "more of them");
}

std::span<const uint8_t> WireReader::take(uint64_t count) {
  const uint64_t left = message_.bytes.size() - at_;
  if (count > left) {
    refuse("what a message holds must be inside it",
           std::to_string(count) + " bytes where " + std::to_string(left) + " are left");
  }
  at_ += static_cast<size_t>(count);
  return message_.bytes.subspan(at_ - static_cast<size_t>(count), static_cast<size_t>(count));
}

void WireReader::expect(int wire) const {
  if (wire_ == wire) return;
  refuse("field " + std::to_string(field_) + " must have wire type " + std::to_string(wire),
         "wire type " + std::to_string(wire_));
}

void WireReader::refuse(const std::string& rule, const std::string& came) const {
  throw Error(ErrorKind::io, "onnx: " + rule + "; got " + came + " at byte " + std::to_string(offset()) + " of " +
                                 path_ + ", in " + what_ + "; the file is damaged or no ONNX model");
}

}  // namespace rosin::onnx
