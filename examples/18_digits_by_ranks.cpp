// 18: several processes learn to read digits: each takes its part of every batch, running statistics are averaged, and
// the test images are shared out. Run it as `rosin run -n 2 example_18_digits_by_ranks FOLDER` with a folder that has
// MNIST's four idx files; without a folder the digits are some that rosin draws.
// Last line: the ranks have one network, and it reads most of the digits: yes
#include <rosin/rosin.hpp>

#include <exception>
#include <iostream>
#include <tuple>

using namespace rosin;

int run(const ImageFolder& folder) {
  const auto backend = distributed::get_distributed_backend();
  const bool tells = distributed::local_rank(backend) == 0;
  const ImageArrays train = image_arrays(folder.train), test = image_arrays(folder.test);
  if (tells) std::cout << folder.train.count << " images, " << distributed::total_workers(backend) << " ranks\n";

  seed(1);
  Chain model(flatten, Dense(784, 64), BatchNorm(64, relu), Dense(64, 10));
  model = distributed::synchronize(backend, distributed::FluxDistributedModel(model));
  State state = setup(
      distributed::Optimizer(backend, Adam{.eta = 2e-3}, {.statistics = distributed::Statistics::averaged}), model);
  DataLoader loader(
      std::tuple{train.images, onehotbatch(train.labels, 10)},
      {.batchsize = 64, .shuffle = true, .partial = false, .rng = Rng{7}, .part = distributed::batch_part(backend)});
  for (int epoch = 1; epoch <= 2; ++epoch) {
    double total = 0;
    for (auto [x, y] : loader) {
      const auto [loss, grad] = withgradient([&](const Chain& m) { return logitcrossentropy(m(x), y); }, model);
      update(state, model, grad);
      total += loss.item();
    }
    const double mean_loss =
        distributed::allreduce(backend, Array(total), distributed::avg).item() / double(loader.size());
    if (tells) std::cout << "Epoch " << epoch << ": Loss " << mean_loss << "\n";
  }

  const distributed::DataContainer share(backend, std::tuple{test.images, test.labels});
  const auto [x, label] = share;
  const Array right = cast(sum(onecold(model(x)) == label), Int64);
  const auto found = distributed::allreduce(backend, right, distributed::Reduction::sum).item<int64_t>();
  const double accuracy = double(found) / double(folder.test.count);
  const Array mean_of_root = distributed::bcast(backend, getkeypath(model, "layers.2.mean"));
  const bool good = accuracy > 0.6 && all(mean_of_root == getkeypath(model, "layers.2.mean")).item<bool>();
  if (tells) std::cout << "test accuracy: " << accuracy << "\n";
  if (tells)
    std::cout << "the ranks have one network, and it reads most of the digits: " << (good ? "yes" : "no") << "\n";
  return good ? 0 : 1;
}

int main(int count, char** arguments) {
  try {
    distributed::initialize();
    return run(count > 1 ? read_image_folder(arguments[1]) : ImageFolder{draw_digits(2560, 1), draw_digits(500, 2)});
  } catch (const std::exception& error) {
    std::cerr << "18_digits_by_ranks: " << error.what() << "\n";
    return 2;
  }
}
