// compiles
#include <rosin/model.hpp>

struct Model {
  rosin::Array weight, bias;
  int size = 3;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
