// Checks a transport: comm_conformance PATH [--only values|rules|bits|common] [--device PLUGIN] [--fault NAME
// [--patience S]], started as any number of ranks by what the transport is for (rosin run, mpiexec), or alone. Read
// next: rig.hpp;
// ../comm_test.py, which starts it.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rig.hpp"

namespace comm_test {

void Rig::say(const std::string& line) const {
  const std::string text = "rank " + std::to_string(rank) + ": " + line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::perror("write");
}

bool Rig::open(const char* path, double timeout) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    say(std::string("FAILED: ") + dlerror());
    return false;
  }
  const auto enter = reinterpret_cast<rosin_comm_open_function>(dlsym(library, "rosin_comm_open"));
  functions = enter ? enter(ROSIN_COMM_ABI) : nullptr;
  check(enter && !enter(ROSIN_COMM_ABI + 1), "another ABI is refused");
  if (!functions) {
    say("FAILED: rosin_comm_open gives no table");
    return false;
  }
  const rosin_comm_status joined = functions->join(timeout);
  if (joined != ROSIN_COMM_OK) {
    say(std::string("join: ") + status_name(joined) + ": " + functions->error_text());
    return false;
  }
  expect_ok(functions->world(&comm), "world");
  rosin_comm_place place{};
  place.size = sizeof place;
  expect_ok(functions->place(comm, &place), "place");
  rank = place.rank;
  ranks = place.ranks;
  check(rank >= 0 && rank < ranks && place.node_rank >= 0 && place.node_rank < place.node_ranks &&
            place.node_ranks <= ranks,
        "place");
  return true;
}

bool Rig::use_device(const char* plugin) {
  device = Device::open(plugin, rank);
  if (!device) return false;
  check(functions->takes_devices != nullptr, "the function for devices is there");
  check(functions->takes_devices(comm, "no such") == ROSIN_COMM_NO_DEVICES && *functions->error_text(),
        "a kind of device that is not taken");
  const int32_t way = functions->takes_devices(comm, device->name());
  with_stream = way == ROSIN_COMM_WITH_STREAM;
  check(!with_stream || functions->check, "what goes to streams can be asked about");
  if (way != ROSIN_COMM_NO_DEVICES) return true;
  say(std::string("FAILED: memory of ") + device->name() + " is not taken: " + functions->error_text());
  return false;
}

char* Rig::common(uint64_t bytes) {
  if (!functions->common) return nullptr;
  void* memory = nullptr;
  const rosin_comm_status status = functions->common(comm, bytes, 60, &memory);
  if (status == ROSIN_COMM_UNSUPPORTED) return nullptr;
  expect_ok(status, "memory in common");
  check(memory && reinterpret_cast<uintptr_t>(memory) % 64 == 0, "its address");
  return static_cast<char*>(memory);
}

rosin_comm_status Rig::run(int kind, int type, int operation, int root, const std::vector<rosin_comm_part>& parts,
                           double timeout, const char* name) {
  rosin_comm_collective collective{};
  collective.size = sizeof collective;
  collective.kind = kind;
  collective.type = type;
  collective.operation = operation;
  collective.root = root;
  collective.part_count = static_cast<uint32_t>(parts.size());
  collective.parts = parts.empty() ? nullptr : parts.data();
  collective.name = name;
  collective.timeout = timeout;
  collective.follows = follows ? 1 : 0;
  if (in_common) collective.memory = ROSIN_COMM_COMMON;
  if (device && kind != ROSIN_COMM_BARRIER) {
    const rosin_comm_status status = device->run(*functions, comm, collective, rank, ranks, with_stream);
    if (status != ROSIN_COMM_UNSUPPORTED) return status;  // else it goes over the host, as the library would have it
  }
  return functions->run(comm, &collective);
}

void Rig::check(bool good, const std::string& what) {
  constexpr int most_said = 10;
  ++(good ? passed : failed);
  if (!good && failed <= most_said) say("FAILED: " + what);
}

void Rig::expect_ok(rosin_comm_status status, const std::string& what) {
  check(status == ROSIN_COMM_OK, what + ": " + status_name(status) +
                                     (status == ROSIN_COMM_OK ? "" : std::string(": ") + functions->error_text()));
}

const char* status_name(rosin_comm_status status) {
  constexpr const char* names[] = {"OK", "UNSUPPORTED", "INVALID", "MISMATCH", "TIMEOUT", "LOST", "ABORTED", "FAILED"};
  return status <= ROSIN_COMM_FAILED ? names[status] : "no status";
}

namespace {

/// Adds up the counts of all ranks, so that rank 0 tells the sum.
int finish(Rig& rig) {
  int64_t counts[2] = {rig.passed, rig.failed};
  rig.expect_ok(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_INT64, ROSIN_COMM_SUM, 0, {{counts, counts, 2}}), "counts");
  if (rig.rank == 0) {
    rig.say(std::to_string(rig.ranks) + " ranks over " + rig.functions->name + " " + rig.functions->version);
    std::printf("%lld passed, %lld failed\n", static_cast<long long>(counts[0]), static_cast<long long>(counts[1]));
    std::fflush(stdout);
  }
  rig.functions->leave();
  return counts[1] == 0 && rig.failed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  const char *only = "", *fault = nullptr, *plugin = nullptr;
  Rig rig;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    if (std::strcmp(argv[i], "--fault") == 0) fault = argv[i + 1];
    if (std::strcmp(argv[i], "--device") == 0) plugin = argv[i + 1];
    if (std::strcmp(argv[i], "--patience") == 0) rig.patience = std::strtod(argv[i + 1], nullptr);
  }
  if (argc < 2) {
    std::fputs(
        "usage: comm_conformance librosin_comm_NAME.so [--only values|rules|bits|common] [--device PLUGIN] "
        "[--fault NAME]\n",
        stderr);
    return 2;
  }
  if (!rig.open(argv[1], 60)) return 1;
  if (plugin && !rig.use_device(plugin)) return 1;
  if (fault) return play_fault(rig, fault);
  const auto wanted = [&](const char* part) { return !*only || std::strcmp(only, part) == 0; };
  if (wanted("values")) check_values(rig);
  if (wanted("rules")) check_rules(rig);
  if (wanted("bits")) check_bits(rig);
  if (wanted("common") && !rig.device) check_common(rig);
  return finish(rig);
}

}  // namespace
}  // namespace comm_test

int main(int argc, char** argv) { return comm_test::run(argc, argv); }
