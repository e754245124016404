// Groups become named values, compounds structures whose fields have names, references the value that they mean. Fields
// without content are not in the file; a tuple's elements are called "1", "2" and so keep their places.
#include "io/jld2_values.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <rosin/half.hpp>

#include "io/hdf5_objects.hpp"

namespace rosin {
namespace {

constexpr int deepest = 500;

class Jld2Values {
 public:
  explicit Jld2Values(const InputFile& file) : file_(file), hdf5_(file) {}

  JuliaTree read() {
    tree_.root = value_at(hdf5_.root());
    return std::move(tree_);
  }

 private:
  using Bytes = std::vector<unsigned char>;

  uint32_t fresh() {
    // The smallest value takes a byte of the file.
    const size_t most = std::min<uint64_t>(JuliaTree::most_values, file_.size() + 16);
    if (tree_.values.size() >= most) hdf5_.refuse(0, "a file has fewer values than bytes", "it has more");
    tree_.values.emplace_back();
    return static_cast<uint32_t>(tree_.values.size() - 1);
  }

  void set_children(uint32_t at, JuliaKind kind, std::string_view text, const std::vector<JuliaChild>& children) {
    JuliaValue& value = tree_.values[at];
    value.kind = kind;
    value.text = tree_.text_index(text);
    value.first = static_cast<uint32_t>(tree_.children.size());
    value.count = static_cast<uint32_t>(children.size());
    tree_.children.insert(tree_.children.end(), children.begin(), children.end());
  }

  // --- Objects.

  /// Known before it is read, as it may contain itself.
  uint32_t value_at(uint64_t address) {
    const auto known = known_.find(address);
    if (known != known_.end()) return known->second;
    if (++depth_ > deepest) hdf5_.refuse(address, "values are nested at most 500 deep", "these are deeper");
    const uint32_t made = fresh();
    known_.emplace(address, made);
    if (address != 0) fill(made, hdf5_.object(address), address);
    --depth_;
    return made;
  }

  void fill(uint32_t at, const Hdf5Object& object, uint64_t address) {
    if (object.is_group) return fill_group(at, object, address == hdf5_.root());
    if (!object.type) hdf5_.refuse(address, "an object is a group or has data", "this one is neither");
    const Hdf5Type& type = hdf5_.type(*object.type);
    if (object.space.kind == Hdf5Space::Kind::simple) return fill_array(at, object, type);
    if (object.space.kind == Hdf5Space::Kind::null) {
      tree_.values[at].kind = JuliaKind::other;
      tree_.values[at].text = tree_.text_index(type_name(type));
      return;
    }
    if (object.data.compressed || object.data.bytes < type.size) {
      hdf5_.refuse(object.data.place, "a value has the bytes of its type", "it has fewer, or is compressed");
    }
    fill_value(at, type, hdf5_.bytes(object.data.place, type.size), 0);
  }

  void fill_group(uint32_t at, const Hdf5Object& object, bool root) {
    std::vector<JuliaChild> children;
    for (const auto& [name, address] : object.links) {
      if (root && name == "_types") continue;
      children.push_back({tree_.text_index(name), value_at(address)});
    }
    set_children(at, JuliaKind::named, {}, children);
  }

  // --- Types.

  /// "Flux.Dense", from the description that a committed type has; empty for others.
  std::string type_name(const Hdf5Type& type) {
    if (type.description_bytes < 16) return "";
    const auto [entry, fresh] = type_names_.try_emplace(type.description_place);
    if (!fresh) return entry->second;
    const Hdf5Type& description = hdf5_.type(type.description_type);
    if (description.kind != Hdf5Class::compound || description.members.empty()) return "";
    const Hdf5Type::Member& name = description.members[0];
    const Hdf5Type& text = hdf5_.type(name.type);
    if (text.kind != Hdf5Class::sequence || !text.is_text || name.offset != 0) return "";
    entry->second = sequence_text(read_small(type.description_place), 0);
    if (entry->second.starts_with("Main.Core.") || entry->second.starts_with("Main.Base.")) entry->second.erase(0, 5);
    return entry->second;
  }

  Bytes read_small(uint64_t place) {
    Bytes bytes(16);
    file_.read(place, bytes.data(), bytes.size());
    return bytes;
  }

  /// The element type of numbers; nothing: others.
  std::optional<DType> number_type(const Hdf5Type& type) const {
    if (type.big_endian) return std::nullopt;
    if (type.kind == Hdf5Class::bits && type.size == 1) return DType::Bool;
    if (type.kind == Hdf5Class::real) {
      if (type.size == 2) return DType::Float16;
      if (type.size == 4) return DType::Float32;
      return type.size == 8 ? std::optional(DType::Float64) : std::nullopt;
    }
    if (type.kind == Hdf5Class::integer) {
      switch (type.size) {
        case 1: return type.is_signed ? DType::Int8 : DType::UInt8;
        case 2: return type.is_signed ? DType::Int16 : DType::UInt16;
        case 4: return type.is_signed ? DType::Int32 : DType::UInt32;
        case 8: return type.is_signed ? DType::Int64 : DType::UInt64;
        default: return std::nullopt;
      }
    }
    return complex_type(type);
  }

