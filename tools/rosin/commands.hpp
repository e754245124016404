// The commands of `rosin`, one function each, which gives the exit status. Read next: main.cpp (the arguments),
// devices.cpp, backend.cpp, environment.cpp, selftest.cpp, ranks.cpp, inspect.cpp.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <rosin/error.hpp>

namespace command {

using Json = nlohmann::ordered_json;

/// Exit statuses.
enum Status { all_fine = 0, not_functional = 1, wrong_usage = 2 };

/// What holds for every command.
struct Style {
  bool json = false;
  bool verbose = false;  // of `devices`: all facts
  double limit = 20;     // seconds for the probe of a plug-in; a self-test has ten times as many
};

/// Thrown where what the user wrote cannot be meant; the text says why.
struct UsageError {
  std::string text;
};

/// f(), where an Error of kind argument is a fault of what the user wrote.
template <class F> auto as_usage(F f) {
  try {
    return f();
  } catch (const rosin::Error& error) {
    if (error.kind() == rosin::ErrorKind::argument) throw UsageError{error.what()};
    throw;
  }
}

void print_json(const Json& json);

/// `backends`: those to be shown, or none for all.
Status show_devices(const std::vector<std::string>& backends, const Style& style);
/// `name`: what is to be the preference; empty: nothing changes, or with `remove` it is removed.
Status show_backend(const std::string& name, bool remove, const Style& style);
Status show_environment(const Style& style);
/// `device`: "CUDA", "CUDA:1", or empty for all.
Status self_test(const std::string& device, const Style& style);
/// In each of the processes that were started together. `backend`: whose devices exchange arrays, beside the CPU;
/// empty: the GPU of each.
Status try_ranks(const std::string& backend, bool over_nccl, const Style& style);
Status inspect(const std::string& file, bool with_statistics, const Style& style);
/// Writes the arrays of one file into another, whose extension says the format.
Status convert(const std::string& from, const std::string& to, const Style& style);

/// In a child process: loads a plug-in and writes what came of it, as one line of JSON.
Status probe(const std::string& file);
/// In a child process: runs the checks on a device, a line of JSON for each.
Status check(const std::string& device, bool brief);

}  // namespace command
