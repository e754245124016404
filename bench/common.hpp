// What the benchmark programs share: options, the input files, timing, the one line of results.
// README.md says what a program has to do. Read next: training.hpp (how a model is trained and timed), c4.cpp.
#pragma once

#include <rosin/rosin.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::filesystem::path inputs;
  int threads = 1;
  int steps = 1;  // in a repeat
  int repeats = 1;
};

/// The arrays and sizes that every side starts from.
struct Inputs {
  std::filesystem::path folder;
  std::string workload;
  std::string op;          // of bench_ops
  std::string activation;  // of the hidden layers
  std::string loss;        // empty: the model is run forward only
  bool autocast = false;   // products and convolutions in BFloat16
  int compared = 0;        // steps whose losses are compared with those of the peers
  std::map<std::string, int64_t> sizes;
  std::map<std::string, rosin::Array> arrays;  // without those of a model in a file of its own

  const rosin::Array& operator[](const std::string& name) const { return arrays.at(name); }
};

/// The file of a model by PyTorch's names.
inline constexpr const char* model_file = "model.safetensors";

/// Milliseconds that a function takes; what it leaves pending does not count, so it has to end with an evaluation.
template <class F> double milliseconds(F&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// What is launched in a step: fused kernels, calls of a vendor library and the like, runs of a plan.
struct Launches {
  double kernels = 0;
  double calls = 0;
  double evaluations = 0;
};

/// Milliseconds of all threads of this process until now.
double cpu_ms();

/// The most memory that this process has held since it began, or since begin_peak(); memory.py says more.
int64_t peak_bytes();

/// Launches since reset_stats(), divided by the steps done.
Launches launches_per_step(int steps);

/// One program's results.
struct Record {
  std::vector<double> ms;      // of a step, per repeat
  std::vector<double> cpu_ms;  // the same of all threads
  double first_ms = 0;         // of the first step of all
  double planning_ms = 0;      // of that, what plans and their code took
  std::vector<double> losses;  // of the first steps, or the mean of the result
  int64_t peak_bytes = 0;      // of memory, when the first steps had been done
  Launches launches;
  double record_ns = 0;  // of an op, where recording is measured
};

/// R repeats of K steps, timed as one: prepare() brings everything to the start, step() does one step. Fills in times
/// and launches, and the memory of what was done before; finish() returns when all results are ready.
template <class Prepare, class Step, class Finish>
void repeat(const Options& options, Record& record, Prepare&& prepare, Step&& step, Finish&& finish) {
  record.peak_bytes = peak_bytes();
  for (int r = 0; r < options.repeats; ++r) {
    prepare();
    rosin::reset_stats();
    const double before = cpu_ms();
    const double ms = milliseconds([&] {
      for (int k = 0; k < options.steps; ++k) step();
      finish();
    });
    record.ms.push_back(ms / options.steps);
    record.cpu_ms.push_back((cpu_ms() - before) / options.steps);
    record.launches = launches_per_step(options.steps);
  }
}

/// Times the first step of all.
template <class Step> void time_first(Record& record, Step&& step) {
  const int64_t before = rosin::stats().planning_ns;
  record.first_ms = milliseconds(step);
  record.planning_ms = 1e-6 * static_cast<double>(rosin::stats().planning_ns - before);
}

/// A function without a loss: `make` gives its result, which is compared by the mean of its absolute values.
template <class Make> Record forward(const Options& options, Make&& make) {
  rosin::Array result;
  const auto step = [&] {
    result = make();
    rosin::eval();
  };
  Record record;
  time_first(record, step);
  record.losses = {rosin::mean(rosin::abs(rosin::cast(result, rosin::Float64))).item()};
  repeat(
      options, record, [] {}, step, [] {});
  return record;
}

/// The whole of a program: `measure` maps options and inputs to a record. Memory is what inputs, model and first steps
/// take beyond what the process held before them.
int run(int argc, char** argv, const std::function<Record(const Options&, const Inputs&)>& measure);

}  // namespace bench
