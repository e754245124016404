// says: hold a rosin::Rng: mutable Rng rng{7};
#include <random>

#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

struct Model {
  rosin::Array weight;
  mutable std::mt19937 engine;
};
Model use(const Model& model) {
  return rosin::gradient([](const Model& m) { return rosin::sum(m.weight) * static_cast<double>(m.engine()); }, model);
}
