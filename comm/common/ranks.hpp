// What a transport is: the processes that this one has joined. The table of functions over it is the same for all
// (plugin.cpp). Read first: rosin/comm.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <rosin/comm.h>

namespace rosin::transport {

/// Its functions throw Trouble where the table's return a status.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  virtual rosin_comm_place place() const = 0;
  /// The collective has been checked.
  virtual void run(const rosin_comm_collective& collective) = 0;
  virtual void abort(const char* why) noexcept = 0;
  /// The object stays: another thread may be on its way out of it.
  virtual void leave() = 0;
  /// What is known to be wrong.
  virtual void check() {}
  virtual std::string version() const { return ROSIN_VERSION; }
  /// How run() takes memory of devices, where it does.
  virtual rosin_comm_devices way_of_devices() const { return ROSIN_COMM_NO_DEVICES; }
  /// Memory in common, as the table's function; throws Trouble, UNSUPPORTED where there is none.
  virtual void* common(uint64_t bytes, double timeout);
  /// What that gave last.
  virtual std::span<const char> memory_in_common() const { return {}; }
  /// Throws the reason where it is not taken of devices of this kind.
  virtual void require_devices(std::string_view backend) const;
};

// What each transport defines.
extern const char* const transport_name;
/// Waits for the others, `timeout` seconds at most.
std::unique_ptr<Ranks> join_ranks(double timeout);

}  // namespace rosin::transport
