// says: rosin: a polymorphic class cannot be walked; hold layers of different classes as rosin::Layer
#include <memory>
#include <vector>

#include <rosin/optim.hpp>

struct Base {
  virtual ~Base() = default;
  virtual rosin::Array operator()(const rosin::Array& x) const = 0;
};
struct Model {
  std::vector<std::shared_ptr<Base>> layers;
};
void use(const Model& model) { rosin::setup(rosin::Adam{}, model); }
