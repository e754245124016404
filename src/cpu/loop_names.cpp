// loop_names.hpp: what a name says, and who is told.
#include "cpu/loop_names.hpp"

#include <string>

#include <rosin/log.hpp>

#include "base/environment.hpp"
#include "platform/environment.hpp"

namespace rosin::cpu {
namespace {

constexpr char lost[] = "code-names";

bool asks_for(Setting setting, const char* name) {
  if (!environment_switch(setting).value_or(false)) return false;
  if (!platform::has_more_rights_than_its_user()) return true;
  warn_once(lost, std::string("environment: ") + name + " is ignored in a program with more rights than its user",
            name);
  return false;
}

struct Readers {
  bool map = asks_for(Setting::perf_map, "ROSIN_PERF_MAP");
  bool dump = asks_for(Setting::jitdump, "ROSIN_JITDUMP");
  bool debugger = asks_for(Setting::gdb, "ROSIN_GDB");
};

const Readers& readers() {
  static const Readers readers;
  return readers;
}

void warn_of(const std::error_code& error, const char* name) {
  if (error) warn_once(lost, std::string("environment: ") + name + " does nothing: " + error.message(), name);
}

}  // namespace

bool loops_have_names() { return readers().map || readers().dump || readers().debugger; }

std::string name_of(const LoopText& text) {
  constexpr size_t most = 100;
  std::string name = "rosin loop";
  for (const Instruction& made : text.code.list) {
    if (info(made.primitive).arity == 0) continue;
    if (name.size() > most) return name + " ...";
    name.append(" ").append(info(made.primitive).name);
  }
  for (const LoopOutput& output : text.outputs) {
    if (output.combines) name.append(" rows:").append(info(*output.combines).name);
  }
  return name;
}

void name_code(const platform::NamedCode& code, platform::DebuggerEntry& entry) {
  if (readers().map) warn_of(add_to_perf_map(code), "ROSIN_PERF_MAP");
  if (readers().dump) warn_of(add_to_jitdump(code), "ROSIN_JITDUMP");
  if (readers().debugger) warn_of(entry.add(code), "ROSIN_GDB");
}

}  // namespace rosin::cpu
