// The command `rosin backend`: which back end get_device() takes, and what decides it.
#include <rosin/device.hpp>
#include <rosin/diagnostics.hpp>

#include "commands.hpp"
#include "survey.hpp"
#include "text.hpp"

namespace command {
namespace {

using rosin::DecidedBy;

struct Choice {
  rosin::BackendDecision decision;
  rosin::Device device;  // that get_device() takes
  std::string reason;    // why the back end that is asked for is not taken; empty: it is, or none is asked for
};

/// Probes what might be loaded, and lets the library choose.
Choice choose(double seconds) {
  Choice choice;
  choice.decision = rosin::backend_decision();
  for (const std::string& backend : rosin::supported_devices()) probe_files(backend, seconds);
  choice.device = rosin::get_device();
  const std::string& asked = choice.decision.backend;
  if (asked.empty()) return choice;
  try {
    if (!rosin::functional(asked)) choice.reason = rosin::why_not(asked);
  } catch (const rosin::Error& error) {
    choice.reason = error.what();
  }
  return choice;
}

std::string default_text() {
  std::string text = "the first that works of";
  for (const std::string& backend : rosin::supported_devices()) {
    text += (text.ends_with("of") ? " " : ", ") + backend;
  }
  return text;
}

void print_level(const std::string& name, bool decides, const std::string& text) {
  say((decides ? "> " : "  ") + name, 16, printable(text));
}

void print_choice(const Choice& choice) {
  const auto& [by, backend, file, line, table] = choice.decision;
  say("get_device() takes " + name_of(choice.device) + " (" + choice.device.name() + ").");
  say("");
  print_level("argument", false, "get_device(\"NAME\") in a program beats what follows");
  print_level("environment", by == DecidedBy::environment,
              by == DecidedBy::environment ? "ROSIN_GPU_BACKEND=" + backend : "ROSIN_GPU_BACKEND is not set");
  std::string said = "no preference file";
  if (by == DecidedBy::file) {
    said = file + ":" + std::to_string(line) + ": gpu_backend = \"" + backend + "\" in [" + table + "]";
  } else if (by == DecidedBy::environment) {
    said = "not asked";
  } else if (const std::string read = rosin::library_report().preference_file; !read.empty()) {
    said = read + " names no back end";
  }
  print_level("file", by == DecidedBy::file, said);
  print_level("default", by == DecidedBy::nobody, default_text());
  if (choice.reason.empty()) return;
  say("");
  say(printable(backend + " is asked for and does not work: " + choice.reason));
}

Json json_of(const Choice& choice) {
  constexpr const char* deciders[] = {"environment", "file", "default"};
  const auto& [by, backend, file, line, table] = choice.decision;
  return {{"decided_by", deciders[static_cast<int>(by)]},
          {"backend", backend},
          {"file", file},
          {"line", line},
          {"table", table},
          {"functional", choice.reason.empty()},
          {"reason", choice.reason},
          {"device", name_of(choice.device)},
          {"hardware", choice.device.name()}};
}

}  // namespace

Status show_backend(const std::string& name, bool remove, const Style& style) {
  const bool changes = remove || !name.empty();
  if (changes) {
    rosin::backend_decision();  // a preference file that is malformed is no fault of the name
    as_usage([&] { rosin::set_gpu_backend(name); });
  }
  const Choice choice = choose(style.limit);
  if (style.json) print_json(json_of(choice));
  else print_choice(choice);
  return changes || choice.reason.empty() ? all_fine : not_functional;
}

}  // namespace command
