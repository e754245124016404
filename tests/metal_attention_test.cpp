// Attention that MPSGraph computes, on the pretended GPU of tests/fake_metal: which is taken, and what comes out,
// beside the CPU. Read first: attention_call_testing.hpp, run_itself.hpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <rosin/attention.hpp>
#include <rosin/device.hpp>
#include <rosin/math_mode.hpp>

#include "attention_call_testing.hpp"
#include "run_itself.hpp"

namespace rosin {
namespace {

Device mac() { return get_device("Metal", 0); }

std::filesystem::path stand_in() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_metal";
}

Outcome on_pretended_mac(const std::string& test, const std::string& options, const std::string& more = "") {
  return run_itself(test, "ROSIN_METAL_LIBRARIES='" + stand_in().string() + "' FAKE_METAL=" + options + " " + more);
}

bool has_stand_in() { return can_run_itself() && std::filesystem::exists(stand_in() / "MetalPerformanceShadersGraph"); }

/// What there is of the library: calls, and questions that it refused once it knew the sizes.
struct Asked {
  int64_t calls = 0, refused = 0;
  bool operator==(const Asked&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Asked& a) {
  return out << a.calls << " calls, " << a.refused << " refused";
}

/// The result is that of Float32 on the CPU, up to the digits of the type.
Asked asked(const Form& f, const Arrays& wide, DType type, double close) {
  Arrays here, there;
  for (const Array& x : wide) {
    there.push_back(cast(x, type) | mac());
    here.push_back(cast(cast(x, type), Float32));
  }
  eval();
  const Stats before = stats();
  const Array got = f(there);
  eval(got);
  const Stats after = stats();
  EXPECT_TRUE(allclose(cast(got | Device(), Float32), f(here), {.rtol = close, .atol = close}));
  return {after.library_calls - before.library_calls, after.refused_calls - before.refused_calls};
}

Arrays sequences(int64_t queries, int64_t keys, int64_t features = 32, int64_t of_keys = 32, int64_t batch = 2) {
  return {randn({features, queries, batch}), randn({of_keys, keys, batch}), randn({of_keys, keys, batch})};
}

constexpr Asked taken{1, 0}, not_asked{0, 0}, refused{0, 1};

TEST(DISABLED_Inside, MetalAttends) {
  seed(4);
  for (const auto& [type, close] : {std::pair(Float32, 1e-5), std::pair(Float16, 4e-3), std::pair(BFloat16, 3e-2)}) {
    EXPECT_EQ(asked(attention(heads(4)), sequences(9, 13), type, close), taken);
    EXPECT_EQ(asked(attention(heads(4, 0, true)), sequences(11, 11), type, close), taken);
    EXPECT_EQ(asked(attention(heads(4, 2)), sequences(9, 7, 32, 16), type, close), taken);
    EXPECT_EQ(asked(attention(heads(8, 2, true)), sequences(19, 19, 32, 8), type, close), taken);
    EXPECT_EQ(asked(attention(heads(2)), {randn({32, 7}), randn({32, 7}), randn({32, 7})}, type, close), taken);
    AttentionOptions scaled = heads(1);
    scaled.scale = 0.5;
    EXPECT_EQ(asked(attention(scaled), sequences(1, 70, 5, 5, 3), type, close), taken);
  }
  EXPECT_TRUE(functional("Metal", "MPSGraph attention")) << why_not("Metal", "MPSGraph attention");
}

TEST(MetalAttention, IsThatOfTheCpu) {
  if (!has_stand_in()) GTEST_SKIP() << "there is no pretended Metal";
  expect_success(on_pretended_mac("MetalAttends", "system=15"));
  expect_success(on_pretended_mac("MetalAttends", "system=15,order=3,apple=0,unified=0"));
}

TEST(DISABLED_Inside, MetalAttendsByItself) {
  seed(5);
  const auto on = [](const Array& x, const Arrays& beside) { return x | device_of(beside[0]).with(keep); };
  const Array bias = randn({9, 9}), mask = randn({9, 1}) > -1;
  const Form biased = [=](const Arrays& a) {
    AttentionOptions options = heads(4);
    options.bias = on(bias, a);
    return attention(options)(a);
  };
  const Form masked = [=](const Arrays& a) {
    AttentionOptions options = heads(4);
    options.mask = on(mask, a);
    return attention(options)(a);
  };
  const Form exact = [](const Arrays& a) { return with(MathMode::exact, [&] { return attention(heads(4))(a); }); };
  EXPECT_EQ(asked(biased, sequences(9, 9), Float32, 1e-5), not_asked);
  EXPECT_EQ(asked(masked, sequences(9, 9), Float32, 1e-5), not_asked);
  EXPECT_EQ(asked(exact, sequences(9, 9), Float32, 1e-5), not_asked);
  // More keys than queries, once the sizes are known: the first query sees some of them.
  EXPECT_EQ(asked(attention(heads(4, 0, true)), sequences(5, 9), Float32, 1e-5), refused);
  // Values of other features, and sequences that stand in one array.
  EXPECT_EQ(asked(attention(heads(4)), {randn({32, 9}), randn({32, 9}), randn({64, 9})}, Float32, 1e-5), refused);
  const Form sliced = [](const Arrays& a) {
    const Array& all = a[0];
    return dot_product_attention(slice(all, 0, 0, 32), slice(all, 0, 32, 64), slice(all, 0, 64, 96), heads(4)).out;
  };
  EXPECT_EQ(asked(sliced, {randn({96, 8, 2})}, Float32, 1e-5), refused);
  // A gradient needs the state of the call.
  for (const auto& [type, close] : {std::pair(Float32, 1e-4), std::pair(BFloat16, 0.4)}) {
    EXPECT_EQ(asked(slopes(attention(heads(4, 0, true))), sequences(11, 11), type, close), refused);
    EXPECT_EQ(asked(slopes(attention(heads(4, 2))), sequences(9, 13, 32, 16), type, close), refused);
  }
}

TEST(MetalAttention, IsAKernelWhereMpsgraphHasNone) {
  if (!has_stand_in()) GTEST_SKIP() << "there is no pretended Metal";
  expect_success(on_pretended_mac("MetalAttendsByItself", "system=15"));
}

/// Where there is a reason, kernels attend; products are MPSGraph's all the same from macOS 15 on.
TEST(DISABLED_Inside, MetalSaysWhyItDoesNotAttend) {
  const std::string reason = std::getenv("ROSIN_TEST_REASON");
  const Arrays x = sequences(9, 9);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(asked(attention(heads(4)), x, Float32, 1e-5).calls, 0);
  EXPECT_EQ(why_not("Metal", "MPSGraph attention"), reason);
  const bool multiplies = why_not("Metal", "MPSGraph").empty();
  EXPECT_EQ(multiplies, reason.find("reads no arrays") == std::string::npos);
  EXPECT_EQ(asked([](const Arrays& a) { return matmul(a[0], a[1]); }, {randn({3, 4}), randn({4, 5})}, Float32, 1e-5),
            (Asked{multiplies ? 1 : 0, 0}));
}

TEST(MetalAttention, IsNotUsedWhereASmallOneFails) {
  if (!has_stand_in()) GTEST_SKIP() << "there is no pretended Metal";
  const std::pair<const char*, const char*> situations[] = {
      {"system=15,wrong=attention", "MPSGraph of macOS 15.5 (Build 00A00) computes a small attention wrongly"},
      {"system=15,attention=0", "MPSGraph has no attention before macOS 15"},
      {"system=14", "MPSGraph reads no arrays within a buffer before macOS 15"},
      {"system=15,fail=bandPartWithTensor:numLower:numUpper:name::1", "MPSGraph: it takes no such operation"},
      {"system=15,fail=newCommandQueue:3", "Metal gives no command queue"},
  };
  for (const auto& [options, reason] : situations) {
    SCOPED_TRACE(options);
    expect_success(
        on_pretended_mac("MetalSaysWhyItDoesNotAttend", options, "ROSIN_TEST_REASON='" + std::string(reason) + "'"));
  }
}

}  // namespace
}  // namespace rosin
