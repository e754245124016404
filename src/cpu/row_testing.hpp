// For tests of convolutions by machine code: with registers of 8 lanes and of 16, where the processor has them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/instruction_set.hpp"
#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

class OfRegisters : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!machine_code_works()) GTEST_SKIP() << "this processor has no AVX2, or ROSIN_JIT is 0";
    if (GetParam() == 16 && best_instruction_set() != InstructionSet::widest) GTEST_SKIP() << "there is no AVX-512";
  }
};

inline std::string lanes_name(const ::testing::TestParamInfo<int>& test) {
  return "Of" + std::to_string(test.param) + "Lanes";
}

}  // namespace rosin::cpu
