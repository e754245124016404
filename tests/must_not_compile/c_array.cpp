// says: a C array cannot be walked; write std::array or std::vector
#include <rosin/model.hpp>

struct Model {
  rosin::Array weights[3];
  rosin::Array bias;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
