// What the contract says beside values of moderate size: wrong arguments, NaN, 16-bit floats, equal bits, many ranks'
// turns.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "rig.hpp"

namespace comm_test {
namespace {

void check_refusals(Rig& rig) {
  float one = 1;
  const std::vector<rosin_comm_part> parts = {{&one, &one, 1}};
  const auto refused = [&](rosin_comm_status status, const char* what) {
    rig.check(status == ROSIN_COMM_INVALID && *rig.functions->error_text(), what);
  };
  refused(rig.run(99, ROSIN_COMM_FLOAT32, 0, 0, parts), "an unknown kind");
  refused(rig.run(ROSIN_COMM_ALLREDUCE, 99, 0, 0, parts), "an unknown type");
  refused(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, 99, 0, parts), "an unknown operation");
  refused(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_BOOL, 0, 0, parts), "a sum of Bool");
  refused(rig.run(ROSIN_COMM_REDUCE, ROSIN_COMM_FLOAT32, 0, rig.ranks, parts), "a root that is not there");
  refused(rig.run(ROSIN_COMM_SEND, ROSIN_COMM_FLOAT32, 0, rig.rank, parts), "sending to oneself");
  refused(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, 0, 0, {{&one, nullptr, 1}}), "nowhere to receive");
  refused(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, 0, 0, parts, 60, nullptr), "no name");
  refused(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, 0, 0, parts, -1), "a negative timeout");
  refused(rig.functions->join(1), "joining twice");
  rig.expect_ok(rig.run(ROSIN_COMM_BARRIER, 0, 0, 0, {}), "after refusals all goes on");
}

void check_nan(Rig& rig) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int who = 0; who < rig.ranks; ++who) {
    for (const int operation : {ROSIN_COMM_MINIMUM, ROSIN_COMM_MAXIMUM}) {
      double wide[3] = {rig.rank == who ? nan : rig.rank, 1.0 * rig.rank, -1.0 * rig.rank};
      float narrow[3] = {static_cast<float>(wide[0]), static_cast<float>(wide[1]), static_cast<float>(wide[2])};
      const bool least = operation == ROSIN_COMM_MINIMUM;
      const double second = least ? 0 : rig.ranks - 1, third = least ? 1 - rig.ranks : 0;
      rig.expect_ok(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT64, operation, 0, {{wide, wide, 3}}), "NaN");
      rig.check(std::isnan(wide[0]) && wide[1] == second && wide[2] == third, "NaN of Float64");
      rig.expect_ok(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, operation, 0, {{narrow, narrow, 3}}), "NaN");
      rig.check(std::isnan(narrow[0]) && narrow[1] == second && narrow[2] == third, "NaN of Float32");
    }
  }
}

/// 1 and half a unit of its last place from each other rank: in Float32 these add up, step by step they would be lost.
void check_half_sums(Rig& rig) {
  struct Half {
    int type;
    uint16_t one, half_unit;
  };
  for (const Half half : {Half{ROSIN_COMM_FLOAT16, 0x3c00, 0x1000}, Half{ROSIN_COMM_BFLOAT16, 0x3f80, 0x3b80}}) {
    uint16_t value = rig.rank == 0 ? half.one : half.half_unit;
    rig.expect_ok(rig.run(ROSIN_COMM_ALLREDUCE, half.type, ROSIN_COMM_SUM, 0, {{&value, &value, 1}}), "a half");
    const int others = rig.ranks - 1;
    const int units = others / 2 + (others % 4 == 3 ? 1 : 0);  // to the nearest, ties to even
    rig.check(value == half.one + units, "sum of type " + std::to_string(half.type) + ": " + std::to_string(value));
  }
}

/// Every 16-bit float stays what it is where all ranks have the same.
void check_half_patterns(Rig& rig) {
  for (const int type : {ROSIN_COMM_FLOAT16, ROSIN_COMM_BFLOAT16}) {
    const int exponent = type == ROSIN_COMM_FLOAT16 ? 0x7c00 : 0x7f80;
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    const rosin_comm_part part{all.data(), all.data(), all.size()};
    rig.expect_ok(rig.run(ROSIN_COMM_ALLREDUCE, type, ROSIN_COMM_MINIMUM, 0, {part}), "patterns");
    size_t wrong = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_nan = (static_cast<int>(i) & 0x7fff) > exponent;
      wrong += is_nan ? (all[i] & 0x7fff) <= exponent : all[i] != i;
    }
    rig.check(wrong == 0, std::to_string(wrong) + " patterns of type " + std::to_string(type) + " change");
  }
}

