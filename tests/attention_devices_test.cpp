// Attention in blocks on the CPU and on devices: every float type, with biases, masks, dropout and fewer heads of keys,
// beside the same attention in parts on the CPU in Float64. Read first: test_device.hpp, src/ops/attention.hpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/attention.hpp>
#include <rosin/autocast.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/layer.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "ops/attention.hpp"
#include "ops/in_parts.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

struct Case {
  std::string name;
  DType type = Float32;
  int64_t queries = 9, keys = 9, features = 8, value_features = 8, heads = 2, kv_heads = 2, batch = 2;
  bool causal = false, bias = false, mask = false;
  double dropped = 0;
};

std::vector<Case> cases() {
  std::vector<Case> all = {
      {.name = "one query", .queries = 1, .keys = 70, .features = 5, .value_features = 3, .heads = 4, .kv_heads = 1},
      {.name = "odd sizes", .queries = 37, .keys = 51, .features = 20, .value_features = 19, .causal = true},
      {.name = "many features",
       .queries = 20,
       .keys = 18,
       .features = 40,
       .value_features = 300,
       .heads = 1,
       .kv_heads = 1,
       .batch = 1},
      {.name = "no batch", .queries = 18, .keys = 33, .batch = 0},
      {.name = "biased", .queries = 20, .keys = 35, .heads = 6, .kv_heads = 2, .causal = true, .bias = true},
      {.name = "masked", .queries = 34, .keys = 17, .bias = true, .mask = true},
      {.name = "dropped",
       .queries = 19,
       .keys = 40,
       .heads = 4,
       .kv_heads = 2,
       .bias = true,
       .mask = true,
       .dropped = 0.3},
      {.name = "blocks of 64",
       .queries = 130,
       .keys = 140,
       .features = 12,
       .value_features = 70,
       .heads = 4,
       .kv_heads = 2,
       .batch = 6,
       .causal = true},
  };
  for (const DType type : {Float64, Float16, BFloat16}) {
    all.push_back({.name = to_string(type),
                   .type = type,
                   .queries = 35,
                   .keys = 37,
                   .features = 16,
                   .value_features = 12,
                   .kv_heads = 1,
                   .causal = true,
                   .bias = true,
                   .dropped = 0.2});
  }
  return all;
}

struct Inputs {
  Array q, k, v, slope, bias, mask;
};

Inputs inputs(const Case& c) {
  Rng rng(17);
  const auto sequence = [&](int64_t features, int64_t length) {
    const Shape shape = c.batch == 0 ? Shape{features, length} : Shape{features, length, c.batch};
    return cast(cast(randn(rng, shape), c.type), Float64);  // a value that the type has
  };
  Inputs made{sequence(c.features * c.heads, c.queries),
              sequence(c.features * c.kv_heads, c.keys),
              sequence(c.value_features * c.kv_heads, c.keys),
              sequence(c.value_features * c.heads, c.queries),
              {},
              {}};
  if (c.bias) made.bias = randn(rng, {c.keys, c.queries, c.heads});
  if (c.mask)
    made.mask = logical_or(bernoulli(rng, 0.6, {c.keys, 1, 1, c.batch}), reshape(lt(arange(c.keys), 1), {c.keys, 1}));
  return made;
}

/// The result and the slopes of q, k, v (and of the bias), on the device, of the type.
std::vector<Array> results(const Case& c, const Inputs& in, const Device& device, DType type) {
  const auto moved = [&](const Array& x) { return transferred(cast(x, type), device.position()); };
  Rng rng(5);
  AttentionOptions options{.heads = c.heads, .kv_heads = c.kv_heads, .causal = c.causal};
  if (c.mask) options.mask = transferred(in.mask, device.position());
  if (c.dropped > 0) options.drop = Dropout(c.dropped, {.active = LayerMode::train, .rng = &rng});
  const Array slope = moved(in.slope), bias = c.bias ? moved(in.bias) : moved(zeros({1}));
  const auto weighed = [&](const Array& q, const Array& k, const Array& v, const Array& added) {
    if (c.bias) options.bias = added;
    const Array y = dot_product_attention(q, k, v, options).out;
    return std::pair(sum(y * slope), y);
  };
  const auto [values, slopes] = withgradient(weighed, moved(in.q), moved(in.k), moved(in.v), bias);
  const auto& [dq, dk, dv, db] = slopes;
  std::vector<Array> all = {values.second, dq, dk, dv};
  if (c.bias) all.push_back(db);
  for (Array& x : all) {
    EXPECT_EQ(x.dtype(), type);
    x = cast(transferred(x, 0), Float64);
  }
  return all;
}

double tolerance(DType type) {
  switch (type) {
    case DType::Float64: return 1e-12;
    case DType::Float16: return 4e-3;
    case DType::BFloat16: return 3e-2;
    default: return 5e-6;
  }
}

