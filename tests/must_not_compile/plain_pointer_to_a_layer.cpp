// says: rosin: what a plain pointer leads to is not trained; hold the object by value or by shared_ptr
#include <rosin/dense.hpp>
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

struct Model {
  rosin::Dense* first;
  rosin::Array weight;
};
Model use(const Model& model, const rosin::Array& x) {
  return rosin::gradient([&](const Model& m) { return rosin::sum((*m.first)(x)); }, model);
}
