// 10: a linear model on a GPU: parameters and data are moved, the rest of the program stays as it is. Without a GPU all
// stays on the CPU. Choose with ROSIN_GPU_BACKEND=CUDA, AMDGPU, OpenCL or CPU.
// Last line: the loss fell below a hundredth: yes
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

/// x is (5, batch) -> (2, batch).
struct Linear {
  Array weight;  // (2, 5)
  Array bias;    // (2)
  Array operator()(const Array& x) const { return matmul(weight, x) + bias; }
};

int main() {
  seed(1);
  Linear model{gpu(rand({2, 5})), gpu(rand({2}))};
  std::cout << "weight: " << to_string(model.weight.shape()) << " of " << to_string(model.weight.dtype()) << " on "
            << model.weight.device() << "\n";

  const Array x = gpu(rand({5})), y = gpu(rand({2}));
  const auto loss = [](const Linear& m, const Array& in, const Array& target) {
    const Array wrong = m(in) - target;
    return sum(wrong * wrong);
  };
  std::cout << "loss " << loss(model, x, y).item() << " on one observation\n";

  // Float64 becomes Float32 on the way to a GPU, and stays what it is on the CPU.
  std::cout << "a move makes Float64 " << to_string(gpu(rand<double>({2})).dtype()) << "\n";

  // Many observations of a linear law with a little noise; its gradients and steps run where the arrays are.
  const Array X = gpu(randn({5, 200}));
  const Linear law{gpu(randn({2, 5})), gpu(randn({2}))};
  const Array Y = law(X) + gpu(0.01 * randn({2, 200}));
  const double before = loss(model, X, Y).item();
  for (int step = 0; step < 300; ++step) {
    const auto grad = gradient([&](const Linear& m) { return loss(m, X, Y) / X.size(-1); }, model);
    model = Linear{model.weight - 0.1 * grad.weight, model.bias - 0.1 * grad.bias};
  }
  const double after = loss(model, X, Y).item();
  std::cout << "loss " << before << " -> " << after << " on " << device_of(model) << "\n";
  std::cout << "the loss fell below a hundredth: " << (after < before / 100 ? "yes" : "no") << "\n";
}
