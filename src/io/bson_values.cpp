// Every element is lowered once; an object of `_backrefs` is one value wherever it is referred to. Its value is made
// before its content is looked at, so that it may contain itself.
#include "io/bson_values.hpp"

#include <cstring>
#include <vector>

#include <rosin/half.hpp>

#include "io/bson_document.hpp"

namespace rosin {
namespace {

constexpr uint32_t unknown = UINT32_MAX;
constexpr uint32_t most_keys = 16;   // of a tagged document; BSON.jl writes at most five
constexpr uint32_t most_steps = 64;  // of the path to a name
constexpr size_t longest_step = 1024;
constexpr int deepest = 500;

/// What a document that stands for a type says of it.
struct TypeName {
  std::string name;                     // "Flux.Dense"; without "Main." before Core and Base
  const BsonElement* params = nullptr;  // array, or a tagged array of numbers; null: none
};

class BsonValues {
 public:
  explicit BsonValues(const InputFile& file) : file_(file), bson_(read_bson(file)) {
    const BsonElement* shared = child(bson_.elements[0], "_backrefs");
    if (!shared) return;
    if (shared->type != BsonType::array) refuse(*shared, "_backrefs must be an array", "it is none");
    shared_ = shared;
    shared_values_.assign(shared->count, unknown);
  }

  JuliaTree read() {
    tree_.root = make(bson_.elements[0]);
    return std::move(tree_);
  }

 private:
  [[noreturn]] void refuse(const BsonElement& element, const std::string& rule, const std::string& what) const {
    refuse_at(file_.path(), element.place, rule, what);
  }

  const BsonElement* child(const BsonElement& element, std::string_view key) const { return bson_.child(element, key); }
  const std::string* text_child(const BsonElement& element, std::string_view key) const {
    const BsonElement* found = child(element, key);
    return found && found->type == BsonType::text ? &bson_.texts[found->text] : nullptr;
  }
  /// Of a document that stands for an object; null for other elements.
  const std::string* tag(const BsonElement& element) const {
    if (element.type != BsonType::document || element.text == BsonElement::no_text) return nullptr;
    if (element.count > most_keys) refuse(element, "a tagged document has few keys", "this one has many");
    return &bson_.texts[element.text];
  }
  bool is_tagged(const BsonElement& element, std::string_view wanted) const {
    const std::string* found = tag(element);
    return found && *found == wanted;
  }
  const BsonElement& needed(const BsonElement& element, std::string_view key) const {
    if (const BsonElement* found = child(element, key)) return *found;
    refuse(element, "a tagged document must have all of its keys", "'" + std::string(key) + "' is missing");
  }

  /// Which entry of `_backrefs` a reference means.
  uint32_t shared_index(const BsonElement& reference) const {
    const BsonElement& number = needed(reference, "ref");
    const bool whole = number.type == BsonType::int32 || number.type == BsonType::int64;
    if (!whole || number.integer < 1 || !shared_ || number.integer > static_cast<int64_t>(shared_->count)) {
      refuse(reference, "a reference must mean an entry of _backrefs",
             whole ? "it means entry " + std::to_string(number.integer) : "it is no number");
    }
    return static_cast<uint32_t>(number.integer - 1);
  }
  /// The element itself, or what it refers to.
  const BsonElement& followed(const BsonElement& element) const {
    if (!is_tagged(element, "backref")) return element;
    const uint32_t index = shared_index(element);  // of a file that has _backrefs
    const BsonElement& entry = bson_.elements[bson_.children(*shared_)[index]];
    if (is_tagged(entry, "backref")) refuse(entry, "an entry of _backrefs must be no reference", "it is one");
    return entry;
  }

  // --- Values.

  /// Every element becomes one value at most, so that a small file cannot become a large tree.
  uint32_t fresh(const BsonElement& element) {
    if (tree_.values.size() >= bson_.elements.size()) refuse(element, "objects are stored once", "they are not");
    tree_.values.emplace_back();
    return static_cast<uint32_t>(tree_.values.size() - 1);
  }

  uint32_t make(const BsonElement& element) {
    if (depth_ == deepest) refuse(element, "objects are nested at most 500 deep", "this one is deeper");
    ++depth_;
    const uint32_t made = made_value(element);
    --depth_;
    return made;
  }

  uint32_t made_value(const BsonElement& element) {
    if (is_tagged(element, "backref")) {
      const uint32_t index = shared_index(element);
      if (shared_values_[index] == unknown) {
        shared_values_[index] = fresh(element);
        fill(shared_values_[index], followed(element));
      }
      return shared_values_[index];
    }
    const uint32_t made = fresh(element);
    fill(made, element);
    return made;
  }

