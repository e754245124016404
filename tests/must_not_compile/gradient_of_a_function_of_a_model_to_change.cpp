// says: must take as many arguments as gradient is given behind it, each as a constant: const Model& or const auto&
#include <rosin/dense.hpp>
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

rosin::Dense slope(const rosin::Dense& model, const rosin::Array& x) {
  return rosin::gradient([&](rosin::Dense& m) { return rosin::sum(m(x)); }, model);
}
