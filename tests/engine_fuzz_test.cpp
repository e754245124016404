// Random programs, evaluated fused, op by op, inside a gradient call, and by a plain model: all must agree.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <sstream>

#include <rosin/create.hpp>
#include <rosin/stats.hpp>

#include "engine_programs.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

using namespace engine_programs;
using engine_programs::Instruction;

/// Makes random programs. Whole programs use ops that keep integers; others only ops without sums.
class Maker {
 public:
  Maker(uint64_t seed, bool whole, bool images = false) : random_(seed), whole_(whole), images_(images) {}

  Program run(int instructions) {
    const int inputs = 2 + below(3);
    for (int i = 0; i < inputs; ++i) program_.inputs.push_back(input());
    if (images_) {
      for (const Sizes& sizes : {Sizes{5, 4, 3, 2}, Sizes{6, 1, 2, 3}, Sizes{1, 4, 3, 2}, Sizes{2, 2, 3, 4},
                                 Sizes{1, 2, 4, 3}, Sizes{3, 1, 2, 1}}) {
        program_.inputs.push_back(made(sizes, [&](const Sizes&) { return below(9) - 4; }));
      }
    }
    values_ = program_.inputs;
    while (static_cast<int>(program_.instructions.size()) < instructions) add_random();
    return std::move(program_);
  }

