// Data-parallel training of one model by several ranks, each with its part of a batch: bench_ranks MODEL BATCH STEPS
// REPEATS, under `rosin run -n N` or mpiexec. Rank 0 prints seconds of a step, seconds of processors in a step (of all
// ranks together) and the last loss, one repeat a line.
// Read first: ranks.py.
#include <rosin/rosin.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace rosin;

namespace {

struct Work {
  Chain model;
  Shape sample;  // of one observation
};

Work work_named(const std::string& name) {
  if (name == "C4") return {Chain(Dense(784, 256, relu), Dense(256, 10)), Shape{784}};
  if (name == "C5") return {Chain(Dense(784, 512, relu), Dense(512, 512, relu), Dense(512, 10)), Shape{784}};
  return {Chain(CrossCor({5, 5}, 1, 6, relu), MaxPool({2, 2}), CrossCor({5, 5}, 6, 16, relu), MaxPool({2, 2}), flatten,
                Dense(256, 120, relu), Dense(120, 84, relu), Dense(84, 10)),
          Shape{28, 28, 1}};
}

Array batch_of(const Shape& sample, int64_t count, Rng& rng) {
  std::vector<int64_t> sizes(sample.begin(), sample.end());
  sizes.push_back(count);
  return rand(rng, Shape(std::span<const int64_t>(sizes)));
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void run(const std::string& name, int64_t batch, int steps, int repeats) {
  distributed::initialize();
  const auto backend = distributed::get_distributed_backend();
  seed(1);
  const Work work = work_named(name);
  Chain model = distributed::synchronize(backend, distributed::FluxDistributedModel(work.model));
  State state = setup(distributed::Optimizer(backend, Adam{.eta = 1e-3}), model);
  Rng rng(2);
  const Array x = batch_of(work.sample, batch, rng), y = onehot(randint(rng, 0, 10, {batch}), 10);
  const auto [own_x, own_y] = distributed::DataContainer(backend, std::tuple{x, y});
  Array last;
  const auto step = [&] {
    auto [loss, grad] = withgradient([&](const Chain& m) { return logitcrossentropy(m(own_x), own_y); }, model);
    update(state, model, grad);
    last = loss;
  };
  for (int i = 0; i < 20; ++i) step();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    distributed::barrier(backend);
    const double start = seconds(), work_start = processor_seconds();
    for (int i = 0; i < steps; ++i) step();
    const double loss = distributed::allreduce(backend, last, distributed::avg).item();
    const double took = (seconds() - start) / steps, own_work = (processor_seconds() - work_start) / steps;
    const double work_of_all = distributed::allreduce(backend, Array(own_work), distributed::Reduction::sum).item();
    if (distributed::local_rank(backend) == 0) std::printf("%.9g %.9g %.9g\n", took, work_of_all, loss);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_ranks C3|C4|C5 BATCH STEPS REPEATS\n");
    return 2;
  }
  run(argv[1], std::atoll(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
}
