// 09: a small convolutional network on pictures (width, height, channels, batch), in training and in test mode.
// Last line: more than eight of ten right: yes
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

int main() {
  seed(1);
  const auto [images, labels] = image_arrays(draw_digits(4000, 1));
  Chain model(Conv({5, 5}, 1, 8, relu), MaxPool(2), Conv({3, 3}, 8, 16, relu), MaxPool(2), flatten, Dropout(0.2),
              Dense(400, 10));
  std::cout << show(model) << "\n";

  auto state = setup(OptimiserChain(WeightDecay{1e-4}, Adam{2e-3}), model);
  DataLoader loader(std::tuple{images, onehotbatch(labels, 10)}, {.batchsize = 50, .shuffle = true});
  for (int epoch = 0; epoch < 3; ++epoch) {
    double total = 0;
    for (auto [x, y] : loader) {
      auto [loss, grad] = withgradient([&](const Chain& m) { return logitcrossentropy(m(x), y); }, model);
      update(state, model, grad);
      total += loss.item();
    }
    std::cout << "epoch " << epoch << ": loss " << total / static_cast<double>(loader.size()) << "\n";
  }

  // Outside a gradient call dropout is the identity.
  const auto [other_images, other_labels] = image_arrays(draw_digits(1000, 2));
  const double right = mean(onecold(model(other_images)) == other_labels).item();
  std::cout << "accuracy " << right << "\n";
  std::cout << "more than eight of ten right: " << (right > 0.8 ? "yes" : "no") << "\n";
}
