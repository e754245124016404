// 04: models. Plain structs, vectors and chains of layers; what can be asked of them.
// Last line: 61 parameters, 61 after the change, 0 of them in common
#include <rosin/rosin.hpp>

#include <iostream>
#include <vector>

using namespace rosin;

struct Tower {
  std::vector<Dense> layers = {Dense(4, 5, tanh), Dense(5, 5, tanh)};
  Chain head = Chain(Dense(5, 1), sigmoid);
  double scale = 2;

  Array operator()(Array x) const {
    for (const Dense& layer : layers) x = layer(x);
    return scale * head(x);
  }
};

int main() {
  const Tower model;
  std::cout << show(model) << "\n";
  std::cout << "result " << model(rand({4, 3})).shape().count() << " numbers\n";

  // Every trained array with its path, as in files.
  for (const auto& [name, value] : named_trainables(model))
    std::cout << name << " " << to_string(value.shape()) << "\n";

  // fmap maps every array and leaves the rest of the struct as it is; clone gives arrays of its own.
  const Tower half = fmap([](const Array& x) { return x / 2; }, model);
  const Tower copy = clone(model);
  int common = 0;
  const auto before = trainables(model), after = trainables(copy);
  for (size_t i = 0; i < before.size(); ++i) common += same(before[i], after[i]);
  std::cout << parameter_count(model) << " parameters, " << parameter_count(half) << " after the change, " << common
            << " of them in common\n";
}
