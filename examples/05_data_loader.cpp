// 05: data. The last dim counts observations; a loader gives batches, in a new order in every epoch.
// Last line: 30 observations for training, 10 for testing
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

/// Data of your own: how many observations there are, and how to get one.
struct Squares {
  int64_t numobs() const { return 10; }
  std::tuple<Array, Array> getobs(int64_t i) const { return {Array({static_cast<float>(i)}, {1}), Array(i * i)}; }
};

int main() {
  const Array X = rand({3, 40}), Y = onehotbatch(randint(0, 4, {40}), 4);
  DataLoader loader(std::tuple{X, Y}, {.batchsize = 16, .shuffle = true, .rng = Rng(1)});
  std::cout << loader << "\n";
  for (auto [x, y] : loader) std::cout << to_string(x.shape()) << " and " << to_string(y.shape()) << "\n";

  // Threads that read ahead change the time, never the batches.
  DataLoader squares(Squares{}, {.batchsize = 4, .num_workers = 2});
  for (auto [x, y] : squares) std::cout << x << " " << y << "\n";

  // Mapped when it is read: random noise, for example.
  DataLoader noisy(mapobs([](const Array& x) { return x + 0.1 * randn(x.shape()); }, X), {.batchsize = 40});
  for (const Array& x : noisy) std::cout << "mean change " << mean(abs(x - X)) << "\n";

  const auto [train, test] = splitobs(std::tuple{X, Y}, {.at = 0.75, .shuffle = true});
  std::cout << numobs(train) << " observations for training, " << numobs(test) << " for testing\n";
}
