// See room.hpp.
#include "local/room.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace rosin::transport::local {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int spins = 2000, yields = 100;
constexpr std::chrono::seconds stopped{1};      // a slice that took longer was one of the whole process
constexpr long slice_nanoseconds = 20'000'000;  // of sleep between two looks at who is still there

/// The whole number in an environment variable; nothing when there is none.
std::optional<int> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  if (std::from_chars(text, end, value).ptr == end) return value;
  throw Trouble{ROSIN_COMM_INVALID, std::string(variable) + " must be a whole number; got \"" + text + "\""};
}

int cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

bool is_over(int watched) {
  pollfd one{watched, POLLIN, 0};
  return watched >= 0 && poll(&one, 1, 0) == 1;
}

void pause_a_little() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

/// What is waited for: a rank is missing as long as `missing` says so.
struct Room::Wait {
  double timeout;
  const char* what;  // "did not come to"
  bool (*missing)(const Room&, int other);
};

Room::Room(double timeout) {
  open_page();
  if (!page_) return;
  spins_ = ranks_ <= cores();
  watched_.assign(static_cast<size_t>(ranks_) + 1, -1);
  take_slot();
  watch(page_->launcher, ranks_);
  try {
    current_ = {};
    put_text(current_.name, "join");
    meet(timeout);
    for (int other = 0; other < ranks_; ++other) {
      if (other != rank_) watch(slot(other).process.load(), other);
    }
    compare_versions();
  } catch (Trouble& trouble) {
    tell_failure(trouble.status, trouble.text);
    throw;
  }
}

void Room::leave() noexcept {
  for (const int one : watched_) {
    if (one >= 0) close(one);
  }
  watched_.clear();
  unmap_common();
  if (!page_) return;
  slot(rank_).left.store(1);
  wake(page_->meetings);
  munmap(page_, page_->size);
  page_ = nullptr;
}

void Room::open_page() {
  const std::optional<int> file = number_of(fd_variable);
  if (!file) return;
  const std::optional<int> rank = number_of(rank_variable), ranks = number_of(ranks_variable);
  const auto refuse = [](const std::string& text) { throw Trouble{ROSIN_COMM_INVALID, text}; };
  if (!rank || !ranks) refuse(std::string(fd_variable) + " stands without " + rank_variable + " or " + ranks_variable);
  if (*ranks < 1 || *ranks > most_ranks || *rank < 0 || *rank >= *ranks) {
    refuse("rank " + std::to_string(*rank) + " of " + std::to_string(*ranks) + " is none that there can be");
  }
  struct stat facts {};
  if (fstat(*file, &facts) != 0 || static_cast<uint64_t>(facts.st_size) < sizeof(Header)) {
    refuse(std::string(fd_variable) + " names no memory of rosin run; start the program by rosin run -n N PROGRAM");
  }
  const auto size = static_cast<size_t>(facts.st_size);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
  if (memory == MAP_FAILED) throw Trouble{ROSIN_COMM_FAILED, std::string("shared memory: ") + std::strerror(errno)};
  auto* page = static_cast<Header*>(memory);
  const bool fits = page->magic == magic && page->version == page_version && page->size <= size;
  const int there = fits ? page->ranks : 0;
  if (there != *ranks || page->size != page_bytes(there)) {
    munmap(memory, size);
    refuse(fits ? std::string(ranks_variable) + " says " + std::to_string(*ranks) + " ranks, rosin run started " +
                      std::to_string(there)
                : "the program rosin and librosin_comm_local.so are of different versions; install both anew");
  }
  page_ = page;
  file_ = *file;
  rank_ = *rank;
  ranks_ = *ranks;
}

void Room::take_slot() {
  Slot& mine = slot(rank_);
  int32_t holder = 0;
  if (!mine.process.compare_exchange_strong(holder, getpid())) {
    munmap(page_, page_->size);
    page_ = nullptr;
    throw Trouble{ROSIN_COMM_INVALID, "rank " + std::to_string(rank_) + " is process " + std::to_string(holder) +
                                          " already; a program that it starts is no rank of its own"};
  }
  put_text(mine.version, ROSIN_VERSION);
}