void check(const Case& c, const Device& device) {
  const Inputs in = inputs(c);
  const std::vector<Array> got = results(c, in, device, c.type);
  const InParts parts;
  const std::vector<Array> wanted = results(c, in, Device(), Float64);
  const char* const names[] = {"y", "dq", "dk", "dv", "dbias"};
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].shape(), wanted[i].shape()) << c.name << " " << names[i];
    const double largest = maximum(abs(wanted[i])).item();
    EXPECT_LE(maximum(abs(got[i] - wanted[i])).item(), tolerance(c.type) * (1 + largest)) << c.name << " " << names[i];
  }
}

bool runs_there(const Case& c) {
  return c.type != Float64 || DeviceTable::instance().info_of(some_device().position()).float64;
}

/// Compilers of kernels take a second for those of a case: every second one, in short, or fewer.
std::vector<Case> some_of(std::vector<Case> all) {
  if (!is_short_there()) return all;
  std::vector<Case> some;
  for (size_t i = 0; i < all.size(); i += 2 * checks_alike()) some.push_back(std::move(all[i]));
  return some;
}

TEST(AttentionOnDevice, AgreeWithPartsInFloat64) {
  const std::vector<Case> all = some_of(cases());
  run_checks(all.size(), [&](size_t i) {
    check(all[i], Device());
    if (runs_there(all[i])) check(all[i], some_device());
  });
}

/// Sizes that matrix units take, where the device has some: steps of 16 features filled up, blocks that end early, more
/// queries than keys see, several heads for each of the keys.
std::vector<Case> cases_for_units() {
  std::vector<Case> all;
  for (const DType type : {Float16, BFloat16}) {
    all.push_back({.name = "whole blocks",
                   .type = type,
                   .queries = 128,
                   .keys = 128,
                   .features = 64,
                   .value_features = 64,
                   .batch = 1});
    all.push_back({.name = "causal",
                   .type = type,
                   .queries = 150,
                   .keys = 150,
                   .features = 32,
                   .value_features = 48,
                   .batch = 1,
                   .causal = true});
    all.push_back({.name = "few of everything",
                   .type = type,
                   .queries = 17,
                   .keys = 16,
                   .features = 8,
                   .value_features = 24,
                   .batch = 0});
    all.push_back({.name = "shared keys, bias, mask, dropout",
                   .type = type,
                   .queries = 40,
                   .keys = 99,
                   .features = 24,
                   .value_features = 16,
                   .heads = 4,
                   .causal = true,
                   .bias = true,
                   .mask = true,
                   .dropped = 0.25});
    all.push_back({.name = "two strips a warp",
                   .type = type,
                   .queries = 140,
                   .keys = 150,
                   .features = 16,
                   .value_features = 16,
                   .heads = 8,
                   .kv_heads = type == Float16 ? 8 : 4,
                   .batch = type == Float16 ? 4 : 8,
                   .causal = type == Float16});
    all.push_back({.name = "large heads",
                   .type = type,
                   .queries = 33,
                   .keys = 70,
                   .features = 128,
                   .value_features = 128,
                   .heads = 1,
                   .kv_heads = 1,
                   .causal = true});
  }
  return all;
}

TEST(AttentionOnDevice, AgreeWithPartsByMatrixUnits) {
  if (DeviceTable::instance().info_of(some_device().position()).matrix_types == 0) {
    GTEST_SKIP() << "the device has no matrix units";
  }
  const MathMode before = math_mode();
  math_mode(MathMode::standard);
  const std::vector<Case> all = some_of(cases_for_units());
  run_checks(all.size(), [&](size_t i) { check(all[i], some_device()); });
  // (Devices name Float64 among the types of their units, which other kernels may use.)
  const Case wide{.name = "Float64", .type = Float64, .queries = 20, .keys = 24, .features = 16, .value_features = 16};
  if (runs_there(wide)) check(wide, some_device());
  const auto y = [&](MathMode mode) {
    math_mode(mode);
    return results(all[0], inputs(all[0]), some_device(), all[0].type)[0].to_vector<double>();
  };
  EXPECT_NE(y(MathMode::exact), y(MathMode::standard)) << "units round weights";
  math_mode(before);
}

/// A query that sees no key: its result is NaN, and nothing comes back from it.
TEST(AttentionOnDevice, GiveNaNToAQueryThatSeesNothing) {
  const Device device = some_device();
  Rng rng(3);
  const auto sequence = [&](int64_t length) { return transferred(randn(rng, {4, length, 1}), device.position()); };
  const Array q = sequence(6), k = sequence(5), v = sequence(5);
  const AttentionOptions options{.causal = true};  // the first query comes before all keys
  const auto seen = [&](const Array& a, const Array& b, const Array& c) {
    return sum(slice(dot_product_attention(a, b, c, options).out, 1, 1, 6));
  };
  const auto [dq, dk, dv] = gradient(seen, q, k, v);
  const std::vector<float> y = dot_product_attention(q, k, v, options).out.to_vector<float>();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i] != y[i], i < 4) << i;
  for (const Array& slope : {dq, dk, dv}) {
    EXPECT_TRUE(all(is_finite(transferred(slope, 0))).item<bool>());
  }
}

