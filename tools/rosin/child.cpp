// See child.hpp.
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

extern char** environ;

namespace command {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int pause_milliseconds = 20;   // between two looks at a child that says nothing
constexpr size_t most_kept = 16u << 20;  // bytes of its output

/// A pipe whose reading end does not block.
struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) == 0) fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_writer();
    if (ends[0] >= 0) close(ends[0]);
  }
  void close_writer() {
    if (ends[1] >= 0) close(std::exchange(ends[1], -1));
  }
  void read_into(std::string& text) const {
    std::array<char, 4096> bytes{};
    for (ssize_t count; (count = read(ends[0], bytes.data(), bytes.size())) > 0;) {
      if (text.size() < most_kept) text.append(bytes.data(), static_cast<size_t>(count));
    }
  }

  std::array<int, 2> ends{-1, -1};
};

/// The process, in a process group of its own; -1 where it cannot be started, with the reason in `trouble`.
pid_t start(std::vector<std::string>& arguments, const Pipe& output, const Pipe& errors, std::string& trouble) {
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = -1;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) trouble = std::string("could not be started: ") + std::strerror(error);
  return error == 0 ? child : -1;
}

/// Reads what the child writes until it ends; false when the time is over first.
bool follow(pid_t child, const Pipe& output, const Pipe& errors, Clock::time_point end, ChildResult& result,
            std::string& said, int& status) {
  for (;;) {
    std::array<pollfd, 2> sources{{{output.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}}};
    poll(sources.data(), sources.size(), pause_milliseconds);
    const bool ended = waitpid(child, &status, WNOHANG) == child;
    output.read_into(result.output);
    errors.read_into(said);
    if (ended) return true;
    if (Clock::now() > end) return false;
    if (((sources[0].revents | sources[1].revents) & POLLHUP) != 0) usleep(1000);
  }
}

std::string last_line(std::string text) {
  constexpr size_t longest = 300;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t begin = text.rfind('\n');
  if (begin != std::string::npos) text.erase(0, begin + 1);
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return "crashed with signal " + std::to_string(number) + " (" + strsignal(number) + ")";
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? std::string() : "ended the process with exit status " + std::to_string(code);
}

}  // namespace

ChildResult run_self(std::vector<std::string> arguments, double seconds) {
  ChildResult result;
  Pipe output, errors;
  arguments.insert(arguments.begin(), "rosin");
  const pid_t child = start(arguments, output, errors, result.trouble);
  if (child < 0) return result;
  output.close_writer();
  errors.close_writer();
  std::string said;
  int status = 0;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  if (follow(child, output, errors, end, result, said, status)) {
    result.trouble = how_it_ended(status);
  } else {
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
    std::array<char, 32> limit{};
    std::snprintf(limit.data(), limit.size(), "%g", seconds);
    result.trouble = std::string("did not end within ") + limit.data() + " s";
  }
  const std::string line = last_line(std::move(said));
  if (!result.trouble.empty() && !line.empty()) result.trouble += "; it said: " + line;
  return result;
}

int take_stdout() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::fflush(stdout);
  const int descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return descriptor;
}

void write_line(int descriptor, const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

}  // namespace command
