// compiles
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <rosin/chain.hpp>
#include <rosin/dense.hpp>
#include <rosin/device.hpp>
#include <rosin/grad.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

using namespace rosin;

struct Config;  // never defined here
class Closed {
 public:
  Closed() {}
  static constexpr bool rosin_leaf = true;
};
struct Parts {
  Dense first{2, 2};
  mutable Rng rng{7};
  Device device;
  Shape shape;
  DType type = Float32;
  Dims dims = 0;
  Closed closed;
  std::string name;
  std::filesystem::path file;
  std::chrono::steady_clock::time_point begun;
  std::vector<std::unique_ptr<Dense>> heads;
  std::map<std::string, std::vector<Chain>> more;
  std::variant<Dense, Chain> either{Dense(2, 2)};
  const Config* config = nullptr;
  const Dense* constant = nullptr;
  Rng* shared_rng = nullptr;
};

/// A class that is printed its own way, and that the walk could not take.
struct Register {
  int low : 3;
  int words[2];
};
std::ostream& operator<<(std::ostream& stream, const Register& x) { return stream << x.low; }

struct Two {
  Array a, b;
};

void use(Parts& model, const Array& x) {
  State state = setup(Adam{}, model);
  const auto g = gradient([&](const Parts& m) { return sum(m.first(x)); }, model);
  update(state, model, g);
  std::vector<float> v(3);
  const size_t rows = 4;
  const Shape shape{v.size(), 2}, other{rows, 2u, short{3}, int64_t{1}};
  std::cout << model << Two() << shape << Float32 << other << model.device << Register() << model.first << state;
}
