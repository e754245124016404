// See buckets.hpp.
#include "dist/buckets.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <rosin/stats.hpp>

#include "dist/device_memory.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin::distributed {

Buckets::Buckets(Group& group, std::span<const rosin::detail::NamedGradient> gradients, std::vector<Array> given)
    : group_(group), given_(std::move(given)), made_(given_.size()) {
  for (const auto& each : gradients) owners_.push_back(each.owner);
  list_parts();
  form();
}

void Buckets::list_parts() {
  const int last = group_.ranks() - 1;
  for (size_t i = 0; i < given_.size(); ++i) {
    first_part_.push_back(parts_.size());
    const auto& [owner, part] = owners_[i];
    const int64_t count = given_[i].count(), of_each = group_.ranks() * part;
    if (part == 0) {
      parts_.push_back({i, owner < 0 ? ROSIN_COMM_ALLREDUCE : ROSIN_COMM_REDUCE, std::max(owner, 0), 0, count});
      continue;
    }
    parts_.push_back({i, ROSIN_COMM_REDUCE_SCATTER, 0, 0, part});
    if (of_each < count) parts_.push_back({i, ROSIN_COMM_REDUCE, last, of_each, count - of_each});
  }
  first_part_.push_back(parts_.size());
}

/// From the last array to the first: each part joins the open message of its type, kind and root. Messages go in the
/// order in which they are opened, which is the same on every rank.
void Buckets::form() {
  for (size_t i = given_.size(); i-- > 0;) {
    for (size_t k = first_part_[i]; k < first_part_[i + 1]; ++k) add(parts_[k], open_message(parts_[k]));
  }
}

Buckets::Message& Buckets::open_message(const Part& part) {
  const DType type = part_type(given_[part.array].dtype());
  const auto is_open_for_it = [&](const Message& m) {
    const uint64_t most = &m == &messages_.front() ? first_bytes : most_bytes;
    return m.verb.type == type && m.verb.kind == part.kind && m.verb.root == part.root && m.bytes < most;
  };
  const auto message = std::find_if(messages_.rbegin(), messages_.rend(), is_open_for_it);
  if (message != messages_.rend()) return *message;
  std::string whose;
  if (part.kind == ROSIN_COMM_REDUCE) whose = " of the share of rank " + std::to_string(part.root);
  if (part.kind == ROSIN_COMM_REDUCE_SCATTER) whose = " of parts for each rank";
  const std::string label = "gradients" + whose + ", message " + std::to_string(messages_.size());
  messages_.push_back({{part.kind, "update", type, Reduction::sum, part.root}, label, {}});
  return messages_.back();
}

void Buckets::add(Part& part, Message& message) {
  const Array& x = given_[part.array];
  const int64_t numbers = is_complex(x.dtype()) ? 2 : 1, count = part.count * numbers, begin = part.begin * numbers;
  const int64_t sent = part.kind == ROSIN_COMM_REDUCE_SCATTER ? count * group_.ranks() : count;
  part.message = static_cast<size_t>(&message - messages_.data());
  part.piece = message.pieces.size();
  message.pieces.push_back({x, x, count, begin, begin});
  message.bytes += static_cast<uint64_t>(sent) * size_of(message.verb.type);
  ++message.missing;
}

/// Arrays for what this rank wants of the sums; what it does not want has none.
void Buckets::take_memory() {
  for (size_t i = 0; i < given_.size(); ++i) {
    const auto& [owner, part] = owners_[i];
    if (owner >= 0 && owner != group_.rank()) continue;
    const Array& x = given_[i];
    const bool is_last = group_.rank() + 1 == group_.ranks();
    const int64_t own = is_last ? x.count() - group_.rank() * part : part;
    made_[i] = fresh_beside(x, x.dtype(), part > 0 ? Shape({own}) : x.shape());
  }
}

/// The same in memory in common, where all ranks have that.
void Buckets::receive(bool in_common) {
  std::vector<Array> common = in_common ? group_.common_sums(given_) : std::vector<Array>();
  const bool is_there = !common.empty();
  if (is_there) made_ = std::move(common);
  else if (suit_common_) take_memory();
  for (Message& message : messages_) message.verb.in_common = is_there;
  for (size_t i = 0; i < given_.size(); ++i) {
    int64_t at = 0;
    for (const Part& part : parts_of(i)) {
      if (!is_wanted(part)) continue;
      Piece& piece = messages_[part.message].pieces[part.piece];
      piece.receive = made_[i];
      piece.receive_begin = at;
      at += piece.count;
    }
  }
}

