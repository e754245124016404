// Saving and loading: models, arrays and numbers in files. The format follows the extension: .safetensors, .bson,
// .jld2, .npz, .npy, .safetensors.index.json (several files), and for reading .pt and .pth. Read next: model.hpp
// (what these stand on), npy.hpp.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <rosin/device.hpp>
#include <rosin/export.hpp>
#include <rosin/generator_state.hpp>
#include <rosin/model.hpp>

namespace rosin {

/// How a file names the arrays of a model. `rosin`: paths as they are ("layers.0.weight"). `torch`: as PyTorch's
/// state_dict ("0.weight", "norm.running_mean"), with kernels of convolutions in PyTorch's order and direction.
enum class NameStyle : uint8_t { rosin, torch };
inline constexpr NameStyle torch = NameStyle::torch;

struct SaveOptions {
  NameStyle names = NameStyle::rosin;
  bool compress = false;  // .npz alone: deflated, as numpy.savez_compressed does
  /// Texts for the metadata of a safetensors file; names that begin with "rosin." are left out (the library writes its
  /// own), so that the metadata of a file that was loaded may be given.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  /// Of one file of several (.safetensors.index.json); an array that is larger has a file of its own.
  uint64_t shard_bytes = 5'000'000'000;
};

struct LoadFileOptions {
  bool strict = true;  // every array must be in the file, and every entry of the file in the model
  NameStyle names = NameStyle::rosin;
  /// safetensors (several files too) and .npy: parameters of the CPU stand on the file instead of in memory, read-only;
  /// an update gives them memory of their own. Copied as without it: what changes its type or its layout for the model,
  /// Bool, ties, and what goes to another device.
  bool map = false;
};

/// How `load(path)` brings the arrays of a file.
struct ReadOptions {
  /// Arrays stand on the file itself, mapped into memory: nothing is read or copied before it is used, and the file may
  /// be larger than the memory. For .safetensors, .safetensors.index.json and .npy on the CPU. The mapping lives as
  /// long as the last of the arrays, and is never written. A file that is replaced (as `save` does) stays what it was;
  /// one that is cut off or overwritten in place meanwhile ends the process (SIGBUS) or changes the values.
  bool map = false;
  /// Floating-point arrays come in this floating-point type, rounded; a value that it cannot hold is an Error (dtype).
  std::optional<DType> dtype = std::nullopt;
  /// Where the arrays come to, one after another; types as on a move there (Device::with).
  Device device = {};
};

namespace reflect {

/// Lists of things that are no arrays: std::array<int, 3>. Files take std::vector.
template <class T>
concept LeafList = SequenceLike<T> && is_leaf<typename T::value_type>;

}  // namespace reflect

/// One named thing of a file that holds several: a model, an array, a number, a vector of numbers, a generator, a text
/// or a vector of texts. Refers to it; made in a call.
class SaveEntry {
 public:
  template <Walkable M>
    requires(!std::same_as<M, Array> && !reflect::LeafList<M>)
  SaveEntry(std::string_view name, const M& model)
      : name_(name), model_(&model), walk_([](const void* object, ModelVisitor& visitor, const ModelPath& path) {
          visit(*static_cast<const M*>(object), visitor, path);
        }) {}
  SaveEntry(std::string_view name, const Array& array) : name_(name), array_(array) {}
  template <Number T> SaveEntry(std::string_view name, T number) : name_(name), array_(stored(number)) {}
  template <class T>
    requires(is_element<T> && !std::same_as<T, bool>)
  SaveEntry(std::string_view name, const std::vector<T>& numbers)
      : name_(name), array_(numbers, {static_cast<int64_t>(numbers.size())}) {}
  SaveEntry(std::string_view name, const Rng& rng) : name_(name), array_(generator_state(rng)) {}
  template <class T>
    requires std::convertible_to<const T&, std::string_view>
  SaveEntry(std::string_view name, const T& text) : name_(name), text_(text), is_text_(true) {}
  SaveEntry(std::string_view name, const std::vector<std::string>& texts) : name_(name), texts_(&texts) {}

