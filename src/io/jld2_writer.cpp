// Every named tuple and tuple is a compound whose type is committed to /_types with its name in Julia, as JLD2 finds
// types by name. Fields without content are left out of compounds; arrays are objects of their own, referred to.
#include "io/jld2_writer.hpp"

#include <cstring>
#include <map>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/tied.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/hdf5_writer.hpp"
#include "io/julia_tree.hpp"
#include "io/row_major.hpp"
#include "io/text_with_arrays.hpp"

namespace rosin {
namespace {

using Kind = StateNode::Kind;

/// How values of a Julia type are stored where they stand.
struct StoredType {
  std::string name;        // what tells it from others: "Tuple{Core.Int64,Core.Int64}"
  std::string bytes;       // as HDF5 states it
  uint64_t size = 0;       // 0: values are left out
  uint64_t committed = 0;  // address, or 0
  uint64_t meaning = 0;    // what parameters of other types refer to: the committed type, or its description
};

class Jld2Writer {
 public:
  Jld2Writer() {
    const std::string type =
        hdf5::compound_type(32, {{"name", 0, hdf5::text_type()}, {"parameters", 16, hdf5::references_type()}});
    const std::string description = describe("Core.DataType", {});
    descriptions_ = file_.address();  // its type is itself
    commit(type, description, {});
  }

  const Hdf5Text& file() const { return file_; }

  void write_root(StateNode& root) {
    std::vector<std::pair<std::string, uint64_t>> links;
    for (auto& [name, child] : root.children) {
      if (name.empty() || name == "_types" || name.find('/') != std::string::npos) {
        throw Error(
            ErrorKind::argument,
            "save: entries of a JLD2 file have names without '/' that are not '_types'; got '" + name + "'; rename it");
      }
      if (const uint64_t place = entry(child)) links.emplace_back(name, place);
    }
    std::vector<std::pair<std::string, uint64_t>> types;
    for (uint64_t place : types_) {
      std::string number = std::to_string(types.size() + 1);
      types.emplace_back(std::string(8 - std::min<size_t>(8, number.size()), '0') + number, place);
    }
    links.emplace_back("_types", file_.group(types));
    file_.finish(file_.group(links));
  }

 private:
  // --- Types.

  /// The value that tells Julia's name of a type.
  std::string describe(const std::string& name, const std::vector<uint64_t>& parameters) {
    std::string references;
    for (uint64_t each : parameters) append_little(references, each, 8);
    const std::string text = file_.sequence(name.size(), name);
    return text + file_.sequence(parameters.size(), references);
  }

  uint64_t commit(const std::string& type, const std::string& description, const std::vector<uint64_t>& fields) {
    std::string messages = hdf5::message(3, 0x40, type);
    messages +=
        hdf5::attribute("julia_type", hdf5::shared_type(descriptions_), true, hdf5::scalar_space(), description);
    std::string references;
    bool any = false;
    for (uint64_t each : fields) append_little(references, each, 8), any = any || each != 0;
    if (any) {
      messages += hdf5::attribute("field_datatypes", hdf5::reference_type(), false, hdf5::simple_space({fields.size()}),
                                  references);
    }
    types_.push_back(file_.object(messages));
    return types_.back();
  }

  /// A type that is not committed, as a parameter of others.
  uint64_t description_object(const std::string& name, const std::vector<uint64_t>& parameters) {
    const std::string description = describe(name, parameters);
    return file_.dataset(shared(descriptions_), hdf5::scalar_space(), description);
  }

  static std::string shared(uint64_t address) { return hdf5::message(3, 3, hdf5::shared_type(address)); }
  static std::string message_of(const StoredType& type) {
    return type.committed ? shared(type.committed) : hdf5::message(3, 1, type.bytes);
  }

  uint64_t number_object(int64_t value) {
    std::string bytes;
    append_little(bytes, static_cast<uint64_t>(value), 8);
    return file_.dataset(hdf5::message(3, 1, hdf5::integer_type(8, true)), hdf5::scalar_space(), bytes);
  }

