// What a training step costs on a device beside its kernels: launches, the host's time for each, and the share of the
// step in which no kernel runs. Makes its own data and needs the library only. See README.md, "Devices".
//
//   bench_devices [DEVICE...]     a line per device and network; "null" is the back end that computes nothing
#include <rosin/rosin.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace rosin;

constexpr int64_t batch = 64;
constexpr double seconds_to_measure = 4;
constexpr int steps_at_least = 5, steps_at_most = 400, warm_steps = 3;

/// 784-256-10 on (28, 28, 1, batch).
struct MLP {
  Dense hidden{784, 256, relu};
  Dense out{256, 10};
  Array operator()(const Array& x) const { return out(hidden(flatten(x))); }
};

/// LeNet-5 with relu and max pooling, on the same.
struct LeNet {
  Conv first{{5, 5}, 1, 6, relu};
  Conv second{{5, 5}, 6, 16, relu};
  Dense wide{256, 120, relu};
  Dense narrow{120, 84, relu};
  Dense out{84, 10};
  Array operator()(const Array& x) const {
    const Array parts = maxpool(second(maxpool(first(x), 2)), 2);
    return out(narrow(wide(flatten(parts))));
  }
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Of one step.
struct Cost {
  double step = 0;      // seconds from the first call until the device is done
  double host = 0;      // seconds in which the program was busy giving work to the device
  double launches = 0;  // kernels launched
};

template <class Model> class Steps {
 public:
  explicit Steps(const Device& device) : device_(device), model_(Model{} | device) {
    const auto [images, labels] = image_arrays(draw_digits(batch, 1));
    std::tie(x_, y_) = std::tuple{images, onehotbatch(labels, 10)} | device;
    state_ = setup(Adam{.eta = 1e-3}, model_);
  }

  void once() {
    auto [loss, grad] = withgradient([&](const Model& m) { return logitcrossentropy(m(x_), y_); }, model_);
    update(state_, model_, grad);
  }

  /// The first step, which compiles, in seconds.
  double first() {
    const double start = now();
    once();
    synchronize(device_);
    return now() - start;
  }

  Cost measure() {
    for (int i = 0; i < warm_steps; ++i) once();
    synchronize(device_);
    reset_stats();
    Cost cost;
    int steps = 0;
    const double start = now();
    while (steps < steps_at_least || (steps < steps_at_most && now() - start < seconds_to_measure)) {
      const double begin = now();
      once();
      cost.host += now() - begin;
      synchronize(device_);  // a queue that is full would count as the host's time
      ++steps;
    }
    cost.step = (now() - start) / steps;
    cost.host /= steps;
    cost.launches = static_cast<double>(stats().launches) / steps;
    return cost;
  }

 private:
  Device device_;
  Model model_;
  State state_;
  Array x_, y_;
};

Device device_of_name(const std::string& name) {
  const size_t colon = name.find(':');
  return get_device(name.substr(0, colon), colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1)));
}

/// The host's time for a step of which the device computes nothing: what is left of a step outside kernels. 0 without
/// the null back end.
template <class Model> Cost without_kernels() {
  try {
    Steps<Model> steps(get_device("null", 0));
    steps.first();
    return steps.measure();
  } catch (const Error&) {
    return {};
  }
}

template <class Model> void measure(const char* network, const Device& device, const Cost& bare) {
  seed(1);
  Steps<Model> steps(device);
  const double first = steps.first();
  const Cost cost = steps.measure();
  std::printf("%-5s on %s: %.3f ms a step, %.0f launches, first step %.0f ms", network, to_string(device).c_str(),
              cost.step * 1e3, cost.launches, first * 1e3);
  if (cost.launches > 0) std::printf(", host busy %.2f us a launch", cost.host * 1e6 / cost.launches);
  if (bare.step > 0 && cost.launches > 0) {
    std::printf(", outside kernels %.1f %%", std::min(100.0, 100 * bare.step / cost.step));
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** names) {
  try {
    const Cost mlp = without_kernels<MLP>(), lenet = without_kernels<LeNet>();
    for (int i = 1; i < count; ++i) {
      const Device device = device_of_name(names[i]);
      measure<MLP>("MLP", device, mlp);
      measure<LeNet>("LeNet", device, lenet);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_devices: %s\n", error.what());
    return 1;
  }
}
