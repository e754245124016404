// See group.hpp.
#include "dist/group.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include <rosin/error.hpp>

#include "dist/common_sums.hpp"
#include "dist/device_memory.hpp"
#include "dist/host.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/packed_forms.hpp"

namespace rosin::distributed {
namespace {

static_assert(static_cast<int>(DType::ComplexF64) == ROSIN_COMM_COMPLEX64 &&
              static_cast<int>(DType::Float16) == ROSIN_COMM_FLOAT16 &&
              static_cast<int>(DType::Int64) == ROSIN_COMM_INT64);

rosin_comm_operation operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::product: return ROSIN_COMM_PRODUCT;
    case Reduction::minimum: return ROSIN_COMM_MINIMUM;
    case Reduction::maximum: return ROSIN_COMM_MAXIMUM;
    case Reduction::sum:
    case Reduction::average: break;
  }
  return ROSIN_COMM_SUM;
}

const char* cure_of(rosin_comm_status status) {
  switch (status) {
    case ROSIN_COMM_UNSUPPORTED: return "take another transport, or install what is missing";
    case ROSIN_COMM_MISMATCH: return "every rank must call the same functions in the same order";
    case ROSIN_COMM_TIMEOUT: return "look what that rank does, or give distributed::initialize a longer timeout";
    case ROSIN_COMM_LOST: return "start the program again; training goes on from its last checkpoint";
    default: return "start the program again";
  }
}

/// The lines of a text of which ranks have their own; `position` counts those that both have.
struct Difference {
  size_t position = 0;
  std::string first = "nothing more", second = "nothing more";
};

Difference difference_of(const std::string& first, const std::string& second) {
  std::istringstream one(first), other(second);
  Difference found;
  for (std::string a, b;; ++found.position) {
    const bool has_a = static_cast<bool>(std::getline(one, a)), has_b = static_cast<bool>(std::getline(other, b));
    if (has_a && has_b && a == b) continue;
    if (has_a) found.first = a;
    if (has_b) found.second = b;
    return found;
  }
}

/// Of a piece in memory of the host, whose elements have so many bytes.
rosin_comm_part part_of(const Piece& piece, size_t bytes) {
  const auto at = [&](void* elements, int64_t begin) {
    return static_cast<char*>(elements) + static_cast<size_t>(begin) * bytes;
  };
  void* const given = piece.elements ? const_cast<void*>(piece.elements) : piece.send.node()->data();
  void* const send = at(given, piece.send_begin);
  void* const receive = piece.is_in_place() ? send : at(piece.receive.node()->data(), piece.receive_begin);
  return {send, receive, static_cast<uint64_t>(piece.count)};
}

/// What a library may write to after it was given up: never let go.
void keep_for_ever(std::span<const Piece> pieces) {
  static auto* const kept = new std::vector<Piece>;
  kept->insert(kept->end(), pieces.begin(), pieces.end());
}

}  // namespace

Group::Group(std::string_view name, const rosin_comm_transport& transport, double timeout)
    : name_(name), transport_(transport), timeout_(timeout) {
  if (const rosin_comm_status status = transport_.join(timeout); status != ROSIN_COMM_OK) fail("initialize", status);
  place_.size = sizeof place_;
  rosin_comm_status status = transport_.world(&comm_);
  if (status == ROSIN_COMM_OK) status = transport_.place(comm_, &place_);
  if (status != ROSIN_COMM_OK) fail("initialize", status);
  common_sums_ = std::make_unique<CommonSums>(transport_, *comm_);
}

Group::~Group() { transport_.leave(); }

void Group::fail(const char* op, rosin_comm_status status) const {
  const char* text = transport_.error_text();
  throw Error(
      ErrorKind::distributed,
      std::string(op) + ": " + (text && *text ? text : "the transport gives no reason") + "; " + cure_of(status));
}

void Group::run(const Verb& verb, std::span<const Piece> pieces, std::string_view label) {
  if (verb.root < 0 || verb.root >= ranks()) {
    throw Error(ErrorKind::argument, std::string(verb.name) + ": the root must be a rank, 0 to " +
                                         std::to_string(ranks() - 1) + "; got " + std::to_string(verb.root));
  }
  if (ranks() == 1) return;
  for (const Piece& piece : pieces) {                                                    // (whose values change)
    const bool is_there = !piece.receive.is_nothing() && piece.receive.node()->ready();  // (who only sends has none)
    if (is_there) PackedForms::forget(*piece.receive.node()->buffer);
  }
  std::string name = verb.name;
  if (!label.empty()) name.append(" of ").append(label);
  rosin_comm_collective collective{};
  collective.size = sizeof collective;
  collective.kind = verb.kind;
  collective.operation = operation_of(verb.reduction);
  collective.type = static_cast<int32_t>(verb.type);
  collective.root = verb.root;
  collective.part_count = static_cast<uint32_t>(pieces.size());
  collective.name = name.c_str();
  collective.timeout = timeout_;
  collective.follows = verb.follows ? 1 : 0;
  if (verb.in_common) collective.memory = ROSIN_COMM_COMMON;
  const std::lock_guard guard(lock_);
  const rosin_comm_status status = run(collective, pieces, verb.more);
  if (status == ROSIN_COMM_OK) return;
  if (status == ROSIN_COMM_TIMEOUT) keep_for_ever(pieces);
  fail(verb.name, status);
}

