// says: rosin: the members of a class with constructors cannot be found; state their number inside it
#include <rosin/dense.hpp>
#include <rosin/move.hpp>

struct Model {
  rosin::Dense a, b;
  Model() : a(2, 2), b(2, 2) {}
};
void use(const Model& model, const rosin::Device& device) { model | device; }
