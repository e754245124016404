// What PyTorch pickles into a file, as a tree of values: texts, numbers, lists, dicts, tensors by the storage that they
// look at. A pickle is a program for a stack machine that may call anything; this reader knows the few classes below
// and refuses all others, so that nothing of it is run. Read next: pickle.cpp, torch_file.cpp (the user).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rosin {

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  list,     // tuples and sizes too
  dict,     // OrderedDict too
  name,     // of a class or function: "torch.FloatStorage"
  storage,  // items: "storage", its class, key, device, number of elements
  tensor    // items: storage, offset, sizes, strides, and the element type where the storage has none
};

struct PickleValue {
  PickleKind kind = PickleKind::none;
  int64_t integer = 0;  // of Booleans too
  double real = 0;
  uint64_t place = 0;  // of its opcode in the pickle
  std::string text;
  std::vector<uint32_t> items;  // of a dict keys and values in turn
};

/// Values that several places share are one; a list or dict may contain itself.
struct PickleTree {
  /// More values than this are refused, whatever the size.
  static constexpr size_t most_values = size_t{1} << 22;

  std::vector<PickleValue> values;
  uint32_t root = 0;

  const PickleValue& item(const PickleValue& value, size_t i) const { return values[value.items[i]]; }
};

/// `where` names the file, for messages. Error (io): an opcode or class that is none of the above, named with its
/// place, or a damaged pickle.
PickleTree read_pickle(std::span<const unsigned char> bytes, const std::string& where);

/// Throws Error (io): `load: RULE; WHERE at byte PLACE: WHAT; CURE`.
[[noreturn]] void refuse_pickle(const std::string& where, uint64_t place, const std::string& rule,
                                const std::string& what);

}  // namespace rosin