/// Something is left to compute after the first message, and a message is more than the rank's one processor would do
/// itself.
bool Buckets::is_worth_a_thread() const {
  const auto is_pending = [](const Array& x) { return !x.node()->ready(); };
  if (messages_.size() > 1 && messages_.front().verb.in_common && num_threads() == 1) return false;
  return messages_.size() > 1 && !are_on_device() && std::any_of(given_.begin(), given_.end(), is_pending);
}

void Buckets::evaluate() {
  for (const Array& x : given_) eval(x);
}

void Buckets::begin() {
  const bool by_all =
      std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.kind == ROSIN_COMM_ALLREDUCE; });
  suit_common_ = by_all && group_.suits_common_sums(given_);
  if (!suit_common_) take_memory();
  if (!are_on_device()) return;
  const EarlyResults early(given_, *this);
  evaluate();
}

std::vector<Array> Buckets::sums(bool in_common) {
  receive(in_common);
  std::thread sender = is_worth_a_thread() ? started_sender() : std::thread();
  if (sender.joinable()) {
    evaluate_beside(sender);
  } else {
    evaluate();
    send_all();
  }
  return std::move(made_);
}

void Buckets::send_all() {
  for (Message& message : messages_) {
    message.verb.more = true;
    message.verb.follows = &message != &messages_.front();
    send(message);
  }
}

void Buckets::look() const { std::for_each(given_.begin(), given_.end(), look_at_checks); }

/// None where the system has no more threads.
std::thread Buckets::started_sender() {
  try {
    return std::thread([this] { serve(); });
  } catch (const std::system_error&) {
    return {};
  }
}

void Buckets::evaluate_beside(std::thread& sender) {
  try {
    const EarlyResults early(given_, *this);
    evaluate();
  } catch (...) {
    end();
    sender.join();
    throw;
  }
  for (size_t i = 0; i < given_.size(); ++i) written(i, given_[i].node()->data());
  sender.join();
  if (error_) std::rethrow_exception(error_);
}

void Buckets::serve() noexcept {
  for (Message& message : messages_) {
    if (!wait_for(message)) return;
    try {
      send(message);
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard guard(lock_);
    is_sending_ = false;
    changed_.notify_all();
    if (error_) return;
  }
}

/// Until its arrays are written; false where they never will be.
bool Buckets::wait_for(Message& message) {
  std::unique_lock guard(lock_);
  changed_.wait(guard, [&] { return has_ended_ || message.missing == 0; });
  if (message.missing != 0) return false;
  message.is_sent = is_sending_ = true;
  return true;
}

void Buckets::end() {
  const std::lock_guard guard(lock_);
  has_ended_ = true;
  changed_.notify_all();
}

void Buckets::written(size_t i, const void* elements) noexcept {
  const std::lock_guard guard(lock_);
  bool is_ready = false;
  for (const Part& part : parts_of(i)) {
    Message& message = messages_[part.message];
    Piece& piece = message.pieces[part.piece];
    if (message.is_sent || piece.elements) continue;
    piece.elements = elements;
    if (--message.missing == 0) is_ready = true;
  }
  if (is_ready) changed_.notify_all();
}

/// The first of its messages.
int32_t Buckets::group(size_t i) const noexcept {
  const std::span<const Part> parts = parts_of(i);
  const auto goes_earlier = [](const Part& a, const Part& b) { return a.message < b.message; };
  return static_cast<int32_t>(std::min_element(parts.begin(), parts.end(), goes_earlier)->message);
}

void Buckets::failed() noexcept {
  std::unique_lock guard(lock_);
  changed_.wait(guard, [&] { return !is_sending_; });
  for (Message& message : messages_) {
    if (message.is_sent) continue;
    for (Piece& piece : message.pieces) piece.elements = nullptr;
    message.missing = message.pieces.size();
  }
}

}  // namespace rosin::distributed
