// Visitors and paths: what they do unless told otherwise, and paths as text.
#include <rosin/visitor.hpp>

#include <rosin/buffer.hpp>
#include <rosin/error.hpp>
#include <rosin/log.hpp>
#include <rosin/path.hpp>

namespace rosin {

ModelVisitor::~ModelVisitor() = default;
void ModelVisitor::buffer(const Buffer& x, const ModelPath& path) { array(x.value(), path); }
void ModelVisitor::rng(const Rng& x, const ModelPath& path) {
  ModelPart part;
  part.type = "Rng";
  part.object = &x;
  leaf(part, path);
}
bool ModelVisitor::enter(const ModelPart&, const ModelPath&) { return true; }
void ModelVisitor::leave(const ModelPart&, const ModelPath&) {}
void ModelVisitor::leaf(const ModelPart&, const ModelPath&) {}

ModelEditor::~ModelEditor() = default;
void ModelEditor::buffer(Buffer& x, const ModelPath& path) {
  x.settle();
  array(x.stored(), path);
}
void ModelEditor::rng(Rng&, const ModelPath&) {}
void ModelEditor::mode(LayerMode&, const ModelPath&) {}
bool ModelEditor::enter(const ModelPart&, const ModelPath&) { return true; }
void ModelEditor::leave(const ModelPart&, const ModelPath&) {}
void ModelEditor::leaf(const ModelPart&, const ModelPath&) {}
void ModelEditor::numbers(std::span<std::byte>, const ModelPart& part, const ModelPath& path) { leaf(part, path); }
detail::SharedCopies* ModelEditor::copies() { return nullptr; }

struct detail::SharedCopies::Entry {
  Entry* before;
  const void* original;
  std::string_view type;
  const void* pointer;
};

detail::SharedCopies::SharedCopies() noexcept : last_(nullptr) {}

detail::SharedCopies::~SharedCopies() {
  while (last_) {
    Entry* before = last_->before;
    delete last_;
    last_ = before;
  }
}

const void* detail::SharedCopies::find(const void* original, std::string_view type) const noexcept {
  const Entry* entry = last_;
  while (entry && !(entry->original == original && entry->type == type)) entry = entry->before;
  return entry ? entry->pointer : nullptr;
}

void detail::SharedCopies::remember(const void* original, std::string_view type, const void* pointer) {
  last_ = new Entry{last_, original, type, pointer};
}

void detail::refuse_copy(std::string_view type, const ModelPath& path) {
  std::string text("copy: the object behind a shared pointer cannot be copied; its class is ");
  text.append(type).append(" at ").append(path.text());
  text.append("; give the class a copy constructor (a polymorphic one is held by a Layer instead)");
  throw Error(ErrorKind::argument, text);
}

void detail::warn_unwalked(std::string_view type, const ModelPath& path) {
  std::string text("the walk does not know the fields of the class ");
  text.append(type);
  if (!path.is_root()) text.append(" at ").append(path.text());
  text.append(
      "; what it holds is not moved, trained or saved; state them in the class: static constexpr auto rosin_fields = "
      "rosin::fields<&");
  text.append(type).append("::member>{}; or static constexpr bool rosin_leaf = true; where it holds no arrays");
  warn_once("unwalked-class", text, type);
}

std::string ModelPath::text() const {
  if (is_root()) return {};
  std::string before = parent_->text();
  if (index_ >= 0) return before.append("[").append(std::to_string(index_)).append("]");
  if (!before.empty()) before += '.';
  return before.append(name_);
}

std::string ModelPath::file_text() const {
  if (is_root()) return {};
  std::string before = parent_->file_text();
  if (!before.empty()) before += '.';
  if (index_ >= 0) return before.append(std::to_string(index_));
  return before.append(name_);
}

}  // namespace rosin
