// says: SetRosinFieldsToTheNumberOfPublicMembersAndUseNoBitFields
#include <rosin/model.hpp>

struct Model {
  explicit Model(int) {}
  rosin::Array weight, bias;
  static constexpr int rosin_fields = 3;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
