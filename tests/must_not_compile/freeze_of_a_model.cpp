// says: freeze must not be applied to a model, only to the state from setup(rule, model)
#include <rosin/optim.hpp>

struct Model {
  rosin::Array weight;
};
void use(Model& model) { rosin::freeze(model); }
