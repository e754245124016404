// 17: the regression of x^3 by several processes, each with its share of the data. Run it with `rosin run -n 2` or
// `mpiexec -n 2` before its name; alone it is one rank that has everything.
// Last line: the loss fell on every rank, and all have the same weights: yes
#include <rosin/rosin.hpp>

#include <iostream>
#include <string>

using namespace rosin;

int main() {
  distributed::initialize();
  const auto backend = distributed::get_distributed_backend();
  const int rank = distributed::local_rank(backend);

  Rng source{1};
  const Array points = rand(source, {1, 16});
  const distributed::DataContainer shard(backend, std::tuple{points, pow(points, 3)});
  const auto [x, y] = shard;
  Chain model(Dense(1, 256, tanh), Dense(256, 1));
  model = distributed::synchronize(backend, distributed::FluxDistributedModel(model));
  State state = setup(distributed::Optimizer(backend, Adam{.eta = 1e-3}), model);
  state = distributed::synchronize(backend, state);

  double first = 0, last = 0;
  for (int epoch = 1; epoch <= 100; ++epoch) {
    const auto [loss, grad] = withgradient([&](const Chain& m) { return mean(square(m(x) - y)); }, model);
    last = distributed::allreduce(backend, loss, distributed::avg).item();
    if (epoch == 1) first = last;
    if (rank == 0 && epoch % 20 == 0) std::cout << "Epoch " << epoch << ": Loss " << last << "\n";
    update(state, model, grad);
  }
  const Array weight = getkeypath(model, "layers.0.weight");
  const Array root = distributed::bcast(backend, weight);
  const bool same = all(weight == root).item<bool>() && last < first;
  if (rank == 0)
    std::cout << "the loss fell on every rank, and all have the same weights: " << (same ? "yes" : "no") << "\n";
  return same ? 0 : 1;
}
