// What the benchmark programs share: options, the input files, timing, the one line of results.
// README.md says what a program has to do. Read next: training.hpp (how a model is trained and timed), c4.cpp.
#pragma once

#include <rosin/rosin.hpp>

#include <bit>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <nlohmann/json.hpp>

namespace bench {

struct Options {
  std::filesystem::path inputs;
  int threads = 1;
  int steps = 1;  // in a repeat
  int repeats = 1;
};

/// Error (std::invalid_argument): an unknown option, or one without its value.
inline Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
    if (name == "--inputs") options.inputs = argv[i + 1];
    else if (name == "--threads") options.threads = std::stoi(argv[i + 1]);
    else if (name == "--steps") options.steps = std::stoi(argv[i + 1]);
    else if (name == "--repeats") options.repeats = std::stoi(argv[i + 1]);
    else throw std::invalid_argument("no option " + name + "; there are --inputs --threads --steps --repeats");
  }
  return options;
}

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

/// The little-endian Float32 numbers of a file.
inline std::vector<float> read_numbers(const std::filesystem::path& path, int64_t count) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<float> numbers(static_cast<size_t>(count));
  std::ifstream file(path, std::ios::binary);
  const auto bytes = static_cast<std::streamsize>(numbers.size() * sizeof(float));
  if (!file.read(reinterpret_cast<char*>(numbers.data()), bytes)) {
    throw std::runtime_error(path.string() + " is missing or has less than " + std::to_string(count) + " numbers");
  }
  return numbers;
}

/// An array of a row-major file as the column-major one with the same bytes: its sizes in reverse order.
inline rosin::Array read_array(const std::filesystem::path& folder, const nlohmann::json& entry) {
  const auto sizes = entry.at("shape").get<std::vector<int64_t>>();
  const rosin::Shape shape(std::vector<int64_t>(sizes.rbegin(), sizes.rend()));
  return {read_numbers(folder / entry.at("file").get<std::string>(), shape.count()), shape};
}

/// The file of a model by PyTorch's names.
inline constexpr const char* model_file = "model.safetensors";

inline Inputs read_inputs(const std::filesystem::path& folder) {
  std::ifstream file(folder / "manifest.json");
  if (!file) throw std::runtime_error((folder / "manifest.json").string() + " cannot be read");
  const auto manifest = nlohmann::json::parse(file);
  Inputs inputs{folder,
                manifest.at("workload"),
                manifest.at("op"),
                manifest.at("activation"),
                manifest.at("loss"),
                manifest.at("autocast"),
                manifest.at("compared"),
                manifest.at("sizes"),
                {}};
  for (const auto& entry : manifest.at("arrays")) {
    if (entry.at("file") != model_file) inputs.arrays[entry.at("name")] = read_array(folder, entry);
  }
  return inputs;
}

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
inline double cpu_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

/// The most memory that this process has held since it began, or since begin_peak(); memory.py says more.
inline int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return int64_t{1024} * std::stoll(line.substr(6));
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return int64_t{1024} * used.ru_maxrss;
}

/// Lets peaks count from here where the system can; returns what is held now.
inline int64_t begin_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak_bytes();
}

/// Launches since reset_stats(), divided by the steps done.
inline Launches launches_per_step(int steps) {
  const rosin::Stats stats = rosin::stats();
  const auto per_step = [&](int64_t count) { return static_cast<double>(count) / steps; };
  return {per_step(stats.kernels), per_step(stats.calls), per_step(stats.evaluations)};
}

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

inline void print(const Inputs& inputs, const Options& options, const Record& record) {
  nlohmann::json line{{"workload", inputs.workload},
                      {"threads", options.threads},
                      {"ms", record.ms},
                      {"cpu_ms", record.cpu_ms},
                      {"first_ms", record.first_ms},
                      {"planning_ms", record.planning_ms},
                      {"peak_bytes", record.peak_bytes},
                      {"losses", record.losses},
                      {"kernels", record.launches.kernels},
                      {"calls", record.launches.calls},
                      {"evaluations", record.launches.evaluations}};
  if (record.record_ns > 0) line["record_ns"] = record.record_ns;
  std::cout << line << std::endl;
}

/// Loads what any first use loads, so that time and memory of the first step are those of the step.
inline void warm_up() {
  const rosin::Array x = rosin::ones({4, 4});
  const rosin::Array gradient =
      rosin::gradient([](const rosin::Array& a) { return rosin::sum(rosin::relu(rosin::matmul(a, a))); }, x);
  rosin::eval(gradient);
}

/// The whole of a program: `measure` maps options and inputs to a record. Memory is what inputs, model and first steps
/// take beyond what the process held before them.
template <class Measure> int run(int argc, char** argv, Measure&& measure) {
  try {
    const Options options = read_options(argc, argv);
    rosin::set_num_threads(options.threads);
    warm_up();
    const int64_t before = begin_peak();
    const Inputs inputs = read_inputs(options.inputs);
    Record record = measure(options, inputs);
    record.peak_bytes -= before;
    print(inputs, options, record);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}

}  // namespace bench
