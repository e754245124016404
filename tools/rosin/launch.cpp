// See launch.hpp. One thread, which waits for signals: SIGCHLD of the processes, and those that it passes on.
#include "launch.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <rosin/stats.hpp>

#include "local/page.hpp"

extern char** environ;

namespace command {
namespace {

namespace local = rosin::transport::local;
static_assert(most_ranks == local::most_ranks);
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds last_grace{2};  // between SIGTERM and SIGKILL
constexpr int not_started = 127;               // the status of a process that could not run the program, as in a shell

[[noreturn]] void give_up(const std::string& what) {
  throw std::runtime_error("run: " + what + ": " + std::strerror(errno));
}

/// The memory that the processes share; they inherit its descriptor.
class Page {
 public:
  explicit Page(int ranks) : bytes_(local::page_bytes(ranks)), file_(memfd_create("rosin", 0)) {
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) give_up("shared memory");
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory_ == MAP_FAILED) give_up("shared memory");
    page_ = &local::make_page(memory_, ranks, getpid());
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() {
    munmap(memory_, bytes_);
    close(file_);
  }
  int file() const { return file_; }
  local::Slot& slot(int rank) const { return local::slot_of(*page_, rank); }

 private:
  size_t bytes_;
  int file_;
  void* memory_ = nullptr;
  local::Header* page_ = nullptr;
};

/// Signals that are waited for, not handled.
class Signals {
 public:
  Signals() {
    sigemptyset(&all_);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&all_, number);
    sigprocmask(SIG_BLOCK, &all_, &before_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() { release(); }
  /// In a child: as it was.
  void release() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  /// The next one; 0 when none comes for a while.
  int next() const {
    const timespec while_{0, 100'000'000};
    return std::max(sigtimedwait(&all_, nullptr, &while_), 0);
  }

 private:
  sigset_t all_, before_;
};

/// Which processes have ended, in the order in which they did. A rank that loses another one fails too, often before
/// this process has run again: the first is the cause.
class Ends {
 public:
  explicit Ends(int ranks) : files_(static_cast<size_t>(ranks), -1), queue_(epoll_create1(EPOLL_CLOEXEC)) {
    if (queue_ < 0) give_up("a queue of the processes' ends");
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {
    for (size_t rank = 0; rank < files_.size(); ++rank) forget(static_cast<int>(rank));
    close(queue_);
  }

  void watch(int rank, pid_t process) {
    int& file = files_[static_cast<size_t>(rank)];
    file = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = rank;
    if (file < 0 || epoll_ctl(queue_, EPOLL_CTL_ADD, file, &event) != 0) give_up("a process cannot be watched");
  }
  void forget(int rank) {
    int& file = files_[static_cast<size_t>(rank)];
    if (file >= 0) close(file);
    file = -1;
  }
  /// Ranks that have ended by now and are not forgotten yet.
  std::vector<int> now() const {
    std::vector<epoll_event> events(files_.size());
    const int count = epoll_wait(queue_, events.data(), static_cast<int>(events.size()), 0);
    std::vector<int> ranks;
    for (int k = 0; k < count; ++k) ranks.push_back(events[static_cast<size_t>(k)].data.fd);
    return ranks;
  }

 private:
  std::vector<int> files_;  // by rank; -1: none
  int queue_;
};

/// Environment variables of one process.
class Environment {
 public:
  Environment(const Launch& launch, int rank, int file) {
    for (char** variable = environ; *variable; ++variable) texts_.emplace_back(*variable);
    set(local::rank_variable, std::to_string(rank));
    set(local::ranks_variable, std::to_string(launch.ranks));
    set(local::fd_variable, std::to_string(file));
    const char* threads = std::getenv("ROSIN_NUM_THREADS");
    if (!threads || !*threads)
      set("ROSIN_NUM_THREADS", std::to_string(std::max(1, rosin::num_threads() / launch.ranks)));
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char** list() { return pointers_.data(); }

 private:
  void set(const std::string& name, const std::string& value) {
    std::erase_if(texts_, [&](const std::string& text) { return text.starts_with(name + "="); });
    texts_.push_back(name + "=" + value);
  }

  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// In the child: becomes the program. A group of its own, so that whatever it starts is ended with it.
[[noreturn]] void become(char** words, char** environment, int rank, pid_t launcher, const Signals& signals) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(not_started);
  if (rank != 0 || isatty(STDIN_FILENO)) {
    const int none = open("/dev/null", O_RDONLY);
    if (none > 0) dup2(none, STDIN_FILENO);
    if (none > 0) close(none);
  }
  signals.release();
  execvpe(words[0], words, environment);
  const int error = errno;
  if (rank == 0) dprintf(STDERR_FILENO, "rosin: run: %s: %s\n", words[0], strerror(error));
  _exit(not_started);
}

/// The processes of one start.
class Ranks {
 public:
  Ranks(const Launch& launch, const Signals& signals)
      : launch_(launch), signals_(signals), page_(launch.ranks), ends_(launch.ranks) {}
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    tell_all(SIGKILL);
    for (const pid_t process : processes_) {
      if (process > 0) waitpid(process, nullptr, 0);
    }
  }