/// Operands that are parts of one array, and the same one three times, are read where they stand.
TEST(AttentionOnDevice, ReadViews) {
  const Device device = some_device();
  const Array x = randn({48, 21, 2});
  const auto attend = [](const Array& all) {
    const auto part = [&](int64_t i) { return slice(all, 0, 16 * i, 16 * (i + 1)); };
    const AttentionOptions options{.heads = 2, .causal = true};
    const Array y = dot_product_attention(part(0), part(1), part(2), options).out;
    return sum(square(dot_product_attention(y, y, y, options).out));
  };
  const Array got = transferred(gradient(attend, transferred(x, device.position())), 0);
  const InParts parts;
  const Array wanted = cast(gradient(attend, cast(x, Float64)), Float32);
  EXPECT_LE(maximum(abs(got - wanted)).item(), 2e-5);
}

/// Neither forward nor back: what a step moves is a small part of all logits.
TEST(AttentionOnDevice, KeepNoLogits) {
  const Device device = some_device();
  const int64_t length = 400, heads = 2;
  const auto sequence = [&] { return transferred(randn({4 * heads, length, 1}), device.position()); };
  const Array q = sequence(), k = sequence(), v = sequence();
  const auto step = [&] {
    const auto weighed = [&](const Array& a, const Array& b, const Array& c) {
      return sum(square(dot_product_attention(a, b, c, {.heads = heads, .causal = true}).out));
    };
    const auto [dq, dk, dv] = gradient(weighed, q, k, v);
    for (const Array& x : {dq, dk, dv}) eval(x);
  };
  const Stats before = stats();
  step();
  EXPECT_LT(stats().written_bytes - before.written_bytes, length * length * heads * 4 / 8);
}

/// Queries, keys and values that are slices of one array, in any order: their slopes are written where they stand in
/// that of the array, by no step more than three slopes take.
TEST(AttentionOnDevice, SlopesOfOneArrayAreWrittenThere) {
  const Device device = some_device();
  struct Order {
    int64_t features;  // of a head
    int q, k, v;
    DType type;
  };
  for (const Order& order : {Order{8, 0, 1, 2, Float32}, {5, 2, 0, 1, Float32}, {16, 1, 2, 0, BFloat16}}) {
    const int64_t width = 2 * order.features;
    Rng rng(5);
    const Array all = cast(cast(randn(rng, {3 * width, 18, 2}), order.type), Float64);
    const auto weighed = [&](const Array& q, const Array& k, const Array& v) {
      return sum(square(dot_product_attention(q, k, v, {.heads = 2, .causal = true}).out));
    };
    const auto part = [&](const Array& x, int64_t n) { return slice(x, 0, n * width, (n + 1) * width); };
    const auto joint = [&](const Array& x) { return weighed(part(x, order.q), part(x, order.k), part(x, order.v)); };
    const Array there = transferred(cast(all, order.type), device.position());
    const std::array<Array, 3> parts = {part(there, order.q), part(there, order.k), part(there, order.v)};
    for (const Array& x : parts) eval(x);
    const Stats before = stats();
    const Array slope = gradient(joint, there);
    eval(slope);
    const Stats between = stats();
    const auto [dq, dk, dv] = gradient(weighed, parts[0], parts[1], parts[2]);
    for (const Array& x : {dq, dk, dv}) eval(x);
    const Stats after = stats();
    const Array wanted = gradient(joint, all);
    const double bound = order.type == BFloat16 ? 5e-2 : 1e-5;
    EXPECT_LE(maximum(abs(cast(transferred(slope, 0), Float64) - wanted)).item(), bound * maximum(abs(wanted)).item());
    if (device.position() == 0) continue;  // the CPU puts them together
    EXPECT_LE(between.written_bytes - before.written_bytes, after.written_bytes - between.written_bytes);
  }
}

TEST(AttentionOnDevice, AutocastComputesInHalves) {
  const Device device = some_device();
  const auto sequence = [&] { return transferred(randn({16, 20, 2}), device.position()); };
  const Array q = sequence(), k = sequence(), v = sequence();
  const Array wide = dot_product_attention(q, k, v, {.heads = 2}).out;
  const Array narrow = [&] {
    const Autocast scope(BFloat16);
    return dot_product_attention(q, k, v, {.heads = 2}).out;
  }();
  EXPECT_EQ(narrow.dtype(), BFloat16);
  EXPECT_LE(maximum(abs(transferred(cast(narrow, Float32) - wide, 0))).item(), 2e-2);
}

}  // namespace
}  // namespace rosin
