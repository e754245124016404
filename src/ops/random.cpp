// Random arrays: draws are recorded with key and counter as arguments; normal and the rest are elementwise ops on them.
#include <rosin/random.hpp>

#include <atomic>
#include <limits>
#include <mutex>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "base/philox.hpp"
#include "graph/autocast.hpp"
#include "graph/leaf.hpp"
#include "ops/drawing.hpp"
#include "ops/generators.hpp"

namespace rosin {
namespace {

const Op& uniform_op = *register_op({.name = "uniform",
                                     .kind = Kind::draw,
                                     .operands = 2,
                                     .doc = "numbers in [0, 1) of a key from a counter on; Float32 or Float64",
                                     .type_rule = TypeRule::attribute});
const Op& integers_op = *register_op({.name = "randint",
                                      .kind = Kind::random,
                                      .operands = 4,
                                      .doc = "integers in [low, high) of a key from a counter on; Int32 or Int64",
                                      .type_rule = TypeRule::attribute,
                                      .draw = Draw::bits});
const Op& permutation_op = *register_op({.name = "permutation",
                                         .kind = Kind::random,
                                         .operands = 2,
                                         .doc = "0 .. n - 1 in an order drawn from a key, from a counter on; Int32",
                                         .type_rule = TypeRule::index,
                                         .draw = Draw::permutation});

Array argument_of(uint64_t value) { return scalar_argument(static_cast<int64_t>(value)); }

// Element i of a draw stands in block counter + i / per_block.
Array draw(Rng& rng, const Shape& shape, DType type) {
  const int64_t per_block = type == Float64 ? 2 : 4;
  const Array key = argument_of(rng.key());
  const Array counter = argument_of(rng.take(static_cast<uint64_t>((shape.count() + per_block - 1) / per_block)));
  const Array* in[] = {&key, &counter};
  return record(uniform_op, in, type, shape);
}

// What threads share: the seed, how often it was set, and the next thread's number.
std::mutex seed_mutex;
uint64_t shared_seed = 0;
uint64_t next_thread = 0;
std::atomic<uint64_t> times_seeded{0};

struct ThreadGenerator {
  Rng rng;
  uint64_t seeded = std::numeric_limits<uint64_t>::max();
};
thread_local ThreadGenerator generator;

// Thread 0 draws what Rng(seed) draws.
uint64_t thread_key(uint64_t seed_value, uint64_t thread) {
  return thread == 0 ? seed_value : philox::bits_at(seed_value, thread, philox::Purpose::thread);
}

}  // namespace

Rng Rng::split() noexcept { return Rng(philox::bits_at(key_, take(1), philox::Purpose::split)); }
Rng Rng::derive(uint64_t data) const noexcept { return Rng(philox::bits_at(key_, data, philox::Purpose::derive)); }
uint64_t Rng::next() noexcept { return philox::bits_at(key_, take(1), philox::Purpose::draw); }

uint64_t Rng::below(uint64_t bound) noexcept {
  uint64_t mask = bound - 1;
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  uint64_t value = next() & mask;
  while (value >= bound) value = next() & mask;
  return value;
}

void seed(uint64_t value) {
  const std::lock_guard lock(seed_mutex);
  shared_seed = value;
  next_thread = 1;
  const uint64_t times = times_seeded.load(std::memory_order_relaxed) + 1;
  times_seeded.store(times, std::memory_order_release);
  generator = {Rng(value), times};
}

Rng& default_rng() {
  if (generator.seeded != times_seeded.load(std::memory_order_acquire)) {
    const std::lock_guard lock(seed_mutex);
    generator = {Rng(thread_key(shared_seed, next_thread++)), times_seeded.load(std::memory_order_relaxed)};
  }
  return generator.rng;
}

Generators generators() {
  const Rng own = default_rng();
  const std::lock_guard lock(seed_mutex);
  return {own, shared_seed, next_thread};
}

void restore_generators(const Generators& saved) noexcept {
  const std::lock_guard lock(seed_mutex);
  shared_seed = saved.seed;
  next_thread = saved.threads;
  const uint64_t times = times_seeded.load(std::memory_order_relaxed) + 1;
  times_seeded.store(times, std::memory_order_release);
  generator = {saved.own, times};
}

namespace {

/// Numbers in [0, 1) with the bits that a half holds: rounding would make some of them 1.
Array cut_to(DType type, const Array& x) {
  const double steps = type == Float16 ? 0x1p11 : 0x1p8;
  return floor(x * steps) * (1 / steps);
}

}  // namespace

Array uniform(Rng& rng, const Shape& shape, const Array& low, const Array& high, const ArrayOptions& options) {
  const DType type = options.type_or(Float32);
  const DeviceScope scope(place_of_draws(options, {&low, &high}));
  Array result = draw(rng, shape, drawn_type("uniform", type));
  if (is_half(type)) result = cut_to(type, result);
  if (!is_number(low, 0) || !is_number(high, 1)) result = result * (high - low) + low;
  return checked_draw("uniform", result, shape, type);
}

Array uniform(Rng& rng, const Shape& shape, const Array& low, const Array& high, DType type) {
  return uniform(rng, shape, low, high, ArrayOptions(type));
}

Array uniform(const Shape& shape, const Array& low, const Array& high, const ArrayOptions& options) {
  return uniform(default_rng(), shape, low, high, options);
}

Array uniform(const Shape& shape, const Array& low, const Array& high, DType type) {
  return uniform(default_rng(), shape, low, high, type);
}

Array normal(Rng& rng, const Shape& shape, const Array& mean, const Array& deviation, const ArrayOptions& options) {
  require_number(
      "normal", deviation, [](double value) { return value >= 0; }, "of at least 0");
  const DType type = options.type_or(Float32);
  const DeviceScope scope(place_of_draws(options, {&mean, &deviation}));
  const DType drawn = drawn_type("normal", type);
  const Array radius = sqrt(-2.0 * log(1.0 - draw(rng, shape, drawn)));
  Array result = radius * cos_of_turns(draw(rng, shape, drawn));
  if (!is_number(mean, 0) || !is_number(deviation, 1)) result = result * deviation + mean;
  return checked_draw("normal", result, shape, type);
}

Array normal(Rng& rng, const Shape& shape, const Array& mean, const Array& deviation, DType type) {
  return normal(rng, shape, mean, deviation, ArrayOptions(type));
}

Array normal(const Shape& shape, const Array& mean, const Array& deviation, const ArrayOptions& options) {
  return normal(default_rng(), shape, mean, deviation, options);
}

Array normal(const Shape& shape, const Array& mean, const Array& deviation, DType type) {
  return normal(default_rng(), shape, mean, deviation, type);
}

Array bernoulli(Rng& rng, const Array& p, const Shape& shape, const ArrayOptions& options) {
  require(uniform_op, p);
  require_number(
      "bernoulli", p, [](double value) { return value >= 0 && value <= 1; }, "from 0 to 1");
  const DeviceScope scope(place_of_draws(options, {&p}));
  const Array numbers = draw(rng, shape, p.dtype() == Float64 ? Float64 : Float32);
  return checked_draw("bernoulli", lt(numbers, is_float(p.dtype()) && size_of(p.dtype()) == 2 ? cast(p, Float32) : p),
                      shape, options.type_or(Bool));
}

Array bernoulli(Rng& rng, const Array& p, const Shape& shape) { return bernoulli(rng, p, shape, Bool); }
Array bernoulli(const Array& p, const Shape& shape) { return bernoulli(default_rng(), p, shape); }
Array bernoulli(const Array& p, const Shape& shape, const ArrayOptions& options) {
  return bernoulli(default_rng(), p, shape, options);
}

Array randint(Rng& rng, int64_t low, int64_t high, const Shape& shape) {
  if (low >= high) {
    refuse(ErrorKind::argument, "randint", "low must be less than high",
           std::to_string(low) + " and " + std::to_string(high), "high is excluded");
  }
  using Limits = std::numeric_limits<int32_t>;
  const DType type = low >= Limits::min() && high - 1 <= Limits::max() ? Int32 : Int64;
  const Array key = argument_of(rng.key());
  const Array counter = argument_of(rng.take(static_cast<uint64_t>((shape.count() + 1) / 2)));
  const Array first = scalar_argument(low), last = scalar_argument(high);
  const Array* in[] = {&key, &counter, &first, &last};
  return record(integers_op, in, type, shape);
}

Array randint(int64_t low, int64_t high, const Shape& shape) { return randint(default_rng(), low, high, shape); }

Array randint(Rng& rng, int64_t low, int64_t high, const Shape& shape, const ArrayOptions& options) {
  const DeviceScope scope(place_of_draws(options, {}));
  const Array drawn = randint(rng, low, high, shape);
  return cast(drawn, options.type_or(drawn.dtype()));
}

Array randint(int64_t low, int64_t high, const Shape& shape, const ArrayOptions& options) {
  return randint(default_rng(), low, high, shape, options);
}

Array permutation(Rng& rng, int64_t n) {
  if (n < 0 || n > std::numeric_limits<int32_t>::max()) {
    refuse(ErrorKind::argument, "permutation", "n must be in [0, 2147483647]", std::to_string(n),
           "permute parts of the data");
  }
  const Array key = argument_of(rng.split().key()), counter = argument_of(0);
  const Array* in[] = {&key, &counter};
  return record(permutation_op, in, Int32, Shape{n});
}

Array permutation(int64_t n) { return permutation(default_rng(), n); }

Array permutation(Rng& rng, int64_t n, const ArrayOptions& options) {
  const DeviceScope scope(place_of_draws(options, {}));
  return cast(permutation(rng, n), options.type_or(Int32));
}

Array permutation(int64_t n, const ArrayOptions& options) { return permutation(default_rng(), n, options); }

}  // namespace rosin
