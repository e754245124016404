// What sums over ranks cost on a transport: bench_collectives TRANSPORT [REPEATS], under `rosin run -n N` or mpiexec,
// with the path of a librosin_comm_*.so. Rank 0 prints a line of JSON for each size: bytes, and the medians of seconds
// and of seconds of CPU of this process. scaling.py takes the lines as figures of a link.
#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <rosin/comm.h>

namespace {

constexpr size_t sizes[] = {4, 4u << 10, 64u << 10, 1u << 20, 4u << 20, 25u << 20};  // bytes

double elapsed() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double of(const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); }

double used() {
  rusage all{};
  getrusage(RUSAGE_SELF, &all);
  return of(all.ru_utime) + of(all.ru_stime);
}

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

struct Side {
  const rosin_comm_transport* table;
  rosin_comm* comm = nullptr;
  rosin_comm_place place{};

  void good(rosin_comm_status status, const char* what) const {
    if (status == ROSIN_COMM_OK) return;
    std::fprintf(stderr, "bench_collectives: %s: %s\n", what, table->error_text());
    std::exit(1);
  }

  void join() {
    good(table->join(60), "join");
    good(table->world(&comm), "world");
    place.size = sizeof place;
    good(table->place(comm, &place), "place");
  }

  void sum(std::vector<float>& numbers) const {
    const rosin_comm_part part{numbers.data(), numbers.data(), numbers.size()};
    rosin_comm_collective all{};
    all.size = sizeof all;
    all.kind = ROSIN_COMM_ALLREDUCE;
    all.operation = ROSIN_COMM_SUM;
    all.type = ROSIN_COMM_FLOAT32;
    all.part_count = 1;
    all.parts = &part;
    all.name = "sum";
    all.timeout = 60;
    good(table->run(comm, &all), "allreduce");
  }

  /// Small sums are many to a repeat; before each repeat all ranks meet.
  void measure(size_t bytes, int repeats) const {
    std::vector<float> numbers(bytes / sizeof(float), 0.0f), meeting(1, 0.0f);
    const int calls = static_cast<int>(std::clamp<size_t>((2u << 20) / bytes, 1, 200));
    std::vector<double> seconds, cpu;
    for (int repeat = -1; repeat < repeats; ++repeat) {
      sum(meeting);
      const double begin = elapsed(), before = used();
      for (int call = 0; call < calls; ++call) sum(numbers);
      if (repeat < 0) continue;  // what is touched first
      seconds.push_back((elapsed() - begin) / calls);
      cpu.push_back((used() - before) / calls);
    }
    if (place.rank != 0) return;
    std::printf("{\"transport\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"seconds\": %.4g, \"cpu\": %.4g}\n",
                table->name, place.ranks, bytes, median(seconds), median(cpu));
  }
};

}  // namespace

int main(int count, char** words) {
  void* file = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  const auto open = file ? reinterpret_cast<rosin_comm_open_function>(dlsym(file, "rosin_comm_open")) : nullptr;
  if (!open) {
    std::fprintf(stderr, "usage: bench_collectives TRANSPORT.so [REPEATS]\n");
    return 2;
  }
  Side side{open(ROSIN_COMM_ABI)};
  side.join();
  for (const size_t bytes : sizes) side.measure(bytes, count > 2 ? std::atoi(words[2]) : 11);
  side.table->leave();
}
