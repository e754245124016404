// 19: processes share out the state of the optimiser (ZeRO, stage 1): each keeps that of some parameters, and of a part
// of large ones, and makes their steps for all. A checkpoint has the gathered state, so that any number of ranks goes
// on from it. Run it with `rosin run -n 2` or `mpiexec -n 2` before its name.
// Last line: each rank keeps its share of the state, and the file has all of it: yes
#include <rosin/rosin.hpp>

#include <iostream>
#include <tuple>

using namespace rosin;

int64_t elements(const State& state) {
  int64_t count = 0;
  for (const Array& x : fleaves(state)) count += x.is_nothing() ? 0 : x.count();
  return count;
}

int main() {
  distributed::initialize();
  const auto backend = distributed::get_distributed_backend();
  const int rank = distributed::local_rank(backend);

  Rng source{1};
  const Array points = rand(source, {4, 240});
  const distributed::DataContainer shard(backend, std::tuple{points, sum(square(points), 0)});
  const auto [x, y] = shard;
  Chain model(Dense(4, 256, tanh), Dense(256, 64, tanh), Dense(64, 1));
  model = distributed::synchronize(backend, distributed::FluxDistributedModel(model));
  State state = setup(distributed::Optimizer(backend, Momentum{.eta = 1e-2}, {.shard = true}), model);
  for (int step = 0; step < 50; ++step) {
    update(state, model, gradient([&](const Chain& m) { return mean(square(m(x) - y)); }, model));
  }

  State whole = distributed::gathered(state);  // every rank calls it
  const int64_t kept = elements(state);
  if (rank == 0) {
    std::cout << "rank 0 keeps " << kept << " of " << elements(whole) << " numbers\n";
    Checkpoint("shared_state.safetensors", {{"model", model}, {"state", whole}}).save();
  }
  distributed::barrier(backend);

  State loaded = setup(distributed::Optimizer(backend, Momentum{}, {.shard = true}), model);
  whole = distributed::gathered(loaded);
  Checkpoint("shared_state.safetensors", {{"model", model}, {"state", whole}}).resume();
  loaded = distributed::sharded(whole);
  const auto all_kept = distributed::allreduce(backend, Array(kept), distributed::Reduction::sum).item<int64_t>();
  const bool good = all_kept == elements(whole) && to_string(loaded) == to_string(state);
  if (rank == 0)
    std::cout << "each rank keeps its share of the state, and the file has all of it: " << (good ? "yes" : "no")
              << "\n";
  return good ? 0 : 1;
}
