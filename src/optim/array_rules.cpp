// Rules of whole arrays: see rosin/array_rules.hpp.
#include <rosin/array_rules.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "optim/numbers.hpp"

namespace rosin {
namespace {

Array running(double weight, const Array& old, const Array& now) {
  return number(weight) * old + number(1 - weight) * now;
}

/// m/(1 - power[0]) / (sqrt(v/(1 - power[1])) + epsilon), once g is taken in.
Array adam_step(Moments& state, const Array& g, const std::array<double, 2>& beta, double epsilon) {
  state.m = running(beta[0], state.m, g);
  state.v = running(beta[1], state.v, square(g));
  const int64_t t = counted(state.t);
  Step& step = Step::of_thread();
  const double first = 1 - step.power(beta[0], t), second = 1 - step.power(beta[1], t);
  return state.m / number(first) / (sqrt(state.v / number(second)) + number(epsilon_of(g, epsilon)));
}

double machine_epsilon(DType type) {
  return type == Float64   ? std::numeric_limits<double>::epsilon()
         : type == Float32 ? std::numeric_limits<float>::epsilon()
         : type == Float16 ? 0x1p-10
                           : 0x1p-7;
}

Array root_mean_square(const Array& x) { return sqrt(mean(square(x))); }

}  // namespace

Moments Lamb::init(const Array& x) const { return {zeros_like(x), zeros_like(x), counter(0)}; }
Array Lamb::apply(Moments& state, const Array& x, const Array& g) const {
  const Array r = adam_step(state, g, beta, epsilon) + number(lambda) * x;
  const Array length = norm(x), wanted = norm(r);
  const Array known = logical_and(gt(length, 0), gt(wanted, 0));
  const Array ratio = where(known, length / where(known, wanted, 1), 1);
  return number(eta) * ratio * r;
}

Adafactor::State Adafactor::init(const Array& x) const {
  if (x.rank() < 2) return {{}, {}, zeros_like(x), counter(0)};
  return {zeros_like(slice(x, 1, 0, 1)), zeros_like(slice(x, 0, 0, 1)), {}, counter(0)};
}

Array Adafactor::apply(State& state, const Array& x, const Array& g) const {
  const auto t = static_cast<double>(counted(state.t));
  const double kept = 1 - std::pow(t, decay), least = machine_epsilon(x.dtype());
  Array v;
  if (x.rank() < 2) {
    v = state.v = running(kept, state.v, square(g));
  } else {
    state.rows = running(kept, state.rows, mean(square(g), 1));
    state.columns = running(kept, state.columns, mean(square(g), 0));
    v = state.rows * state.columns / max(mean(state.rows, 0), least);
  }
  const Array u = g * rsqrt(max(v, least * least));
  const Array size = max(number(epsilon), root_mean_square(x)) * number(std::min(eta, 1 / std::sqrt(t)));
  const Array d = size * u / max(root_mean_square(u) / number(clip), 1);
  return lambda == 0 ? d : d + number(lambda * eta) * x;
}

namespace {

/// a with its singular values near 1, for a that has no more rows than columns.
Array orthogonalised(const Array& matrix, int64_t iterations) {
  Array a = matrix / max(norm(matrix), number(1e-7));
  for (int64_t i = 0; i < iterations; ++i) {
    const Array square = matmul(a, transpose(a));
    const Array odd = number(-4.7750) * square + number(2.0315) * matmul(square, square);
    a = number(3.4445) * a + matmul(odd, a);
  }
  return a;
}

/// The matrix that Muon sees in an array: its last dim stays.
Array as_matrix(const Array& x) { return x.rank() == 2 ? x : reshape(x, {-1, x.size(-1)}); }

}  // namespace

void Muon::check() const {
  if (iterations >= 1) return;
  throw Error(ErrorKind::argument,
              "Muon: it needs an iteration at least; got " + std::to_string(iterations) + "; the default is 5");
}

Moments Muon::init(const Array& x) const { return {zeros_like(x), x.rank() < 2 ? zeros_like(x) : Array(), counter(0)}; }

Array Muon::apply(Moments& state, const Array& x, const Array& g) const {
  if (x.rank() < 2) {
    return number(vector_eta) * (adam_step(state, g, beta, epsilon) + number(lambda) * x);
  }
  counted(state.t);
  state.m = running(rho, state.m, g);
  const Array matrix = as_matrix(nesterov ? running(rho, state.m, g) : state.m);
  const bool tall = matrix.size(0) > matrix.size(1);
  const Array wide = orthogonalised(tall ? transpose(matrix) : matrix, iterations);
  const Array o = reshape(tall ? transpose(wide) : wide, x.shape());
  const double ratio = static_cast<double>(matrix.size(0)) / static_cast<double>(matrix.size(1));
  return number(eta) * (number(std::sqrt(std::max(1.0, ratio))) * o + number(lambda) * x);
}

namespace detail {

bool is_turn(Array& count, int64_t every) { return counted(count) % every == 0; }
int64_t next_count(Array& count) { return counted(count); }
Array new_count() { return counter(0); }

Array between(const Array& old, const Array& now, double share) {
  if (!is_float(now.dtype()) && !is_complex(now.dtype())) return now;
  return old + (now - old) * share;
}

void refuse_average(const char* rule, const char* what) {
  throw Error(ErrorKind::argument, std::string(rule) + ": " + what);
}

}  // namespace detail

}  // namespace rosin
