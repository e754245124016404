// See describe.hpp.
#include "common/describe.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include "common/trouble.hpp"

namespace rosin::transport {
namespace {

struct Type {
  const char* name;
  uint64_t bytes;
  bool combined;
};
// In the order of rosin_comm_type.
constexpr Type types[] = {{"Bool", 1, false},   {"UInt8", 1, true},       {"Int8", 1, true},
                          {"Int16", 2, true},   {"UInt16", 2, true},      {"Int32", 4, true},
                          {"UInt32", 4, true},  {"Int64", 8, true},       {"UInt64", 8, true},
                          {"Float16", 2, true}, {"BFloat16", 2, true},    {"Float32", 4, true},
                          {"Float64", 8, true}, {"ComplexF32", 8, false}, {"ComplexF64", 16, false}};

struct Kind {
  const char* name;
  bool root, combines;
};
// In the order of rosin_comm_kind.
constexpr Kind kinds[] = {{"barrier", false, false}, {"broadcast", true, false},  {"allreduce", false, true},
                          {"reduce", true, true},    {"allgather", false, false}, {"reduce_scatter", false, true},
                          {"send", true, false},     {"receive", true, false}};

// In the order of rosin_comm_operation.
constexpr const char* operations[] = {"sum", "product", "minimum", "maximum"};

template <size_t n> bool is_in(int32_t value, const auto (&)[n]) {
  return value >= 0 && value < static_cast<int32_t>(n);
}

[[noreturn]] void refuse(const std::string& text) { throw Trouble{ROSIN_COMM_INVALID, text}; }

bool needs_receive(int32_t kind, bool is_root) {
  switch (kind) {
    case ROSIN_COMM_BROADCAST: return !is_root;
    case ROSIN_COMM_REDUCE: return is_root;
    case ROSIN_COMM_SEND: return false;
    default: return true;
  }
}

bool needs_send(int32_t kind, bool is_root) {
  return kind == ROSIN_COMM_BROADCAST ? is_root : kind != ROSIN_COMM_RECEIVE;
}

void check_parts(const rosin_comm_collective& c, bool is_root) {
  if (c.kind == ROSIN_COMM_BARRIER && c.part_count != 0) refuse("a barrier has no parts");
  if (c.part_count != 0 && !c.parts) refuse("the parts are null");
  for (const rosin_comm_part& part : std::span(c.parts, c.part_count)) {
    if (part.count == 0) continue;
    if (needs_send(c.kind, is_root) && !part.send) refuse("a part has nothing to send");
    if (needs_receive(c.kind, is_root) && !part.receive) refuse("a part has nowhere to receive");
  }
}

void check_common(const rosin_comm_collective& c, std::span<const char> common) {
  if (c.kind != ROSIN_COMM_ALLREDUCE) refuse("memory in common is for allreduce");
  for (const rosin_comm_part& part : std::span(c.parts, c.part_count)) {
    const auto begin = reinterpret_cast<uintptr_t>(common.data()), at = reinterpret_cast<uintptr_t>(part.receive);
    const uint64_t bytes = part.count * bytes_of(c.type);
    if (bytes == 0) continue;
    if (at < begin || bytes > common.size() || at - begin > common.size() - bytes) {
      refuse("a part receives outside of the memory in common");
    }
  }
}

void check_memory(const rosin_comm_collective& c, rosin_comm_devices devices, std::span<const char> common) {
  if (c.memory < ROSIN_COMM_HOST || c.memory > ROSIN_COMM_COMMON) refuse("there is no such kind of memory");
  if (c.memory == ROSIN_COMM_COMMON) check_common(c, common);
  if (c.stream && c.memory != ROSIN_COMM_DEVICE) refuse("a stream was given with memory of the host");
  if (c.memory != ROSIN_COMM_DEVICE) return;
  if (devices == (c.stream ? ROSIN_COMM_WITH_STREAM : ROSIN_COMM_AT_REST)) return;
  const char* const text = devices == ROSIN_COMM_NO_DEVICES
                               ? "memory of devices is not taken; copy to host memory first"
                           : devices == ROSIN_COMM_AT_REST ? "memory of devices is taken without a stream"
                                                           : "memory of devices is taken with a stream";
  throw Trouble{ROSIN_COMM_UNSUPPORTED, text};
}

/// FNV-1a over the bytes of a number.
uint64_t mixed(uint64_t hash, uint64_t number) {
  for (int byte = 0; byte < 8; ++byte, number >>= 8) hash = (hash ^ (number & 0xff)) * 0x100000001b3u;
  return hash;
}

}  // namespace

uint64_t bytes_of(int32_t type) { return is_in(type, types) ? types[type].bytes : 0; }
bool is_combined(int32_t type) { return is_in(type, types) && types[type].combined; }
bool is_half(int32_t type) { return type == ROSIN_COMM_FLOAT16 || type == ROSIN_COMM_BFLOAT16; }
bool names_root(int32_t kind) { return is_in(kind, kinds) && kinds[kind].root; }
bool combines(int32_t kind) { return is_in(kind, kinds) && kinds[kind].combines; }

rosin_comm_collective checked(const rosin_comm_collective* collective, int rank, int ranks, rosin_comm_devices devices,
                              std::span<const char> common) {
  if (!collective || collective->size < offsetof(rosin_comm_collective, timeout)) refuse("no collective was given");
  rosin_comm_collective c{};
  std::memcpy(&c, collective, std::min(collective->size, sizeof c));
  if (!is_in(c.kind, kinds)) refuse("there is no kind " + std::to_string(c.kind));
  if (!c.name) refuse("the collective has no name");
  if (names_root(c.kind) && (c.root < 0 || c.root >= ranks)) {
    refuse(std::string(kinds[c.kind].name) + ": rank " + std::to_string(c.root) + " is not among the " +
           std::to_string(ranks) + " ranks");
  }
  const bool between_two = c.kind == ROSIN_COMM_SEND || c.kind == ROSIN_COMM_RECEIVE;
  if (between_two && c.root == rank) refuse(std::string(kinds[c.kind].name) + ": the other rank is this one");
  if (c.kind != ROSIN_COMM_BARRIER && !is_in(c.type, types)) refuse("there is no type " + std::to_string(c.type));
  if (combines(c.kind)) {
    if (!is_in(c.operation, operations)) refuse("there is no operation " + std::to_string(c.operation));
    if (!is_combined(c.type)) refuse(std::string(types[c.type].name) + " elements are moved, not reduced");
  }
  check_parts(c, rank == c.root);
  if (!(c.timeout >= 0)) refuse("the timeout is not a number of seconds");
  check_memory(c, devices, common);
  return c;
}

Description describe(const rosin_comm_collective& c, uint64_t number, const void* common) {
  Description d{};
  d.number = number;
  d.kind = c.kind;
  if (c.kind != ROSIN_COMM_BARRIER) d.type = c.type;
  if (combines(c.kind)) d.operation = c.operation;
  if (names_root(c.kind)) d.root = c.root;
  d.part_count = c.part_count;
  put_text(d.name, c.name);
  uint64_t hash = 0xcbf29ce484222325u;
  for (int32_t field : {d.kind, d.type, d.operation, d.root}) hash = mixed(hash, static_cast<uint64_t>(field));
  for (const rosin_comm_part& part : std::span(c.parts, c.part_count)) {
    hash = mixed(hash, part.count);
    d.count += part.count;
    if (c.memory != ROSIN_COMM_COMMON) continue;
    hash = mixed(hash, 1 + static_cast<uint64_t>(static_cast<char*>(part.receive) - static_cast<const char*>(common)));
  }
  d.hash = mixed(mixed(hash, d.part_count), number);
  return d;
}

std::string text_of(const Description& d) {
  const std::string name = get_text(d.name);
  const bool between_two = d.kind == ROSIN_COMM_SEND || d.kind == ROSIN_COMM_RECEIVE;
  if (!is_in(d.kind, kinds) || (d.number == 0 && !between_two)) return name;
  std::string text = between_two ? "" : "collective " + std::to_string(d.number) + ", ";
  text += "\"" + name + "\" (" + kinds[d.kind].name;
  if (combines(d.kind) && is_in(d.operation, operations)) text.append(", ").append(operations[d.operation]);
  if (d.kind != ROSIN_COMM_BARRIER && is_in(d.type, types)) {
    text += ", " + std::to_string(d.count) + " " + types[d.type].name;
    if (d.part_count != 1) text += " in " + std::to_string(d.part_count) + " parts";
  }
  if (names_root(d.kind)) text += ", root " + std::to_string(d.root);
  return text + ")";
}

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  const auto done = std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::general, 6);
  return std::string(text.data(), done.ptr) + " s";
}

std::string difference_text(int rank, const Description& first, int other, const Description& second) {
  std::string text = "ranks call different collectives: rank " + std::to_string(rank) + " is at " + text_of(first) +
                     ", rank " + std::to_string(other) + " at " + text_of(second);
  if (first.count == second.count && first.kind == second.kind && first.part_count == second.part_count &&
      first.type == second.type && first.number == second.number && first.root == second.root) {
    text += ", whose parts have other sizes or are received at other places";
  }
  return text;
}

}  // namespace rosin::transport
