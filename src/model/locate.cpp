// See locate.hpp.
#include "model/locate.hpp"

#include <optional>

namespace rosin {
namespace {

Error::Place place_of(const ModelPart& part) { return {part.object, part.type}; }

/// The outermost part of a model, and the path of one of its parts. (An object and its first member have one address:
/// their classes differ.)
class Finder : public ModelVisitor {
 public:
  explicit Finder(Error::Place wanted) : wanted_(wanted) {}

  void array(const Array&, const ModelPath&) override {}
  bool enter(const ModelPart& part, const ModelPath& path) override {
    look_at(part, path);
    return wanted_.object && !path_;
  }
  void leaf(const ModelPart& part, const ModelPath& path) override { look_at(part, path); }

  Error::Place whole;
  std::string shown;
  const std::optional<std::string>& path() const { return path_; }

 private:
  void look_at(const ModelPart& part, const ModelPath& path) {
    if (!whole.object) {
      whole = place_of(part);
      if (part.show) shown = part.show(part.object);
    }
    if (!path_ && place_of(part) == wanted_) path_ = path.text();
  }

  Error::Place wanted_;
  std::optional<std::string> path_;
};

}  // namespace

void detail::locate(Error& error, ModelView whole) {
  Finder finder(error.place());
  whole.visit_with(finder);
  if (!error.place().object) error.arose_in(finder.whole, finder.shown);
  else if (finder.path()) error.arose_below(finder.whole, *finder.path());
}

}  // namespace rosin
