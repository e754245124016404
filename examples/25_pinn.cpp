// 25: a network that solves a differential equation, u'' = -pi^2 sin(pi x) with u(0) = u(1) = 0, whose solution is
// sin(pi x). Second derivatives come from gradients of gradients at each point, which vmap takes for all at once.
// Last line: largest error at most 1e-3: yes
#include <rosin/rosin.hpp>

#include <iostream>
#include <numbers>

using namespace rosin;

struct Solution {
  Dense first{1, 16, tanh}, second{16, 16, tanh}, last{16, 1};

  /// x (1) or (1, points); the boundary values hold for any weights.
  Array operator()(const Array& x) const { return x * (1 - x) * last(second(first(x))); }
};

/// u'' at x (1).
Array curvature(const Solution& u, const Array& x) {
  const auto slope = [&](const Array& at) { return sum(gradient([&](const Array& y) { return sum(u(y)); }, at)); };
  return gradient(slope, x);
}

int main() {
  seed(5);
  const double pi = std::numbers::pi;
  const Array points = reshape(linspace(0, 1, 33), {1, 33}), wanted = -pi * pi * sin(pi * points);
  const auto residual = [&](const Solution& u) {
    return mean(square(vmap([&](const Array& x) { return curvature(u, x); }, points) - wanted));
  };
  Solution model;
  State state = setup(Adam{}, model);
  const CosineRate rate{.start = 1e-2, .end = 1e-4, .steps = 1500};
  for (int64_t step = 0; step < 1500; ++step) {
    adjust(state, rate(step));
    const auto [loss, grad] = withgradient(residual, model);
    update(state, model, grad);
    if (step % 300 == 0) std::cout << "step " << step << ": residual " << loss.item() << "\n";
  }
  const Array between = reshape(linspace(0, 1, 200), {1, 200});
  const double error = maximum(abs(model(between) - sin(pi * between))).item();
  std::cout << "largest error " << error << "\n";
  std::cout << "largest error at most 1e-3: " << (error <= 1e-3 ? "yes" : "no") << "\n";
}