void Group::settle(const char* op) {
  const std::lock_guard guard(lock_);
  for (const auto& [position, memory] : devices_) {
    if (const rosin_comm_status status = memory->settle(timeout_); status != ROSIN_COMM_OK) fail(op, status);
  }
}

/// Where the pieces are.
rosin_comm_status Group::run(rosin_comm_collective& collective, std::span<const Piece> pieces, bool more) {
  const int device = pieces.empty() ? 0 : pieces.front().send.node()->device;
  if (device != 0) {
    auto& memory = devices_[device];
    if (!memory) memory = std::make_unique<DeviceMemory>(transport_, *comm_, place_, device);
    return memory->run(collective, pieces, more);
  }
  std::vector<rosin_comm_part> parts;
  for (const Piece& piece : pieces) parts.push_back(part_of(piece, size_of(static_cast<DType>(collective.type))));
  collective.parts = parts.data();
  return transport_.run(comm_, &collective);
}

bool Group::suits_common_sums(std::span<const Array> given) const { return common_sums_->suit(given); }

std::vector<Array> Group::common_sums(std::span<const Array> given) {
  const std::lock_guard guard(lock_);
  std::vector<Array> made;
  const rosin_comm_status status = common_sums_->take(given, timeout_, made);
  if (status != ROSIN_COMM_OK && status != ROSIN_COMM_UNSUPPORTED) fail("update", status);
  return made;
}

void Group::fall_out(const std::string& why) { abort("a step that the others have made failed here: " + why); }

void Group::abort(const std::string& why) { transport_.abort(comm_, why.c_str()); }

std::string text_of(Group& group, const char* op, const std::string& own, int root) {
  const Array length = few_elements(Int64, 1);
  auto& bytes = *static_cast<int64_t*>(length.node()->data());
  bytes = static_cast<int64_t>(own.size());
  const Piece size{length, length, 1};
  group.run({ROSIN_COMM_BROADCAST, op, Int64, Reduction::sum, root}, {&size, 1}, "length of a list");
  const Array text = few_elements(UInt8, bytes);
  char* const letters = static_cast<char*>(text.node()->data());
  if (group.rank() == root) std::copy(own.begin(), own.end(), letters);
  const Piece piece{text, text, bytes};
  group.run({ROSIN_COMM_BROADCAST, op, UInt8, Reduction::sum, root}, {&piece, 1}, "list");
  return std::string(letters, static_cast<size_t>(bytes));
}

uint64_t require_same(Group& group, const char* op, const ListToAgreeOn& list, const char* rule, const char* cure,
                      uint64_t besides) {
  if (group.ranks() == 1) return besides;
  const Array own = few_elements(UInt64, 2), all = few_elements(UInt64, 2 * group.ranks());
  auto* const says = static_cast<uint64_t*>(own.node()->data());
  says[0] = list.hash();
  says[1] = besides;
  const Piece piece{own, all, 2};
  group.run({ROSIN_COMM_ALLGATHER, op, UInt64}, {&piece, 1}, "what ranks have");
  const auto* const said = static_cast<const uint64_t*>(all.node()->data());
  int other = 1;
  while (other < group.ranks() && said[2 * other] == said[0]) ++other;
  if (other == group.ranks()) {
    for (int rank = 0; rank < group.ranks(); ++rank) besides |= said[2 * rank + 1];
    return besides;
  }
  const std::string text = list.text();
  const std::string of_first = text_of(group, op, text, 0), of_other = text_of(group, op, text, other);
  const Difference found = difference_of(of_first, of_other);
  throw Error(ErrorKind::distributed, std::string(op) + ": " + rule + "; at position " +
                                          std::to_string(found.position) + " rank 0 has " + found.first + ", rank " +
                                          std::to_string(other) + " has " + found.second + "; " + cure);
}

}  // namespace rosin::distributed