  void fill(uint32_t at, const BsonElement& element) {
    JuliaValue value;
    switch (element.type) {
      case BsonType::real: value.kind = JuliaKind::real, value.real = element.real; break;
      case BsonType::text: value.kind = JuliaKind::text, value.text = remember(bson_.texts[element.text]); break;
      case BsonType::boolean: value.kind = JuliaKind::boolean, value.integer = element.integer; break;
      case BsonType::nothing: break;
      case BsonType::int32:
      case BsonType::int64:
        value.kind = JuliaKind::integer, value.number = DType::Int64, value.integer = element.integer;
        break;
      case BsonType::binary: value = array_value(DType::UInt8, {static_cast<int64_t>(element.bytes)}, element); break;
      case BsonType::array: return fill_list(at, JuliaKind::list, element);
      case BsonType::document: return fill_document(at, element);
    }
    tree_.values[at] = value;
  }

  void fill_document(uint32_t at, const BsonElement& element) {
    const std::string* kind = tag(element);
    if (!kind) return fill_named(at, element);
    if (*kind == "array") return fill_array(at, element);
    if (*kind == "struct") return fill_structure(at, element);
    if (*kind == "tuple" || *kind == "svec") return fill_list(at, JuliaKind::tuple, followed(needed(element, "data")));
    JuliaValue value;
    if (*kind == "symbol") {
      const std::string* name = text_child(element, "name");
      if (!name) refuse(element, "a symbol has a name", "this one has none");
      value.kind = JuliaKind::symbol, value.text = remember(*name);
    } else if (*kind == "ref") {
      value.kind = JuliaKind::other, value.text = remember("module " + joined(needed(element, "path")));
    } else if (*kind == "datatype" || *kind == "unionall" || *kind == "jl_bottom_type" || *kind == "jl_anonymous") {
      value.kind = JuliaKind::other, value.text = remember("type " + type_of(element).name);
    } else {
      refuse(element, "a tag must be one of BSON.jl's", "it is '" + kind->substr(0, 100) + "'");
    }
    tree_.values[at] = value;
  }

  uint32_t remember(std::string_view text) { return tree_.text_index(text); }

  /// Children are made first, as they add theirs to the same list.
  void set_children(uint32_t at, JuliaKind kind, std::string_view text, const std::vector<JuliaChild>& children) {
    JuliaValue& value = tree_.values[at];
    value.kind = kind;
    value.text = remember(text);
    value.first = static_cast<uint32_t>(tree_.children.size());
    value.count = static_cast<uint32_t>(children.size());
    tree_.children.insert(tree_.children.end(), children.begin(), children.end());
  }

  void fill_list(uint32_t at, JuliaKind kind, const BsonElement& data, std::string_view text = {}) {
    if (data.type != BsonType::array) refuse(data, "data must be an array here", "it is none");
    std::vector<JuliaChild> children;
    for (uint32_t each : bson_.children(data)) children.push_back({JuliaTree::no_name, make(bson_.elements[each])});
    set_children(at, kind, text, children);
  }

  void fill_named(uint32_t at, const BsonElement& document) {
    std::vector<JuliaChild> children;
    for (uint32_t each : bson_.children(document)) {
      const bool hidden = &document == bson_.elements.data() && bson_.key(each) == "_backrefs";
      if (!hidden) children.push_back({remember(bson_.key(each)), make(bson_.elements[each])});
    }
    set_children(at, JuliaKind::named, {}, children);
  }

  // --- Types.

  std::string joined(const BsonElement& path) const {
    std::string text;
    if (path.count > most_steps) refuse(path, "the path to a name has at most 64 steps", "this one has more");
    for (uint32_t each : bson_.children(path)) {
      const BsonElement& step = bson_.elements[each];
      const bool fits = step.type == BsonType::text && bson_.texts[step.text].size() <= longest_step;
      if (!fits) refuse(step, "a name must be made of short texts", "one is none");
      text += (text.empty() ? "" : ".") + bson_.texts[step.text];
    }
    for (const char* known : {"Main.Core.", "Main.Base."}) {
      if (text.starts_with(known)) text.erase(0, 5);
    }
    return text;
  }

