// 14: several devices: each model and array is on one of them, and moves from one to another keep the values. With a
// single device both names mean that one.
// Last line: the same values on both devices: yes
#include <rosin/rosin.hpp>

#include <iostream>
#include <string>

using namespace rosin;

int main() {
  const Device first = gpu_device();
  const std::string backend(first.backend());
  const DeviceList all = devices(backend);
  std::cout << all << "\n";
  const Device device0 = get_device(backend, 0);
  const Device device1 = get_device(backend, all.size() > 1 ? 1 : 0);

  const Dense start(2, 3);
  const Dense model0 = start | device0;
  std::cout << "the weight is on " << model0.weight.device() << "\n";
  const Dense model1 = model0 | device1;
  std::cout << "and a copy of it on " << model1.weight.device() << "\n" << show(model1) << "\n";

  // Ops run where their operands are; an op with operands on two devices says so instead of moving one.
  const Array x = rand({2, 4});
  const Array y0 = model0(x | device0), y1 = model1(x | device1);
  if (device0 != device1) {
    try {
      eval(y0 + y1);
    } catch (const Error& error) {
      std::cout << error.what() << "\n";
    }
  }
  const double difference = maximum(abs((y0 | cpu) - (y1 | cpu))).item();
  const bool equal = difference == 0 && maximum(abs((model1.weight | cpu) - start.weight)).item() == 0;
  std::cout << "the same values on both devices: " << (equal ? "yes" : "no") << "\n";
}
