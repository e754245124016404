// 02: gradients. Of numbers, arrays and models; gradients of gradients.
// Last line: slope at 2 is 12, curvature 12
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

struct Line {
  Array slope = 0.5f;
  Array height = 1.0f;
  Array operator()(const Array& x) const { return slope * x + height; }
};

int main() {
  // Several arguments give a tuple.
  const auto [da, db, dc] = gradient([](const Array& a, const Array& b, const Array& c) { return a * b * c; }, 2, 3, 5);
  std::cout << "of a*b*c: " << da << " " << db << " " << dc << "\n";

  // The gradient of a model has the model's own type.
  const Line line;
  const Array x({1.0f, 2.0f, 3.0f}, {3}), y({2.0f, 4.0f, 6.0f}, {3});
  const auto [loss, grad] = withgradient([&](const Line& m) { return mse(m(x), y); }, line);
  std::cout << "loss " << loss << ", by slope " << grad.slope << ", by height " << grad.height << "\n";

  // A gradient may be differentiated again.
  const auto cube = [](const Array& v) { return v * v * v; };
  const auto slope = [&](const Array& v) { return gradient(cube, v); };
  const Array two = 2.0;
  std::cout << "slope at 2 is " << slope(two).item() << ", curvature " << gradient(slope, two).item() << "\n";
}
