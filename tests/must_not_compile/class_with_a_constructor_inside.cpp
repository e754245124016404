// says: rosin: the members of a class with constructors cannot be found; state their number inside it
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

#include <vector>

class Closed {
 public:
  Closed() {}
  rosin::Array weight;
};
struct Model {
  std::vector<Closed> parts;
  rosin::Array a;
};
Model use(const Model& model) {
  return rosin::gradient([](const Model& m) { return rosin::sum(m.parts[0].weight); }, model);
}