 private:
  static constexpr int64_t most = 12000;  // elements of a value
  static constexpr double exact = 1 << 24;

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }

  int64_t size() {
    constexpr int64_t sizes[] = {1, 1, 2, 3, 3, 4, 5, 7, 10, 16, 33};
    if (chance(0.03)) return 0;
    if (chance(0.04)) return 1000 + below(4500);
    return sizes[below(11)];
  }

  Plain input() {
    Sizes sizes;
    for (int d = below(5); d > 0; --d) sizes.push_back(size());
    while (count_of(sizes) > most) sizes.pop_back();
    return made(sizes, [&](const Sizes&) { return whole_ ? below(9) - 4 : (below(8001) - 4000) * 0.001; });
  }

  const Plain& value(int i) const { return values_[static_cast<size_t>(i)]; }
  int any_value() {
    const int n = static_cast<int>(values_.size());
    return chance(0.7) ? std::max(0, n - 1 - below(6)) : below(n);
  }
  static double largest(const Plain& a) {
    double most = 0;
    for (double x : a.x) most = std::max(most, std::abs(x));
    return most;
  }

  static bool broadcasts(const Sizes& a, const Sizes& b) {
    for (size_t d = 0; d < std::min(a.size(), b.size()); ++d) {
      if (a[d] != b[d] && a[d] != 1 && b[d] != 1) return false;
    }
    return count_of(broadcast(a, b)) <= most;
  }

  void add(const Instruction& op) {
    const auto operand = [&](int i) -> const Plain& {
      return value(op.in[static_cast<size_t>(i)] < 0 ? op.in[0] : op.in[static_cast<size_t>(i)]);
    };
    values_.push_back(apply(op, operand(0), operand(1), operand(2)));
    program_.instructions.push_back(op);
  }

  /// Keeps integers exact: true when the operand was limited instead.
  bool too_large(int a, double result) {
    if (result <= (whole_ ? exact : 1e4)) return false;
    add({Do::limit, {a, -1, -1}});
    return true;
  }

  void add_random() {
    const int a = any_value();
    const int kind = below(images_ ? 13 : whole_ ? 10 : 8);
    if (kind < 3) add_combination(a);
    else if (kind < 5) add_unary(a);
    else if (kind < 8) add_movement(a);
    else if (kind == 8) add_reduction(a);
    else if (!images_ || chance(0.3)) add_product(a);
    else add_window(a);
  }

  /// A convolution of an image with a kernel of its own, or pooling. Mean pooling is exact for windows of 1, 2 and 4.
  void add_window(int a) {
    const Sizes& sizes = value(a).sizes;
    if (sizes.size() != 4 || count_of(sizes) == 0 || count_of(sizes) > 2000) return;
    const int64_t w = 1 + below(static_cast<int>(std::min<int64_t>(sizes[0], 3)));
    const int64_t h = 1 + below(static_cast<int>(std::min<int64_t>(sizes[1], 2)));
    if (too_large(a, largest(value(a)) * 36 * static_cast<double>(sizes[2]))) return;
    const int kind = below(4);
    if (kind == 0) return add({Do::pool_largest, {a, -1, -1}, {w, h}});
    if (kind == 1) return add({Do::pool_mean, {a, -1, -1}, {w == 3 ? 2 : w, h}});
    const int kernel = find_kernel(sizes[2]);
    const Sizes& k = value(kernel).sizes;
    if (k.size() != 4 || count_of(k) == 0 || k[2] != sizes[2] || k[0] > sizes[0] || k[1] > sizes[1]) return;
    add({Do::convolve, {a, kernel, -1}, {1 + below(2), 1 + below(2), below(2), below(2)}});
  }

  /// An input with this many channels in, or any.
  int find_kernel(int64_t channels) const {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const Sizes& k = program_.inputs[i].sizes;
      if (k.size() == 4 && k[2] == channels) return static_cast<int>(i);
    }
    return 0;
  }

  /// A value that broadcasts with a: one that is there, or a slice of a.
  int partner(int a) {
    for (int tries = 0; tries < 6; ++tries) {
      const int b = any_value();
      if (broadcasts(value(a).sizes, value(b).sizes)) return b;
    }
    return a;
  }

  void add_combination(int a) {
    constexpr Do ops[] = {Do::add, Do::subtract, Do::multiply, Do::higher, Do::lower, Do::choose};
    const Do what = ops[below(whole_ ? 6 : 5)];
    int b = partner(a);
    if (chance(0.1)) std::swap(a, b);
    const double x = largest(value(a)), y = largest(value(b));
    if (too_large(a, what == Do::multiply ? x * y : x + y)) return;
    int c = -1;
    if (what == Do::choose) {
      c = partner(a);
      if (!broadcasts(broadcast(value(a).sizes, value(b).sizes), value(c).sizes)) c = a;
    }
    add({what, {a, b, c}});
  }

  void add_unary(int a) {
    constexpr Do ops[] = {Do::negate,   Do::magnitude, Do::plus_number, Do::number_minus, Do::times_number, Do::stop,
                          Do::argument, Do::whole,     Do::sigmoid_of,  Do::tanh_of,      Do::exp_of};
    const Do what = whole_ ? ops[below(8)] : chance(0.5) ? ops[below(7)] : ops[8 + below(3)];
    if (too_large(a, largest(value(a)) * 4 * (what == Do::exp_of ? 50 : 1))) return;
    add({what, {a, -1, -1}, {below(7) - 3}});
  }

  void add_reduction(int a) {
    const Plain& x = value(a);
    if (x.sizes.empty() || count_of(x.sizes) == 0) return;
    constexpr Do ops[] = {Do::sum_over, Do::sum_over, Do::maximum_over, Do::minimum_over};
    if (too_large(a, largest(x) * static_cast<double>(count_of(x.sizes)))) return;
    Sizes dims;
    for (size_t d = 0; d < x.sizes.size(); ++d) {
      if (chance(d == 0 ? 0.6 : 0.4)) dims.push_back(static_cast<int64_t>(d));
    }
    if (dims.empty()) dims.push_back(0);
    add({ops[below(4)], {a, -1, -1}, dims});
  }

  void add_product(int a) {
    if (value(a).sizes.size() != 2) return;
    for (int b = 0; b < static_cast<int>(values_.size()); ++b) {
      const Plain &x = value(a), &y = value(b);
      if (y.sizes.size() != 2 || x.sizes[1] != y.sizes[0] || chance(0.3)) continue;
      if (x.sizes[0] * y.sizes[1] > most || x.sizes[0] * x.sizes[1] * y.sizes[1] > 200000) continue;
      if (too_large(a, largest(x) * largest(y) * static_cast<double>(x.sizes[1]))) return;
      return add({Do::product, {a, b, -1}});
    }
  }

  void add_movement(int a) {
    const Sizes sizes = value(a).sizes;
    if (sizes.empty()) return add({Do::expand_to, {a, -1, -1}, {size(), 2}});
    const int64_t dim = below(static_cast<int>(sizes.size()));
    const int64_t n = sizes[static_cast<size_t>(dim)];
    switch (below(7)) {
      case 0: return add({Do::reshape_to, {a, -1, -1}, other_sizes(sizes)});
      case 1: {
        Sizes order(sizes.size());
        for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
        std::shuffle(order.begin(), order.end(), random_);
        return add({Do::permute_dims, {a, -1, -1}, order});
      }
      case 2: {
        if (n == 0) return;
        const int64_t first = below(static_cast<int>(n)), last = first + 1 + below(static_cast<int>(n - first));
        return add({Do::slice_dim, {a, -1, -1}, {dim, first, last, 1 + below(3)}});
      }
      case 3: return add({Do::flip_dim, {a, -1, -1}, {dim}});
      case 4: return add_expand(a);
      case 5: return count_of(sizes) < most / 2 ? add({Do::pad_dim, {a, -1, -1}, {dim, below(3), below(3)}}) : void();
      default: return count_of(sizes) < most / 2 ? add({Do::concat_dim, {a, a, -1}, {dim}}) : void();
    }
  }

  void add_expand(int a) {
    Sizes sizes = value(a).sizes;
    for (int64_t& size : sizes) {
      if (size == 1 && chance(0.7)) size = 2 + below(4);
    }
    if (sizes.size() < 4 && chance(0.5)) sizes.push_back(3);
    if (count_of(sizes) <= most) add({Do::expand_to, {a, -1, -1}, sizes});
  }

  /// The same number of elements under other sizes.
  Sizes other_sizes(const Sizes& sizes) {
    Sizes result;
    int64_t left = count_of(sizes);
    if (left == 0) return {0, 2};
    for (int64_t factor : {2, 3, 5, 7}) {
      if (left % factor == 0 && chance(0.6)) {
        result.push_back(factor);
        left /= factor;
      }
    }
    result.push_back(left);
    if (chance(0.2)) result.push_back(1);
    std::shuffle(result.begin(), result.end(), random_);
    return result;
  }

  std::mt19937_64 random_;
  bool whole_, images_;
  Program program_;
  std::vector<Plain> values_;
};