void Room::compare_versions() {
  for (int other = 0; other < ranks_; ++other) {
    const std::string first = get_text(slot(0).version), there = get_text(slot(other).version);
    if (there == first) continue;
    throw Trouble{ROSIN_COMM_MISMATCH,
                  "rank 0 has version " + first + " of the transport, rank " + std::to_string(other) + " has " + there};
  }
}

void Room::watch(int32_t process, int at) {
#ifdef SYS_pidfd_open
  if (process > 0) watched_[static_cast<size_t>(at)] = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#endif
}

void Room::wake(std::atomic<uint32_t>& word) {
  if (page_->sleepers.load() != 0) syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

/// Waits until done(); `word` is changed and woken by whoever makes it so.
template <class Done> void Room::wait(std::atomic<uint32_t>& word, const Wait& for_what, Done&& done) {
  for (int i = 0; spins_ && i < spins; ++i) {
    if (done()) return;
    pause_a_little();
  }
  for (int i = 0; i < yields; ++i) {
    if (done()) return;
    sched_yield();
  }
  auto begin = Clock::now(), last = begin;
  for (;;) {
    const uint32_t value = word.load();
    if (done()) return;
    look_around(for_what);
    if (done()) return;
    const auto now = Clock::now();
    if (now - last > stopped) begin += now - last;  // this process was: the others may have been as well
    last = now;
    const std::chrono::duration<double> waited = now - begin;
    if (for_what.timeout > 0 && waited.count() > for_what.timeout) give_up(for_what);
    const timespec slice{0, slice_nanoseconds};
    page_->sleepers.fetch_add(1);
    syscall(SYS_futex, &word, FUTEX_WAIT, value, &slice, nullptr, 0);
    page_->sleepers.fetch_sub(1);
  }
}

/// Throws when waiting is in vain: a rank has gone, or another one has failed.
void Room::look_around(const Wait& for_what) {
  throw_told_failure();
  for (int other = 0; other < ranks_; ++other) {
    if (other == rank_ || !for_what.missing(*this, other)) continue;
    const std::string why = why_gone(other);
    if (why.empty() || !for_what.missing(*this, other)) continue;  // it may have come before it went
    throw_told_failure();
    throw Trouble{ROSIN_COMM_LOST, "rank " + std::to_string(other) + " " + why + "; it " + last_of(other) + "; rank " +
                                       std::to_string(rank_) + " waits in " + text_of(current_)};
  }
  if (is_over(watched_.back())) throw Trouble{ROSIN_COMM_LOST, "rosin run, which started the ranks, is gone"};
}

void Room::give_up(const Wait& for_what) {
  std::string text;
  for (int other = 0; other < ranks_; ++other) {
    if (other == rank_ || !for_what.missing(*this, other)) continue;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(other) + " (process " +
            std::to_string(slot(other).process.load()) + ") " + for_what.what + " within " +
            seconds_text(for_what.timeout) + ": it " + last_of(other);
  }
  throw Trouble{ROSIN_COMM_TIMEOUT, text + "; rank " + std::to_string(rank_) + " waits in " + text_of(current_)};
}

std::string Room::why_gone(int other) const {
  const Slot& its = slot(other);
  const auto end = static_cast<End>(its.end.load(std::memory_order_acquire));
  const int value = its.end_value.load(std::memory_order_relaxed);
  if (end == End::signal) return "was ended by signal " + std::to_string(value) + " (" + strsignal(value) + ")";
  if (its.left.load() != 0 && (end == End::none || value == 0)) return "has left";
  if (end == End::status) return "ended with status " + std::to_string(value);
  return is_over(watched_[static_cast<size_t>(other)]) ? "is gone" : "";
}

/// "has ended collective 4, ...", "is in ...", "has not joined".
std::string Room::last_of(int other) const {
  const Slot& its = slot(other);
  if (its.process.load() == 0) return "has not joined";
  const uint64_t begun = its.begun.load(std::memory_order_acquire), ended = its.ended.load();
  if (begun == 0) return "has called no collective";
  const Description description = its.description[begun & 1];
  return (ended >= begun ? "has ended " : "is in ") + text_of(description);
}

void Room::meet(double timeout) {
  ++meetings_;
  const auto wanted = static_cast<uint32_t>(meetings_);
  const bool is_last = page_->arrivals.fetch_add(1) + 1 == meetings_ * static_cast<uint64_t>(ranks_);
  if (is_last) {
    page_->meetings.store(wanted);
    wake(page_->meetings);
  }
  // Only now: a rank that is killed before is one that did not come.
  slot(rank_).arrived.store(meetings_, std::memory_order_release);
  if (is_last) return;
  const Wait for_all{timeout, "did not come", [](const Room& room, int other) {
                       return room.slot(other).arrived.load(std::memory_order_acquire) < room.meetings_;
                     }};
  wait(page_->meetings, for_all, [&] { return page_->meetings.load() == wanted; });
}

void Room::throw_told_failure() const {
  const Failure& failure = page_->failure;
  if (failure.state.load(std::memory_order_acquire) != 2) return;
  const std::string who = failure.rank == rank_ ? "" : "rank " + std::to_string(failure.rank) + " says: ";
  throw Trouble{static_cast<rosin_comm_status>(failure.status), who + get_text(failure.text)};
}

void Room::tell_failure(int status, const std::string& text) noexcept {
  Failure& failure = page_->failure;
  uint32_t none = 0;
  if (!failure.state.compare_exchange_strong(none, 1)) return;
  failure.rank = rank_;
  failure.status = status;
  put_text(failure.text, text);
  failure.state.store(2, std::memory_order_release);
  wake(page_->meetings);
}

void Room::abort(const char* why) noexcept {
  if (page_) tell_failure(ROSIN_COMM_ABORTED, std::string("aborted: ") + (why ? why : "no reason was given"));
}

void Room::check() {
  if (broken_) throw *broken_;
  if (!page_) return;
  try {
    throw_told_failure();
    for (int other = 0; other < ranks_; ++other) {
      const std::string why = other == rank_ ? "" : why_gone(other);
      if (why.empty() || (slot(other).left.load() != 0 && why == "has left")) continue;
      throw_told_failure();  // it may have said why before it went
      throw Trouble{ROSIN_COMM_LOST, "rank " + std::to_string(other) + " " + why + "; it " + last_of(other)};
    }
  } catch (Trouble& trouble) {
    broken_ = trouble;
    tell_failure(trouble.status, trouble.text);
    throw;
  }
}

// What collectives.cpp waits for: the pieces of mail between two ranks.

void Room::send(const rosin_comm_collective& c) {
  Slot& mine = slot(rank_);
  uint64_t left = total_bytes(c);
  Walk walk(c);
  const Wait for_taker{c.timeout, "did not receive",
                       [](const Room& room, int other) { return other == room.current_.root; }};
  do {
    const uint64_t now = std::min(left, mail_bytes);
    walk.read(mail(rank_), now);
    left -= now;
    mine.mail_size = now;
    mine.mail_left = left;
    mine.to.store(c.root, std::memory_order_relaxed);
    const uint32_t number = mine.posted.load(std::memory_order_relaxed) + 1;
    mine.posted.store(number);
    wake(mine.posted);
    wait(mine.taken, for_taker, [&] { return mine.taken.load() == number; });
  } while (left != 0);
}

void Room::receive(const rosin_comm_collective& c) {
  Slot& its = slot(c.root);
  uint64_t left = total_bytes(c);
  Walk walk(c);
  const Wait for_sender{c.timeout, "did not send",
                        [](const Room& room, int other) { return other == room.current_.root; }};
  do {
    wait(its.posted, for_sender,
         [&] { return its.posted.load() != its.taken.load() && its.to.load(std::memory_order_relaxed) == rank_; });
    if (its.mail_size + its.mail_left != left) {
      throw Trouble{ROSIN_COMM_MISMATCH, "rank " + std::to_string(c.root) + " sends " +
                                             std::to_string(its.mail_size + its.mail_left) + " bytes, rank " +
                                             std::to_string(rank_) + " receives " + std::to_string(left) + " in " +
                                             text_of(current_)};
    }
    walk.write(mail(c.root), its.mail_size);
    left = its.mail_left;
    its.taken.store(its.taken.load(std::memory_order_relaxed) + 1);
    wake(its.taken);
  } while (left != 0);
}

}  // namespace rosin::transport::local
