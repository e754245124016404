// What the tests of vendor calls share: aligned memory and an executor of one call.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "engines/vendor.hpp"

namespace rosin::engines {

/// Memory aligned as vendor calls ask for, filled with a value that would spoil results if it were read. What is
/// written behind its end fails the test: sanitizers do not see code that a library makes at run time.
class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes), storage_(bytes + 64 + guard, filling) {}
  ~Block() {
    const char* const end = static_cast<const char*>(data()) + bytes_;
    EXPECT_TRUE(std::all_of(end, end + guard, [](char c) { return c == filling; })) << "behind " << bytes_ << " bytes";
  }
  void* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return storage_.data() + (64 - address % 64) % 64;
  }

 private:
  static constexpr size_t guard = 256;
  static constexpr char filling = 0x7f;
  size_t bytes_;
  std::vector<char> storage_;
};

/// Runs all chunks in the given order, on `threads` threads.
inline void execute(const VendorCall& call, VendorBuffers buffers, int threads = 1, bool backwards = false) {
  Block workspace(call.workspace_bytes());
  buffers.workspace = workspace.data();
  if (call.has_begin()) call.begin(buffers);
  const auto work = [&](int64_t first) {
    Block scratch(call.scratch_bytes_per_chunk());
    for (int64_t i = first; i < call.chunks(); i += threads) {
      call.run_chunk(backwards ? call.chunks() - 1 - i : i, buffers, scratch.data());
    }
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t) workers.emplace_back(work, t);
  work(0);
  for (std::thread& worker : workers) worker.join();
  if (call.has_finish()) call.finish(buffers);
}

}  // namespace rosin::engines
