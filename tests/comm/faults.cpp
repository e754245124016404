// One rank, the last, does wrong; every rank says what it learns of it. ../comm_test.py reads that.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "rig.hpp"

namespace comm_test {
namespace {

constexpr int saw_an_error = 5;

/// A sum of ones, named as the collective of a training program is.
rosin_comm_status sum(Rig& rig, size_t count, double timeout, const char* name) {
  std::vector<float> all(count, 1.0f);
  const rosin_comm_status status = rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, ROSIN_COMM_SUM, 0,
                                           {{all.data(), all.data(), count}}, timeout, name);
  if (status == ROSIN_COMM_OK) rig.check(all[count / 2] == static_cast<float>(rig.ranks), "a sum");
  return status;
}

/// The time of the clock that all processes of a machine have in common, so that others can take the difference.
void say_when(const Rig& rig, const char* what) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  rig.say(std::string(what) + " at " + std::to_string(std::chrono::duration<double>(now).count()));
}

/// Says what the status is and when it came, and that it stays.
int tell(Rig& rig, rosin_comm_status status) {
  rig.in_common = false;
  if (status == ROSIN_COMM_OK) return 1;
  say_when(rig, "told");
  const std::string text = rig.functions->error_text();
  rig.say(std::string(status_name(status)) + ": " + text);
  const rosin_comm_status again = sum(rig, 1, rig.patience, "after the error");
  if (again != status) rig.say(std::string("FAILED: the next collective says ") + status_name(again));
  return saw_an_error;
}

/// The same in memory in common, where there is some.
rosin_comm_status sum_in_common(Rig& rig, size_t count, char* memory) {
  if (!memory) return sum(rig, count, rig.patience, "gradients");
  const std::vector<float> ones(count, 1.0f);
  rig.in_common = true;
  const rosin_comm_status status = rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, ROSIN_COMM_SUM, 0,
                                           {{ones.data(), memory, count}}, rig.patience, "gradients");
  rig.in_common = false;
  const auto* const all = reinterpret_cast<const float*>(memory);
  if (status == ROSIN_COMM_OK) rig.check(all[count / 2] == static_cast<float>(rig.ranks), "a sum in common");
  return status;
}

/// Sums until something happens.
int go_on(Rig& rig) {
  constexpr size_t many = 400000;
  char* const memory = rig.common(many * sizeof(float));
  for (size_t turn = 0;; ++turn) {
    const rosin_comm_status status = turn % 4 == 1 ? sum_in_common(rig, many, memory)
                                                   : sum(rig, turn % 3 == 0 ? many : 10, rig.patience, "gradients");
    if (turn == 0 && rig.rank == 0) rig.say("going");
    if (status != ROSIN_COMM_OK) return tell(rig, status);
  }
}

void do_wrong(Rig& rig, const std::string& name) {
  say_when(rig, "wrong");
  if (name == "stop") raise(SIGSTOP);
  if (name == "kill") raise(SIGKILL);
  if (name == "exit") _exit(3);
  if (name == "throws") {
    const rlimit no_file{};
    setrlimit(RLIMIT_CORE, &no_file);
    throw std::runtime_error("nobody catches this");
  }
  if (name == "leave") {
    rig.functions->leave();
    std::exit(0);
  }
  if (name == "abort") rig.functions->abort(rig.comm, "the loss is NaN");
}

rosin_comm_status other_collective(Rig& rig, const std::string& name) {
  if (name == "count") return sum(rig, 11, rig.patience, "gradients");
  if (name == "kind") return rig.run(ROSIN_COMM_BARRIER, 0, 0, 0, {}, rig.patience, "end of epoch");
  std::vector<double> all(10, 1.0);
  return rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT64, ROSIN_COMM_SUM, 0, {{all.data(), all.data(), 10}},
                 rig.patience, "gradients");
}

/// The first rank waits for a sum that the last one does not come to, since it waits for a message: until another
/// thread of the first aborts.
int wait_for_own_thread(Rig& rig, bool is_last) {
  float one = 1;
  if (is_last) {
    return tell(rig, rig.run(ROSIN_COMM_RECEIVE, ROSIN_COMM_FLOAT32, 0, 0, {{nullptr, &one, 1}}, 60, "a message"));
  }
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    rig.functions->abort(rig.comm, "the user asked");
  });
  const rosin_comm_status status = sum(rig, 10, 60, "gradients");
  other.join();
  return tell(rig, status);
}

}  // namespace

int play_fault(Rig& rig, const std::string& name) {
  if (name == "none") return go_on(rig);
  const bool wrong = rig.rank == rig.ranks - 1;
  for (int turn = 0; turn < 3; ++turn) rig.expect_ok(sum(rig, 10, 60, "loss"), "a sum");
  if (name == "count" || name == "kind" || name == "type") {
    return tell(rig, wrong ? other_collective(rig, name) : sum(rig, 10, rig.patience, "gradients"));
  }
  if (name == "place") {
    char* const memory = rig.common(1000);
    return tell(rig, sum_in_common(rig, 10, memory + (wrong ? 64 : 0)));
  }
  if (name == "own abort") return wait_for_own_thread(rig, wrong);
  if (wrong) do_wrong(rig, name);
  return tell(rig, sum(rig, 10, rig.patience, "gradients"));
}

}  // namespace comm_test
