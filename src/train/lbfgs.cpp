// L-BFGS and its line search: see rosin/lbfgs.hpp.
#include <rosin/lbfgs.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

constexpr double sufficient = 1e-4, curvature = 0.9;  // Wolfe's c1 and c2
constexpr int64_t most_trials = 25;                   // of a line search after the first
constexpr double least_curvature = 1e-10;             // of a change that is remembered

double product(const Array& a, const Array& b) { return sum(a * b).item<double>(); }
double largest(const Array& x) { return x.count() == 0 ? 0 : maximum(abs(x)).item<double>(); }

/// The loss along the direction, at x + t * d.
struct Trial {
  double t = 0, loss = 0, slope = 0;
  Array gradient;
};

/// Where the cubic through two trials is least, within bounds.
double cubic(const Trial& a, const Trial& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t), square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double least = a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                                  : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(least, low), high);
}

class LineSearch {
 public:
  LineSearch(const detail::LossOfVector& loss, const Array& x, const Array& direction, Trial start, double tolerance,
             int64_t evaluations_left)
      : loss_(loss), x_(x), direction_(direction), start_(std::move(start)),
        most_(std::min(most_trials, evaluations_left)), tolerance_(tolerance / std::max(largest(direction), 1e-300)) {}

  int64_t evaluations() const noexcept { return evaluations_; }

  Trial run(double first) {
    std::array<Trial, 2> bracket{start_, tried(first)};
    int64_t trials = 0;
    for (; trials < most_; ++trials) {
      const Trial& now = bracket[1];
      if (too_high(now) || (trials > 1 && now.loss >= bracket[0].loss)) break;
      if (flat_enough(now)) return now;
      if (now.slope >= 0) break;
      const double low = now.t + 0.01 * (now.t - bracket[0].t), high = 10 * now.t;
      const double next = cubic(bracket[0], now, low, high);
      bracket = {now, tried(next)};
    }
    if (trials == most_) bracket[0] = start_;
    return zoomed(std::move(bracket), trials);
  }

 private:
  bool too_high(const Trial& now) const { return !(now.loss <= start_.loss + sufficient * now.t * start_.slope); }
  bool flat_enough(const Trial& now) const { return std::abs(now.slope) <= -curvature * start_.slope; }

  Trial tried(double t) {
    ++evaluations_;
    auto [loss, gradient] = loss_(x_ + t * direction_);
    const double slope = product(gradient, direction_);
    return {t, loss, slope, std::move(gradient)};
  }

  /// A place inside the bracket, away from its ends unless they were approached before.
  double inner(const std::array<Trial, 2>& bracket, bool& stuck) const {
    const double low = std::min(bracket[0].t, bracket[1].t), high = std::max(bracket[0].t, bracket[1].t);
    const double t = cubic(bracket[0], bracket[1], low, high), edge = 0.1 * (high - low);
    const bool near = std::min(high - t, t - low) < edge, at_end = stuck || t >= high || t <= low;
    stuck = near && !at_end;
    if (!near || !at_end) return t;
    return std::abs(t - high) < std::abs(t - low) ? high - edge : low + edge;
  }

  Trial zoomed(std::array<Trial, 2> bracket, int64_t trials) {
    bool stuck = false;
    size_t low = bracket[0].loss <= bracket[1].loss ? 0 : 1;
    for (; trials < most_ && std::abs(bracket[1].t - bracket[0].t) >= tolerance_; ++trials) {
      Trial now = tried(inner(bracket, stuck));
      Trial& best = bracket[low];
      Trial& other = bracket[1 - low];
      if (too_high(now) || now.loss >= best.loss) {
        other = std::move(now);
        low = bracket[0].loss <= bracket[1].loss ? 0 : 1;
        continue;
      }
      if (flat_enough(now)) return now;
      if (now.slope * (other.t - best.t) >= 0) other = best;
      best = std::move(now);
    }
    return bracket[low];
  }

  const detail::LossOfVector& loss_;
  const Array& x_;
  const Array& direction_;
  Trial start_;
  int64_t most_;      // trials after the first
  double tolerance_;  // of t
  int64_t evaluations_ = 0;
};

/// What is known of the curvature: changes of the parameters and of the gradient.
class History {
 public:
  explicit History(int64_t most) : most_(static_cast<size_t>(most)) {}

  void add(const Array& step, const Array& change) {
    const double along = product(change, step);
    if (!(along > least_curvature)) return;
    if (pairs_.size() == most_) pairs_.pop_front();
    pairs_.push_back({step, change, 1 / along});
    scale_ = along / product(change, change);
  }
  /// Minus the estimated inverse Hessian times the gradient, by the two-loop recursion.
  Array direction(const Array& gradient) const {
    Array q = -gradient;
    std::vector<double> shares(pairs_.size());
    for (size_t i = pairs_.size(); i-- > 0;) {
      shares[i] = pairs_[i].inverse * product(pairs_[i].step, q);
      q = q - shares[i] * pairs_[i].change;
    }
    q = q * scale_;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      q = q + (shares[i] - pairs_[i].inverse * product(pairs_[i].change, q)) * pairs_[i].step;
    }
    return q;
  }

 private:
  struct Pair {
    Array step, change;
    double inverse;
  };
  size_t most_;
  std::deque<Pair> pairs_;
  double scale_ = 1;
};

void check(const LbfgsOptions& options) {
  if (options.iterations >= 0 && options.history >= 1 && options.eta > 0 && options.evaluations >= 0) return;
  throw Error(ErrorKind::argument,
              "lbfgs: iterations and evaluations are 0 or more, history 1 or more, eta above 0; got " +
                  std::to_string(options.iterations) + ", " + std::to_string(options.evaluations) + ", " +
                  std::to_string(options.history) + " and " + std::to_string(options.eta));
}

}  // namespace

LbfgsResult detail::lbfgs(const LossOfVector& loss, Array& x, const LbfgsOptions& options) {
  check(options);
  auto [value, gradient] = loss(x);
  if (!std::isfinite(value)) {
    throw Error(ErrorKind::numeric,
                "lbfgs: the loss of the first model is " + std::to_string(value) + "; begin with another one");
  }
  LbfgsResult result{value, 0, 1};
  const int64_t evaluations = options.evaluations > 0 ? options.evaluations : options.iterations * 5 / 4;
  History history(options.history);
  while (result.iterations < options.iterations && largest(gradient) > options.gradient_tolerance) {
    const Array direction = history.direction(gradient);
    const double slope = product(gradient, direction);
    if (slope > -options.change_tolerance) break;
    const double first = result.iterations == 0 ? std::min(1.0, 1 / sum(abs(gradient)).item<double>()) : 1;
    LineSearch search(loss, x, direction, {0, result.loss, slope, gradient}, options.change_tolerance,
                      evaluations - result.evaluations);
    const Trial found = search.run(first * options.eta);
    const Array step = found.t * direction;
    history.add(step, found.gradient - gradient);
    const double change = std::abs(found.loss - result.loss);
    x = x + step;
    gradient = found.gradient;
    result = {found.loss, result.iterations + 1, result.evaluations + search.evaluations()};
    const bool stands = largest(step) <= options.change_tolerance || change < options.change_tolerance;
    if (stands || result.evaluations >= evaluations) break;
  }
  eval(x);
  return result;
}

}  // namespace rosin
