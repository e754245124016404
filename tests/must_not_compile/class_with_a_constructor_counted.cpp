// says: or list them: static constexpr auto rosin_fields = rosin::fields<&T::a, &T::b>{};
#include <rosin/model.hpp>

struct Model {
  Model() {}
  rosin::Array weight;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
