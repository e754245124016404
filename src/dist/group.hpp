// Group: the processes that were joined, and their collectives. Read next: device_memory.hpp, common_sums.hpp,
// verbs.cpp, buckets.hpp, exchange.cpp, sharded.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/comm.h>
#include <rosin/array.hpp>
#include <rosin/distributed.hpp>

#include "optim/step.hpp"

namespace rosin::distributed {

/// What a collective does with elements, beside its parts.
struct Verb {
  rosin_comm_kind kind;
  const char* name;  // of the function that the user called; begins messages
  DType type = DType::UInt8;
  Reduction reduction = Reduction::sum;  // average: the sum
  int root = 0;
  /// On a device: not waited for. Others follow, of which the last tells how all went, or settle() does.
  bool more = false;
  /// On a device: the ranks know that all of them make it after the one before (see rosin_comm_collective).
  bool follows = false;
  /// What is received stands in Group::common_sums.
  bool in_common = false;
};

/// One array of a collective, or a part of one: what is given and what is received, all of a collective in memory of
/// the host or of one device (host.hpp). Counts are of elements of the verb's type.
struct Piece {
  Array send;
  Array receive;
  int64_t count;
  int64_t send_begin = 0, receive_begin = 0;  // where the elements stand in the arrays
  const void* elements = nullptr;  // of `send`, where they are written and it is not evaluated yet; the CPU's

  bool is_in_place() const { return same(send, receive) && send_begin == receive_begin; }
};

class CommonSums;
class DeviceMemory;

class Group final : public rosin::detail::Sharing, public Companions {
 public:
  /// Joins as the environment says. Error (distributed).
  Group(std::string_view name, const rosin_comm_transport& transport, double timeout);
  ~Group() override;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string& name() const noexcept { return name_; }
  int rank() const noexcept { return place_.rank; }
  int ranks() const noexcept { return place_.ranks; }
  int node_rank() const noexcept { return place_.node_rank; }

  /// `label` tells this collective from others of its verb, in messages. Alone it does nothing. Error (distributed).
  void run(const Verb& verb, std::span<const Piece> pieces, std::string_view label = {});
  /// Waits for what devices have been given with `more`. Error (distributed), which `op` begins.
  void settle(const char* op);
  void abort(const std::string& why);
  /// Whether this rank can take sums of these arrays in memory that all ranks have in common; see CommonSums.
  bool suits_common_sums(std::span<const Array> given) const;
  /// Arrays for them, empty where there is no such memory; where all ranks can. Error (distributed), of "update".
  std::vector<Array> common_sums(std::span<const Array> given);

  // Steps that are shared out, see sharded.cpp.
  int process() const override { return rank(); }
  int processes() const override { return ranks(); }
  std::vector<rosin::detail::Owner> owners(std::span<const rosin::detail::SharedParameter> parameters) const override;
  bool agree(const Error* failed, bool holds) override;
  void agree_to_begin(const Error* failed) override { agree(failed, true); }
  void fall_out(const std::string& why) override;
  void spread(const char* op, std::span<rosin::detail::OwnedArray> arrays) override;

 private:
  rosin_comm_status run(rosin_comm_collective& collective, std::span<const Piece> pieces, bool more);
  [[noreturn]] void fail(const char* op, rosin_comm_status status) const;

  std::string name_;
  const rosin_comm_transport& transport_;
  rosin_comm* comm_ = nullptr;
  rosin_comm_place place_{};
  double timeout_;
  std::mutex lock_;
  std::unique_ptr<CommonSums> common_sums_;
  std::map<int, std::unique_ptr<DeviceMemory>> devices_;  // by position
};

/// The text of one rank, on every rank.
std::string text_of(Group& group, const char* op, const std::string& own, int root);

/// Lists that are to be the same on all ranks.
class ListToAgreeOn {
 public:
  virtual ~ListToAgreeOn() = default;
  virtual uint64_t hash() const = 0;
  virtual std::string text() const = 0;  // a line for each item
};
/// Error (distributed) on every rank unless all of them have the same list; its text is asked for only where they
/// differ. Gives the bits of all that ranks say besides.
uint64_t require_same(Group& group, const char* op, const ListToAgreeOn& list, const char* rule, const char* cure,
                      uint64_t besides = 0);

}  // namespace rosin::distributed
