// A training that ranks_test.py kills and stops: ranks_training FOLDER TIMEOUT, on the device of ROSIN_TEST_DEVICE
// where that is set, and over NCCL where ROSIN_TEST_NCCL is. Its gradients go in two messages. Rank 0 keeps the
// checkpoint, from which all ranks go on, and writes the weights at the end. Each rank leaves its process number in the
// folder, and ended-RANK when it has come to its end.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <rosin/rosin.hpp>

using namespace rosin;

distributed::Backend joined(double timeout) {
  if (std::getenv("ROSIN_TEST_NCCL")) {
    distributed::initialize<distributed::NCCLBackend>({.timeout = timeout});
    return distributed::get_distributed_backend<distributed::NCCLBackend>();
  }
  distributed::initialize({.timeout = timeout});
  return distributed::get_distributed_backend();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  const distributed::Backend backend = joined(std::stod(argv[2]));
  const int rank = distributed::local_rank(backend);
  const std::string ended = folder + "ended-" + std::to_string(rank);
  std::filesystem::remove(ended);
  std::ofstream(folder + "process-" + std::to_string(rank)) << getpid();

  const char* const wanted = std::getenv("ROSIN_TEST_DEVICE");
  const Device device = wanted ? get_device(wanted, 0) : Device();
  seed(1);
  Chain model(Dense(8, 512, tanh), Dropout(0.2), Dense(512, 512, tanh), Dense(512, 3));
  model = distributed::synchronize(backend, distributed::FluxDistributedModel(model | device));
  State state = setup(distributed::Optimizer(backend, AdamW{.eta = 1e-2}), model);
  Rng source(3);
  const std::tuple data{rand(source, {8, 100}), onehot(randint(source, 0, 3, {100}), 3)};
  DataLoader loader(data, {.batchsize = 8, .shuffle = true, .rng = Rng{7}, .part = distributed::batch_part(backend)});
  int64_t step = 0;
  Checkpoint checkpoint(folder + "run.safetensors",
                        {{"model", model}, {"state", state}, {"loader", loader}, {"step", step}});
  checkpoint.resume();
  distributed::barrier(backend);  // nobody writes what another one still reads
  while (loader.epoch() < 4) {
    for (auto [x, y] : loader) {
      const auto loss = [&in = x, &labels = y, &device](const Chain& m) {
        return logitcrossentropy(m(in | device), labels | device);
      };
      update(state, model, gradient(loss, model));
      if (++step % 5 == 0 && rank == 0) checkpoint.save();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  if (rank == 0) save(folder + "final.safetensors", model);
  std::ofstream(ended) << getpid();
}
