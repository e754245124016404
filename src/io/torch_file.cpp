// From the tree of a pickle to arrays: names, then views, then one storage after another.
#include "io/torch_file.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <rosin/error.hpp>

#include "base/input_file.hpp"
#include "base/sizes.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/julia_tree.hpp"
#include "io/pickle.hpp"
#include "io/row_major.hpp"
#include "io/safetensors_header.hpp"
#include "io/zip.hpp"

namespace rosin {
namespace {

struct TorchType {
  const char* storage;  // the class, less "torch." and "Storage"
  const char* name;     // the element type, less "torch."
  DType type;
};

constexpr TorchType torch_types[] = {
    {"Bool", "bool", DType::Bool},
    {"Byte", "uint8", DType::UInt8},
    {"Char", "int8", DType::Int8},
    {"Short", "int16", DType::Int16},
    {"", "uint16", DType::UInt16},
    {"Int", "int32", DType::Int32},
    {"", "uint32", DType::UInt32},
    {"Long", "int64", DType::Int64},
    {"", "uint64", DType::UInt64},
    {"Half", "float16", DType::Float16},
    {"BFloat16", "bfloat16", DType::BFloat16},
    {"Float", "float32", DType::Float32},
    {"Double", "float64", DType::Float64},
    {"ComplexFloat", "complex64", DType::ComplexF32},
    {"ComplexDouble", "complex128", DType::ComplexF64},
};

/// Of "torch.FloatStorage" or "torch.float32"; nothing: of a storage that does not say.
std::optional<DType> torch_type(std::string_view name) {
  for (const TorchType& row : torch_types) {
    if (name == std::string("torch.") + row.name) return row.type;
    if (*row.storage && name == std::string("torch.") + row.storage + "Storage") return row.type;
  }
  return std::nullopt;
}

/// A tensor as the pickle states it.
struct View {
  std::string key;  // of its storage
  DType type = DType::Float32;
  uint64_t bytes = 0;   // of the storage
  uint64_t offset = 0;  // in elements
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements; 0 where the size is 1 or less

  auto operator<=>(const View&) const = default;
};

/// A leaf of the tree with its path.
struct NamedValue {
  std::string name;
  const PickleValue* value;
};

constexpr int deepest = 100;
constexpr uint64_t largest_pickle = uint64_t{256} << 20;
constexpr uint64_t most_views = 16;  // bytes of all arrays together, as multiples of those of the file

class TorchFile {
 public:
  explicit TorchFile(const std::string& path) : file_(path, "load") {
    check_kind();
    for (ZipEntry& entry : read_zip(file_)) entries_.emplace(entry.name, std::move(entry));
    const auto found = std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) {
      const std::string& name = entry.first;
      return name.ends_with("/data.pkl") && name.find('/') == name.size() - std::strlen("/data.pkl");
    });
    if (found == entries_.end()) refuse(0, "an archive of PyTorch has a data.pkl", "there is none");
    prefix_ = found->first.substr(0, found->first.size() - std::strlen("data.pkl"));
    where_ = "'" + path + "', its data.pkl,";
    const bool usual = !found->second.deflated && found->second.bytes <= largest_pickle;
    if (!usual) refuse(0, "a data.pkl is stored and has at most 256 MiB", "it is compressed or larger");
    const std::vector<unsigned char> bytes = unpack_entry(file_, found->second);
    tree_ = read_pickle(bytes, where_);
    most_places_ = 1000 + 2 * tree_.values.size();
    longest_names_ = (size_t{1} << 16) + 64 * bytes.size();
    read_byte_order();
    list_values();
  }

  FileListing listing() const {
    FileListing listing;
    for (const NamedValue& entry : values_) {
      const PickleValue& value = *entry.value;
      if (value.kind == PickleKind::text) {
        listing.metadata.emplace_back(entry.name, value.text);
        continue;
      }
      const bool tensor = value.kind == PickleKind::tensor;
      const View view = tensor ? view_of(value) : View{};
      const DType type = tensor ? view.type : number_type(value);
      TensorListing row{entry.name, type == DType::ComplexF64 ? "C128" : file_type(type), {}, size_of(type)};
      for (int64_t size : view.sizes) row.bytes *= static_cast<uint64_t>(size);
      row.sizes.assign(view.sizes.begin(), view.sizes.end());
      listing.tensors.push_back(std::move(row));
    }
    return listing;
  }

  SavedFile content() const {
    std::map<View, Array> views = read_views();
    std::vector<NamedArray> arrays;
    std::vector<std::pair<std::string, std::string>> texts;
    for (const NamedValue& entry : values_) {
      const PickleValue& value = *entry.value;
      if (value.kind == PickleKind::text) texts.emplace_back(entry.name, value.text);
      else if (value.kind == PickleKind::tensor) arrays.push_back({entry.name, views.at(view_of(value))});
      else arrays.push_back({entry.name, number(value)});
    }
    return SavedFile(std::move(arrays), std::move(texts));
  }

