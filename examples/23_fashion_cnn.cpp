// 23: a convolutional network with augmentation: example_23_fashion_cnn [folder of Fashion-MNIST [epochs]].
// Last line: nine of ten test pictures or more: yes
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

int main(int argc, char** argv) {
  seed(3);
  ImageFolder pictures;
  if (argc > 1) pictures = read_image_folder(argv[1]);
  else pictures = {draw_digits(2000, 1), draw_digits(300, 2)};
  const bool drawn = argc <= 1;
  const auto [images, labels] = image_arrays(pictures.train);
  const auto [test_images, test_labels] = image_arrays(pictures.test);
  const int64_t epochs = argc > 2 ? std::stol(argv[2]) : drawn ? 6 : 15, batchsize = drawn ? 32 : 128;

  const Device device = get_device();
  const auto augmented = [drawn](std::tuple<Array, Array> batch) {
    auto& [x, y] = batch;
    x = random_crop(x, 28, 28, 2);
    if (!drawn) x = random_flip(x);
    return batch;
  };
  auto loader = DataLoader(mapobs(augmented, std::tuple{images, labels}),
                           {.batchsize = batchsize, .shuffle = true, .num_workers = 2}) |
                device;
  const int64_t width = drawn ? 16 : 32;
  const auto convolution = [](int64_t out) {
    return [out](int64_t in) { return Conv({3, 3}, in, out, {.pad = 1, .bias = false}); };
  };
  const auto norm = [](int64_t in) { return BatchNorm(in, relu); };
  const auto dense = [](int64_t out) { return [out](int64_t in) { return Dense(in, out, relu); }; };
  Chain model = autosize({28, 28, 1, 1}, {convolution(width), norm, MaxPool(2), convolution(2 * width), norm,
                                          convolution(2 * width), norm, MaxPool(2), flatten, dense(4 * width),
                                          Dropout(0.3), [](int64_t in) { return Dense(in, 10); }}) |
                device;
  const int64_t steps = epochs * static_cast<int64_t>(loader.size());
  State state = setup(Scheduler(OneCycleRate{.peak = 5e-3, .steps = steps}, AdamW{.lambda = 1e-2}), model);
  const auto loss = [](const Chain& m, const Array& x, const Array& y) { return labelcrossentropy(m(x), y); };
  ProgressBar bar(epochs, static_cast<int64_t>(loader.size()), stderr, batchsize);
  for (int64_t epoch = 0; epoch < epochs; ++epoch) train(loss, model, loader, state, bar);

  metrics::Accuracy accuracy;
  for (auto [x, y] : DataLoader(std::tuple{test_images, test_labels}, {.batchsize = 250}) | device)
    accuracy.add(model(x), y);
  std::cout << "test accuracy: " << accuracy.value() << "\n";
  std::cout << "nine of ten test pictures or more: " << (accuracy.value() >= 0.9 ? "yes" : "no") << "\n";
}
