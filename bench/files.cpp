// Loading and saving of files, beside which bench/files.py times others: bench_files WHAT FILE [FILE], a line of
// {"seconds", "cpu"} on stdout for each line on stdin, so that sides take turns. Read next: files.py.
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include <rosin/rosin.hpp>

namespace {

/// User and system time of this process, in seconds.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The sum of all elements: each page is touched.
double sum_of(const rosin::SavedFile& file) {
  double total = 0;
  for (const rosin::NamedArray& entry : file.arrays()) total += rosin::sum(entry.value).item<float>();
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::cerr << "bench_files WHAT FILE [FILE]\n", 2;
  const std::string what = argv[1], file = argv[2], other = argc > 3 ? argv[3] : "";
  const rosin::SavedFile loaded = what == "save" ? rosin::load(file) : rosin::SavedFile({}, {});
  double total = 0;
  const std::map<std::string, std::function<void()>> works{
      {"load", [&] { rosin::load(file); }},
      {"load+sum", [&] { total = sum_of(rosin::load(file)); }},
      {"map", [&] { rosin::load(file, {.map = true}); }},
      {"map+sum", [&] { total = sum_of(rosin::load(file, {.map = true})); }},
      {"save", [&] { rosin::save(other, loaded.arrays()); }},
  };
  for (std::string line; std::getline(std::cin, line);) {
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    works.at(what)();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::cout << "{\"seconds\": " << seconds << ", \"cpu\": " << cpu_seconds() - cpu << ", \"sum\": " << total << "}\n"
              << std::flush;
  }
}
