// says: every member in rosin_trainable must be one of the fields
#include <rosin/model.hpp>

class Model {
  rosin::Array weight_, bias_;

 public:
  static constexpr auto rosin_fields = rosin::fields<&Model::weight_>{};
  static constexpr auto rosin_trainable = rosin::fields<&Model::bias_>{};
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
