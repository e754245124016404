// See star.hpp.
#include "tcp/star.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "common/combine.hpp"
#include "common/parts.hpp"

namespace rosin::transport::tcp {
namespace {

constexpr double grace = 5;  // seconds that others wait longer than rank 0, which says who is late
constexpr int most_ranks = 4096;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number_of(const char* name, int least, int most) {
  const std::string text = variable(name);
  int number = -1;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), number);
  if (done.ec == std::errc{} && done.ptr == text.data() + text.size() && number >= least && number <= most) {
    return number;
  }
  throw Trouble{ROSIN_COMM_INVALID, std::string(name) + " must be a number from " + std::to_string(least) + " to " +
                                        std::to_string(most) + " beside ROSIN_MASTER; got \"" + text + "\""};
}

struct Hello {
  int32_t rank, ranks;
  std::array<char, 32> version;
  std::array<char, 64> machine;
};

struct Welcome {
  int32_t node_rank, node_ranks;
};

Hello own_hello(int rank, int ranks) {
  Hello hello{rank, ranks, {}, {}};
  put_text(hello.version, ROSIN_VERSION);
  gethostname(hello.machine.data(), hello.machine.size() - 1);
  return hello;
}

/// Throws where a rank does not belong to those that rank 0 knows by what they said, or has come already.
void check_hello(const Hello& hello, const std::vector<Hello>& all) {
  const Hello& own = all[0];
  const bool fits = hello.ranks == own.ranks && hello.rank > 0 && hello.rank < own.ranks;
  const bool is_here = fits && all[static_cast<size_t>(hello.rank)].rank == hello.rank;
  if (!fits || is_here) {
    throw Trouble{ROSIN_COMM_INVALID, "rank 0 of " + std::to_string(own.ranks) + " was joined by rank " +
                                          std::to_string(hello.rank) + " of " + std::to_string(hello.ranks) +
                                          (is_here ? " twice" : "")};
  }
  if (hello.version == own.version) return;
  throw Trouble{ROSIN_COMM_MISMATCH, "rank 0 is of version " + get_text(own.version) + ", rank " +
                                         std::to_string(hello.rank) + " of " + get_text(hello.version)};
}

/// Of each rank, its number among those of its machine and how many these are.
std::vector<Welcome> places_of(const std::vector<Hello>& all) {
  std::map<std::string, int32_t> counts;
  std::vector<Welcome> places;
  for (const Hello& hello : all) places.push_back({counts[get_text(hello.machine)]++, 0});
  for (size_t i = 0; i < all.size(); ++i) places[i].node_ranks = counts[get_text(all[i].machine)];
  return places;
}

/// How many times its count a rank gives and gets.
uint64_t given(const rosin_comm_collective& c, int rank, int ranks) {
  if (c.kind == ROSIN_COMM_BROADCAST) return rank == c.root ? 1 : 0;
  return c.kind == ROSIN_COMM_REDUCE_SCATTER ? static_cast<uint64_t>(ranks) : 1;
}

uint64_t got(const rosin_comm_collective& c, int rank, int ranks) {
  if (c.kind == ROSIN_COMM_BROADCAST) return rank == c.root ? 0 : 1;
  if (c.kind == ROSIN_COMM_REDUCE) return rank == c.root ? 1 : 0;
  return c.kind == ROSIN_COMM_ALLGATHER ? static_cast<uint64_t>(ranks) : 1;
}

/// What this rank gives, stretch by stretch; each is that of all parts.
std::vector<char> packed(const rosin_comm_collective& c, int rank, int ranks) {
  const uint64_t bytes = total_bytes(c), stretches = given(c, rank, ranks);
  std::vector<char> all(bytes * stretches);
  for (uint64_t i = 0; i < stretches; ++i) Walk(c, static_cast<int>(i)).read(all.data() + i * bytes, bytes);
  return all;
}

void unpack(const rosin_comm_collective& c, const std::vector<char>& all, int rank, int ranks) {
  const uint64_t bytes = total_bytes(c);
  for (uint64_t i = 0; i < got(c, rank, ranks); ++i) Walk(c, static_cast<int>(i)).write(all.data() + i * bytes, bytes);
}

/// What comes of what all have given, for one of them.
std::vector<char> result_for(const rosin_comm_collective& c, const std::vector<std::vector<char>>& all, int rank) {
  const auto ranks = static_cast<int>(all.size());
  const uint64_t bytes = total_bytes(c);
  std::vector<char> result;
  if (got(c, rank, ranks) == 0) return result;
  if (c.kind == ROSIN_COMM_BROADCAST) return all[static_cast<size_t>(c.root)];
  if (c.kind == ROSIN_COMM_ALLGATHER) {
    for (const auto& each : all) result.insert(result.end(), each.begin(), each.end());
    return result;
  }
  const uint64_t begin = c.kind == ROSIN_COMM_REDUCE_SCATTER ? bytes * static_cast<uint64_t>(rank) : 0;
  std::vector<const void*> sources;
  for (const auto& each : all) sources.push_back(each.data() + begin);
  result.resize(bytes);
  combine_all(c.operation, c.type, sources, bytes, result.data());
  return result;
}

}  // namespace

