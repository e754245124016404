// Copies in, out and within a device; what memory holds.
#include <algorithm>
#include <numeric>

#include "checks.hpp"

namespace rosin::conformance {
namespace {

std::vector<uint8_t> pattern(size_t count, int seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + static_cast<size_t>(seed));
  return bytes;
}

void memory_holds_what_was_copied_in(Rig& rig) {
  for (const size_t count : {1u, 2u, 3u, 5u, 255u, 256u, 257u, 4095u, 65537u, 3000017u}) {
    Memory memory(rig, count);
    const auto bytes = pattern(count, 1);
    rig.write<uint8_t>(memory.at(), bytes);
    expect(rig.read<uint8_t>(memory.at(), count) == bytes, std::to_string(count) + " bytes came back changed");
  }
}

void offsets_and_odd_sizes_touch_nothing_else(Rig& rig) {
  constexpr size_t all = 1031;
  Memory memory(rig, all);
  auto expected = pattern(all, 2);
  rig.write<uint8_t>(memory.at(), expected);
  for (const auto& [offset, count] : {std::pair<size_t, size_t>{1, 1}, {3, 7}, {129, 255}, {1030, 1}, {511, 513}}) {
    const auto part = pattern(count, 77);
    rig.write<uint8_t>(memory.at(offset), part);
    std::copy(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    expect(rig.read<uint8_t>(memory.at(offset), count) == part, "a part came back changed");
  }
  expect(rig.read<uint8_t>(memory.at(), all) == expected, "a copy touched bytes beside its own");
}

void blocks_are_apart(Rig& rig) {
  Memory one(rig, 1000), other(rig, 1000);
  const auto first = pattern(1000, 3), second = pattern(1000, 4);
  rig.write<uint8_t>(one.at(), first);
  rig.write<uint8_t>(other.at(), second);
  expect(rig.read<uint8_t>(one.at(), 1000) == first, "a write to one block changed another");
}

void copies_within_a_device(Rig& rig) {
  Memory one(rig, 1000), other(rig, 1000);
  const auto bytes = pattern(1000, 5);
  rig.write<uint8_t>(one.at(), bytes);
  rig.write<uint8_t>(other.at(), pattern(1000, 6));
  rig.good(rig.api.copy(rig.stream, other.at(17), one.at(3), 501), "copy");
  const auto part = rig.read<uint8_t>(other.at(17), 501);
  expect(std::equal(part.begin(), part.end(), bytes.begin() + 3), "a copy to another block is wrong");
  rig.good(rig.api.copy(rig.stream, one.at(600), one.at(0), 400), "copy within one block");
  const auto within = rig.read<uint8_t>(one.at(600), 400);
  expect(std::equal(within.begin(), within.end(), bytes.begin()), "a copy within a block is wrong");
}

void host_memory_may_be_used_again_at_once(Rig& rig) {
  constexpr size_t count = 1 << 20;
  Memory memory(rig, count), busy(rig, 16 * count);
  std::vector<uint8_t> bytes = pattern(count, 8);
  const std::vector<uint8_t> wanted = bytes;
  // The stream has something to do before it comes to the copy.
  for (int i = 0; i < 10; ++i) rig.good(rig.api.copy(rig.stream, busy.at(), busy.at(8 * count), 8 * count), "copy");
  rig.write<uint8_t>(memory.at(), bytes);
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  expect(rig.read<uint8_t>(memory.at(), count) == wanted, "copy_in read host memory after it had returned");
}

/// Pinned memory of a device.
class Pinned {
 public:
  Pinned(Rig& rig, size_t count) : rig_(rig) {
    rig.good(rig.api.alloc_pinned(rig.device, count, &memory_), "alloc_pinned");
  }
  ~Pinned() { rig_.api.release_pinned(rig_.device, memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  uint8_t* bytes() const { return static_cast<uint8_t*>(memory_); }

 private:
  Rig& rig_;
  void* memory_ = nullptr;
};

void pinned_memory_is_copied_from_and_to(Rig& rig) {
  constexpr size_t count = 100003;
  Memory memory(rig, count);
  Pinned from(rig, count), to(rig, count);
  const auto bytes = pattern(count, 9);
  std::copy(bytes.begin(), bytes.end(), from.bytes());
  rig.good(rig.api.copy_in(rig.stream, memory.at(), from.bytes(), count), "copy_in");
  rig.good(rig.api.copy_out(rig.stream, to.bytes(), memory.at(), count), "copy_out");
  rig.sync();
  expect(std::equal(bytes.begin(), bytes.end(), to.bytes()), "pinned memory came back changed");
  // From the middle to the middle.
  rig.good(rig.api.copy_in(rig.stream, memory.at(1), from.bytes() + 5, 1000), "copy_in");
  rig.good(rig.api.copy_out(rig.stream, to.bytes() + 2001, memory.at(1), 1000), "copy_out");
  rig.sync();
  expect(std::equal(to.bytes() + 2001, to.bytes() + 3001, from.bytes() + 5), "parts of pinned memory are not copied");
}

void after_out_of_memory_all_goes_on(Rig& rig) {
  rosin_memory* memory = nullptr;
  rig.fails(rig.api.alloc(rig.device, uint64_t{1} << 60, &memory), ROSIN_OUT_OF_MEMORY, "alloc of 2^60 bytes");
  expect(memory == nullptr, "alloc failed and gave something out");
  void* pinned = nullptr;
  rig.fails(rig.api.alloc_pinned(rig.device, uint64_t{1} << 60, &pinned), ROSIN_OUT_OF_MEMORY,
            "alloc_pinned of 2^60 bytes");
  memory_holds_what_was_copied_in(rig);
}

void memory_comes_back(Rig& rig) {
  // More than the device has, one block after the other.
  const uint64_t block = std::min<uint64_t>(rig.info.largest_allocation, rig.info.memory) / 4;
  const uint64_t bytes = std::min<uint64_t>(block, uint64_t{64} << 20);
  for (int i = 0; i < 40; ++i) Memory memory(rig, bytes);
}

constexpr Check checks[] = {
    {"memory holds what was copied in", memory_holds_what_was_copied_in},
    {"offsets and odd sizes touch nothing else", offsets_and_odd_sizes_touch_nothing_else},
    {"blocks are apart", blocks_are_apart},
    {"copies within a device", copies_within_a_device},
    {"host memory may be used again at once", host_memory_may_be_used_again_at_once},
    {"pinned memory is copied from and to", pinned_memory_is_copied_from_and_to},
    {"after out of memory all goes on", after_out_of_memory_all_goes_on},
    {"memory comes back", memory_comes_back},
};

}  // namespace

const Part memory_part = {"memory", checks};

}  // namespace rosin::conformance
