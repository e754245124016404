// Buckets: the sums over all ranks of many arrays, in messages of a bounded size. Gradients of the last layers are
// there first, so messages go from the last array to the first; each goes as soon as its arrays are written, while the
// run goes on with those of earlier layers. A run of the CPU keeps its thread, so that another one sends. A device is
// given its run, and each message waits for its part of that; what checks in the run find is known when all messages
// are through. Every rank sends the same messages in the same order, whichever is ready first. Read first: group.hpp,
// run/early.hpp.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/optim.hpp>

#include "dist/group.hpp"
#include "dist/host.hpp"
#include "run/early.hpp"

namespace rosin::distributed {

class Buckets final : private EarlyResults::Listener {
 public:
  /// The largest message, so that what waits for a rank is known by name, and the first, which is wanted soon; both are
  /// PyTorch's defaults.
  static constexpr uint64_t most_bytes = uint64_t{25} << 20, first_bytes = uint64_t{1} << 20;

  /// `given` are all in memory of the CPU, or all on one device; they may be pending. gradients[i].owner says
  /// which rank wants the sums.
  Buckets(Group& group, std::span<const rosin::detail::NamedGradient> gradients, std::vector<Array> given);

  /// Where a device computes: gives it what is pending, so that it goes on while the ranks agree on what they send.
  /// Takes memory for the sums, unless they suit memory in common.
  void begin();
  /// Whether this rank can take them there; see CommonSums.
  bool suit_common() const { return suit_common_; }
  bool are_on_device() const { return !given_.empty() && !is_on_cpu(given_.front()); }
  /// The sums; nothing in the place of those that others own, and of divided ones this rank's elements, as a vector.
  /// Evaluates what is pending. A device makes them later: Group::settle. `in_common`: they suit memory in common on
  /// all ranks. Error (distributed), and what the evaluation throws.
  std::vector<Array> sums(bool in_common);
  /// After that: throws what checks of a device have found in the run. Then the sums are worthless, on every rank.
  void look() const;

 private:
  struct Message {
    Verb verb;
    std::string label;
    std::vector<Piece> pieces;
    uint64_t bytes = 0;
    size_t missing = 0;    // of its pieces: not told as written
    bool is_sent = false;  // or being sent
  };

  /// Elements of an array in a message: for all ranks, for one, or so many for each.
  struct Part {
    size_t array;
    rosin_comm_kind kind;
    int root;
    int64_t begin, count;
    size_t message = 0, piece = 0;
  };

  void list_parts();
  void form();
  Message& open_message(const Part& part);
  void add(Part& part, Message& message);
  bool is_wanted(const Part& part) const { return part.kind != ROSIN_COMM_REDUCE || part.root == group_.rank(); }
  /// At least one.
  std::span<const Part> parts_of(size_t i) const {
    return std::span(parts_).subspan(first_part_[i], first_part_[i + 1] - first_part_[i]);
  }
  void take_memory();
  void receive(bool in_common);
  bool is_worth_a_thread() const;
  void evaluate();
  std::thread started_sender();
  void evaluate_beside(std::thread& sender);
  void send(Message& message) { group_.run(message.verb, message.pieces, message.label); }
  void send_all();

  // The thread that sends.
  void serve() noexcept;
  bool wait_for(Message& message);
  void end();

  void written(size_t i, const void* elements) noexcept override;
  void failed() noexcept override;
  int32_t group(size_t i) const noexcept override;

  Group& group_;
  std::vector<Array> given_, made_;
  std::vector<rosin::detail::Owner> owners_;
  bool suit_common_ = false;
  std::vector<Message> messages_;
  std::vector<Part> parts_;         // of all arrays, one after the other
  std::vector<size_t> first_part_;  // of each array; at the end as many as there are

  std::mutex lock_;
  std::condition_variable changed_;
  bool is_sending_ = false, has_ended_ = false;
  std::exception_ptr error_;  // of the thread
};

}  // namespace rosin::distributed
