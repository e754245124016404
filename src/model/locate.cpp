// See locate.hpp.
#include "model/locate.hpp"

#include <new>
#include <optional>

#include "base/hash.hpp"

namespace rosin {
namespace {

Error::Place place_of(const ModelPart& part) { return {part.object, part.type}; }

/// The outermost part of a model, and one of its parts. (An object and its first member have one address: their classes
/// differ.)
class Finder : public ModelVisitor {
 public:
  explicit Finder(Error::Place wanted) : wanted_(wanted) {}

  void array(const Array&, const ModelPath&) override {}
  bool enter(const ModelPart& part, const ModelPath& path) override {
    look_at(part, path);
    return wanted_.object && !is_found_;
  }
  void leaf(const ModelPart& part, const ModelPath& path) override { look_at(part, path); }

  Error::Place whole;

 protected:
  virtual void found_whole(const ModelPart&) {}
  virtual void found(const ModelPath&) = 0;

 private:
  void look_at(const ModelPart& part, const ModelPath& path) {
    if (!whole.object) {
      whole = place_of(part);
      found_whole(part);
    }
    if (is_found_ || place_of(part) != wanted_) return;
    is_found_ = true;
    found(path);
  }

  Error::Place wanted_;
  bool is_found_ = false;
};

/// As text.
class TextFinder final : public Finder {
 public:
  using Finder::Finder;

  std::string shown;
  std::optional<std::string> path;

 protected:
  void found_whole(const ModelPart& part) override {
    if (part.show) shown = part.show(part.object);
  }
  void found(const ModelPath& at) override { path = at.text(); }
};

/// As a word that is equal for equal paths.
class HashFinder final : public Finder {
 public:
  using Finder::Finder;

  std::optional<uint64_t> path;  // 0: the whole itself

 protected:
  void found(const ModelPath& at) override { path = at.is_root() ? 0 : at.hash() | 1; }
};

}  // namespace

void detail::locate(Error& error, ModelView whole) {
  TextFinder finder(error.place());
  whole.visit_with(finder);
  if (!error.place().object) error.arose_in(finder.whole, finder.shown);
  else if (finder.path) error.arose_below(finder.whole, *finder.path);
}

detail::CallOf::CallOf(ModelView whole) noexcept {
  static_assert(sizeof(ModelCall) <= sizeof call_ && alignof(ModelCall) <= alignof(void*));
  ::new (static_cast<void*>(call_)) ModelCall(whole);
}

detail::CallOf::~CallOf() { std::launder(reinterpret_cast<ModelCall*>(call_))->~ModelCall(); }

void ModelCall::follow(ModelView whole, Error::Place& layer, uint64_t& path) {
  HashFinder finder(layer);
  whole.visit_with(finder);
  if (!layer.object || finder.path) layer = finder.whole;
  if (finder.path.value_or(0) != 0) path = mix(path, *finder.path) | 1;
}

}  // namespace rosin
