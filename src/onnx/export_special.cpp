// Special functions in ops of the format, which has none: computed in Float64, as their series lose digits.
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <span>

#include "onnx/exports.hpp"
#include "ops/math_erfinv.hpp"

namespace rosin::onnx {
namespace {

/// A Float64 value of the file.
struct Term {
  const NodeWriting* node;
  std::string name;

  Term made(std::string_view op) const { return {node, node->add(op, {name})}; }
  Term made(std::string_view op, const Term& other) const { return {node, node->add(op, {name, other.name})}; }
  Term number(double value) const { return {node, node->file.number(Float64, value)}; }
};

Term operator+(const Term& a, const Term& b) { return a.made("Add", b); }
Term operator+(const Term& a, double b) { return a + a.number(b); }
Term operator-(const Term& a, const Term& b) { return a.made("Sub", b); }
Term operator-(const Term& a, double b) { return a - a.number(b); }
Term operator*(const Term& a, const Term& b) { return a.made("Mul", b); }
Term operator*(const Term& a, double b) { return a * a.number(b); }
Term operator/(double a, const Term& b) { return b.number(a).made("Div", b); }
Term operator/(const Term& a, const Term& b) { return a.made("Div", b); }
Term chosen(const Term& condition, const Term& a, const Term& b) {
  return {a.node, a.node->add("Where", {condition.name, a.name, b.name})};
}

Term operand(const NodeWriting& node) { return {&node, node.in(0, Float64)}; }
/// In the type that the op computes in.
std::string result(NodeWriting& node, const Term& x) { return node.file.cast(x.name, node.computed()); }

Term polynomial(const Term& x, std::span<const double> c) {
  Term sum = x.number(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

/// An argument of at least 1/2, and one of at least 8 that is it or eight more, as series need it.
struct Shifted {
  Term x, is_small, small, large;
};

Shifted shifted(const Term& x) {
  const Term is_small = x.made("Less", x.number(8));
  return {x, is_small, chosen(is_small, x, x.number(1)), chosen(is_small, x + 8, x)};
}

/// The sum of 1/x^power for the eight arguments that were passed over; 0 where there are none.
Term passed_over(const Shifted& s, int power) {
  Term sum = s.is_small.number(0);
  for (int k = 0; k < 8; ++k) {
    const Term at = s.small + k;
    sum = sum + 1 / (power == 1 ? at : at * at);
  }
  return chosen(s.is_small, sum, sum.number(0));
}

/// What follows from 1 - x where x is below 1/2, and the sine and cosine of pi times x up to a common sign.
struct Reflected {
  Term is_below, above, sine, cosine;
};

Reflected reflected(const Term& x) {
  const Term is_below = x.made("Less", x.number(0.5)), angle = (x - x.made("Round")) * std::numbers::pi;
  return {is_below, chosen(is_below, x.number(1) - x, x), angle.made("Sin"), angle.made("Cos")};
}

constexpr double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66};  // B(2), B(4), ...

/// Stirling's series and its derivatives, of 1/x^2: the factors are B(2k) / divisor(2k).
Term series(const Term& z, double (*divisor)(double k)) {
  double factors[std::size(bernoulli)];
  for (size_t i = 0; i < std::size(bernoulli); ++i) factors[i] = bernoulli[i] / divisor(2 * static_cast<double>(i + 1));
  return polynomial(z, factors);
}

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::string lgamma_out(NodeWriting& node) {
  const Term x = operand(node);
  const Reflected r = reflected(x);
  const Shifted s = shifted(r.above);
  Term product = s.small;
  for (int k = 1; k < 8; ++k) product = product * (s.small + k);
  const Term inverse = 1 / s.large, logarithm = s.large.made("Log");
  const Term line = (s.large - 0.5) * (logarithm - 1) + (0.5 * std::log(2 * std::numbers::pi) - 0.5);
  const Term large = line + inverse * series(inverse * inverse, [](double k) { return k * (k - 1); });
  const Term above = large - chosen(s.is_small, product.made("Log"), x.number(0));
  const Term below = (std::numbers::pi / r.sine.made("Abs")).made("Log") - above;
  const Term is_infinite = x.made("Abs").made("Equal", x.number(infinity));
  return result(node, chosen(is_infinite, x.number(infinity), chosen(r.is_below, below, above)));
}

std::string digamma_out(NodeWriting& node) {
  const Term x = operand(node);
  const Reflected r = reflected(x);
  const Shifted s = shifted(r.above);
  const Term inverse = 1 / s.large, z = inverse * inverse;
  const Term large = s.large.made("Log") - inverse * 0.5 - z * series(z, [](double k) { return k; });
  const Term above = large - passed_over(s, 1);
  const Term is_pole = r.sine.made("Equal", x.number(0));
  const Term turn = chosen(is_pole, x.number(nan), r.cosine / r.sine * std::numbers::pi);
  return result(node, chosen(r.is_below, above - turn, above));
}

std::string trigamma_out(NodeWriting& node) {
  const Term x = operand(node);
  const Reflected r = reflected(x);
  const Shifted s = shifted(r.above);
  const Term inverse = 1 / s.large, z = inverse * inverse;
  const Term large = inverse + z * 0.5 + inverse * z * series(z, [](double) { return 1.0; });
  const Term above = large + passed_over(s, 2), pole = std::numbers::pi / r.sine;
  return result(node, chosen(r.is_below, pole * pole - above, above));
}

/// As accurate as Float32.
std::string erfinv_out(NodeWriting& node) {
  const Term x = operand(node), one = x.number(1), w = ((one - x) * (x + 1)).made("Log").made("Neg");
  const Term near = polynomial(w - 2.5, math::erfinv_near), far = polynomial(w.made("Sqrt") - 3, math::erfinv_far);
  const Term inside = chosen(w.made("Less", x.number(5)), near, far);
  const Term is_pole = x.made("Abs").made("Equal", one);
  return result(node, x * chosen(is_pole, x.number(infinity), inside));
}

}  // namespace rosin::onnx
