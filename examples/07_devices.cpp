// 07: devices. Found at run time; a device is a value one calls, and moving what is there already costs nothing.
// Last line: x stayed where it was: yes
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

int main() {
  for (const std::string& backend : supported_devices()) {
    std::cout << backend << ": " << (functional(backend) ? "ready" : why_not(backend)) << "\n";
  }
  std::cout << devices() << "\n";

  const Device device = get_device({.verbose = true});
  std::cout << device << " with " << device.memory() / (int64_t{1} << 30) << " GiB\n";

  // Models, tuples, maps of arrays and loaders move as a whole.
  const auto chain = Chain(Dense(2, 3, relu), Dense(3, 1)) | device;
  const auto [a, b] = std::tuple{ones({2, 4}), zeros({4})} | device;
  std::cout << "the chain is on " << device_of(chain).backend() << ", its result too: " << chain(a).device() << "\n";

  // An error says what is missing.
  try {
    get_device("CUDA", 0);
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
  }

  const Array x = ones({3});
  std::cout << "x stayed where it was: " << (same(x | cpu_device(), x) ? "yes" : "no") << "\n";
}