  void start();
  /// The status, once all have ended.
  int wait();
  bool was_interrupted() const { return interrupted_; }

 private:
  void tell_all(int signal) const;
  void end_those_that_linger();
  bool collect();
  void note_end(int rank, const siginfo_t& end);

  const Launch& launch_;
  const Signals& signals_;
  Page page_;
  Ends ends_;
  std::vector<pid_t> processes_;  // by rank; 0: has ended
  int status_ = 0;                // of the first that failed
  bool interrupted_ = false;
  enum class Ending { no, grace, asked } ending_ = Ending::no;
  Clock::time_point deadline_{};  // for the next step of ending all
};

void Ranks::start() {
  std::vector<std::string> texts = launch_.words;
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);
  const pid_t launcher = getpid();
  std::fflush(nullptr);
  for (int rank = 0; rank < launch_.ranks; ++rank) {
    Environment environment(launch_, rank, page_.file());
    const pid_t process = fork();
    if (process == 0) become(words.data(), environment.list(), rank, launcher, signals_);
    if (process < 0) give_up("a process could not be started");
    setpgid(process, process);
    processes_.push_back(process);
    ends_.watch(rank, process);
  }
}

void Ranks::tell_all(int signal) const {
  for (const pid_t process : processes_) {
    if (process > 0) kill(-process, signal);
  }
}

int Ranks::wait() {
  while (!collect()) {
    const int signal = signals_.next();
    if (signal != 0 && signal != SIGCHLD) {
      tell_all(signal);
      interrupted_ = true;
      if (status_ == 0) status_ = 128 + signal;
    }
    end_those_that_linger();
  }
  return status_;
}

/// After a failure: time to raise errors, then SIGTERM, then SIGKILL.
void Ranks::end_those_that_linger() {
  if (status_ == 0) return;
  const auto now = Clock::now();
  if (ending_ == Ending::no) {
    ending_ = Ending::grace;
    deadline_ = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(launch_.grace));
  } else if (now >= deadline_) {
    tell_all(ending_ == Ending::asked ? SIGKILL : SIGTERM);
    ending_ = Ending::asked;
    deadline_ = now + last_grace;
  }
}

/// Notes which processes have ended; true when all have.
bool Ranks::collect() {
  for (const int rank : ends_.now()) {
    pid_t& process = processes_[static_cast<size_t>(rank)];
    siginfo_t end{};
    if (waitid(P_PID, static_cast<id_t>(process), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid == 0) continue;
    note_end(rank, end);
    kill(-process, SIGKILL);  // what it has started; its number is not given away before it is waited for
    waitpid(process, nullptr, 0);
    process = 0;
    ends_.forget(rank);
  }
  return std::ranges::all_of(processes_, [](pid_t process) { return process == 0; });
}

void Ranks::note_end(int rank, const siginfo_t& end) {
  const bool exited = end.si_code == CLD_EXITED;
  const int value = end.si_status;
  local::mark_end(page_.slot(rank), exited ? local::End::status : local::End::signal, value);
  if ((exited && value == 0) || status_ != 0) return;
  status_ = exited ? value : 128 + value;
  const std::string how = exited ? "ended with status " + std::to_string(value)
                                 : "was ended by signal " + std::to_string(value) + " (" + strsignal(value) + ")";
  std::fprintf(stderr, "rosin: run: rank %d %s; all others are ended\n", rank, how.c_str());
}

}  // namespace

int launch(const Launch& launch) {
  const Signals signals;
  for (int again = 0;; ++again) {
    Ranks ranks(launch, signals);
    ranks.start();
    const int status = ranks.wait();
    if (status == 0 || ranks.was_interrupted() || status == not_started || again == launch.restarts) return status;
    std::fprintf(stderr, "rosin: run: all ranks are started again (%d of %d)\n", again + 1, launch.restarts);
  }
}

}  // namespace command