 private:
  [[noreturn]] void refuse(uint64_t place, const std::string& rule, const std::string& what) const {
    refuse_pickle(where_.empty() ? "'" + file_.path() + "'" : where_, place, rule, what);
  }

  /// Files of PyTorch before 1.6 are pickles one after another.
  void check_kind() const {
    unsigned char head[4] = {};
    file_.read(0, head, static_cast<size_t>(std::min<uint64_t>(4, file_.size())));
    if (std::memcmp(head, "PK\3\4", 4) == 0) return;
    refuse(0, "a file of PyTorch is a zip archive, as torch.save writes it since 1.6", "this one is none");
  }

  void read_byte_order() {
    const auto found = entries_.find(prefix_ + "byteorder");
    if (found == entries_.end()) return;
    if (found->second.bytes > 8) refuse(0, "byteorder is little or big", "it is neither");
    const std::vector<unsigned char> bytes = unpack_entry(file_, found->second);
    const std::string order(bytes.begin(), bytes.end());
    if (order != "little" && order != "big") refuse(0, "byteorder is little or big", "it is neither");
    big_endian_ = order == "big";
  }

  // --- Names.

  void list_values() {
    const PickleValue& root = tree_.values[tree_.root];
    const bool alone = root.kind != PickleKind::list && root.kind != PickleKind::dict;
    list(root, alone ? stem() : "", 0);
    std::set<std::string_view> names;
    for (const NamedValue& entry : values_) {
      if (names.insert(entry.name).second) continue;
      refuse(entry.value->place, "entries have names of their own", "two are called " + entry.name);
    }
  }

  /// "x" of "folder/x.pt".
  std::string stem() const {
    const std::string& path = file_.path();
    const size_t start = path.rfind('/') + 1;
    return path.substr(start, path.rfind('.') - start);
  }

  void list(const PickleValue& value, const std::string& name, int depth) {
    const bool parts = value.kind == PickleKind::list || value.kind == PickleKind::dict;
    name_bytes_ += name.size();
    if (depth > deepest) refuse(value.place, "lists and dicts are nested at most 100 deep", "these are deeper");
    if (++places_ > most_places_ || name_bytes_ > longest_names_) {
      refuse(value.place, "entries and their names fit the size of the file", "shared ones are too many, or too long");
    }
    if (value.kind == PickleKind::name || value.kind == PickleKind::storage) {
      refuse(value.place, "a file of PyTorch may hold tensors, lists, dicts, texts and numbers",
             value.kind == PickleKind::name ? "it has the class " + value.text : "it has a storage by itself");
    }
    if (!parts && value.kind != PickleKind::none) values_.push_back({name, &value});
    if (!parts) return;
    const bool dict = value.kind == PickleKind::dict;
    const std::string start = name.empty() ? "" : name + ".";
    for (size_t i = 0; i < value.items.size(); i += dict ? 2 : 1) {
      const std::string step = dict ? key(tree_.item(value, i)) : std::to_string(i);
      list(tree_.item(value, dict ? i + 1 : i), start + step, depth + 1);
    }
  }

  std::string key(const PickleValue& value) const {
    if (value.kind == PickleKind::text) return value.text;
    if (value.kind == PickleKind::integer) return std::to_string(value.integer);
    refuse(value.place, "keys of dicts are texts or integers", "one is neither");
  }

  // --- Numbers and tensors.

  static DType number_type(const PickleValue& value) {
    if (value.kind == PickleKind::boolean) return DType::Bool;
    return value.kind == PickleKind::integer ? DType::Int64 : DType::Float64;
  }
  static Array number(const PickleValue& value) {
    const DType type = number_type(value);
    Array made = fresh_leaf(type, Shape());
    const bool truth = value.integer != 0;
    const void* from = type == DType::Bool    ? static_cast<const void*>(&truth)
                       : type == DType::Int64 ? static_cast<const void*>(&value.integer)
                                              : static_cast<const void*>(&value.real);
    std::memcpy(made.node()->data(), from, size_of(type));
    return made;
  }

  View view_of(const PickleValue& tensor) const {
    const PickleValue& storage = tree_.item(tensor, 0);
    const auto stored = torch_type(tree_.item(storage, 1).text);
    const auto stated = tensor.items.size() > 4 ? torch_type(tree_.item(tensor, 4).text) : stored;
    const int64_t count = tree_.item(storage, 4).integer, offset = tree_.item(tensor, 1).integer;
    if (!stated || count < 0 || offset < 0) {
      refuse(tensor.place, "a tensor has a type, a storage and a place in it", "one has not");
    }
    View view{tree_.item(storage, 2).text, *stated, 0, static_cast<uint64_t>(offset), {}, {}};
    if (__builtin_mul_overflow(static_cast<uint64_t>(count), stored ? size_of(*stored) : 1, &view.bytes)) {
      refuse(storage.place, "a storage lies in the file", "one is too large");
    }
    view.sizes = numbers(tree_.item(tensor, 2));
    view.strides = numbers(tree_.item(tensor, 3));
    check_view(view, tensor.place);
    return view;
  }

