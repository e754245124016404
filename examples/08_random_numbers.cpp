// 08: random numbers. The same on every device, with any number of threads, and after a restart.
// Last line: equal after the same seed: yes, after another: no
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

int main() {
  seed(42);
  const Array first = randn({3, 3});
  const Dense layer(4, 2);  // drawn from the same generator
  std::cout << first << "\n" << layer.weight << "\n";

  seed(42);
  const Array again = randn({3, 3});
  seed(43);
  const Array other = randn({3, 3});

  // A generator of one's own is a value: its copy draws the same numbers, a split one draws others.
  Rng rng(7);
  Rng copy = rng;
  Rng child = rng.split();
  std::cout << "its copy splits alike: " << (copy.split() == child ? "yes" : "no") << "\n";
  std::cout << "uniform " << uniform(rng, {2}, -1, 1) << ", coins " << bernoulli(rng, 0.5, {4}) << ", dice "
            << randint(rng, 1, 7, {5}) << ", order " << permutation(rng, 5) << "\n";

  const auto equal = [&](const Array& x) { return all(x == first).item<bool>() ? "yes" : "no"; };
  std::cout << "equal after the same seed: " << equal(again) << ", after another: " << equal(other) << "\n";
}
