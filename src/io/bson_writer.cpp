// The documents are text with gaps for arrays' elements, which are written from the arrays themselves. Keys stand in
// the order in which BSON.jl writes them where it does: tag, type, size, data; tag, params, name.
#include "io/bson_writer.hpp"

#include <cstring>
#include <map>

#include <rosin/error.hpp>
#include <rosin/tied.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/bson_document.hpp"
#include "io/julia_tree.hpp"
#include "io/text_with_arrays.hpp"

namespace rosin {
namespace {

using Kind = StateNode::Kind;

/// Bytes of a file under construction.
class BsonText {
 public:
  uint64_t size() const noexcept { return text.size() + elements_; }

  template <class T> void number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text.append(bytes, sizeof value);
  }
  void head(BsonType type, std::string_view key) {
    text.push_back(static_cast<char>(type));
    text.append(key);
    text.push_back('\0');
  }
  void string(std::string_view key, std::string_view value) {
    head(BsonType::text, key);
    number(length(value.size() + 1));
    text.append(value);
    text.push_back('\0');
  }
  void whole(std::string_view key, int64_t value) {
    head(BsonType::int64, key);
    number(value);
  }
  void elements(std::string_view key, const Array& x) {
    const size_t bytes = bytes_of(x.dtype(), x.shape());
    head(BsonType::binary, key);
    number(length(bytes));
    text.push_back('\0');
    gaps.push_back({text.size(), x});
    elements_ += bytes;
  }
  /// A document or array whose content `write` writes.
  template <class Write> void nested(BsonType type, std::string_view key, Write write) {
    head(type, key);
    document(write);
  }
  template <class Write> void document(Write write) {
    const size_t place = text.size();
    const uint64_t before = size();
    number(int32_t{0});
    write();
    text.push_back('\0');
    const int32_t stated = length(size() - before);
    std::memcpy(text.data() + place, &stated, sizeof stated);
  }
  void texts(std::string_view key, std::initializer_list<std::string_view> values) {
    nested(BsonType::array, key, [&] {
      size_t i = 0;
      for (std::string_view value : values) string(std::to_string(i++), value);
    });
  }

  std::string text;
  std::vector<ArrayGap> gaps;

 private:
  static int32_t length(uint64_t bytes) {
    if (bytes <= static_cast<uint64_t>(INT32_MAX)) return static_cast<int32_t>(bytes);
    throw Error(ErrorKind::argument,
                "save: a BSON file has less than 2 GiB; got more; save it as .safetensors, or in several files");
  }
  uint64_t elements_ = 0;
};

void check_text(std::string_view text) {
  if (text.find('\0') == std::string_view::npos) return;
  throw Error(ErrorKind::argument, "save: names must not have zero bytes in a BSON file; one has; rename it");
}

class BsonWriter {
 public:
  std::string& text() { return out_.text; }
  const std::vector<ArrayGap>& gaps() const { return out_.gaps; }

  void write_root(StateNode& root) {
    out_.document([&] {
      for (auto& [name, child] : root.children) {
        check_text(name);
        if (child.kind == Kind::array) write_entry(name, child);
        else write_value(name, child);
      }
      write_shared();
    });
  }

 private:
  // --- Types.

  template <class Params>
  void write_type(std::string_view key, std::initializer_list<std::string_view> name, Params params) {
    out_.nested(BsonType::document, key, [&] {
      out_.string("tag", "datatype");
      out_.nested(BsonType::array, "params", params);
      out_.texts("name", name);
    });
  }
  void write_plain_type(std::string_view key, std::string_view module, std::string_view name) {
    if (module == "Base") write_type(key, {"Main", "Base", name}, [] {});
    else write_type(key, {module, name}, [] {});
  }
  void write_element_type(std::string_view key, DType type) {
    if (!is_complex(type)) return write_plain_type(key, "Core", julia_name(type).name);
    write_type(key, {"Main", "Base", "Complex"}, [&] { write_element_type("0", part_type(type)); });
  }

  void write_tuple_type(std::string_view key, StateNode& node) {
    write_type(key, {"Core", "Tuple"}, [&] {
      size_t i = 0;
      for (auto& [name, child] : node.children) write_type_of(std::to_string(i++), child);
    });
  }
  void write_array_type(std::string_view key, DType type, int rank) {
    write_type(key, {"Core", "Array"}, [&] {
      write_element_type("0", type);
      out_.whole("1", rank);
    });
  }

  void write_type_of(std::string_view key, StateNode& node) {
    switch (node.kind) {
      case Kind::named: return write_named_type(key, node);
      case Kind::tuple: return write_tuple_type(key, node);
      case Kind::array: return write_array_type(key, node.array.dtype(), node.array.rank());
      case Kind::boolean: return write_plain_type(key, "Core", "Bool");
      case Kind::integer: return write_plain_type(key, "Core", "Int64");
      case Kind::real: return write_plain_type(key, "Core", "Float64");
      case Kind::real32: return write_plain_type(key, "Core", "Float32");
      case Kind::text: return write_plain_type(key, "Core", "String");
      case Kind::nothing: return write_plain_type(key, "Core", "Nothing");
      case Kind::texts:
        return write_type(key, {"Core", "Array"}, [&] {
          write_plain_type("0", "Core", "Any");
          out_.whole("1", 1);
        });
      case Kind::dictionary:
        return write_type(key, {"Main", "Base", "Dict"}, [&] {
          write_plain_type("0", "Core", "Symbol");
          write_plain_type("1", "Core", "Any");
        });
    }
  }

