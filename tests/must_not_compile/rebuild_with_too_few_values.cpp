// says: rebuild needs one value for each field of functor_of
#include <rosin/functor.hpp>

struct Model {
  rosin::Array weight, bias;
};
Model use(const Model& model) { return rosin::functor_of(model).rebuild(std::tuple{model.weight}); }
