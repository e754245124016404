// says: a C array cannot be walked; write std::array or std::vector
#include <rosin/model.hpp>

struct Model {
  rosin::Array bias;
  float rates[2];
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
