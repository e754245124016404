// says: a base class with data cannot be walked; make it a member, or list the members
#include <rosin/model.hpp>

struct Core {
  rosin::Array weight;
};
struct Model : Core {
  rosin::Array bias;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
