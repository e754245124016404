// Bytes of programs: a head with a checksum, then each code, numbers as they lie in this machine's memory. Loading
// trusts nothing: every count is held against the bytes that are left, and Kernel's constructor checks the code.
#include "program.hpp"

#include <algorithm>
#include <cstring>

#include "device.hpp"

namespace rosin::reference {
namespace {

constexpr std::string_view magic = "rosin reference program 0\n";

uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const char c : bytes) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return sum;
}

class Writer {
 public:
  template <class T> void number(T value) { raw(&value, sizeof(value)); }
  template <class T> void list(const T* items, uint32_t count) {
    number(count);
    raw(items, sizeof(T) * count);
  }
  void text(std::string_view text) { list(text.data(), static_cast<uint32_t>(text.size())); }
  std::string bytes;

 private:
  void raw(const void* from, size_t count) { bytes.append(static_cast<const char*>(from), count); }
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T> T number() {
    T value{};
    take(&value, sizeof(T));
    return value;
  }
  template <class T> std::vector<T> list() {
    const auto count = number<uint32_t>();
    need(count <= rest_.size() / sizeof(T), "load: the bytes end early");
    std::vector<T> items(count);
    take(items.data(), sizeof(T) * count);
    return items;
  }
  std::string text() {
    const auto letters = list<char>();
    return {letters.begin(), letters.end()};
  }
  bool ended() const { return rest_.empty(); }

 private:
  void take(void* to, size_t count) {
    need(count <= rest_.size(), "load: the bytes end early");
    if (count) std::memcpy(to, rest_.data(), count);
    rest_.remove_prefix(count);
  }
  std::string_view rest_;
};

void write(Writer& to, const rosin_kernel_code& code) {
  to.text(code.name);
  to.number(code.group);
  to.list(code.buffers, code.buffer_count);
  to.list(code.parameters, code.parameter_count);
  to.list(code.shared, code.shared_count);
  to.list(code.instructions, code.instruction_count);
}

Kernel read_kernel(Reader& from) {
  const std::string name = from.text();
  rosin_kernel_code code{};
  code.size = sizeof(code);
  code.name = name.c_str();
  code.group = from.number<int32_t>();
  const auto buffers = from.list<int32_t>();
  const auto parameters = from.list<int32_t>();
  const auto shared = from.list<rosin_shared_array>();
  const auto instructions = from.list<rosin_instruction>();
  code.buffer_count = static_cast<uint32_t>(buffers.size());
  code.buffers = buffers.data();
  code.parameter_count = static_cast<uint32_t>(parameters.size());
  code.parameters = parameters.data();
  code.shared_count = static_cast<uint32_t>(shared.size());
  code.shared = shared.data();
  code.instruction_count = static_cast<uint32_t>(instructions.size());
  code.instructions = instructions.data();
  return Kernel(code);
}

void check(const rosin_kernel_code& code) {
  need((code.buffers || !code.buffer_count) && (code.parameters || !code.parameter_count) &&
           (code.shared || !code.shared_count) && (code.instructions || !code.instruction_count),
       "compile: a list of a kernel is null");
}

}  // namespace

std::string program_bytes(const rosin_program& program, std::string_view target) {
  need(program.kernel_count > 0 && program.kernels, "compile: a program without kernels");
  const bool float64 = target == target_name(true);
  if (!float64 && target != target_name(false)) {
    throw Failure(ROSIN_UNSUPPORTED, "compile: no target \"" + std::string(target) + "\"");
  }
  Writer body;
  body.text(target);
  body.number(program.kernel_count);
  // An array of structs whose size the sender knows.
  const auto* next = reinterpret_cast<const char*>(program.kernels);
  for (uint32_t i = 0; i < program.kernel_count; ++i, next += program.kernels->size) {
    const rosin_kernel_code code = taken(reinterpret_cast<const rosin_kernel_code*>(next));
    check(code);
    try {
      const Kernel kernel(code);
      if (kernel.uses_float64() && !float64) throw InvalidCode("kernel " + kernel.name() + ": no 64-bit floats here");
    } catch (const InvalidCode& error) {
      throw Failure(ROSIN_COMPILE_FAILED, error.what());
    }
    write(body, code);
  }
  Writer all;
  all.bytes = magic;
  all.number(checksum(body.bytes));
  return all.bytes + body.bytes;
}

std::vector<rosin_kernel> kernels_in(std::string_view bytes, rosin_device& device) {
  need(bytes.substr(0, magic.size()) == magic, "load: these bytes are no program of the reference device");
  Reader head(bytes.substr(magic.size()));
  const auto sum = head.number<uint64_t>();
  const std::string_view body = bytes.substr(magic.size() + sizeof(sum));
  need(sum == checksum(body), "load: the bytes are damaged");
  Reader from(body);
  need(from.text() == device.target, "load: the program is for another target");
  std::vector<rosin_kernel> kernels;
  for (auto count = from.number<uint32_t>(); count > 0; --count) {
    kernels.push_back({&device, read_kernel(from)});
    const std::string& name = kernels.back().code.name();
    const auto named = [&](const rosin_kernel& kernel) { return kernel.code.name() == name; };
    need(std::count_if(kernels.begin(), kernels.end(), named) == 1, "load: two kernels of one name");
  }
  need(from.ended(), "load: bytes after the end");
  return kernels;
}

}  // namespace rosin::reference