  void write_named_type(std::string_view key, StateNode& node) {
    write_type(key, {"Core", "NamedTuple"}, [&] {
      out_.nested(BsonType::document, "0", [&] {
        out_.string("tag", "tuple");
        out_.nested(BsonType::array, "data", [&] {
          size_t i = 0;
          for (auto& [name, child] : node.children) {
            check_text(name);
            out_.nested(BsonType::document, std::to_string(i++), [&] {
              out_.string("tag", "symbol");
              out_.string("name", name);
            });
          }
        });
      });
      write_tuple_type("1", node);
    });
  }

  // --- Values.

  void write_children(StateNode& node) {
    out_.nested(BsonType::array, "data", [&] {
      size_t i = 0;
      for (auto& [name, child] : node.children) write_value(std::to_string(i++), child);
    });
  }

  void write_value(std::string_view key, StateNode& node) {
    switch (node.kind) {
      case Kind::array: return write_array(key, node.array);
      case Kind::boolean:
        out_.head(BsonType::boolean, key);
        out_.text.push_back(node.integer != 0 ? '\1' : '\0');
        return;
      case Kind::integer: return out_.whole(key, node.integer);
      case Kind::real: out_.head(BsonType::real, key); return out_.number(node.real);
      case Kind::text: return out_.string(key, node.text);
      case Kind::nothing: return out_.head(BsonType::nothing, key);
      case Kind::texts:
        return out_.nested(BsonType::array, key, [&] {
          size_t i = 0;
          for (auto& [name, child] : node.children) write_value(std::to_string(i++), child);
        });
      case Kind::dictionary:
        return out_.nested(BsonType::document, key, [&] {
          for (auto& [name, child] : node.children) {
            check_text(name);
            write_value(name, child);
          }
        });
      default: break;
    }
    out_.nested(BsonType::document, key, [&] { write_object(node); });
  }

  void write_object(StateNode& node) {
    if (node.kind == Kind::tuple) {
      out_.string("tag", "tuple");
      return write_children(node);
    }
    out_.string("tag", "struct");
    if (node.kind == Kind::real32) {
      write_plain_type("type", "Core", "Float32");
      out_.head(BsonType::binary, "data");
      out_.number(int32_t{4});
      out_.text.push_back('\0');
      return out_.number(static_cast<float>(node.real));
    }
    write_named_type("type", node);
    write_children(node);
  }

  /// A number that was given as an entry: an array without dims, of a type that Julia's literals have.
  void write_entry(std::string_view key, StateNode& node) {
    const Array& x = node.array;
    const DType type = x.dtype();
    StateNode number;
    if (x.rank() == 0 && type == DType::Int64) number.kind = Kind::integer, number.integer = x.item<int64_t>();
    else if (x.rank() == 0 && type == DType::Float64) number.kind = Kind::real, number.real = x.item<double>();
    else if (x.rank() == 0 && type == DType::Bool) number.kind = Kind::boolean, number.integer = x.item<bool>();
    else return write_value(key, node);
    write_value(key, number);
  }

  void write_array(std::string_view key, const Array& x) {
    if (!is_tied(x)) return write_fresh_array(key, x);
    const auto [entry, fresh] = shared_.try_emplace(x.node(), shared_arrays_.size() + 1);
    if (fresh) shared_arrays_.push_back(x);
    out_.nested(BsonType::document, key, [&] {
      out_.string("tag", "backref");
      out_.whole("ref", static_cast<int64_t>(entry->second));
    });
  }

  void write_fresh_array(std::string_view key, const Array& x) {
    if (x.dtype() == DType::UInt8 && x.rank() == 1) return out_.elements(key, x);
    out_.nested(BsonType::document, key, [&] {
      out_.string("tag", "array");
      write_element_type("type", x.dtype());
      out_.nested(BsonType::array, "size", [&] {
        for (int d = 0; d < x.rank(); ++d) out_.whole(std::to_string(d), x.size(d));
      });
      out_.elements("data", x);
    });
  }

  void write_shared() {
    if (shared_arrays_.empty()) return;
    out_.nested(BsonType::array, "_backrefs", [&] {
      for (size_t i = 0; i < shared_arrays_.size(); ++i) write_fresh_array(std::to_string(i), shared_arrays_[i]);
    });
  }

  BsonText out_;
  std::map<const Node*, size_t> shared_;
  std::vector<Array> shared_arrays_;
};

}  // namespace

void write_bson(const std::string& path, StateNode& root) {
  BsonWriter writer;
  writer.write_root(root);
  write_text_with_arrays(path, writer.text(), writer.gaps());
}

}  // namespace rosin