  TypeName type_of(const BsonElement& stated, int depth = 0) const {
    const BsonElement& element = followed(stated);
    const std::string* kind = tag(element);
    if (!kind) refuse(element, "a type must be a tagged document", "it is none");
    if (*kind == "jl_bottom_type") return {"Union{}", nullptr};
    if (*kind == "unionall" && depth < 50) return type_of(needed(element, "body"), depth + 1);
    if (*kind == "jl_anonymous") return {anonymous_name(element), nullptr};
    // A type parameter (TypeVar) is a structure.
    if (*kind != "datatype") return {*kind, nullptr};
    const BsonElement* params = child(element, "params");
    return {joined(needed(element, "name")), params ? &followed(*params) : nullptr};
  }

  /// Of a function without a name, or with captured variables: Julia's own name for it ("#5#9").
  std::string anonymous_name(const BsonElement& element) const {
    const BsonElement& type_name = followed(needed(element, "typename"));
    if (const BsonElement* data = child(type_name, "data"); data && data->count > 0) {
      for (uint32_t each : bson_.children(*data)) {
        const BsonElement& part = followed(bson_.elements[each]);
        if (!is_tagged(part, "symbol")) continue;
        if (const std::string* name = text_child(part, "name")) return "function " + *name;
      }
    }
    return "function";
  }

  /// The element type of an array; nothing where rosin has none.
  std::optional<DType> element_type(const TypeName& type) const {
    const auto last_name = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
    if (type.name == "Base.Complex" || type.name == "Core.Complex") {
      if (!type.params || type.params->type != BsonType::array || type.params->count != 1) return std::nullopt;
      const TypeName part = type_of(bson_.elements[bson_.children(*type.params)[0]]);
      return julia_type(last_name(part.name) == "Float32"   ? "ComplexF32"
                        : last_name(part.name) == "Float64" ? "ComplexF64"
                                                            : "");
    }
    if (!type.name.starts_with("Core.") && type.name != "BFloat16s.BFloat16") return std::nullopt;
    return julia_type(last_name(type.name));
  }

  // --- Arrays and structures.

  JuliaValue array_value(DType type, std::vector<int64_t> sizes, const BsonElement& data) {
    const std::optional<uint64_t> bytes = julia_bytes(sizes, size_of(type));
    if (!bytes || *bytes != data.bytes) {
      refuse(data, "an array must have as many bytes as its sizes need",
             "it has " + std::to_string(data.bytes) + (bytes ? " and needs " + std::to_string(*bytes) : ""));
    }
    JuliaValue value;
    value.kind = JuliaKind::array;
    value.array = static_cast<uint32_t>(tree_.arrays.size());
    tree_.arrays.push_back({type, std::move(sizes), data.place, data.bytes});
    return value;
  }

  std::vector<int64_t> sizes_of(const BsonElement& element) const {
    const BsonElement& list = followed(needed(element, "size"));
    std::vector<int64_t> sizes;
    for (uint32_t each : bson_.children(list)) {
      const BsonElement& size = bson_.elements[each];
      const bool whole = size.type == BsonType::int32 || size.type == BsonType::int64;
      if (!whole || size.integer < 0) refuse(size, "sizes must be counts", "one is none");
      sizes.push_back(size.integer);
    }
    return sizes;
  }

  void fill_array(uint32_t at, const BsonElement& element) {
    const TypeName type = type_of(needed(element, "type"));
    const BsonElement& data = followed(needed(element, "data"));
    const std::optional<DType> known = element_type(type);
    if (data.type == BsonType::array) return fill_list(at, JuliaKind::list, data, type.name);
    if (data.type != BsonType::binary) refuse(data, "an array's data must be bytes or an array", "it is neither");
    if (known) {
      tree_.values[at] = array_value(*known, sizes_of(element), data);
    } else {
      tree_.values[at].kind = JuliaKind::other;
      tree_.values[at].text = remember("array of " + type.name);
    }
  }

  void fill_structure(uint32_t at, const BsonElement& element) {
    const TypeName type = type_of(needed(element, "type"));
    const BsonElement& data = followed(needed(element, "data"));
    if (data.type == BsonType::binary) return fill_number(at, type, data);
    if (data.type != BsonType::array) refuse(data, "a structure's data must be bytes or an array", "it is neither");
    if (type.name == "Core.NamedTuple") return fill_named_tuple(at, type, data);
    if (type.name == "Base.Dict" && fill_dictionary(at, type, data)) return;
    fill_list(at, JuliaKind::structure, data, type.name);
  }