Star::Star(double timeout) {
  const std::string master = variable("ROSIN_MASTER");
  if (master.empty()) return;
  const size_t colon = master.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == master.size()) {
    throw Trouble{ROSIN_COMM_INVALID, "ROSIN_MASTER must be host:port of rank 0; got \"" + master + "\""};
  }
  place_.ranks = number_of("ROSIN_WORLD_SIZE", 1, most_ranks);
  place_.rank = number_of("ROSIN_RANK", 0, place_.ranks - 1);
  if (is_alone()) return;
  put_text(current_.name, "join");
  if (place_.rank == 0) gather_ranks(master.substr(colon + 1), timeout);
  else join_master(master.substr(0, colon), master.substr(colon + 1), timeout);
}

void Star::gather_ranks(const std::string& port, double timeout) {
  const int listener = listen_at(port);
  const Connection closes(listener);
  const Deadline deadline(timeout);
  others_.resize(static_cast<size_t>(place_.ranks));
  std::vector<Hello> all(others_.size(), own_hello(0, place_.ranks));
  for (int missing = place_.ranks - 1; missing > 0;) {
    std::unique_ptr<Connection> one;
    try {
      one = std::make_unique<Connection>(accept_at(listener, deadline));
      Bytes bytes;
      const Head head = one->receive(bytes, Deadline(grace), aborted_);
      Hello hello{};
      if (head.kind != FrameKind::hello || bytes.size() != sizeof hello) continue;  // somebody else
      std::memcpy(&hello, bytes.data(), sizeof hello);
      check_hello(hello, all);
      all[static_cast<size_t>(hello.rank)] = hello;
      others_[static_cast<size_t>(hello.rank)] = std::move(one);
      --missing;
    } catch (const Fault fault) {
      if (fault == Fault::gone) continue;  // somebody who thought better of it
      const auto absent = std::find(others_.begin() + 1, others_.end(), nullptr);
      explain(Fault::late, static_cast<int>(absent - others_.begin()), timeout);
    } catch (const Trouble& trouble) {
      if (one) others_.push_back(std::move(one));  // who does not belong here is told too
      tell_failure(trouble);
      throw;
    }
  }
  const std::vector<Welcome> places = places_of(all);
  place_.node_ranks = places[0].node_ranks;
  for (int rank = 1; rank < place_.ranks; ++rank) {
    Bytes bytes(sizeof(Welcome));
    std::memcpy(bytes.data(), &places[static_cast<size_t>(rank)], sizeof(Welcome));
    tell(rank, {FrameKind::welcome, 0, bytes.size(), {}}, bytes, timeout);
  }
}

void Star::join_master(const std::string& host, const std::string& port, double timeout) {
  try {
    others_.push_back(std::make_unique<Connection>(connect_to(host, port, Deadline(timeout))));
  } catch (const Fault fault) {
    explain(fault, 0, timeout);
  }
  const Hello hello = own_hello(place_.rank, place_.ranks);
  Bytes bytes(sizeof hello);
  std::memcpy(bytes.data(), &hello, sizeof hello);
  tell(0, {FrameKind::hello, 0, bytes.size(), {}}, bytes, timeout);
  hear(0, bytes, timeout > 0 ? timeout + grace : 0);
  Welcome welcome{};
  std::memcpy(&welcome, bytes.data(), std::min(bytes.size(), sizeof welcome));
  place_.node_rank = welcome.node_rank;
  place_.node_ranks = welcome.node_ranks;
}

void Star::explain(Fault fault, int rank, double timeout) const {
  const std::string who = "rank " + std::to_string(rank);
  const std::string last = last_.number == 0 ? "no collective" : text_of(last_);
  const std::string where = "; the last that all reached is " + last + "; rank " + std::to_string(place_.rank) +
                            " waits in " + text_of(current_);
  if (aborted_) throw Trouble{ROSIN_COMM_ABORTED, why_};
  if (fault == Fault::gone) throw Trouble{ROSIN_COMM_LOST, who + " is gone" + where};
  if (fault == Fault::left) throw Trouble{ROSIN_COMM_LOST, who + " has left" + where};
  throw Trouble{ROSIN_COMM_TIMEOUT, who + " did not come within " + seconds_text(timeout) + where};
}