std::vector<Plain> plain_values(const Program& program) {
  std::vector<Plain> values = program.inputs;
  for (const Instruction& op : program.instructions) {
    const auto operand = [&](size_t i) -> const Plain& {
      return values[static_cast<size_t>(op.in[i] < 0 ? op.in[0] : op.in[i])];
    };
    values.push_back(apply(op, operand(0), operand(1), operand(2)));
  }
  return values;
}

Array array_of(const Plain& plain) {
  return there(Array(std::vector<float>(plain.x.begin(), plain.x.end()), Shape(plain.sizes)));
}

enum class Way { op_by_op, fused, in_gradient };

/// Runs a program; values that are not held at the end are dropped after their last use and come back as nothing.
std::vector<Array> array_values(const Program& program, Way way, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto chance = [&](double p) { return std::uniform_real_distribution<double>(0, 1)(random) < p; };
  const size_t count = program.inputs.size() + program.instructions.size();
  std::vector<size_t> last_use(count, 0);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    for (int in : program.instructions[i].in) {
      if (in >= 0) last_use[static_cast<size_t>(in)] = i;
    }
  }
  std::vector<char> held(count, 1);
  for (size_t i = 0; i < count && way != Way::op_by_op; ++i) held[i] = i + 3 > count || chance(0.3);
  std::optional<detail::GradientCall> call;
  if (way == Way::in_gradient) call.emplace();
  std::vector<Array> values;
  for (const Plain& input : program.inputs) values.push_back(array_of(input));
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& op = program.instructions[i];
    const auto operand = [&](size_t k) -> const Array& {
      return values[static_cast<size_t>(op.in[k] < 0 ? op.in[0] : op.in[k])];
    };
    values.push_back(apply(op, operand(0), operand(1), operand(2)));
    for (size_t v = 0; v < values.size(); ++v) {
      if (!held[v] && last_use[v] <= i && v + 1 < values.size()) values[v] = Array();
    }
    if (way == Way::op_by_op || chance(0.03)) eval();
    else if (chance(0.03) && values.back().count() > 0) values.back().to_vector();
  }
  eval();
  return values;
}

std::string text_of(const Program& program) {
  std::ostringstream text;
  const std::vector<Plain> values = plain_values(program);
  const auto sizes = [&](const Sizes& list) {
    text << "(";
    for (int64_t size : list) text << size << ",";
    text << ")";
  };
  for (size_t i = 0; i < values.size(); ++i) {
    text << "\n" << i << ": ";
    if (i >= program.inputs.size()) {
      const Instruction& op = program.instructions[i - program.inputs.size()];
      text << "op " << static_cast<int>(op.what) << " of " << op.in[0] << " " << op.in[1] << " " << op.in[2]
           << " with ";
      sizes(op.parameters);
    }
    sizes(values[i].sizes);
  }
  return text.str();
}

