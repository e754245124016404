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
    : group_(group), given_(std::move(given)), made_(given_.size()), places_(given_.size()) {
  for (const auto& each : gradients) owners_.push_back(each.owner);
  form();
}

/// From the last array to the first: each joins the open message of its type and owner. Messages go in the order in
/// which they are opened, which is the same on every rank.
void Buckets::form() {
  for (size_t i = given_.size(); i-- > 0;) {
    const DType type = part_type(given_[i].dtype());
    const int owner = owners_[i];
    const auto is_open_for_it = [&](const Message& m) {
      const uint64_t most = &m == &messages_.front() ? first_bytes : most_bytes;
      return m.verb.type == type && m.verb.root == std::max(owner, 0) && m.bytes < most;
    };
    auto message = std::find_if(messages_.rbegin(), messages_.rend(), is_open_for_it);
    if (message == messages_.rend()) {
      const rosin_comm_kind kind = owner < 0 ? ROSIN_COMM_ALLREDUCE : ROSIN_COMM_REDUCE;
      const std::string whose = owner < 0 ? "" : " of the share of rank " + std::to_string(owner);
      const std::string label = "gradients" + whose + ", message " + std::to_string(messages_.size());
      messages_.push_back({{kind, "update", type, Reduction::sum, std::max(owner, 0)}, label, {}});
      message = messages_.rbegin();
    }
    add(*message, i);
  }
}

void Buckets::add(Message& message, size_t i) {
  const Array& x = given_[i];
  const int64_t count = x.count() * (is_complex(x.dtype()) ? 2 : 1);
  places_[i] = {static_cast<size_t>(&message - messages_.data()), message.pieces.size()};
  message.pieces.push_back({x, x, count});
  message.bytes += static_cast<uint64_t>(count) * size_of(message.verb.type);
  ++message.missing;
}

/// Arrays for what this rank wants of the sums; what it does not want has none.
void Buckets::take_memory() {
  for (size_t i = 0; i < given_.size(); ++i) {
    const bool is_wanted = owners_[i] < 0 || owners_[i] == group_.rank();
    if (is_wanted) made_[i] = fresh_beside(given_[i], given_[i].dtype(), given_[i].shape());
  }
}

/// The same in memory in common, where all ranks have that.
void Buckets::receive(bool in_common) {
  std::vector<Array> common = in_common ? group_.common_sums(given_) : std::vector<Array>();
  const bool is_there = !common.empty();
  if (is_there) made_ = std::move(common);
  else if (suit_common_) take_memory();
  for (size_t i = 0; i < given_.size(); ++i) {
    Message& message = messages_[places_[i].message];
    message.verb.in_common = is_there;
    if (!made_[i].is_nothing()) message.pieces[places_[i].piece].receive = made_[i];
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
  const bool by_all = std::all_of(owners_.begin(), owners_.end(), [](int owner) { return owner < 0; });
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
  Message& message = messages_[places_[i].message];
  Piece& piece = message.pieces[places_[i].piece];
  if (message.is_sent || piece.elements) return;
  piece.elements = elements;
  if (--message.missing == 0) changed_.notify_all();
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
