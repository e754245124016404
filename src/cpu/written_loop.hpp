// What a writer of machine code gives, and who keeps it: code is written once for each key, and shared by all that hold
// it. Read first: machine_loop.hpp. Read next: machine_writer.hpp (loops of fused kernels), row_writer.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

/// Code in a buffer, which runs wherever it is copied to.
struct WrittenCode {
  size_t bytes = 0;
  std::string name;                  // one line, for profiles
  std::vector<unsigned char> frame;  // see platform::NamedCode
};

/// Writes into a buffer of so many bytes. Error (Xbyak::Error): that is too little.
using CodeSource = std::function<WrittenCode(unsigned char* buffer, size_t bytes)>;

/// The code of a key; null where it has no room, or the system gives none.
std::shared_ptr<const MachineLoop> shared_loop(const std::string& key, const CodeSource& source);

/// Vector registers that code has, of so many Float32 each: 16 with AVX-512, 8 with AVX2.
constexpr int64_t registers_of(int64_t block) { return block == 16 ? 32 : 16; }

/// Whether code is written for AVX-512, else for AVX2; where machine_code_works().
bool has_wide_code();

}  // namespace rosin::cpu
