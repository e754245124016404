// 24: a variational autoencoder: example_24_vae [folder of MNIST [epochs]]. The bound on the likelihood is the loss.
// Last line: the bound rose in every third of the training: yes
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

constexpr int64_t hidden = 128, latent = 8;

struct Vae {
  Dense in{784, hidden, relu}, mean{hidden, latent}, logvar{hidden, latent};
  Chain decoder{Dense(latent, hidden, relu), Dense(hidden, 784)};

  /// The evidence lower bound of pictures x (784, batch), in nats for a picture, and its two parts.
  std::tuple<Array, Array, Array> operator()(const Array& x) const {
    const Array h = in(x), mu = mean(h), spread = logvar(h);
    const Array z = mu + exp(0.5 * spread) * randn(mu.shape(), ArrayOptions(mu.device()));
    const auto batch = static_cast<double>(x.size(1));
    const Array likelihood =
        -logitbinarycrossentropy(decoder(z), x, {.agg = [](const Array& l) { return sum(l); }}) / batch;
    const Array divergence = 0.5 * sum(square(mu) + exp(spread) - 1 - spread) / batch;
    return {likelihood - divergence, likelihood, divergence};
  }
};

int main(int argc, char** argv) {
  seed(4);
  const LabelledImages pictures = argc > 1 ? read_image_folder(argv[1]).train : draw_digits(1500, 1);
  const int64_t epochs = argc > 2 ? std::stol(argv[2]) : argc > 1 ? 10 : 6;
  const Device device = get_device();
  auto loader = DataLoader(flatten(image_arrays(pictures).images), {.batchsize = 64, .shuffle = true}) | device;

  Vae model = Vae{} | device;
  State state = setup(Adam{.eta = 2e-3}, model);
  const auto loss = [](const Vae& m, const Array& x) {
    const auto [bound, likelihood, divergence] = m(x);
    return std::tuple(-bound, likelihood, divergence);
  };
  std::vector<double> bounds;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    metrics::Mean bound, divergence;
    train(loss, model, loader, state, [&](const TrainStep& step, const auto& value) {
      bound.add(-step.loss);
      divergence.add(std::get<2>(value));
    });
    bounds.push_back(bound.value());
    std::cout << "epoch " << epoch + 1 << ": bound " << bound.value() << ", of that divergence " << divergence.value()
              << "\n";
  }
  const Array pictures_drawn = sigmoid(model.decoder(randn({latent, 1}, ArrayOptions(device))));
  for (int64_t y = 0; y < 28; y += 2) {
    for (int64_t x = 0; x < 28; ++x)
      std::cout << " .:*#"[static_cast<int>(cpu(pictures_drawn).item(x + 28 * y, 0) * 4.99)];
    std::cout << "\n";
  }
  const size_t third = bounds.size() / 3;
  const bool rose =
      third > 0 && bounds[third] > bounds[0] && bounds[2 * third] > bounds[third] && bounds.back() > bounds[2 * third];
  std::cout << "the bound rose in every third of the training: " << (rose ? "yes" : "no") << "\n";
}
