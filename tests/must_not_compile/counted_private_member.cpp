// says: SetRosinFieldsToTheNumberOfPublicMembersAndUseNoBitFields
#include <rosin/model.hpp>

class Model {
 public:
  explicit Model(int) {}
  static constexpr int rosin_fields = 1;

 private:
  rosin::Array weight_;
};
int64_t use(const Model& model) { return rosin::parameter_count(model); }