  std::vector<int64_t> numbers(const PickleValue& list) const {
    std::vector<int64_t> found;
    for (size_t i = 0; i < list.items.size(); ++i) {
      const PickleValue& item = tree_.item(list, i);
      if (item.kind != PickleKind::integer || item.integer < 0) {
        refuse(list.place, "sizes and strides are counts", "one is none");
      }
      found.push_back(item.integer);
    }
    return found;
  }

  void check_view(View& view, uint64_t place) const {
    const size_t rank = view.sizes.size();
    if (rank != view.strides.size()) refuse(place, "a tensor has a stride for each size", "one has not");
    if (rank > static_cast<size_t>(Shape::max_rank)) {
      throw Error(ErrorKind::shape, "load: an array has at most eight dims; one of '" + file_.path() + "' has " +
                                        std::to_string(rank) + "; reshape it where it was made");
    }
    if (!can_be_sizes(view.sizes.data(), static_cast<int>(rank))) {
      refuse(place, "a tensor has at most 2^58 elements", "one has more");
    }
    const bool empty = std::find(view.sizes.begin(), view.sizes.end(), 0) != view.sizes.end();
    uint64_t last = view.offset;
    bool inside = true;
    for (size_t d = 0; d < rank; ++d) {
      if (view.sizes[d] <= 1 || empty) view.strides[d] = 0;
      const auto steps = static_cast<uint64_t>(std::max<int64_t>(0, view.sizes[d] - 1));
      uint64_t distance = 0;
      inside = inside && !__builtin_mul_overflow(steps, static_cast<uint64_t>(view.strides[d]), &distance) &&
               !__builtin_add_overflow(last, distance, &last);
    }
    if (empty) return;
    if (!inside || last >= view.bytes / size_of(view.type)) {
      refuse(place, "a tensor lies in its storage", "one goes on after its end");
    }
  }

  /// Every view once, storage after storage.
  std::map<View, Array> read_views() const {
    std::map<View, Array> views;
    for (const NamedValue& entry : values_) {
      if (entry.value->kind == PickleKind::tensor) views.emplace(view_of(*entry.value), Array());
    }
    check_total(views);
    std::vector<unsigned char> bytes;
    const View* before = nullptr;  // views stand in the order of their storages, then of their types
    for (auto& [view, array] : views) {
      const bool same = before && before->key == view.key && before->type == view.type && before->bytes == view.bytes;
      if (!same) bytes = storage(view);
      before = &view;
      const Shape shape{std::span<const int64_t>(view.sizes)};
      array = fresh_leaf(view.type, shape);
      const size_t width = size_of(view.type);
      if (shape.count() == 0) continue;
      from_strides(array.node()->data(), bytes.data() + view.offset * width, shape, view.strides, width);
    }
    return views;
  }

  /// Views may repeat what they look at, or overlap; they must not ask for much more memory than the file has bytes.
  void check_total(const std::map<View, Array>& views) const {
    uint64_t stored = 4096, total = 0;
    for (const auto& [name, entry] : entries_) stored += entry.bytes;
    for (const auto& [view, array] : views) {
      uint64_t bytes = size_of(view.type);
      for (int64_t size : view.sizes) bytes *= static_cast<uint64_t>(size);
      if (bytes > most_views * stored - total) {
        refuse(0, "tensors have at most 16 times as many bytes as their storages", "expanded ones (clone() them) have");
      }
      total += bytes;
    }
  }

  std::vector<unsigned char> storage(const View& view) const {
    const auto found = entries_.find(prefix_ + "data/" + view.key);
    if (found == entries_.end()) refuse(0, "a storage lies in the file", "number " + view.key + " is not there");
    const ZipEntry& entry = found->second;
    const std::string rule = "a storage has the bytes of its elements";
    if (entry.bytes != view.bytes) refuse_at(file_.path(), entry.place, rule, "number " + view.key + " has others");
    std::vector<unsigned char> bytes = unpack_entry(file_, entry);
    const size_t width = size_of(part_type(view.type));
    if (big_endian_ && width > 1) swap_bytes(bytes.data(), bytes.size() / width, width);
    const auto is_truth = [](unsigned char byte) { return byte <= 1; };
    if (view.type == DType::Bool && !std::all_of(bytes.begin(), bytes.end(), is_truth)) {
      refuse_at(file_.path(), entry.place, "the bytes of a Bool must be 0 or 1", "one is larger");
    }
    return bytes;
  }

  const InputFile file_;
  std::map<std::string, ZipEntry> entries_;
  std::string prefix_;  // of the names in the archive: "archive/"
  std::string where_;
  PickleTree tree_;
  bool big_endian_ = false;
  std::vector<NamedValue> values_;
  // What lists and dicts share is listed at each place, which could be any number of them.
  size_t places_ = 0, most_places_ = 0;
  size_t name_bytes_ = 0, longest_names_ = 0;
};

}  // namespace

SavedFile read_torch(const std::string& path) { return TorchFile(path).content(); }

FileListing list_torch(const std::string& path) { return TorchFile(path).listing(); }

}  // namespace rosin
