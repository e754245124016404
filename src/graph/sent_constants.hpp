// SentConstants: what stands in the program and is made anew in each step (ranges, tables, values in braces) is sent to
// a device once. Read first: leaf.hpp (constant), transfer.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include <rosin/array.hpp>

namespace rosin {

struct Memory;

/// The last small constants that a thread has sent to devices, found by what they hold.
class SentConstants {
 public:
  static SentConstants& of_thread();

  /// Whether `bytes` are few enough to be looked for.
  static bool takes(size_t bytes) { return bytes > 0 && bytes <= most_bytes; }
  /// Memory of the device at `position` that holds what x does, which is ready on the CPU, with one owner more; null
  /// where none is known.
  Memory* find(const Array& x, int position);
  /// Remembers that `there`, an array of a device, is a copy of x.
  void keep(const Array& x, const Array& there);

 private:
  static constexpr size_t most_bytes = size_t{64} << 10, most = 32;
  struct Sent {
    Array here, there;
  };

  std::vector<Sent> sent_;  // the one used last comes last
};

}  // namespace rosin
