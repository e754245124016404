// What compiled code sees of a model: callbacks on its arrays, buffers and other parts, each with its path.
// Read next: walk.hpp, which calls these for any class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <rosin/array.hpp>
#include <rosin/path.hpp>

namespace rosin {

class Buffer;
class Rng;

/// Mode of layers that behave differently in training: automatic is training inside gradient calls, testing outside.
/// The walk finds members of this type.
enum class LayerMode : uint8_t { automatic, train, test };

/// What kind of thing a part of a model is.
enum class PartKind : uint8_t { fields, sequence, tuple, map, integer, real, boolean, text, other };

/// A part of a model that is no array: a class, a container, or a leaf with its value. Views and pointers are valid
/// during the call.
struct ModelPart {
  PartKind kind = PartKind::other;
  std::string_view type;  // "Dense": without namespaces and template arguments
  const void* object = nullptr;
  std::string (*show)(const void*) = nullptr;  // one line, for classes with rosin_show
  int64_t count = 0;                           // children
  int64_t integer = 0;                         // value of integers, enums, booleans
  double real = 0;                             // value of floats
  std::string_view text;                       // value of strings
};

/// Looks at a model.
class ROSIN_API ModelVisitor {
 public:
  virtual ~ModelVisitor();
  /// An array; may be nothing. path.trainable() says whether the place is trained.
  virtual void array(const Array& x, const ModelPath& path) = 0;
  /// A running statistic; by default its value is visited as an array that is not trained.
  virtual void buffer(const Buffer& x, const ModelPath& path);
  /// A generator that is part of the model (`mutable Rng rng{7};`): its key and counter are its whole state. By default
  /// it is a leaf.
  virtual void rng(const Rng& x, const ModelPath& path);
  /// Before the children of a class or container; false leaves them out (then `leave` is not called).
  virtual bool enter(const ModelPart& part, const ModelPath& path);
  virtual void leave(const ModelPart& part, const ModelPath& path);
  /// Anything else: numbers, strings, functions, classes that cannot be walked.
  virtual void leaf(const ModelPart& part, const ModelPath& path);
};

namespace detail {

/// Objects behind shared pointers that were copied: two pointers to one stay two pointers to one copy.
class ROSIN_API SharedCopies {
 public:
  SharedCopies() noexcept;
  ~SharedCopies();
  SharedCopies(const SharedCopies&) = delete;
  SharedCopies& operator=(const SharedCopies&) = delete;
  /// The pointer object that holds the copy of `original`, or null.
  const void* find(const void* original, std::string_view type) const noexcept;
  void remember(const void* original, std::string_view type, const void* pointer);

 private:
  struct Entry;
  Entry* last_;
};

}  // namespace detail

/// Changes the arrays of a model in place.
class ROSIN_API ModelEditor {
 public:
  virtual ~ModelEditor();
  virtual void array(Array& x, const ModelPath& path) = 0;
  /// By default the value is edited as an array that is not trained.
  virtual void buffer(Buffer& x, const ModelPath& path);
  /// By default it stays as it is. One assigns to it: `x = Rng::restored(key, counter);`.
  virtual void rng(Rng& x, const ModelPath& path);
  virtual void mode(LayerMode& mode, const ModelPath& path);
  virtual bool enter(const ModelPart& part, const ModelPath& path);
  virtual void leave(const ModelPart& part, const ModelPath& path);
  virtual void leaf(const ModelPart& part, const ModelPath& path);
  /// A leaf that is a number, or a sequence of them, whose bytes may be overwritten. By default it is passed on to
  /// leaf.
  virtual void numbers(std::span<std::byte> bytes, const ModelPart& part, const ModelPath& path);
  /// Not null when the model is a fresh copy whose shared pointers still point to the original's objects: the walk
  /// replaces them by copies.
  virtual detail::SharedCopies* copies();
};

namespace detail {

/// Says once for each class that it cannot be walked (warning `unwalked-class`).
ROSIN_API void warn_unwalked(std::string_view type, const ModelPath& path);
/// Throws Error (argument): an object behind a shared pointer has a class that cannot be copied.
[[noreturn]] ROSIN_API void refuse_copy(std::string_view type, const ModelPath& path);

}  // namespace detail

}  // namespace rosin
