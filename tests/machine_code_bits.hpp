// Results of the CPU with machine code of AVX-512, with that of AVX2 and by compiled loops alone: processes of their
// own say the bits of each. Read first: run_itself.hpp, op_suite.hpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>

#include "base/hash.hpp"
#include "op_suite.hpp"
#include "run_itself.hpp"

namespace rosin::suite {

/// Of an array's elements; every NaN counts as every NaN.
inline uint64_t hash_of_bits(const Array& x) {
  if (x.is_nothing()) return 0;
  uint64_t hash = static_cast<uint64_t>(x.count());
  if (is_integer(x.dtype())) {
    for (const int64_t value : cast(x, Int64).to_vector<int64_t>()) hash = mix(hash, static_cast<uint64_t>(value));
    return hash;
  }
  for (const double value : oracles::values_of(x)) {
    hash = mix(hash, std::isnan(value) ? uint64_t{1} : std::bit_cast<uint64_t>(value));
  }
  return hash;
}

/// A line for each result of what `where` names.
inline void say_bits(const Arrays& results, const std::string& where) {
  for (size_t i = 0; i < results.size(); ++i) {
    std::printf("bits of %s, result %zu: %016llx\n", where.c_str(), i,
                static_cast<unsigned long long>(hash_of_bits(results[i])));
  }
}

/// What a test DISABLED_Inside says of its results with ROSIN_JIT set so.
inline std::map<std::string, std::string> bits_said(const std::string& test, const std::string& jit) {
  const Outcome outcome = run_itself(test, "ROSIN_JIT=" + jit);
  expect_success(outcome);
  std::map<std::string, std::string> bits;
  std::istringstream text(outcome.text);
  for (std::string line; std::getline(text, line);) {
    const size_t colon = line.rfind(": ");
    if (line.starts_with("bits of ")) bits[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return bits;
}

/// That each result has the same bits in all three; at least so many are said.
inline void expect_same_bits_with_any_machine_code(const std::string& test, size_t least) {
  if (on_other_device()) GTEST_SKIP() << "about machine code of the CPU";
  if (!can_run_itself()) GTEST_SKIP() << "this system does not name the program";
  const auto loops = bits_said(test, "0");
  EXPECT_GE(loops.size(), least);
  for (const char* jit : {"avx2", "1"}) {
    const auto code = bits_said(test, jit);
    EXPECT_EQ(code.size(), loops.size()) << jit;
    for (const auto& [what, bits] : loops) {
      const auto found = code.find(what);
      EXPECT_EQ(found == code.end() ? "nothing" : found->second, bits) << what << ", ROSIN_JIT=" << jit;
    }
  }
}

}  // namespace rosin::suite
