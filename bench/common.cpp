// The parts of common.hpp that are the same code in every program.
#include "common.hpp"

#include <bit>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include <sys/resource.h>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

/// The little-endian Float32 numbers of a file.
std::vector<float> read_numbers(const std::filesystem::path& path, int64_t count) {
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
rosin::Array read_array(const std::filesystem::path& folder, const nlohmann::json& entry) {
  const auto sizes = entry.at("shape").get<std::vector<int64_t>>();
  const rosin::Shape shape(std::vector<int64_t>(sizes.rbegin(), sizes.rend()));
  return {read_numbers(folder / entry.at("file").get<std::string>(), shape.count()), shape};
}

/// Error (std::invalid_argument): an unknown option, or one without its value.
Options read_options(int argc, char** argv) {
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

Inputs read_inputs(const std::filesystem::path& folder) {
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

/// Lets peaks count from here where the system can; returns what is held now.
int64_t begin_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak_bytes();
}

void print(const Inputs& inputs, const Options& options, const Record& record) {
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
void warm_up() {
  const rosin::Array x = rosin::ones({4, 4});
  const rosin::Array gradient =
      rosin::gradient([](const rosin::Array& a) { return rosin::sum(rosin::relu(rosin::matmul(a, a))); }, x);
  rosin::eval(gradient);
}

}  // namespace

double cpu_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return int64_t{1024} * std::stoll(line.substr(6));
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return int64_t{1024} * used.ru_maxrss;
}

Launches launches_per_step(int steps) {
  const rosin::Stats stats = rosin::stats();
  const auto per_step = [&](int64_t count) { return static_cast<double>(count) / steps; };
  return {per_step(stats.kernels), per_step(stats.calls), per_step(stats.evaluations)};
}

int run(int argc, char** argv, const std::function<Record(const Options&, const Inputs&)>& measure) {
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