  /// A value of a primitive type, as its bytes.
  void fill_number(uint32_t at, const TypeName& type, const BsonElement& data) {
    JuliaValue& value = tree_.values[at];
    const std::optional<DType> known = element_type(type);
    if (!known || is_complex(*known)) {
      value.kind = JuliaKind::other;
      value.text = remember(type.name);
      return;
    }
    if (data.bytes != size_of(*known)) {
      refuse(data, "a number must have the bytes of its type",
             type.name + " has " + std::to_string(data.bytes) + " bytes");
    }
    unsigned char bytes[8] = {};
    file_.read(data.place, bytes, static_cast<size_t>(data.bytes));
    set_number(value, *known, bytes);
  }

  static void set_number(JuliaValue& value, DType type, const unsigned char* bytes);

  /// Names are a parameter of the type. Those of an empty one may be missing.
  void fill_named_tuple(uint32_t at, const TypeName& type, const BsonElement& data) {
    const BsonElement* names = nullptr;
    if (type.params && type.params->type == BsonType::array && type.params->count > 0) {
      const BsonElement& first = followed(bson_.elements[bson_.children(*type.params)[0]]);
      if (is_tagged(first, "tuple")) names = &followed(needed(first, "data"));
    }
    if ((names ? names->count : 0) != data.count) {
      refuse(data, "a named tuple has as many names as values",
             "it has " + std::to_string(names ? names->count : 0) + " and " + std::to_string(data.count));
    }
    std::vector<JuliaChild> children;
    for (uint32_t i = 0; i < data.count; ++i) {
      const std::string* name = text_child(followed(bson_.elements[bson_.children(*names)[i]]), "name");
      if (!name) refuse(*names, "names must be symbols", "one is none");
      children.push_back({remember(*name), make(bson_.elements[bson_.children(data)[i]])});
    }
    set_children(at, JuliaKind::named, type.name, children);
  }

  /// A dictionary whose keys are texts or symbols. False: it has other keys.
  bool fill_dictionary(uint32_t at, const TypeName& type, const BsonElement& data) {
    if (data.count != 2) return false;
    const BsonElement& keys = followed(bson_.elements[bson_.children(data)[0]]);
    const BsonElement& values = followed(bson_.elements[bson_.children(data)[1]]);
    if (keys.type != BsonType::array || values.type != BsonType::array || keys.count != values.count) return false;
    std::vector<const std::string*> names;
    for (uint32_t each : bson_.children(keys)) {
      const BsonElement& key = followed(bson_.elements[each]);
      const bool symbol = is_tagged(key, "symbol");
      if (key.type != BsonType::text && !symbol) return false;
      names.push_back(symbol ? text_child(key, "name") : &bson_.texts[key.text]);
      if (!names.back()) return false;
    }
    std::vector<JuliaChild> children;
    for (uint32_t i = 0; i < values.count; ++i) {
      children.push_back({remember(*names[i]), make(bson_.elements[bson_.children(values)[i]])});
    }
    set_children(at, JuliaKind::named, type.name, children);
    return true;
  }

  const InputFile& file_;
  BsonFile bson_;
  const BsonElement* shared_ = nullptr;
  std::vector<uint32_t> shared_values_;  // of each entry of _backrefs, once made
  JuliaTree tree_;
  int depth_ = 0;
};

void BsonValues::set_number(JuliaValue& value, DType type, const unsigned char* bytes) {
  const auto as = [&]<class T>(T number) {
    std::memcpy(&number, bytes, sizeof number);
    return number;
  };
  value.number = type;
  value.kind = is_float(type) ? JuliaKind::real : type == DType::Bool ? JuliaKind::boolean : JuliaKind::integer;
  switch (type) {
    case DType::Bool:
    case DType::UInt8: value.integer = as(uint8_t{}); break;
    case DType::Int8: value.integer = as(int8_t{}); break;
    case DType::Int16: value.integer = as(int16_t{}); break;
    case DType::UInt16: value.integer = as(uint16_t{}); break;
    case DType::Int32: value.integer = as(int32_t{}); break;
    case DType::UInt32: value.integer = as(uint32_t{}); break;
    case DType::Int64:
    case DType::UInt64: value.integer = as(int64_t{}); break;
    case DType::Float16: value.real = static_cast<float>(as(Half{})); break;
    case DType::BFloat16: value.real = static_cast<float>(as(BFloat{})); break;
    case DType::Float32: value.real = as(float{}); break;
    default: value.real = as(double{}); break;
  }
}

}  // namespace

JuliaTree read_bson_values(const InputFile& file) { return BsonValues(file).read(); }

}  // namespace rosin
