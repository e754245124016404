// A connection to another rank, of which frames come and go whole, with a deadline. Read next: star.hpp.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/describe.hpp"

namespace rosin::transport::tcp {

using Clock = std::chrono::steady_clock;

/// Seconds from now; 0: never.
struct Deadline {
  explicit Deadline(double seconds);
  bool is_over() const { return limited && Clock::now() > end; }
  bool limited;
  Clock::time_point end;
};

/// Thrown by connections; who knows the other side's rank makes a Trouble of it.
enum class Fault { late, gone, left, stopped };

enum class FrameKind : uint32_t { hello = 0x6e737274, welcome, call, result, failure, farewell };

/// What goes before the bytes of a frame.
struct Head {
  FrameKind kind;
  int32_t status;  // rosin_comm_status of a failure
  uint64_t bytes;
  Description description;  // of a call
};

class Connection {
 public:
  explicit Connection(int file = -1) : file_(file) {}
  Connection(Connection&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  bool is_open() const { return file_ >= 0; }
  /// Of one thread at a time, as whole frames. Throws Fault.
  void send(const Head& head, const void* bytes, const Deadline& deadline);
  /// The head, and its bytes into `bytes`. `stop`: gives up when that becomes true. Throws Fault.
  Head receive(std::vector<char>& bytes, const Deadline& deadline, const std::atomic<bool>& stop);
  /// What has come and was not received yet; without waiting. Throws Fault.
  std::optional<FrameKind> next() const;

 private:
  void send_all(const void* from, size_t bytes, const Deadline& deadline);
  void receive_all(void* to, size_t bytes, const Deadline& deadline, const std::atomic<bool>& stop);

  int file_;
  std::mutex sending_;
};

/// Listens at a port of this machine. Throws Trouble.
int listen_at(const std::string& port);
/// The next that comes. Throws Fault.
int accept_at(int listener, const Deadline& deadline);
/// Connects, and tries again until somebody listens. Throws Fault, Trouble.
int connect_to(const std::string& host, const std::string& port, const Deadline& deadline);

}  // namespace rosin::transport::tcp
