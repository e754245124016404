// See parts.hpp.
#include "common/parts.hpp"

#include <cstring>

#include "common/describe.hpp"

namespace rosin::transport {

uint64_t total_bytes(const rosin_comm_collective& collective) {
  uint64_t total = 0;
  for (const rosin_comm_part& part : std::span(collective.parts, collective.part_count)) total += part.count;
  return total * bytes_of(collective.type);
}

Walk::Walk(const rosin_comm_collective& collective, int stretch)
    : parts_(collective.parts, collective.part_count), element_(bytes_of(collective.type)),
      stretch_(static_cast<uint64_t>(stretch)) {}

void Walk::read(void* to, uint64_t bytes) {
  auto* next = static_cast<char*>(to);
  each(bytes, [&](const rosin_comm_part& part, uint64_t at, uint64_t count) {
    std::memcpy(next, static_cast<const char*>(part.send) + at, count);
    next += count;
  });
}

void Walk::write(const void* from, uint64_t bytes) {
  const auto* next = static_cast<const char*>(from);
  each(bytes, [&](const rosin_comm_part& part, uint64_t at, uint64_t count) {
    std::memcpy(static_cast<char*>(part.receive) + at, next, count);
    next += count;
  });
}

void Walk::skip(uint64_t bytes) {
  each(bytes, [](const rosin_comm_part&, uint64_t, uint64_t) {});
}

void run_alone(const rosin_comm_collective& collective) {
  if (collective.kind == ROSIN_COMM_BROADCAST) return;
  for (const rosin_comm_part& part : std::span(collective.parts, collective.part_count)) {
    if (part.count != 0 && part.receive != part.send) {
      std::memcpy(part.receive, part.send, part.count * bytes_of(collective.type));
    }
  }
}

}  // namespace rosin::transport
