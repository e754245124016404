// Programs: compiled with or without a device, as bytes, loaded; what is no program is refused.
#include "checks.hpp"

namespace rosin::conformance {
namespace {

Code copies_an_element(const std::string& name) {
  Code code;
  code.name = name;
  code.buffers = {ROSIN_INT32, ROSIN_INT32};
  const Value at = code.item();
  code.store(1, at, code.load(0, ROSIN_SCALAR_INT32, at));
  return code;
}

void load_and_drop(Rig& rig, const std::vector<char>& bytes) {
  rosin_module* module = nullptr;
  rig.good(rig.api.load(rig.device, bytes.data(), bytes.size(), &module), "load");
  rig.api.unload(module);
}

void a_program_compiles_and_loads_more_than_once(Rig& rig) {
  const Code codes[] = {copies_an_element("one"), copies_an_element("two")};
  const std::vector<char> bytes = rig.compiled(codes);
  load_and_drop(rig, bytes);
  load_and_drop(rig, bytes);
  load_and_drop(rig, rig.compiled(codes));
}

void a_program_compiles_without_a_device_or_is_unsupported(Rig& rig) {
  const Code codes[] = {copies_an_element("offline")};
  std::vector<char> bytes;
  const rosin_status status = rig.compile(codes, nullptr, bytes);
  if (status == ROSIN_UNSUPPORTED) return;
  rig.good(status, "compile without a device");
  load_and_drop(rig, bytes);
}

void bytes_outlive_what_they_were_made_from(Rig& rig) {
  std::vector<char> bytes;
  {
    const std::vector<Code> codes = {copies_an_element("short_lived")};
    bytes = rig.compiled(codes);
  }
  rosin_module* module = nullptr;
  rig.good(rig.api.load(rig.device, bytes.data(), bytes.size(), &module), "load");
  bytes.assign(bytes.size(), '\0');
  rosin_kernel* kernel = nullptr;
  const rosin_status status = rig.api.kernel(module, "short_lived", &kernel);
  rig.api.unload(module);
  rig.good(status, "kernel");
}

void refused(Rig& rig, const std::vector<char>& bytes, const std::string& what) {
  rosin_module* module = nullptr;
  rig.fails(rig.api.load(rig.device, bytes.data(), bytes.size(), &module), ROSIN_INVALID, "load of " + what);
  expect(module == nullptr, "load failed and gave something out");
}

void foreign_bytes_are_invalid(Rig& rig) {
  const std::string text = "this is no program, whatever the back end may be; it is a sentence and some more letters";
  refused(rig, {text.begin(), text.end()}, "a sentence");
  refused(rig, std::vector<char>(4096, '\0'), "zeros");
  refused(rig, {'x'}, "one letter");
  refused(rig, {}, "nothing");
}

void damaged_bytes_are_invalid(Rig& rig) {
  const Code codes[] = {copies_an_element("whole")};
  const std::vector<char> whole = rig.compiled(codes);
  for (size_t part = 0; part < 64; ++part) {
    const size_t at = whole.size() * part / 64;
    const auto end = whole.begin() + static_cast<std::ptrdiff_t>(at);
    refused(rig, {whole.begin(), end},
            "the first " + std::to_string(at) + " of " + std::to_string(whole.size()) + " bytes");
    std::vector<char> changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    refused(rig, changed, "bytes with a change at " + std::to_string(at));
  }
}

void what_does_not_compile_says_why(Rig& rig) {
  Code code = copies_an_element("broken");
  rosin_program program{};
  program.size = sizeof(program);
  program.kernel_count = 1;
  // Text that is none, or code that uses a value before it is there.
  if (rig.info.language == ROSIN_LANGUAGE_NONE) code.list[0] = {ROSIN_NEGATE, ROSIN_SCALAR_INT32, {7, 0, 0}, 0};
  else program.text = "this is no kernel;";
  const rosin_kernel_code view = code.view();
  program.kernels = &view;
  void* bytes = nullptr;
  uint64_t count = 0;
  const rosin_status status = rig.api.compile(rig.device, rig.info.target, &program, &bytes, &count);
  rig.fails(status, ROSIN_COMPILE_FAILED, "compile of what is no kernel");
  expect(bytes == nullptr, "compile failed and gave something out");
  a_program_compiles_and_loads_more_than_once(rig);
}

void a_kernel_that_is_not_there_is_refused(Rig& rig) {
  const Code codes[] = {copies_an_element("there")};
  const std::vector<char> bytes = rig.compiled(codes);
  rosin_module* module = nullptr;
  rig.good(rig.api.load(rig.device, bytes.data(), bytes.size(), &module), "load");
  rosin_kernel* kernel = nullptr;
  const rosin_status status = rig.api.kernel(module, "not_there", &kernel);
  rig.api.unload(module);
  rig.fails(status, ROSIN_INVALID, "kernel of a name that is not there");
}

constexpr Check checks[] = {
    {"a program compiles and loads more than once", a_program_compiles_and_loads_more_than_once},
    {"a program compiles without a device or is unsupported", a_program_compiles_without_a_device_or_is_unsupported},
    {"bytes outlive what they were made from", bytes_outlive_what_they_were_made_from},
    {"foreign bytes are invalid", foreign_bytes_are_invalid},
    {"damaged bytes are invalid", damaged_bytes_are_invalid},
    {"what does not compile says why", what_does_not_compile_says_why},
    {"a kernel that is not there is refused", a_kernel_that_is_not_there_is_refused},
};

}  // namespace

const Part programs_part = {"programs", checks};

}  // namespace rosin::conformance
