// Devices and their memory. Device memory is blocks of the heap that only the plug-in touches.
// Read next: stream.hpp (work on them), program.hpp (kernels).
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <rosin/backend.h>

#include "failure.hpp"
#include "options.hpp"

struct rosin_memory {
  rosin_device* device = nullptr;
  char* base = nullptr;
  uint64_t bytes = 0;
};

struct rosin_device {
  rosin::reference::Options options;
  std::string target;

  rosin_memory* alloc(uint64_t bytes);
  void release(rosin_memory* memory);
  uint64_t used() const { return used_; }

  /// Throws what made the device fail, if something did.
  void need_alive() const;
  void fail(const std::string& why);
  bool failed() const { return failed_; }
  /// A launch begins, which was given behind so many copies out: it fails, or is held, where options say so.
  void begin_launch(const std::string& kernel, int64_t copies_before);
  /// How many copies out have been given.
  int64_t copies_out() const { return copies_out_; }
  /// Copies out are numbered from 1 as they are given.
  int64_t give_copy_out() { return ++copies_out_; }
  void end_copy_out(int64_t number);
  /// Whether the launch of a graph that begins now is the one that shall fail.
  bool graph_fails() { return graph_launches_++ == options.graph_fail; }
  /// Throws where options say that the device has no such step of graphs.
  void need_graphs(const char* step) const;
  /// Whether the dependency that comes now is the one that shall be forgotten.
  bool forgets_edge() { return edges_++ == options.cut_edge; }

 private:
  std::atomic<uint64_t> used_ = 0;
  std::atomic<int64_t> allocations_ = 0, launches_ = 0, graph_launches_ = 0, copies_out_ = 0, edges_ = 0;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  std::condition_variable copied_;
  int64_t last_copied_ = 0;  // of the copies out that have ended, the one given last
  std::string why_;          // it failed
};

namespace rosin::reference {

inline constexpr int32_t alignment = 256;
inline constexpr uint64_t offset_unit = 64;  // offsets into blocks are multiples of it

/// The target of devices with or without 64-bit floats.
const char* target_name(bool float64);

void* alloc_pinned(uint64_t bytes);
void release_pinned(void* memory);
/// The same of host memory that is there; throws where some of it is pinned already.
void pin_memory(void* memory, uint64_t bytes);
void unpin_memory(void* memory);
/// Whether all of it is pinned.
bool is_pinned(const void* memory, uint64_t bytes);

/// The bytes at a place; throws where they are not all inside of a block of this device.
char* bytes_at(const rosin_device& device, rosin_place place, uint64_t bytes);

}  // namespace rosin::reference
