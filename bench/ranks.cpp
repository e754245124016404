// Data-parallel training of one model by several ranks, each with its part of a batch: bench_ranks MODEL BATCH STEPS
// REPEATS [shard], under `rosin run -n N` or mpiexec. With `shard` each rank updates its share of the parameters. Rank
// 0 prints seconds of a step, seconds of processors in a step (of all ranks together) and the last loss, one repeat a
// line. Read first: ranks.py.
#include <rosin/rosin.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "../examples/models/gpt2.hpp"

using namespace rosin;

namespace {

struct Options {
  int64_t batch;
  int steps, repeats;
  bool shard;
};

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Steps on this rank's part of the observations: `loss(model, x, y)`.
template <class M, class F> void train(const Options& options, const M& begun, const Array& x, const Array& y, F loss) {
  const auto backend = distributed::get_distributed_backend();
  M model = distributed::synchronize(backend, distributed::FluxDistributedModel(begun));
  State state = setup(distributed::Optimizer(backend, Adam{.eta = 1e-3}, {.shard = options.shard}), model);
  const auto [own_x, own_y] = distributed::DataContainer(backend, std::tuple{x, y});
  Array last;
  const auto step = [&] {
    auto [value, grad] = withgradient([&](const M& m) { return loss(m, own_x, own_y); }, model);
    update(state, model, grad);
    last = value;
  };
  for (int i = 0; i < 20; ++i) step();
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    distributed::barrier(backend);
    const double start = seconds(), work_start = processor_seconds();
    for (int i = 0; i < options.steps; ++i) step();
    const double value = distributed::allreduce(backend, last, distributed::avg).item();
    const double took = (seconds() - start) / options.steps;
    const double own_work = (processor_seconds() - work_start) / options.steps;
    const double work_of_all = distributed::allreduce(backend, Array(own_work), distributed::Reduction::sum).item();
    if (distributed::local_rank(backend) == 0) std::printf("%.9g %.9g %.9g\n", took, work_of_all, value);
  }
}

void train_classifier(const Options& options, const Chain& model, const std::vector<int64_t>& sample) {
  std::vector<int64_t> sizes = sample;
  sizes.push_back(options.batch);
  Rng rng(2);
  const Array x = rand(rng, Shape(std::span<const int64_t>(sizes)));
  train(options, model, x, onehot(randint(rng, 0, 10, {options.batch}), 10),
        [](const Chain& m, const Array& own_x, const Array& own_y) { return logitcrossentropy(m(own_x), own_y); });
}

void train_gpt(const Options& options) {
  const models::GPT2LMHead model =
      models::gpt2({.vocabulary = 65, .positions = 64, .width = 128, .layers = 4, .heads = 4, .dropout = 0});
  Rng rng(2);
  const Array text = cast(randint(rng, 0, 65, {65, options.batch}), Int32);
  train(options, model, text(slice(0, 64)), text(slice(1, 65)),
        [](const models::GPT2LMHead& m, const Array& x, const Array& next) { return labelcrossentropy(m(x), next); });
}

void run(const std::string& name, const Options& options) {
  distributed::initialize();
  seed(1);
  if (name == "GPT") return train_gpt(options);
  if (name == "C4") return train_classifier(options, Chain(Dense(784, 256, relu), Dense(256, 10)), {784});
  if (name == "C5") {
    return train_classifier(options, Chain(Dense(784, 512, relu), Dense(512, 512, relu), Dense(512, 10)), {784});
  }
  train_classifier(options,
                   Chain(CrossCor({5, 5}, 1, 6, relu), MaxPool({2, 2}), CrossCor({5, 5}, 6, 16, relu), MaxPool({2, 2}),
                         flatten, Dense(256, 120, relu), Dense(120, 84, relu), Dense(84, 10)),
                   {28, 28, 1});
}

}  // namespace

int main(int argc, char** argv) {
  const bool shard = argc == 6 && std::string(argv[5]) == "shard";
  if (argc != 5 && !shard) {
    std::fprintf(stderr, "usage: bench_ranks C3|C4|C5|GPT BATCH STEPS REPEATS [shard]\n");
    return 2;
  }
  run(argv[1], {std::atoll(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), shard});
}
