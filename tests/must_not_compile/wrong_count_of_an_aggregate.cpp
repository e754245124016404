// says: SetRosinFieldsToTheNumberOfPublicMembersAndUseNoBitFields
#include <rosin/model.hpp>

struct Model {
  rosin::Array weight, bias;
  static constexpr int rosin_fields = 1;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
