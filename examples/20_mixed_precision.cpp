// 20: products in a half type beside Float32 parameters, and a loss scale that finds itself, which Float16 needs.
// Last line: both half types learn as Float32 does: yes
#include <rosin/rosin.hpp>

#include <cmath>
#include <iostream>

using namespace rosin;

/// The loss after 200 steps.
double trained(DType type) {
  seed(7);
  const Array x = rand({2, 256}) * 2 - 1, y = sin(3 * slice(x, 0, 0, 1)) * slice(x, 0, 1, 2);
  Chain model(Dense(2, 64, tanh), LayerNorm(64), Dense(64, 64, tanh), Dense(64, 1));
  const Adam rule{.eta = 3e-3};
  State state = type == Float16 ? setup(LossScale{rule, {.init = 0x1p30}}, model) : setup(rule, model);
  const auto loss = [&](const Chain& m) {
    const auto scope = type == Float32 ? autocast(nothing) : autocast(type);
    return mse(m(x), y);  // products in the half type, LayerNorm and the loss in Float32
  };
  for (int step = 0; step < 200; ++step) {
    update(state, model, gradient([&](const Chain& m) { return scaled_loss(state, loss(m)); }, model));
  }
  if (type == Float16) {
    const LossScaleStatus now = loss_scale(state);
    std::cout << "the scale fell to " << now.scale << ", " << now.skipped << " steps were skipped\n";
  }
  return loss(model).item();
}

int main() {
  const double exact = trained(Float32), brain = trained(BFloat16), half = trained(Float16);
  std::cout << "losses: " << exact << " in Float32, " << brain << " in BFloat16, " << half << " in Float16\n";
  const bool near = std::abs(brain - exact) < 0.01 && std::abs(half - exact) < 0.01;
  std::cout << "both half types learn as Float32 does: " << (near ? "yes" : "no") << "\n";
}
