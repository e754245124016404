// says: a const Array member cannot be trained, moved or loaded; drop const
#include <rosin/model.hpp>

struct Model {
  const rosin::Array weight;
};
void use(Model& model) { rosin::testmode(model); }
