// 13: training with data that is moved to the device: batch by batch, or all at once.
// Last line: four ways gave the same batches, and more than nine of ten were right: yes
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

using Batch = std::tuple<Array, Array>;

// The sum of all that a loader gives in an epoch, and whether all of it was on the device.
template <class Batches> double total(Batches&& batches, const Device& device) {
  double found = 0;
  for (auto [x, y] : batches) {
    if (x.device() != device || y.device() != device) return -1;
    found += sum(x * sum(y * y, 0)).item();
  }
  return found;
}

int main() {
  seed(1);
  const Device device = gpu_device();
  std::cout << "training on " << device << "\n";
  const auto [images, labels] = image_arrays(draw_digits(2000, 1));
  const Array X = flatten(images), Y = onehotbatch(labels, 10);
  const LoaderOptions options{.batchsize = 64, .rng = Rng(3)};

  // Move each batch of a loader; move each batch when it is read; move each batch of any range; move all, then cut.
  DataLoader plain(Batch{X, Y}, options);
  auto moved = plain | device;
  DataLoader mapped(mapobs(device, Batch{X, Y}), options);
  DeviceIterator iterated(device, plain);
  DataLoader there(Batch{X, Y} | device, options);
  const double sums[] = {total(moved, device), total(mapped, device), total(iterated, device), total(there, device)};
  bool equal = sums[0] > 0;
  for (double each : sums) equal = equal && each == sums[0];

  auto model = Chain(Dense(784, 64, relu), Dense(64, 10)) | device;
  auto state = setup(Adam{.eta = 3e-3}, model);
  auto loader = DataLoader(Batch{X, Y}, {.batchsize = 64, .shuffle = true}) | device;
  for (int epoch = 0; epoch < 6; ++epoch) {
    for (auto [x, y] : loader) {
      auto [loss, grad] = withgradient([&](const auto& m) { return logitcrossentropy(m(x), y); }, model);
      update(state, model, grad);
    }
  }
  const double right = mean(onecold(model(X | device)) == (labels | device)).item();
  std::cout << "accuracy " << right << " on the training data\n";
  std::cout << "four ways gave the same batches, and more than nine of ten were right: "
            << (equal && right > 0.9 ? "yes" : "no") << "\n";
}
