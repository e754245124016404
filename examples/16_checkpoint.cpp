// 16: a training that is stopped and goes on. Run it again after Ctrl-C: it ends with the same weights.
// Last line: the same weights after a stop in the middle of an epoch: yes
#include <rosin/rosin.hpp>

#include <filesystem>
#include <iostream>

using namespace rosin;

/// All that a training is, made anew by every process.
struct Training {
  Chain model{Dense(4, 16, relu), Dropout(0.3), Dense(16, 3)};
  State state = setup(AdamW{.eta = 1e-2}, model);
  WarmupRate<CosineRate> rate{5, {.start = 1e-2, .steps = 50}};
  Rng source{3};
  DataLoader<std::tuple<Array, Array>> loader{{rand(source, {4, 50}), onehot(randint(source, 0, 3, {50}), 3)},
                                              {.batchsize = 8, .shuffle = true}};
  int64_t step = 0;
  Checkpoint checkpoint{"run.safetensors",
                        {{"model", model}, {"state", state}, {"rate", rate}, {"loader", loader}, {"step", step}}};

  /// Goes on to the end of the third epoch, or stops after so many steps.
  void run(int64_t stop) {
    if (checkpoint.resume()) std::cout << "going on after step " << step << "\n";
    while (loader.epoch() < 3) {
      for (auto [x, y] : loader) {
        adjust(state, rate(step));
        const auto [loss, grad] = withgradient([&](const Chain& m) { return logitcrossentropy(m(x), y); }, model);
        update(state, model, grad);
        if (++step % 2 == 0) checkpoint.save();
        if (step == stop) return;
      }
    }
  }
};

int main() {
  std::filesystem::remove("run.safetensors");
  seed(1);
  Training whole;
  whole.run(-1);
  std::filesystem::remove("run.safetensors");
  seed(1);
  Training().run(11);  // the last file is that of step 10, in the second epoch
  seed(2);             // a new process draws other numbers, until it goes on
  Training second;
  second.run(-1);
  bool same = second.step == whole.step;
  for (size_t i = 0; const Array& weight : fleaves(whole.model)) {
    same = same && weight.to_vector() == fleaves(second.model)[i++].to_vector();
  }
  std::filesystem::remove("run.safetensors");
  std::cout << "the same weights after a stop in the middle of an epoch: " << (same ? "yes" : "no") << "\n";
}
