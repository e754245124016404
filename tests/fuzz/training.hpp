// A training whose checkpoints are fuzzed: every kind of entry.
#pragma once

#include <string>
#include <vector>

#include <rosin/checkpoint.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/loader.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>

namespace rosin::fuzz {

struct Training {
  Dense model{2, 1};
  State state = setup(Adam{}, model);
  DataLoader<Array> loader{ones({2, 8}), {.batchsize = 2, .shuffle = true}};
  Rng rng{7};
  int64_t step = 3;
  double rate = 0.5;
  std::string note = "text";
  std::vector<int64_t> widths{2, 1};
  Checkpoint checkpoint{"x.safetensors",
                        {{"model", model},
                         {"state", state},
                         {"loader", loader},
                         {"rng", rng},
                         {"step", step},
                         {"rate", rate},
                         {"note", note},
                         {"widths", widths}}};
};

}  // namespace rosin::fuzz
