// The place of something inside a model: a list on the stack of the walk, spelled as text only when asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rosin/export.hpp>

namespace rosin {

/// One step of a path; it refers to the step before it, which lives longer. Costs no heap memory.
class ROSIN_API ModelPath {
 public:
  /// The model itself.
  ModelPath() noexcept = default;

  /// The field `name` of what this path leads to; `name` must live as long as the path.
  ModelPath field(std::string_view name, bool trained = true) const noexcept {
    ModelPath step(this, name, -1);
    step.trainable_ = trainable_ && trained;
    return step;
  }
  /// Element `index` of what this path leads to.
  ModelPath item(int64_t index) const noexcept { return ModelPath(this, {}, index); }
  /// The same place, below which nothing is trained (buffers).
  ModelPath fixed() const noexcept {
    ModelPath same = *this;
    same.trainable_ = false;
    return same;
  }
  /// The same place, reached through a pointer that others may share.
  ModelPath through_pointer() const noexcept {
    ModelPath same = *this;
    same.shared_ = true;
    return same;
  }

  /// The step before; null for the model itself.
  const ModelPath* parent() const noexcept { return parent_; }
  /// Name of the field, or empty when the step is an index.
  std::string_view name() const noexcept { return name_; }
  /// The index, or -1 when the step is a name.
  int64_t index() const noexcept { return index_; }
  bool is_root() const noexcept { return parent_ == nullptr; }
  /// Whether no step excludes this place from training.
  bool trainable() const noexcept { return trainable_; }
  /// Whether another path may lead to the same object.
  bool shared() const noexcept { return shared_; }
  /// Equal for equal paths; computed step by step.
  uint64_t hash() const noexcept { return hash_; }

  /// As in messages: "layers[0].weight"; empty for the model itself.
  std::string text() const;
  /// As in files: "layers.0.weight".
  std::string file_text() const;

 private:
  ModelPath(const ModelPath* parent, std::string_view name, int64_t index) noexcept
      : parent_(parent), name_(name), index_(index), trainable_(parent->trainable_), shared_(parent->shared_) {
    uint64_t h = (parent->hash_ ^ static_cast<uint64_t>(index)) * 0x9e3779b97f4a7c15u;
    for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash_ = h ^ (h >> 29);
  }

  const ModelPath* parent_ = nullptr;
  std::string_view name_;
  int64_t index_ = -1;
  uint64_t hash_ = 0xcbf29ce484222325u;
  bool trainable_ = true;
  bool shared_ = false;
};

}  // namespace rosin