  std::optional<DType> complex_type(const Hdf5Type& type) const {
    if (type.kind != Hdf5Class::compound || type.members.size() != 2 || type.members[0].name != "re")
      return std::nullopt;
    const Hdf5Type& part = hdf5_.type(type.members[0].type);
    const bool two = part.kind == Hdf5Class::real && type.size == 2 * part.size && type.members[1].offset == part.size;
    if (!two || (part.size != 4 && part.size != 8)) return std::nullopt;
    return part.size == 4 ? DType::ComplexF32 : DType::ComplexF64;
  }

  // --- Values.

  static uint64_t number_in(const Bytes& bytes, size_t at, size_t width) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, width);
    return value;
  }

  static std::string text_in(const Bytes& bytes, size_t at, size_t count) {
    return std::string(reinterpret_cast<const char*>(bytes.data()) + at, count);
  }

  /// A value of this type at bytes[at]. The bytes are those of the whole value that contains it.
  void fill_value(uint32_t made, const Hdf5Type& type, const Bytes& bytes, size_t at) {
    if (type.size > bytes.size() - at) hdf5_.refuse(0, "a value lies in the value that has it", "one does not");
    if (++depth_ > deepest) hdf5_.refuse(0, "values are nested at most 500 deep", "these are deeper");
    const std::optional<DType> number = number_type(type);
    if (number && !is_complex(*number)) fill_number(tree_.values[made], *number, bytes, at);
    else if (type.kind == Hdf5Class::compound) fill_structure(made, type, bytes, at);
    else if (type.kind == Hdf5Class::sequence) fill_sequence(made, type, bytes, at);
    else if (type.kind == Hdf5Class::array) fill_elements(made, type, bytes, at);
    else if (type.kind == Hdf5Class::fixed_text) set_text(made, text_in(bytes, at, type.size), "");
    else tree_.values[made].kind = JuliaKind::other, tree_.values[made].text = tree_.text_index(type_name(type));
    --depth_;
  }

  /// The value that stands at bytes[at]: of a reference, what it means.
  uint32_t part_value(const Hdf5Type& type, const Bytes& bytes, size_t at) {
    if (type.kind == Hdf5Class::reference && type.size == 8) return value_at(number_in(bytes, at, 8));
    const uint32_t made = fresh();
    fill_value(made, type, bytes, at);
    return made;
  }

  static void fill_number(JuliaValue& value, DType type, const Bytes& bytes, size_t at) {
    value.number = type;
    const size_t width = size_of(type);
    const uint64_t raw = number_in(bytes, at, width);
    if (is_float(type)) {
      value.kind = JuliaKind::real;
      float single = 0;
      std::memcpy(&single, &raw, 4);
      std::memcpy(&value.real, &raw, 8);
      if (type == DType::Float16) value.real = half_value(static_cast<uint16_t>(raw));
      if (type == DType::Float32) value.real = single;
      return;
    }
    value.kind = type == DType::Bool ? JuliaKind::boolean : JuliaKind::integer;
    const bool is_signed = type == DType::Int8 || type == DType::Int16 || type == DType::Int32;
    const auto shift = static_cast<int>(64 - 8 * width);
    value.integer = is_signed ? static_cast<int64_t>(raw << shift) >> shift : static_cast<int64_t>(raw);
  }

  void set_text(uint32_t at, const std::string& text, std::string_view type) {
    tree_.values[at].kind = type == "Core.Symbol" ? JuliaKind::symbol : JuliaKind::text;
    tree_.values[at].text = tree_.text_index(text);
  }

  void fill_structure(uint32_t made, const Hdf5Type& type, const Bytes& bytes, size_t at) {
    std::vector<JuliaChild> children;
    for (const Hdf5Type::Member& member : type.members) {
      const uint32_t value = part_value(hdf5_.type(member.type), bytes, at + member.offset);
      children.push_back({tree_.text_index(member.name), value});
    }
    const std::string name = type_name(type);
    // A dictionary of newer versions holds the list of its pairs.
    if (children.size() == 1 && tree_.text(children[0].name) == "kvvec") {
      const JuliaValue pairs = tree_.values[children[0].value];
      tree_.values[made] = pairs;
      return;
    }
    set_children(made, kind_of(name, type), name, children);
  }

  /// Values inside others have no description: what has numbers as names is a tuple.
  static JuliaKind kind_of(const std::string& name, const Hdf5Type& type) {
    if (name == "Core.Tuple" || name == "Tuple" || name == "NTuple") return JuliaKind::tuple;
    if (name == "Core.NamedTuple" || name == "NamedTuple") return JuliaKind::named;
    if (!name.empty()) return JuliaKind::structure;
    const auto is_number = [](const Hdf5Type::Member& member) {
      return !member.name.empty() && member.name.find_first_not_of("0123456789") == std::string::npos;
    };
    const bool numbers = std::all_of(type.members.begin(), type.members.end(), is_number);
    return numbers ? JuliaKind::tuple : JuliaKind::named;
  }

