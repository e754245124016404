// 26: where the time of a training step goes: kernels and calls with their sizes, as a table and as a file that
// ui.perfetto.dev shows.
// Last line: all runs are there: yes
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

int main(int argc, char** argv) {
  seed(6);
  Chain model(Conv({5, 5}, 1, 6, relu), MaxPool({2, 2}), flatten, Dense(864, 84, relu), Dense(84, 10));
  const Array images = rand({28, 28, 1, 64}), labels = onehot(randint(0, 10, {64}), 10);
  State state = setup(Adam{}, model);
  const auto step = [&] {
    auto [loss, grad] = withgradient([&](const Chain& m) { return logitcrossentropy(m(images), labels); }, model);
    update(state, model, grad);
    return loss;
  };
  for (int i = 0; i < 5; ++i) step().item();  // plans are made, memory is there

  const Profile steps = profile([&] {
    for (int i = 0; i < 20; ++i) step().item();
  });
  std::cout << to_string(steps);
  if (argc > 1) save_trace(argv[1], steps);

  bool all = !steps.runs.empty();
  for (const ProfileEntry& entry : steps.entries) all = all && entry.runs % 20 == 0;
  std::cout << "all runs are there: " << (all ? "yes" : "no") << "\n";
}
