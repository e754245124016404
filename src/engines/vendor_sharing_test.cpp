// One prepared call is shared by all threads: its executions go on beside each other and spoil nothing of one another.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engines/onednn.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

/// Bits of small numbers of the type; one of them is infinite where `endless`.
std::vector<uint32_t> operand(DType type, int64_t count, int seed, bool endless) {
  std::vector<uint32_t> bits(static_cast<size_t>(count));
  for (size_t i = 0; i < bits.size(); ++i) {
    const float value = static_cast<float>((i * 7 + static_cast<size_t>(seed) * 5) % 17) * 0.25f - 2.0f;
    std::memcpy(&bits[i], &value, sizeof value);
  }
  if (endless) bits[bits.size() / 2] = 0x7f800000;
  if (type == DType::Float32) return bits;
  std::vector<uint32_t> halves((bits.size() + 1) / 2);  // upper halves, two in a word
  for (size_t i = 0; i < bits.size(); ++i) halves[i / 2] |= (bits[i] >> 16) << (i % 2 * 16);
  return halves;
}

/// Runs the call many times from several threads, each on operands of its own, against what it gives alone.
void expect_shared(const VendorCall& call, DType type, int64_t first, int64_t second, int64_t result) {
  constexpr int threads = 3;
  std::atomic<int> wrong{0};
  const auto run = [&](const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    std::vector<uint32_t> out(static_cast<size_t>(result), 0);
    execute(call, {a.data(), b.data(), nullptr, out.data(), nullptr});
    return out;
  };
  std::vector<std::vector<uint32_t>> a, b, expected;
  for (int t = 0; t < threads; ++t) {
    a.push_back(operand(type, first, t, t == 1));
    b.push_back(operand(type, second, t + 3, false));
    expected.push_back(run(a.back(), b.back()));
  }
  EXPECT_NE(expected[0], expected[2]);
  std::vector<std::thread> all;
  for (size_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) wrong += run(a[t], b[t]) != expected[t];
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong, 0) << call.engine() << " " << to_string(type);
}

std::vector<Engine> engines() {
  std::vector<Engine> all{Engine::best, Engine::tile, Engine::plain};
  if (have_onednn) all.push_back(Engine::onednn);
  return all;
}

TEST(SharedVendorCall, ProductsGoOnBesideEachOther) {
  MatmulSpec spec;
  spec.m = spec.lda = spec.ldc = 48;
  spec.k = spec.ldb = 33;
  spec.n = 70;
  for (const Engine engine : engines_for(spec))
    expect_shared(*prepare_matmul(spec, engine), spec.type, 48 * 33, 33 * 70, 48 * 70);
  spec.type = DType::BFloat16;
  expect_shared(*prepare_matmul(spec, Engine::best), spec.type, 48 * 33, 33 * 70, 48 * 70 / 2);
}

TEST(SharedVendorCall, ConvolutionsGoOnBesideEachOther) {
  for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
    for (const Engine engine : engines()) {
      for (const bool flipped : {false, true}) {
        ConvSpec spec;
        spec.kind = kind;
        spec.batch = 5;
        spec.in_channels = 3;
        spec.out_channels = 10;
        for (int d = 0; d < 2; ++d) spec.in[d] = spec.out[d] = 9;
        for (int d = 0; d < 2; ++d) spec.kernel[d] = 3, spec.pad_low[d] = spec.pad_high[d] = 1;
        spec.flipped = flipped;
        const int64_t x = 5 * 3 * 81, w = 9 * 3 * 10, y = 5 * 10 * 81;
        const auto call = prepare_conv(spec, engine);
        if (kind == ConvKind::forward) expect_shared(*call, spec.type, x, w, y);
        else if (kind == ConvKind::backward_data) expect_shared(*call, spec.type, y, w, x);
        else expect_shared(*call, spec.type, x, y, w);
      }
    }
  }
}

}  // namespace
}  // namespace rosin::engines