  std::string sequence_text(const Bytes& bytes, size_t at) {
    const uint64_t count = number_in(bytes, at, 4);
    if (count == 0) return "";
    const Bytes text =
        hdf5_.heap_bytes(number_in(bytes, at + 4, 8), static_cast<uint32_t>(number_in(bytes, at + 12, 4)));
    return text_in(text, 0, static_cast<size_t>(std::min<uint64_t>(count, text.size())));
  }

  void fill_sequence(uint32_t made, const Hdf5Type& type, const Bytes& bytes, size_t at) {
    if (type.size != 16) hdf5_.refuse(0, "a sequence takes 16 bytes", "one does not");
    if (type.is_text) return set_text(made, sequence_text(bytes, at), type_name(type));
    const Hdf5Type& base = hdf5_.type(type.base);
    const uint64_t count = number_in(bytes, at, 4);
    std::vector<JuliaChild> children;
    if (count > 0 && base.size > 0) {
      const Bytes all =
          hdf5_.heap_bytes(number_in(bytes, at + 4, 8), static_cast<uint32_t>(number_in(bytes, at + 12, 4)));
      if (all.size() / base.size < count) hdf5_.refuse(0, "a sequence has its elements", "some are missing");
      for (uint64_t i = 0; i < count; ++i) {
        children.push_back({JuliaTree::no_name, part_value(base, all, static_cast<size_t>(i * base.size))});
      }
    }
    set_children(made, JuliaKind::list, {}, children);
  }

  void fill_elements(uint32_t made, const Hdf5Type& type, const Bytes& bytes, size_t at) {
    const Hdf5Type& base = hdf5_.type(type.base);
    if (base.size == 0 || type.count > type.size / base.size) {
      hdf5_.refuse(0, "an array lies in its type", "one does not");
    }
    std::vector<JuliaChild> children;
    for (uint64_t i = 0; i < type.count; ++i) {
      children.push_back({JuliaTree::no_name, part_value(base, bytes, at + static_cast<size_t>(i * base.size))});
    }
    set_children(made, JuliaKind::tuple, type_name(type), children);
  }

  // --- Arrays.

  void fill_array(uint32_t at, const Hdf5Object& object, const Hdf5Type& type) {
    std::vector<int64_t> sizes(object.space.sizes.rbegin(), object.space.sizes.rend());
    const std::optional<uint64_t> bytes = julia_bytes(sizes, type.size);
    if (!bytes) hdf5_.refuse(object.data.place, "an array's size must not overflow", "it does");
    if (object.data.compressed ? *bytes / 1032 > object.data.bytes : *bytes != object.data.bytes) {
      hdf5_.refuse(object.data.place, "an array must have as many bytes as its sizes need",
                   "it has " + std::to_string(object.data.bytes) + " and needs " + std::to_string(*bytes));
    }
    if (const std::optional<DType> number = number_type(type)) {
      tree_.values[at].kind = JuliaKind::array;
      tree_.values[at].array = static_cast<uint32_t>(tree_.arrays.size());
      JuliaArray array{*number, std::move(sizes), object.data.place, *bytes, 0, object.data.shuffled};
      if (object.data.compressed) array.packed = object.data.bytes;
      tree_.arrays.push_back(std::move(array));
      return;
    }
    if (object.data.compressed) {
      tree_.values[at].kind = JuliaKind::other;
      tree_.values[at].text = tree_.text_index("compressed array of what are no numbers");
      return;
    }
    fill_list(at, type, *bytes, object.data.place);
  }

  void fill_list(uint32_t at, const Hdf5Type& type, uint64_t bytes, uint64_t place) {
    const Bytes all = hdf5_.bytes(place, bytes);
    std::vector<JuliaChild> children;
    for (size_t i = 0; type.size > 0 && i < all.size(); i += type.size) {
      children.push_back({JuliaTree::no_name, part_value(type, all, i)});
    }
    if (!set_pairs(at, children)) set_children(at, JuliaKind::list, {}, children);
  }

  /// A list of pairs whose keys are texts is a dictionary.
  bool set_pairs(uint32_t at, const std::vector<JuliaChild>& elements) {
    std::vector<JuliaChild> children;
    for (const JuliaChild& element : elements) {
      const JuliaValue& pair = tree_.values[element.value];
      const auto key = tree_.named_child(pair, "first"), value = tree_.named_child(pair, "second");
      if (pair.count != 2 || !key || !value) return false;
      const JuliaValue& name = tree_.values[*key];
      if (name.kind != JuliaKind::text && name.kind != JuliaKind::symbol) return false;
      children.push_back({name.text, *value});
    }
    if (children.empty()) return false;
    set_children(at, JuliaKind::named, "Base.Dict", children);
    return true;
  }

  const InputFile& file_;
  Hdf5File hdf5_;
  JuliaTree tree_;
  std::map<uint64_t, uint32_t> known_;
  std::map<uint64_t, std::string> type_names_;
  int depth_ = 0;
};

}  // namespace

JuliaTree read_jld2_values(const InputFile& file) { return Jld2Values(file).read(); }

}  // namespace rosin
