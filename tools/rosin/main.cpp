// The command `rosin`: its arguments, and what every command's errors become. Read next: commands.hpp.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

#include <CLI/CLI.hpp>

#include <rosin/diagnostics.hpp>

#include "commands.hpp"
#include "launch.hpp"
#include "text.hpp"

namespace command {

void print_json(const Json& json) { std::puts(json.dump(2, ' ', false, Json::error_handler_t::replace).c_str()); }

namespace {

/// What the arguments say.
struct Arguments {
  Style style;
  std::vector<std::string> backends;
  std::string name, device, file, out;
  bool remove = false, brief = false, statistics = false, over_nccl = false;
  Launch launch;
};

void add_style(CLI::App* part, Style& style) { part->add_flag("--json", style.json, "JSON instead of text"); }

void add_limit(CLI::App* part, Style& style) {
  part->add_option("--limit", style.limit, "Seconds for the probe of a plug-in (20)")
      ->check(CLI::Range(0.1, 86400.0))
      ->option_text("SECONDS");
}

void add_commands(CLI::App& app, Arguments& said, int& status) {
  auto* devices = app.add_subcommand("devices", "Back ends, plug-ins, devices and a brief self-test");
  devices->add_option("NAME", said.backends, "Back ends to show; without: all")->option_text(" ");
  devices->add_flag("--verbose", said.style.verbose, "All that each device says of itself");
  devices->callback([&] { status = show_devices(said.backends, said.style); });
  auto* backend = app.add_subcommand("backend", "What decides which back end is taken");
  auto* name = backend->add_option("NAME", said.name, "The new preference")->option_text(" ");
  backend->add_flag("--delete", said.remove, "Remove the preference")->excludes(name);
  backend->callback([&] { status = show_backend(said.name, said.remove, said.style); });
  auto* environment = app.add_subcommand("env", "Versions, folders and environment variables");
  environment->callback([&] { status = show_environment(said.style); });
  auto* selftest = app.add_subcommand("selftest", "Compute on devices and compare");
  selftest->add_option("--device", said.device, "A back end or a device, as CUDA:0")->option_text("NAME");
  selftest->callback([&] { status = self_test(said.device, said.style); });
  auto* ranks = app.add_subcommand("ranks", "Started several times: exchange arrays and compare");
  ranks->footer("mpiexec -n 2 rosin ranks, srun rosin ranks, rosin run -n 2 rosin ranks");
  ranks->add_option("--device", said.device, "Devices of a back end instead of GPUs")->option_text("NAME");
  ranks->add_flag("--nccl", said.over_nccl, "Over NCCL");
  ranks->callback([&] { status = try_ranks(said.device, said.over_nccl, said.style); });
  auto* inspection = app.add_subcommand("inspect", "What a file of arrays holds");
  inspection->add_option("FILE", said.file, "The file")->required()->option_text(" ");
  inspection->add_flag("--stats", said.statistics, "Least, greatest, mean, deviation, NaN, Inf of arrays");
  inspection->callback([&] { status = inspect(said.file, said.statistics, said.style); });
  auto* conversion = app.add_subcommand("convert", "Write a file's arrays in another format");
  conversion->add_option("IN", said.file, "The file")->required()->option_text(" ");
  conversion->add_option("OUT", said.out, "The new file; its extension is the format")->required()->option_text(" ");
  conversion->callback([&] { status = convert(said.file, said.out, said.style); });
  for (CLI::App* part : {devices, backend, environment, selftest, ranks, inspection, conversion}) {
    add_style(part, said.style);
  }
  for (CLI::App* part : {devices, backend, selftest}) add_limit(part, said.style);
}

/// `run`, whose last arguments are another program and what it is told.
void add_run(CLI::App& app, Arguments& said, int& status) {
  auto* starting = app.add_subcommand("run", "Start a program as several ranks on this machine");
  starting->footer("Behind the options: the program and its arguments, rosin run -n 2 ./train");
  starting->add_option("-n,--ranks", said.launch.ranks, "How many processes")
      ->required()
      ->check(CLI::Range(1, most_ranks))
      ->option_text("RANKS");
  starting->add_option("--restart", said.launch.restarts, "Start all anew after a failure, so often at most (0)")
      ->check(CLI::Range(0, 1000000))
      ->option_text("TIMES");
  starting->add_option("--grace", said.launch.grace, "For the others after a failure, until they are ended (5)")
      ->check(CLI::Range(0.0, 86400.0))
      ->option_text("SECONDS");
  starting->prefix_command();
  starting->callback([&said, &status, starting] {
    auto& words = said.launch.words;
    const std::vector<std::string> first = starting->remaining();
    if (!first.empty() && !words.empty()) words.insert(words.begin(), "--");  // that was the program's
    words.insert(words.begin(), first.begin(), first.end());
    if (words.empty()) throw UsageError{"run: no program is named; write rosin run -n 2 PROGRAM"};
    if (words.front().starts_with("-")) throw UsageError{"run: " + words.front() + " is no option of rosin run"};
    status = launch(said.launch);
  });
}

/// What this program asks of itself in a child process; not shown.
void add_child_commands(CLI::App& app, Arguments& said, int& status) {
  auto* probing = app.add_subcommand("probe")->group("");
  probing->add_option("FILE", said.file)->required();
  probing->callback([&] { status = probe(said.file); });
  auto* checking = app.add_subcommand("check")->group("");
  checking->add_option("DEVICE", said.device)->required();
  checking->add_flag("--brief", said.brief);
  checking->callback([&] { status = check(said.device, said.brief); });
}

int complain(const std::string& text, Status status) {
  std::fflush(stdout);
  std::fprintf(stderr, "rosin: %s\n", text.c_str());
  return status;
}

/// Takes away what stands behind the first `--` of `run`, which this program's options do not reach.
std::vector<std::string> behind_dashes(int& argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "run") != 0) return {};
  char** const end = argv + argc;
  char** const dashes = std::find_if(argv, end, [](const char* word) { return std::strcmp(word, "--") == 0; });
  argc = static_cast<int>(dashes - argv);
  return dashes == end ? std::vector<std::string>() : std::vector<std::string>(dashes + 1, end);
}

int run(int argc, char** argv) {
  CLI::App app("rosin looks after the neural-network library of this name.", "rosin");
  app.set_version_flag("--version", "rosin " + rosin::library_report().version);
  app.footer(
      "Exit status: 0 all fine; 1 something asked for does not work; 2 wrong usage.\n"
      "That of run is the status of the first rank that failed.");
  app.get_formatter()->column_width(24);
  app.require_subcommand(1);
  Arguments said;
  said.launch.words = behind_dashes(argc, argv);
  int status = all_fine;
  add_commands(app, said, status);
  add_run(app, said, status);
  add_child_commands(app, said, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // help, version
    app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return complain(std::string(error.what()) + "; rosin --help lists what there is", wrong_usage);
  } catch (const UsageError& error) {
    return complain(error.text, wrong_usage);
  } catch (const std::exception& error) {
    return complain(error.what(), not_functional);
  }
  return status;
}

}  // namespace
}  // namespace command

int main(int argc, char** argv) {
  try {
    return command::run(argc, argv);
  } catch (const std::exception& error) {
    return command::complain(error.what(), command::not_functional);
  }
}
