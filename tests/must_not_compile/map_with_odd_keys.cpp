// says: a map in a model needs keys that are strings, integers or enums
#include <rosin/model.hpp>

#include <map>

struct Model {
  std::map<double, rosin::Array> layers;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