/// The first value of `arrays` that is not `wanted` to the last bit (signs of zeros aside), or -1.
int first_wrong(const std::vector<Array>& arrays, const std::vector<Plain>& wanted) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].is_nothing()) continue;
    const std::vector<double> got = arrays[i].to_vector<double>();
    for (size_t k = 0; k < got.size(); ++k) {
      if (!(got[k] == wanted[i].x[k])) return static_cast<int>(i);
    }
  }
  return -1;
}

/// check(seed) for many seeds; for few where kernels are compiled.
void for_seeds(uint64_t first, uint64_t count, const std::function<void(uint64_t)>& check) {
  run_checks(compiles_there() ? count / 50 : count, [&](size_t i) { check(program_seed(first + i)); });
}

TEST(EngineFuzz, ProgramsOnImagesAreExactInEveryWayOfEvaluation) {
  for_seeds(0, 400, [](uint64_t seed) {
    const Program program = Maker(seed, true, true).run(4 + static_cast<int>(seed % 40));
    const std::vector<Plain> wanted = plain_values(program);
    for (Way way : {Way::op_by_op, Way::fused, Way::in_gradient}) {
      for (uint64_t holds = 0; holds < 2; ++holds) {
        const int wrong = first_wrong(array_values(program, way, holds), wanted);
        ASSERT_EQ(wrong, -1) << "seed " << seed << ", way " << static_cast<int>(way) << ", holds " << holds
                             << text_of(program);
      }
    }
  });
}

TEST(EngineFuzz, WholeNumbersAreExactInEveryWayOfEvaluation) {
  for_seeds(0, 400, [](uint64_t seed) {
    const Program program = Maker(seed, true).run(4 + static_cast<int>(seed % 40));
    const std::vector<Plain> wanted = plain_values(program);
    for (Way way : {Way::op_by_op, Way::fused, Way::in_gradient}) {
      for (uint64_t holds = 0; holds < 3; ++holds) {
        const int wrong = first_wrong(array_values(program, way, holds), wanted);
        ASSERT_EQ(wrong, -1) << "seed " << seed << ", way " << static_cast<int>(way) << ", holds " << holds
                             << text_of(program);
      }
    }
  });
}

TEST(EngineFuzz, RealNumbersHaveTheSameBitsFusedAndOpByOp) {
  for_seeds(0, 400, [](uint64_t seed) {
    const Program program = Maker(seed, false).run(4 + static_cast<int>(seed % 40));
    const std::vector<Plain> wanted = plain_values(program);
    const std::vector<Array> alone = array_values(program, Way::op_by_op, 0);
    for (Way way : {Way::fused, Way::in_gradient}) {
      const std::vector<Array> fused = array_values(program, way, seed);
      for (size_t i = 0; i < fused.size(); ++i) {
        if (fused[i].is_nothing()) continue;
        const std::vector<float> got = fused[i].to_vector(), other = alone[i].to_vector();
        ASSERT_EQ(0, got.empty() ? 0 : std::memcmp(got.data(), other.data(), got.size() * sizeof(float)))
            << "seed " << seed << ", value " << i << text_of(program);
        for (size_t k = 0; k < got.size(); ++k) {
          const double error = std::abs(static_cast<double>(got[k]) - wanted[i].x[k]);
          ASSERT_LE(error, 1e-3 * (1 + std::abs(wanted[i].x[k])))
              << "seed " << seed << ", value " << i << text_of(program);
        }
      }
    }
  });
}

/// Whether every value is small enough that sums of a few hundred of them are exact.
bool is_small(const std::vector<Plain>& values) {
  return std::all_of(values.begin(), values.end(), [](const Plain& a) {
    return std::all_of(a.x.begin(), a.x.end(), [](double x) { return std::abs(x) < 10000; });
  });
}

TEST(EngineFuzz, ACachedPlanIsRightForOtherNumbers) {
  for_seeds(1000, 100, [](uint64_t seed) {
    Program program = Maker(seed, true).run(20);
    for (double shift : {0.0, 1.0, -3.0}) {
      for (Plain& input : program.inputs) {
        for (double& x : input.x) x = std::min(x + shift, 4.0);
      }
      const std::vector<Plain> wanted = plain_values(program);
      if (!is_small(wanted)) continue;
      ASSERT_EQ(first_wrong(array_values(program, Way::fused, seed), wanted), -1)
          << "seed " << seed << text_of(program);
    }
  });
}

}  // namespace
}  // namespace rosin
