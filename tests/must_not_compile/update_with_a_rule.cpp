// says: update needs state = setup(rule, model)
#include <rosin/optim.hpp>

struct Model {
  rosin::Array weight;
};
void use(Model& model, const Model& gradient) { rosin::update(rosin::Adam{}, model, gradient); }
