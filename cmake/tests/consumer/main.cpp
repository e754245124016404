// Uses the installed library as a user does: a model of its own, one training step, a file. Prints the size of the
// result of a product, 12, and whether the file came back.
#include <cstdio>

#include <rosin/rosin.hpp>

struct Model {
  rosin::Dense hidden{3, 8, rosin::relu};
  rosin::Dense out{8, 2};
  rosin::Array operator()(const rosin::Array& x) const { return out(hidden(x)); }
};

rosin::Dense global{3, 2};  // made before main: the library must be ready by then

int main() {
  using namespace rosin;
  Model model, other;
  const Array x = ones({3, 6}), y = zeros({2, 6});
  auto state = setup(Adam{}, model);
  const auto [loss, grad] = withgradient([&](const Model& m) { return mse(m(x), y); }, model);
  update(state, model, grad);
  save("consumer.safetensors", model);
  load("consumer.safetensors", other);
  const bool equal = all(model(x) == other(x)).item<bool>() && global(x).count() == 12;
  std::printf("%lld %s\n", static_cast<long long>(other(x).count()), equal ? "equal" : "different");
}
