// The op suite, machine code: every case of every oracle and its gradients have the bits of the compiled loops.
// Read first: machine_code_bits.hpp.
#include <gtest/gtest.h>

#include "machine_code_bits.hpp"

namespace rosin::suite {
namespace {

void say_case(const OpEntry& row, const OracleCase& entry, const std::string& where) {
  for (const Layout layout : {Layout::contiguous, Layout::tangled}) {
    const std::string so = where + ", " + name_of(layout);
    const Arrays results = row.call(entry, inputs_of(entry, layout));
    say_bits(results, so);
    if (entry.cotangents.empty() || results.empty()) continue;
    const Function f = [&](const Arrays& x) { return row.call(entry, x); };
    say_bits(gradients_of(f, inputs_of(entry, layout), cotangents_of(entry)), so + ", gradients");
  }
}

TEST(DISABLED_Inside, EveryCaseSaysItsBits) { for_each_case(op_oracle_files(), say_case); }

TEST(OpSuiteBits, CasesHaveThoseOfTheCompiledLoopsWithAnyMachineCode) {
  expect_same_bits_with_any_machine_code("EveryCaseSaysItsBits", 6000);
}

}  // namespace
}  // namespace rosin::suite
