// 15: learns y = x^3 from 16 points, with the training loop that several processes will share; here it is one.
// Last line: the last loss is below half of the first: yes
#include <rosin/rosin.hpp>

#include <cstdio>

using namespace rosin;

int main() {
  seed(1);
  allowscalar(false);  // reading one element of a device array is a copy each: an error, as it is by default
  Chain model = Chain(Dense(1, 256, tanh), Dense(256, 1)) | gpu;
  std::printf("%s\n", to_string(model).c_str());

  const Array x = rand({1, 16}) | gpu;
  const Array y = pow(x, 3);
  std::printf("%lld points on %s\n", static_cast<long long>(x.count()), to_string(x.device()).c_str());

  auto state = setup(Adam{.eta = 1e-3}, model);
  const auto loss = [&](const Chain& m) {
    const Array wrong = m(x) - y;
    return mean(wrong * wrong);
  };
  double first = 0, last = 0;
  for (int epoch = 1; epoch <= 100; ++epoch) {
    auto [value, grad] = withgradient(loss, model);
    update(state, model, grad);
    last = value.item();
    if (epoch == 1) first = last;
    if (epoch <= 3 || epoch % 25 == 0) std::printf("Epoch %d: Loss %g\n", epoch, last);
  }
  std::printf("the last loss is below half of the first: %s\n", last < first / 2 ? "yes" : "no");
}