/// Numbers whose sum depends on the order.
std::vector<float> rough(int rank, size_t count) {
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i) {
    all[i] = std::sin(static_cast<float>(i * 7 + static_cast<size_t>(rank) * 13 + 1)) * std::ldexp(1.0f, rank * 5 % 11);
  }
  return all;
}

uint64_t hash_of(const std::vector<float>& numbers) {
  uint64_t hash = 1469598103934665603u;
  for (const float number : numbers) {
    uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}

/// Ranks know what comes next; one of them is late each time.
void check_followers(Rig& rig) {
  const auto sum_is_right = [&](int turn) {
    if (rig.rank == turn % rig.ranks) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::vector<float> x(1000, static_cast<float>(rig.rank + turn));
    rig.expect_ok(
        rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, ROSIN_COMM_SUM, 0, {{x.data(), x.data(), x.size()}}),
        "one that follows");
    const auto sum = static_cast<float>(rig.ranks * (rig.ranks - 1) / 2 + rig.ranks * turn);
    rig.check(std::count(x.begin(), x.end(), sum) == 1000, "the sum of one that follows");
  };
  for (int turn = 0; turn < 8; ++turn) {
    rig.follows = turn % 4 != 0;
    sum_is_right(turn);
  }
  rig.follows = false;
}

/// The ranks come late in turn, so that the order in which they come is another each time.
void come_late(const Rig& rig, int turn) {
  if (rig.rank == turn % rig.ranks) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

/// Sums that one rank alone gets, as where each rank keeps the state of some parameters.
void check_bits_at_root(Rig& rig, size_t count) {
  const std::vector<float> mine = rough(rig.rank, count);
  for (int root = 0; root < rig.ranks; ++root) {
    uint64_t first = 0;
    for (int turn = 0; turn < 3; ++turn) {
      come_late(rig, turn);
      std::vector<float> sum(count);
      rig.expect_ok(rig.run(ROSIN_COMM_REDUCE, ROSIN_COMM_FLOAT32, ROSIN_COMM_SUM, root,
                            {{mine.data(), sum.data(), count / 2},
                             {mine.data() + count / 2, sum.data() + count / 2, count - count / 2}}),
                    "bits at one rank");
      const uint64_t hash = hash_of(sum);
      if (turn == 0) first = hash;
      rig.check(rig.rank != root || hash == first, "the same bits at one rank in turn " + std::to_string(turn));
    }
    if (rig.rank == root)
      rig.say("bits at " + std::to_string(root) + " " + std::to_string(count) + " " + std::to_string(first));
  }
}

}  // namespace

void check_rules(Rig& rig) {
  check_refusals(rig);
  if (rig.device) return;  // a library combines these as it does
  check_nan(rig);
  check_half_sums(rig);
  check_half_patterns(rig);
  check_followers(rig);
}

void check_bits(Rig& rig) {
  for (const size_t count : {5u, 1000u, 300007u}) {
    uint64_t first = 0;
    for (int turn = 0; turn < 3; ++turn) {
      come_late(rig, turn);
      const std::vector<float> mine = rough(rig.rank, count);
      std::vector<float> sum(count);
      const std::vector<rosin_comm_part> parts = {{mine.data(), sum.data(), count / 2},
                                                  {mine.data() + count / 2, sum.data() + count / 2, count - count / 2}};
      rig.expect_ok(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, ROSIN_COMM_SUM, 0, parts), "bits");
      uint64_t hash = hash_of(sum);
      if (turn == 0) first = hash;
      rig.check(hash == first, "the same bits in turn " + std::to_string(turn));
      if (char* const common = rig.device ? nullptr : rig.common(count * sizeof(float))) {
        rig.in_common = true;
        rig.expect_ok(
            rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_FLOAT32, ROSIN_COMM_SUM, 0, {{mine.data(), common, count}}),
            "bits in common");
        rig.in_common = false;
        rig.check(std::memcmp(common, sum.data(), count * sizeof(float)) == 0, "the same bits in common");
      }
      uint64_t least = hash, greatest = hash;
      rig.expect_ok(rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_UINT64, ROSIN_COMM_MINIMUM, 0, {{&least, &least, 1}}), "");
      rig.expect_ok(
          rig.run(ROSIN_COMM_ALLREDUCE, ROSIN_COMM_UINT64, ROSIN_COMM_MAXIMUM, 0, {{&greatest, &greatest, 1}}), "");
      rig.check(least == greatest, "the same bits on every rank");
    }
    if (rig.rank == 0) rig.say("bits " + std::to_string(count) + " " + std::to_string(first));
    check_bits_at_root(rig, count);
  }
}

}  // namespace comm_test
