// Sines of strips whose angles are all small take a shorter way: with the same bits as among large angles.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "graph/op.hpp"
#include "ops/math_angle.hpp"
#include "scalar/body.hpp"

namespace rosin {
namespace {

/// Floats of every exponent below the limit, both signs, and those next to it.
std::vector<float> near_angles() {
  std::vector<float> values = {0.0f, -0.0f, 0.5f, std::nextafter(0.5f, 0.0f), std::nextafter(math::near_limit, 0.0f)};
  const auto limit = std::bit_cast<uint32_t>(math::near_limit);
  for (uint32_t bits = 1; bits < limit; bits += 16381) {
    values.push_back(std::bit_cast<float>(bits | (bits % 2) << 31));
  }
  return values;
}

std::vector<float> computed(const Op& op, InstructionSet set, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  const void* const in[] = {x.data()};
  op.body.variant(ScalarType::float32, set)(out.data(), in, static_cast<int64_t>(x.size()));
  return out;
}

TEST(NearAngles, HaveTheBitsOfAnyAngle) {
  const std::vector<float> near = near_angles();
  std::vector<float> mixed;  // a large one beside each
  for (const float x : near) mixed.insert(mixed.end(), {x, 1e30f});
  for (const Op* op : registry()) {
    const bool circular = op->name == "sin" || op->name == "cos" || op->name == "tan";
    if (!circular) continue;
    for (const auto set : {InstructionSet::baseline, InstructionSet::wide, InstructionSet::widest}) {
      if (set > best_instruction_set()) continue;
      const std::vector<float> got = computed(*op, set, near), wanted = computed(*op, set, mixed);
      for (size_t i = 0; i < near.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(wanted[2 * i]))
            << op->name << ' ' << near[i];
      }
      if (op->name == "sin") {
        for (size_t i = 0; i < near.size(); ++i) ASSERT_NEAR(got[i], std::sin(double{near[i]}), 1e-7) << near[i];
      }
    }
  }
}

TEST(NearAngles, WhatIsNoAngleAmongThem) {
  for (const Op* op : registry()) {
    if (op->name != "cos") continue;
    std::vector<float> x(300, 1.0f);
    x[7] = std::numeric_limits<float>::infinity();
    x[299] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> got = computed(*op, best_instruction_set(), x);
    EXPECT_TRUE(std::isnan(got[7]) && std::isnan(got[299]));
    EXPECT_EQ(got[0], got[298]);
  }
}

}  // namespace
}  // namespace rosin
