// Lists of places, by which compiled code goes through several models in step.
#include <rosin/model.hpp>
#include <rosin/random.hpp>

#include "model/ties.hpp"
#include "model/unsettled.hpp"

namespace rosin {
namespace {

template <class ArrayPointer> class PlaceList {
 public:
  PlaceList(std::vector<detail::ArrayPlace<ArrayPointer>>& places) : places_(places) { places_.clear(); }

  void add(ArrayPointer x, const ModelPath& path, bool buffer) {
    const bool numeric = !x->is_nothing() && (is_float(x->dtype()) || is_complex(x->dtype()));
    places_.push_back({x, path.hash(), first_of(*x, path), path.trainable() && numeric && !buffer, buffer});
  }

 private:
  /// Looks back along the list: ties are few, and so no memory but the list is needed.
  int first_of(const Array& x, const ModelPath& path) const {
    const int own = static_cast<int>(places_.size());
    const bool marked = is_tied(x);
    if (!marked && !path.shared()) return own;
    for (int i = 0; i < own; ++i) {
      const Array* other = places_[static_cast<size_t>(i)].array;
      if (other == &x || (marked && same(*other, x))) return i;
    }
    return own;
  }

  std::vector<detail::ArrayPlace<ArrayPointer>>& places_;
};

class ListForEdit : public ModelEditor {
 public:
  ListForEdit(std::vector<detail::ArrayPlace<Array*>>& places) : list_(places) {}
  void array(Array& x, const ModelPath& path) override { list_.add(&x, path, false); }
  void buffer(Buffer& x, const ModelPath& path) override { list_.add(&x.stored(), path, true); }

 private:
  PlaceList<Array*> list_;
};

class ListForStep : public ListForEdit {
 public:
  ListForStep(std::vector<detail::ArrayPlace<Array*>>& places, Unsettled& unsettled)
      : ListForEdit(places), unsettled_(unsettled) {}
  void buffer(Buffer& x, const ModelPath& path) override {
    if (!x.earlier().is_nothing()) unsettled_.buffers.push_back(&x);
    ListForEdit::buffer(x, path);
  }
  void rng(Rng& x, const ModelPath&) override {
    if (x.has_earlier()) unsettled_.rngs.push_back(&x);
  }

 private:
  Unsettled& unsettled_;
};

class ListForView : public ModelVisitor {
 public:
  ListForView(std::vector<detail::ArrayPlace<const Array*>>& places) : list_(places) {}
  void array(const Array& x, const ModelPath& path) override { list_.add(&x, path, false); }
  void buffer(const Buffer& x, const ModelPath& path) override { list_.add(&x.value(), path, true); }

 private:
  PlaceList<const Array*> list_;
};

class PathAt : public ModelVisitor {
 public:
  PathAt(size_t position) : left_(position) {}
  void array(const Array&, const ModelPath& path) override {
    if (left_-- == 0) text = path.text();
  }
  std::string text;

 private:
  size_t left_;
};

}  // namespace

void detail::list_arrays(ModelEdit model, std::vector<detail::ArrayPlace<Array*>>& places) {
  ListForEdit list(places);
  model.edit_with(list);
}

void detail::list_arrays(ModelEdit model, std::vector<detail::ArrayPlace<Array*>>& places, Unsettled& unsettled) {
  unsettled.buffers.clear();
  unsettled.rngs.clear();
  ListForStep list(places, unsettled);
  model.edit_with(list);
}

void detail::list_arrays(ModelView model, std::vector<detail::ArrayPlace<const Array*>>& places) {
  ListForView list(places);
  model.visit_with(list);
}

std::string detail::path_at(ModelView model, size_t position) {
  PathAt at(position);
  model.visit_with(at);
  return at.text;
}

}  // namespace rosin