/// The next frame of a rank; throws what it says of a failure.
Head Star::hear(int rank, Bytes& bytes, double timeout) {
  try {
    const Head head = others_[static_cast<size_t>(rank)]->receive(bytes, Deadline(timeout), aborted_);
    if (head.kind == FrameKind::farewell) throw Fault::left;
    if (head.kind != FrameKind::failure) return head;
    throw Trouble{static_cast<rosin_comm_status>(head.status),
                  "rank " + std::to_string(rank) + " says: " + std::string(bytes.begin(), bytes.end())};
  } catch (const Fault fault) {
    explain(fault, rank, timeout);
  }
}

void Star::tell(int rank, const Head& head, const Bytes& bytes, double timeout) {
  try {
    others_[static_cast<size_t>(rank)]->send(head, bytes.data(), Deadline(timeout));
  } catch (const Fault fault) {
    Bytes last_words;
    if (fault == Fault::gone && place_.rank != 0) hear(rank, last_words, 1);
    explain(fault, rank, timeout);
  }
}

void Star::tell_failure(const Trouble& trouble) noexcept {
  tell_all({FrameKind::failure, trouble.status, trouble.text.size(), {}}, trouble.text);
}

void Star::tell_all(const Head& head, const std::string& text) noexcept {
  for (const auto& other : others_) {
    try {
      if (other) other->send(head, text.data(), Deadline(1));
    } catch (...) {  // gone as well
    }
  }
}

void Star::run(const rosin_comm_collective& c) {
  if (broken_) throw *broken_;
  if (c.kind == ROSIN_COMM_SEND || c.kind == ROSIN_COMM_RECEIVE) {
    throw Trouble{ROSIN_COMM_UNSUPPORTED, "ranks that meet at an address send no messages to each other"};
  }
  if (is_alone()) return run_alone(c);
  try {
    current_ = describe(c, ++number_);
    if (place_.rank == 0) run_as_master(c);
    else run_as_other(c);
    last_ = current_;
  } catch (const Trouble& trouble) {
    broken_ = trouble;
    if (place_.rank == 0) tell_failure(trouble);
    throw;
  }
}

void Star::run_as_master(const rosin_comm_collective& c) {
  std::vector<Bytes> all(static_cast<size_t>(place_.ranks));
  all[0] = packed(c, 0, place_.ranks);
  std::optional<Trouble> difference;
  for (int rank = 1; rank < place_.ranks; ++rank) {
    const Head head = hear(rank, all[static_cast<size_t>(rank)], c.timeout);
    if (head.description.hash == current_.hash || difference) continue;
    difference = Trouble{ROSIN_COMM_MISMATCH, difference_text(0, current_, rank, head.description)};
  }
  if (difference) throw *difference;
  for (int rank = 1; rank < place_.ranks; ++rank) {
    const Bytes result = result_for(c, all, rank);
    tell(rank, {FrameKind::result, 0, result.size(), {}}, result, c.timeout);
  }
  unpack(c, result_for(c, all, 0), 0, place_.ranks);
}

void Star::run_as_other(const rosin_comm_collective& c) {
  const double patience = c.timeout > 0 ? c.timeout + grace : 0;
  Bytes bytes = packed(c, place_.rank, place_.ranks);
  tell(0, {FrameKind::call, 0, bytes.size(), current_}, bytes, patience);
  hear(0, bytes, patience);
  unpack(c, bytes, place_.rank, place_.ranks);
}

void Star::abort(const char* why) noexcept {
  if (is_alone() || aborted_) return;
  why_ = std::string("aborted: ") + (why ? why : "no reason was given");
  tell_failure({ROSIN_COMM_ABORTED, why_});
  aborted_ = true;
}

void Star::check() {
  if (broken_) throw *broken_;
  if (aborted_) throw Trouble{ROSIN_COMM_ABORTED, why_};
  try {
    for (size_t rank = 0; rank < others_.size(); ++rank) {
      if (others_[rank]) look_at(static_cast<int>(rank));
    }
  } catch (const Trouble& trouble) {
    broken_ = trouble;
    if (place_.rank == 0) tell_failure(trouble);
    throw;
  }
}

/// Throws what a rank says of a failure, or that it is gone; that it has left is no fault until something is wanted.
void Star::look_at(int rank) {
  Bytes bytes;
  try {
    if (others_[static_cast<size_t>(rank)]->next() == FrameKind::failure) hear(rank, bytes, 1);
  } catch (const Fault fault) {
    explain(fault, rank, 0);
  }
}

void Star::leave() noexcept {
  tell_all({FrameKind::farewell, 0, 0, {}}, "");
  others_.clear();
}

}  // namespace rosin::transport::tcp
