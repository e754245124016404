// See connection.hpp.
#include "tcp/connection.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "common/trouble.hpp"

namespace rosin::transport::tcp {
namespace {

constexpr int slice = 50;  // milliseconds between two looks at the clock
constexpr uint64_t most_bytes = uint64_t{1} << 40;

/// Whether the file can be read or written within a slice.
bool is_ready(int file, short events) {
  pollfd one{file, events, 0};
  return poll(&one, 1, slice) > 0;
}

bool is_to_be_tried_again() { return errno == EAGAIN || errno == EINTR; }

void set_options(int file) {
  const int on = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolved(const char* host, const std::string& port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = host ? 0 : AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host, port.c_str(), &wanted, &found); code != 0) {
    throw Trouble{ROSIN_COMM_INVALID,
                  std::string("ROSIN_MASTER names ") + (host ? host : "") + ":" + port + ": " + gai_strerror(code)};
  }
  return Addresses(found);
}

}  // namespace

Deadline::Deadline(double seconds)
    : limited(seconds > 0),
      end(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

Connection::~Connection() {
  if (file_ >= 0) close(file_);
}

void Connection::send_all(const void* from, size_t bytes, const Deadline& deadline) {
  const auto* next = static_cast<const char*>(from);
  while (bytes != 0) {
    const ssize_t count = ::send(file_, next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && !is_to_be_tried_again()) throw Fault::gone;
    if (count > 0) {
      next += count;
      bytes -= static_cast<size_t>(count);
    } else if (deadline.is_over()) {
      throw Fault::late;
    } else {
      is_ready(file_, POLLOUT);
    }
  }
}

void Connection::receive_all(void* to, size_t bytes, const Deadline& deadline, const std::atomic<bool>& stop) {
  auto* next = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t count = ::recv(file_, next, bytes, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && !is_to_be_tried_again())) throw Fault::gone;
    if (count > 0) {
      next += count;
      bytes -= static_cast<size_t>(count);
    } else if (stop) {
      throw Fault::stopped;
    } else if (deadline.is_over()) {
      throw Fault::late;
    } else {
      is_ready(file_, POLLIN);
    }
  }
}

void Connection::send(const Head& head, const void* bytes, const Deadline& deadline) {
  const std::lock_guard lock(sending_);
  send_all(&head, sizeof head, deadline);
  send_all(bytes, head.bytes, deadline);
}

Head Connection::receive(std::vector<char>& bytes, const Deadline& deadline, const std::atomic<bool>& stop) {
  Head head{};
  receive_all(&head, sizeof head, deadline, stop);
  if (head.kind < FrameKind::hello || head.kind > FrameKind::farewell || head.bytes > most_bytes) throw Fault::gone;
  bytes.resize(head.bytes);
  receive_all(bytes.data(), bytes.size(), deadline, stop);
  return head;
}

std::optional<FrameKind> Connection::next() const {
  Head head{};
  const ssize_t count = ::recv(file_, &head, sizeof head, MSG_DONTWAIT | MSG_PEEK);
  if (count == 0 || (count < 0 && !is_to_be_tried_again())) throw Fault::gone;
  return count == sizeof head ? std::optional(head.kind) : std::nullopt;
}

int listen_at(const std::string& port) {
  const Addresses addresses = resolved(nullptr, port);
  for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
    const int file = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (file < 0) continue;
    const int on = 1;
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(file, at->ai_addr, at->ai_addrlen) == 0 && listen(file, SOMAXCONN) == 0) return file;
    close(file);
  }
  throw Trouble{ROSIN_COMM_FAILED, "rank 0 cannot listen at port " + port + ": " + std::strerror(errno)};
}

int accept_at(int listener, const Deadline& deadline) {
  for (;;) {
    if (is_ready(listener, POLLIN)) {
      const int file = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (file >= 0) {
        set_options(file);
        return file;
      }
    }
    if (deadline.is_over()) throw Fault::late;
  }
}

int connect_to(const std::string& host, const std::string& port, const Deadline& deadline) {
  for (;;) {
    const Addresses addresses = resolved(host.c_str(), port);
    for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
      const int file = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
      if (file < 0) continue;
      if (connect(file, at->ai_addr, at->ai_addrlen) == 0) {
        set_options(file);
        return file;
      }
      close(file);
    }
    if (deadline.is_over()) throw Fault::late;
    std::this_thread::sleep_for(std::chrono::milliseconds(slice));
  }
}

}  // namespace rosin::transport::tcp