  std::string_view name() const noexcept { return name_; }
  void visit_with(ModelVisitor& visitor, const ModelPath& path) const {
    if (walk_) walk_(model_, visitor, path);
    else if (!is_text_ && !texts_) visitor.array(array_, path);
  }
  /// Null unless it is one.
  const std::string_view* text() const noexcept { return is_text_ ? &text_ : nullptr; }
  const std::vector<std::string>* texts() const noexcept { return texts_; }

 private:
  /// Integers are stored as Int64 (unsigned ones of 64 bits as UInt64), floating-point numbers as Float64.
  template <class T> static Array stored(T number) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, bool,
                                      std::conditional_t<std::is_floating_point_v<T>, double, WholeNumber<T>>>;
    const Stored value = static_cast<Stored>(number);
    return Array(std::span<const Stored>(&value, 1), Shape());
  }

  template <class T>
  using WholeNumber = std::conditional_t<std::is_unsigned_v<T> && sizeof(T) == sizeof(uint64_t), uint64_t, int64_t>;

  std::string_view name_;
  const void* model_ = nullptr;
  void (*walk_)(const void*, ModelVisitor&, const ModelPath&) = nullptr;
  Array array_;
  std::string_view text_;
  bool is_text_ = false;
  const std::vector<std::string>* texts_ = nullptr;
};

/// One named thing that a file's entry is loaded into. Refers to it; made in a call.
class LoadEntry {
 public:
  template <Walkable M>
    requires(!std::is_const_v<M> && !reflect::LeafList<M>)
  LoadEntry(std::string_view name, M& model)
      : name_(name), target_(&model), walk_([](void* object, ModelEditor& editor, const ModelPath& path) {
          visit(*static_cast<M*>(object), editor, path);
        }),
        view_([](const void* object, ModelVisitor& visitor, const ModelPath& path) {
          visit(*static_cast<const M*>(object), visitor, path);
        }) {}
  template <Number T>
    requires(!std::is_const_v<T>)
  LoadEntry(std::string_view name, T& number)
      : name_(name), target_(&number), type_(dtype_of<Read<T>>),
        set_([](void* target, const Array& x) { *static_cast<T*>(target) = static_cast<T>(x.item<Read<T>>()); }) {}
  template <class T>
    requires(is_element<T> && !std::same_as<T, bool>)
  LoadEntry(std::string_view name, std::vector<T>& numbers)
      : name_(name), target_(&numbers), type_(dtype_of<T>), any_count_(true),
        set_([](void* target, const Array& x) { *static_cast<std::vector<T>*>(target) = x.to_vector<T>(); }) {}
  LoadEntry(std::string_view name, Rng& rng)
      : name_(name), target_(&rng), type_(DType::UInt64), shape_{2},
        set_([](void* target, const Array& x) { *static_cast<Rng*>(target) = restored_generator(x); }) {}
  LoadEntry(std::string_view name, std::string& text) : name_(name), text_(&text) {}
  LoadEntry(std::string_view name, std::vector<std::string>& texts) : name_(name), texts_(&texts) {}

  std::string_view name() const noexcept { return name_; }
  /// Whether it is no model, and stands in the file as one array: of this type, and of this shape unless it has any
  /// count.
  bool is_value() const noexcept { return set_ != nullptr; }
  DType type() const noexcept { return type_; }
  const Shape& shape() const noexcept { return shape_; }
  bool has_any_count() const noexcept { return any_count_; }
  void set_value(const Array& x) const { set_(target_, x); }
  /// Null unless it is one.
  std::string* text() const noexcept { return text_; }
  std::vector<std::string>* texts() const noexcept { return texts_; }
  /// Of a model or an array.
  void edit_with(ModelEditor& editor, const ModelPath& path) const { walk_(target_, editor, path); }
  void visit_with(ModelVisitor& visitor, const ModelPath& path) const { view_(target_, visitor, path); }

 private:
  /// What is no element type is long long, or its unsigned kind.
  template <class T>
  using Read = std::conditional_t<is_element<T>, T, std::conditional_t<std::is_unsigned_v<T>, uint64_t, int64_t>>;

  std::string_view name_;
  void* target_ = nullptr;
  DType type_ = DType::Float32;
  Shape shape_;
  bool any_count_ = false;
  void (*walk_)(void*, ModelEditor&, const ModelPath&) = nullptr;
  void (*view_)(const void*, ModelVisitor&, const ModelPath&) = nullptr;
  void (*set_)(void*, const Array&) = nullptr;
  std::string* text_ = nullptr;
  std::vector<std::string>* texts_ = nullptr;
};