  /// The type of that name; `make` fills it where it is new.
  template <class Make> const StoredType& known(const std::string& name, Make make) {
    const auto found = known_.find(name);
    if (found != known_.end()) return found->second;
    StoredType made;
    made.name = name;
    make(made);
    return known_.emplace(name, std::move(made)).first->second;
  }

  /// One that Julia's kernel defines, without parameters.
  const StoredType& plain(const std::string& name, const std::string& bytes, uint64_t size) {
    return known(name, [&](StoredType& made) {
      made.bytes = bytes;
      made.size = size;
      made.meaning = description_object(name, {});
    });
  }

  const StoredType& element_type(DType type) {
    if (type == DType::BFloat16) {
      throw Error(ErrorKind::dtype,
                  "save: a JLD2 file has Float16, Float32 and Float64; got BFloat16; convert it, or save it as .bson");
    }
    if (is_complex(type)) return complex_type(type);
    const auto width = static_cast<int>(size_of(type));
    const bool is_signed = type == DType::Int8 || type == DType::Int16 || type == DType::Int32 || type == DType::Int64;
    const std::string bytes = type == DType::Bool ? hdf5::bool_type()
                              : is_float(type)    ? hdf5::real_type(width)
                                                  : hdf5::integer_type(width, is_signed);
    return plain(std::string("Core.") + julia_name(type).name, bytes, size_of(type));
  }

  const StoredType& complex_type(DType type) {
    const StoredType& part = element_type(part_type(type));
    return known("Base.Complex{" + part.name + "}", [&](StoredType& made) {
      made.size = 2 * part.size;
      made.bytes = hdf5::compound_type(made.size, {{"re", 0, part.bytes}, {"im", part.size, part.bytes}});
      made.committed = made.meaning = commit(made.bytes, describe("Base.Complex", {part.meaning}), {});
    });
  }

  const StoredType& array_type(const StoredType& element, int rank) {
    return known("Core.Array{" + element.name + "," + std::to_string(rank) + "}", [&](StoredType& made) {
      made.bytes = hdf5::reference_type();
      made.size = 8;
      const uint64_t dims = number_object(rank);
      made.meaning = description_object("Core.Array", {element.meaning, dims});
    });
  }

  const StoredType& symbol_type() {
    return known("Core.Symbol", [&](StoredType& made) {
      made.bytes = hdf5::text_type();
      made.size = 16;
      made.committed = made.meaning = commit(made.bytes, describe("Core.Symbol", {}), {});
    });
  }

  const StoredType& text_type() { return plain("Core.String", hdf5::text_type(), 16); }

