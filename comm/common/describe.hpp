// A collective as ranks compare it and as messages name it. Read first: rosin/comm.h. Read next: parts.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <rosin/comm.h>

namespace rosin::transport {

/// What every rank must call alike, in plain bytes that another process can read, and the name for messages.
struct Description {
  uint64_t number;  // of the collective, from 1; 0: it is none
  uint64_t hash;    // of kind, operation, type, root and the counts of all parts, as far as they matter to the kind
  uint64_t count;   // elements of all parts
  int32_t kind, operation, type, root;
  uint32_t part_count;
  std::array<char, 64> name;
};

/// Bytes of an element; 0 for what is no type.
uint64_t bytes_of(int32_t type);
/// Whether numbers of this type can be combined: all but Bool and complex ones.
bool is_combined(int32_t type);
bool is_half(int32_t type);
bool names_root(int32_t kind);
bool combines(int32_t kind);

/// The collective with every field that its struct has, the others zero; throws ROSIN_COMM_INVALID where it breaks the
/// contract, and ROSIN_COMM_UNSUPPORTED where it is of memory of devices and these are taken otherwise. `common`: what
/// common() gave last.
rosin_comm_collective checked(const rosin_comm_collective* collective, int rank, int ranks,
                              rosin_comm_devices devices = ROSIN_COMM_NO_DEVICES, std::span<const char> common = {});
/// `common`: where what is received in memory in common is counted from.
Description describe(const rosin_comm_collective& collective, uint64_t number, const void* common = nullptr);

/// `collective 3, "gradients 1" (allreduce, sum, 1000 Float32 in 2 parts)`; the name alone of
/// what is no collective.
std::string text_of(const Description& description);
/// A number of seconds for people: "60 s", "0.5 s".
std::string seconds_text(double seconds);
/// The text about two ranks that call different collectives.
std::string difference_text(int rank, const Description& first, int other, const Description& second);

/// Copies what fits of a text, with a zero behind it.
template <size_t n> void put_text(std::array<char, n>& to, std::string_view text) {
  to.fill('\0');
  text.substr(0, n - 1).copy(to.data(), n - 1);
}
template <size_t n> std::string get_text(const std::array<char, n>& from) {
  const std::string_view all(from.data(), n);
  return std::string(all.substr(0, all.find('\0')));
}

}  // namespace rosin::transport
