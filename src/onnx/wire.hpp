// The wire format of protocol buffers, read from bytes in memory: tags, numbers and nested messages, each with its
// place in the file for messages. Of its own, as a file from elsewhere is not to be trusted: nothing is allocated here,
// every length is checked against what is there, and an error names the byte.
// Read next: definition.cpp, which knows the messages of ONNX.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rosin::onnx {

/// Bytes of a file: where they begin in it, and what they are for messages.
struct Bytes {
  std::span<const uint8_t> bytes;
  uint64_t offset = 0;
};

/// One message. `what` names it ("NodeProto"); `path` is the file's; both live longer.
class WireReader {
 public:
  WireReader(Bytes message, const char* what, const std::string& path) : message_(message), what_(what), path_(path) {}

  /// Goes to the next field; false at the end of the message. The field's value must be taken by one of those below.
  bool next();
  int field() const noexcept { return field_; }

  /// Values of the field that `next` found. Error (io): the field has another wire type, or its bytes end too early.
  int64_t integer();
  float real();
  Bytes bytes();
  std::string_view text();
  WireReader message(const char* what) { return {bytes(), what, path_}; }
  void skip();

  /// Calls `take` with each number of a field that may be packed or repeated.
  template <class Take> void integers(Take take) {
    if (wire_ != 2) return take(integer());
    WireReader list = message(what_);
    while (list.at_ < list.message_.bytes.size()) take(static_cast<int64_t>(list.varint()));
  }
  template <class Take> void reals(Take take) {
    if (wire_ != 2) return take(real());
    WireReader list = message(what_);
    list.wire_ = 5;
    while (list.at_ < list.message_.bytes.size()) take(list.real());
  }
  template <class Take> void doubles(Take take) {
    if (wire_ == 1) return take(fixed64());
    WireReader list = message(what_);
    while (list.at_ < list.message_.bytes.size()) take(list.fixed64());
  }

  uint64_t offset() const noexcept { return message_.offset + at_; }
  const std::string& path() const noexcept { return path_; }
  /// Error (io): what breaks which rule here.
  [[noreturn]] void refuse(const std::string& rule, const std::string& came) const;

 private:
  uint64_t varint();
  double fixed64();
  std::span<const uint8_t> take(uint64_t count);
  void expect(int wire) const;

  Bytes message_;
  const char* what_;
  const std::string& path_;
  size_t at_ = 0;
  int field_ = 0;
  int wire_ = 0;
};

}  // namespace rosin::onnx