  /// A compound of the fields that have content.
  void make_compound(StoredType& made, const std::vector<std::string>& names, const std::vector<StoredType>& fields,
                     const std::string& julia_name, const std::vector<uint64_t>& parameters) {
    std::vector<hdf5::Member> members;
    std::vector<uint64_t> committed;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].size == 0) continue;
      members.push_back({names[i], made.size, fields[i].bytes});
      committed.push_back(fields[i].committed);
      made.size += fields[i].size;
    }
    if (made.size == 0) {
      made.meaning = description_object(julia_name, parameters);
      return;
    }
    made.bytes = hdf5::compound_type(made.size, members);
    made.committed = made.meaning = commit(made.bytes, describe(julia_name, parameters), committed);
  }

  const StoredType& tuple_type(const std::vector<StoredType>& fields) {
    std::string name = "Tuple{";
    bool same = fields.size() > 1;
    for (const StoredType& field : fields) name += field.name + ",", same = same && field.name == fields[0].name;
    return known(name + "}", [&](StoredType& made) {
      std::vector<std::string> names;
      std::vector<uint64_t> parameters;
      for (const StoredType& field : fields) {
        names.push_back(std::to_string(names.size() + 1));
        parameters.push_back(field.meaning);
      }
      if (same) parameters = {number_object(static_cast<int64_t>(fields.size())), fields[0].meaning};
      make_compound(made, names, fields, same ? "NTuple" : fields.size() < 2 ? "Tuple" : "Core.Tuple", parameters);
    });
  }

  const StoredType& named_type(const std::vector<std::string>& names, const std::vector<StoredType>& fields) {
    std::string all = "NamedTuple{";
    for (const std::string& name : names) all += name + '\0';
    const StoredType values = tuple_type(fields);
    return known(all + values.name + "}", [&](StoredType& made) {
      const StoredType tuple = tuple_type(std::vector<StoredType>(names.size(), symbol_type()));
      std::string texts;
      for (const std::string& name : names) texts += file_.sequence(name.size(), name);
      const uint64_t list = file_.dataset(message_of(tuple), hdf5::scalar_space(), texts);
      make_compound(made, names, fields, "Core.NamedTuple", {list, values.meaning});
    });
  }

  // --- Values.

  struct Stored {
    StoredType type;
    std::string bytes;
  };

  static std::string little(uint64_t value, int width) {
    std::string bytes;
    append_little(bytes, value, width);
    return bytes;
  }
  template <class T> static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }

  Stored value(StateNode& node) {
    switch (node.kind) {
      case Kind::array: return array_value(node.array);
      case Kind::boolean: return {element_type(DType::Bool), little(node.integer != 0, 1)};
      case Kind::integer: return {element_type(DType::Int64), little(static_cast<uint64_t>(node.integer), 8)};
      case Kind::real: return {element_type(DType::Float64), raw(node.real)};
      case Kind::real32: return {element_type(DType::Float32), raw(static_cast<float>(node.real))};
      case Kind::text: return {text_type(), file_.sequence(node.text.size(), node.text)};
      case Kind::nothing: return {plain("Core.Nothing", "", 0), ""};
      case Kind::texts: return texts_value(node);
      default: return parts_value(node);
    }
  }

  /// Arrays without dims are numbers.
  Stored array_value(const Array& x) {
    const StoredType element = element_type(x.dtype());
    if (x.rank() == 0) {
      const Array values = with_values(x);
      return {element, std::string(static_cast<const char*>(values.node()->data()), size_of(x.dtype()))};
    }
    return {array_type(element, x.rank()), little(array_object(x, element), 8)};
  }

  uint64_t array_object(const Array& x, const StoredType& element) {
    if (!is_tied(x)) return file_.dataset(message_of(element), x);
    uint64_t& place = shared_[x.node()];
    if (place == 0) place = file_.dataset(message_of(element), x);
    return place;
  }

  Stored texts_value(StateNode& node) { return {array_type(text_type(), 1), little(texts_object(node), 8)}; }

  uint64_t texts_object(StateNode& node) {
    std::string bytes;
    for (auto& [name, child] : node.children) bytes += file_.sequence(child.text.size(), child.text);
    return file_.dataset(message_of(text_type()), hdf5::simple_space({node.children.size()}), bytes);
  }

  Stored parts_value(StateNode& node) {
    std::vector<std::string> names;
    std::vector<StoredType> types;
    std::string bytes;
    for (auto& [name, child] : node.children) {
      if (name.find('\0') != std::string::npos) {
        throw Error(ErrorKind::argument, "save: names must not have zero bytes in a JLD2 file; one has; rename it");
      }
      Stored part = value(child);
      names.push_back(name);
      types.push_back(std::move(part.type));
      bytes += part.bytes;
    }
    const bool named = node.kind != Kind::tuple && !names.empty();
    return {named ? named_type(names, types) : tuple_type(types), bytes};
  }

  /// The object of an entry; 0 where it has no content.
  uint64_t entry(StateNode& node) {
    if (node.kind == Kind::array && node.array.rank() > 0) {
      const StoredType element = element_type(node.array.dtype());
      return array_object(node.array, element);
    }
    if (node.kind == Kind::texts) return texts_object(node);
    const Stored made = value(node);
    return made.type.size == 0 ? 0 : file_.dataset(message_of(made.type), hdf5::scalar_space(), made.bytes);
  }

  Hdf5Text file_;
  uint64_t descriptions_ = 0;  // the type of types' descriptions
  std::vector<uint64_t> types_;
  std::map<std::string, StoredType> known_;  // references to its values stay
  std::map<const Node*, uint64_t> shared_;
};

}  // namespace

void write_jld2(const std::string& path, StateNode& root) {
  Jld2Writer writer;
  writer.write_root(root);
  write_text_with_arrays(path, writer.file().text(), writer.file().gaps());
}

}  // namespace rosin
