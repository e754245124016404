// says: a member that is a reference cannot be walked; hold the object by value or by shared_ptr
#include <rosin/model.hpp>

struct Model {
  rosin::Array& weight;
  rosin::Array bias;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
