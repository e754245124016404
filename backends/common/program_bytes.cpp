// Packing compiled programs; see program_bytes.hpp. Numbers are 64 bits in this machine's order, texts follow their
// length; the first two numbers are a mark and the checksum of all that follows them.
#include "common/program_bytes.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace rosin::plugin {
namespace {

constexpr uint64_t mark = 0x324C434E49534F52;  // "ROSINCL2"
constexpr size_t head = 2 * sizeof(uint64_t);

void put(std::string& out, uint64_t number) { out.append(reinterpret_cast<const char*>(&number), sizeof number); }
void put(std::string& out, std::string_view text) {
  put(out, text.size());
  out.append(text);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number())); }

 private:
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw Failure{ROSIN_INVALID, "the compiled program is cut off"};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view rest_;
};

}  // namespace

uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string pack(const ProgramBytes& program) {
  std::string body;
  put(body, program.target);
  put(body, program.kernels.size());
  for (const Signature& kernel : program.kernels) {
    put(body, kernel.name);
    put(body, kernel.group);
    put(body, kernel.buffer_count);
    put(body, kernel.shared_bytes);
    put(body, kernel.parameters.size());
    for (const int32_t type : kernel.parameters) put(body, static_cast<uint64_t>(type));
  }
  put(body, program.content);
  std::string out;
  put(out, mark);
  put(out, checksum(body));
  return out + body;
}

void* packed(const ProgramBytes& program, uint64_t& count) {
  const std::string bytes = pack(program);
  void* out = std::malloc(bytes.size());
  if (!out) throw std::bad_alloc();
  std::memcpy(out, bytes.data(), bytes.size());
  count = bytes.size();
  return out;
}

namespace {

uint64_t bytes_of(const rosin_shared_array& array) {
  switch (array.type) {
    case ROSIN_SCALAR_BOOL: return static_cast<uint64_t>(array.count);
    case ROSIN_SCALAR_INT64:
    case ROSIN_SCALAR_UINT64:
    case ROSIN_SCALAR_FLOAT64: return 8 * static_cast<uint64_t>(array.count);
    default: return 4 * static_cast<uint64_t>(array.count);
  }
}

}  // namespace

Signature signature_of(const rosin_kernel_code& code) {
  Signature made{code.name, static_cast<uint32_t>(code.group), code.buffer_count,
                 std::vector<int32_t>(code.parameters, code.parameters + code.parameter_count)};
  for (uint32_t i = 0; i < code.shared_count; ++i) {
    made.shared_bytes = (made.shared_bytes + 15) / 16 * 16 + bytes_of(code.shared[i]);
  }
  return made;
}

ProgramBytes unpack(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.number() != mark || reader.number() != checksum(bytes.substr(head)))
    throw Failure{ROSIN_INVALID, "these bytes are no program that this plug-in compiled"};
  ProgramBytes program;
  program.target = reader.text();
  const uint64_t kernels = reader.number();
  for (uint64_t i = 0; i < kernels; ++i) {
    Signature kernel;
    kernel.name = reader.text();
    kernel.group = static_cast<uint32_t>(reader.number());
    kernel.buffer_count = static_cast<uint32_t>(reader.number());
    kernel.shared_bytes = reader.number();
    const uint64_t parameters = reader.number();
    for (uint64_t p = 0; p < parameters; ++p) kernel.parameters.push_back(static_cast<int32_t>(reader.number()));
    program.kernels.push_back(std::move(kernel));
  }
  program.content = reader.text();
  return program;
}

}  // namespace rosin::plugin
