// What compiled kernels and libcuda's stand-in share. The stand-in of NVRTC puts this file before the text of kernels,
// so it includes nothing.
#pragma once

namespace fake {

using u32 = unsigned int;
using u64 = unsigned long long;

/// A block of device memory as a kernel sees it, with who touched each byte last.
struct Block {
  u64 begin = 0, end = 0;
  u32* writers = nullptr;  // one entry a byte: the item (of all launches) that wrote it
  u32* readers = nullptr;  // two entries a byte: who read it last, and who before that
  bool constant = false;   // nobody may write it
};

/// Which item touched a word of shared memory, and in which phase.
struct Touch {
  u32 phase = 0, item = 0;
};

constexpr int most_given = 16;  // words

/// The item that runs, and what it may ask of the stand-in. One for the process: kernels run one at a time.
struct Item {
  u32 block[3] = {}, item = 0;
  u32 number = 1;  // of this item among all items of all launches
  u32 first = 1;   // of the first item of this launch
  u32 nobody = 1;  // a number beyond those of this launch's items
  u32 phase = 1;   // counts barriers and blocks
  u32 warp = 32;   // items that exchange values
  bool checks = true;
  // Blocks that arrive at a counter: what those before stored may be read by one that arrives later and fences. Of each
  // block that has run, in the order in which they ran, the counter; of the block that runs, where it stands.
  u64* arrived = nullptr;
  u32 items = 1, blocks = 0;       // of a block; that ran before
  bool released = false;           // it has fenced, and may arrive
  u64 arriving = 0, acquired = 0;  // the counter, before and behind the second fence
  int votes = 0;                   // of __syncthreads_or
  void (*barrier)() = nullptr;
  /// Every item of this item's warp gives so many words; those of all, of each item from a multiple of most_given on.
  /// They stay until two more have been exchanged.
  const u32* (*exchange)(const u32* words, int count) = nullptr;
  void (*fault)(const char* what) = nullptr;  // does not return
  Block (*find)(u64 address) = nullptr;
  // Shared memory whose size the launch has named, with who touched each byte.
  unsigned char* large = nullptr;
  u64 large_bytes = 0;
  Touch* large_written = nullptr;
  Touch* large_read = nullptr;
};

}  // namespace fake