/// What a file holds: arrays by name, in the order in which the file stores them, and its metadata.
class ROSIN_API SavedFile {
 public:
  SavedFile(std::vector<NamedArray> arrays, std::vector<std::pair<std::string, std::string>> metadata)
      : arrays_(std::move(arrays)), metadata_(std::move(metadata)) {}

  const std::vector<NamedArray>& arrays() const noexcept { return arrays_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const noexcept { return metadata_; }
  bool contains(std::string_view name) const noexcept;
  /// Error (argument): there is no such array; names the nearest.
  const Array& operator[](std::string_view name) const;
  /// An entry that is a text, or a vector of them. Error (argument): there is no such text; (io): it is no vector.
  const std::string& text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  /// The arrays of one entry, named as inside it: `loadmodel(m, file.part("model"))`. Error (argument): none.
  std::vector<NamedArray> part(std::string_view entry) const;

 private:
  std::vector<NamedArray> arrays_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// One tensor as a file's header states it.
struct TensorListing {
  std::string name;
  std::string type;  // as the format writes it: "F32"; types that arrays lack are listed too
  std::vector<uint64_t> sizes;
  uint64_t bytes = 0;
};

/// What a file says of its content.
struct FileListing {
  std::vector<TensorListing> tensors;  // in the order in which the file stores them
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Writes all arrays, buffers and generators of the model, tied ones once. The file appears whole or not at all:
/// whatever goes wrong, an older file of that name stays. Arrays keep their logical shape, stored row-major: a Dense
/// weight (out, in) is (out, in) for NumPy and PyTorch. Needs memory for one array beside the model. A .bson or .jld2
/// file has the state as Flux.state gives it, under `model_state`, for Flux.loadmodel!. Errors: io (the file cannot be
/// written), argument (unknown extension, names used twice, what the format cannot hold), dtype (no such type there).
ROSIN_API void save(const std::string& path, ModelView model, SaveOptions options = {});
/// Several named things: `save("run.safetensors", {{"model", m}, {"step", n}, {"rng", default_rng()}})`. Names become
/// "model.layers.0.weight". Texts go into the file's metadata, a vector of texts as a JSON list.
ROSIN_API void save(const std::string& path, std::initializer_list<SaveEntry> entries, SaveOptions options = {});
/// Named arrays, such as those of state(model).
/// Error (argument): names of PyTorch, which take a model.
ROSIN_API void save(const std::string& path, const std::vector<NamedArray>& arrays, const SaveOptions& options = {});

/// All that a file holds. Of Julia (.bson, .jld2): arrays and numbers, under rosin's names where layers of Flux are
/// concerned; types, functions and hyper-parameters of layers are left out, fields of structures without names are
/// called by their position. Of PyTorch (.pt, .pth): tensors and numbers by their path in lists and dicts, texts as
/// metadata. Errors (io): the file cannot be read, or breaks a rule of its format; nothing in it is trusted.
/// (argument): a type that is not floating-point, a format that cannot be mapped.
ROSIN_API SavedFile load(const std::string& path, const ReadOptions& options = {});
/// The names, types and shapes of a file, from its header alone: no array is read. Errors as load(path).
ROSIN_API FileListing list_file(const std::string& path);
/// Reads the file into the model, all or nothing; element types of the model stay. Floating-point values may be rounded
/// to the model's floating-point type; every other value must be the same in the model's type. Of a file of Julia it is
/// the root, its only entry, or one called model_state or model; a list of arrays is taken as Flux.params(model).
/// Errors: as load(path); argument (names that do not match), shape (sizes that differ), dtype (1200 for an Int8, 0.5
/// for an integer, 1e6 for a Float16).
ROSIN_API void load(const std::string& path, ModelEdit model, LoadFileOptions options = {});
/// Reads several named things: `load("run.safetensors", {{"model", m}, {"step", n}})`, all or nothing.
ROSIN_API void load(const std::string& path, std::initializer_list<LoadEntry> entries, LoadFileOptions options = {});

}  // namespace rosin
