// 11: models move as a whole: fmap(gpu, m), gpu(m) and m | gpu are one thing said in three ways; cpu is the way back.
// Last line: every column sums to one: yes
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

int main() {
  const Dense dense = fmap(gpu, Dense(10, 5, sigmoid));
  std::cout << show(dense) << "\nits weight is on " << dense.weight.device() << "\n";
  std::cout << "its output too: " << dense(gpu(rand({10}))).device() << "\n";

  const Chain chain = Chain(Dense(10, 5, sigmoid), Dense(5, 2), softmax) | gpu;
  const Array x = rand({10, 7}) | gpu;
  const Array y = chain(x);
  std::cout << show(chain) << "\n" << cpu(y) << "\n";

  // Where everything is there already, a move gives the same handles back.
  std::cout << "moved again it is the same: " << (same(x | gpu, x) ? "yes" : "no") << "\n";

  // The model on the CPU computes the same.
  const Chain home = chain | cpu;
  const double difference = maximum(abs(home(x | cpu) - (y | cpu))).item();
  std::cout << "the CPU differs by less than 1e-5: " << (difference < 1e-5 ? "yes" : "no") << "\n";
  const double wrong = maximum(abs(sum(y, 0) - 1)).item();
  std::cout << "every column sums to one: " << (wrong < 1e-5 ? "yes" : "no") << "\n";
}
