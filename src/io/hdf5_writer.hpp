// HDF5 as JLD2 writes it, from the bottom up: objects are written after what they refer to, and addresses are known at
// once. Elements of arrays are gaps, filled from the arrays themselves when the file is written.
// Read next: hdf5_writer.cpp; hdf5_objects.hpp (the reader); jld2_writer.cpp (the user).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/array.hpp>

#include "io/text_with_arrays.hpp"

namespace rosin {

/// Appends the number's lowest bytes.
void append_little(std::string& bytes, uint64_t value, int width);

/// Data types, spaces and messages as bytes.
namespace hdf5 {

std::string integer_type(int bytes, bool is_signed);
std::string real_type(int bytes);
std::string bool_type();
std::string text_type();
std::string reference_type();
/// A sequence of references.
std::string references_type();

struct Member {
  std::string name;
  uint64_t offset;
  std::string type;
};
/// Error (argument): more members than a type can have.
std::string compound_type(uint64_t size, const std::vector<Member>& members);

std::string scalar_space();
/// Sizes as HDF5 has them, slowest first.
std::string simple_space(const std::vector<uint64_t>& sizes);

/// Error (argument): the body is longer than a message can be.
std::string message(int kind, int flags, const std::string& body);
/// Refers to the committed type at this address.
std::string shared_type(uint64_t address);
/// `type`: bytes of a type, or of shared_type.
std::string attribute(std::string_view name, const std::string& type, bool shared, const std::string& space,
                      const std::string& data);

}  // namespace hdf5

class Hdf5Text {
 public:
  Hdf5Text();
  /// Where the next object will be; addresses count from the superblock.
  uint64_t address() const noexcept { return text_.size() + elements_ - base; }
  /// An object with these messages, and where it is.
  uint64_t object(const std::string& messages);
  /// A dataset of a type (its message), with these bytes.
  uint64_t dataset(const std::string& type, const std::string& space, const std::string& data);
  /// A dataset of an array's elements.
  uint64_t dataset(const std::string& type, const Array& x);
  /// `count` elements that lie in `data`, as 16 bytes that refer to them.
  std::string sequence(uint64_t count, std::string_view data);
  /// Links by name to addresses.
  uint64_t group(const std::vector<std::pair<std::string, uint64_t>>& links);
  /// The header of the file.
  void finish(uint64_t root);

  const std::string& text() const noexcept { return text_; }
  const std::vector<ArrayGap>& gaps() const noexcept { return gaps_; }

 private:
  static constexpr uint64_t base = 512;  // of addresses: where the superblock is

  /// Sequences lie in heaps; `end` is where the last one's free space ends.
  void new_heap(uint64_t needed);

  std::string text_;
  std::vector<ArrayGap> gaps_;
  uint64_t elements_ = 0;                // bytes of gaps
  uint64_t heap_ = 0;                    // address
  size_t heap_next_ = 0, heap_end_ = 0;  // in text
  uint64_t heap_index_ = 0;
};

}  // namespace rosin
