// save and load: which format a path means, and how entries become one model with named parts.
// Read next: safetensors.hpp (the format), torch_names.hpp, model.hpp (loadmodel).
#include <rosin/io.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include <rosin/error.hpp>

#include "graph/device_facts.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/bson_writer.hpp"
#include "io/entries.hpp"
#include "io/file_formats.hpp"
#include "io/flux_state.hpp"
#include "io/jld2_writer.hpp"
#include "io/julia_file.hpp"
#include "io/npy.hpp"
#include "io/safetensors.hpp"
#include "io/safetensors_header.hpp"
#include "io/safetensors_shards.hpp"
#include "io/torch_file.hpp"
#include "io/torch_names.hpp"

namespace rosin {
namespace {

/// Several entries as one model, whose fields are the entries.
struct EntriesToSave {
  std::span<const SaveEntry> entries;
  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const {
    for (const SaveEntry& entry : entries) entry.visit_with(visitor, path.field(entry.name()));
  }
};

/// The same for loading; values are loaded into arrays first, so that a failure changes nothing.
struct EntriesToLoad {
  std::span<const LoadEntry> entries;
  std::vector<Array> values;  // one for each entry; nothing for models and texts
  void rosin_visit(ModelEditor& editor, const ModelPath& path) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const LoadEntry& entry = entries[i];
      const ModelPath place = path.field(entry.name());
      if (entry.is_value()) editor.array(values[i], place.fixed());
      else if (!entry.text() && !entry.texts()) entry.edit_with(editor, place);
    }
  }
  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const {
    for (size_t i = 0; i < entries.size(); ++i) {
      const LoadEntry& entry = entries[i];
      const ModelPath place = path.field(entry.name());
      if (entry.is_value()) visitor.array(values[i], place.fixed());
      else if (!entry.text() && !entry.texts()) entry.visit_with(visitor, place);
    }
  }
};

MetadataTexts texts_of(std::span<const SaveEntry> entries) {
  MetadataTexts texts;
  for (const SaveEntry& entry : entries) {
    if (!entry.text() && !entry.texts()) continue;
    if (entry.name().starts_with("rosin.")) {
      throw Error(ErrorKind::argument, "save: names of texts that begin with 'rosin.' are the library's own; got '" +
                                           std::string(entry.name()) + "'; rename it");
    }
    texts.emplace_back(entry.name(), entry.text() ? std::string(*entry.text()) : list_text(*entry.texts()));
  }
  return texts;
}

const std::string* find_text(const SavedFile& file, std::string_view name) {
  for (const auto& [key, text] : file.metadata()) {
    if (key == name) return &text;
  }
  return nullptr;
}

/// Elements of the tensor of this name; 0 where there is none.
uint64_t count_in(const FileListing& listing, std::string_view name) {
  uint64_t count = 0;
  for (const TensorListing& tensor : listing.tensors) {
    if (tensor.name != name) continue;
    count = 1;
    for (uint64_t size : tensor.sizes) count *= size;
  }
  return count;
}
uint64_t count_in(const SavedFile& file, std::string_view name) {
  return file.contains(name) ? static_cast<uint64_t>(file[name].count()) : 0;
}

/// Places for the values of the file; where any count will do, of the file's.
template <class Content> std::vector<Array> places_for(std::span<const LoadEntry> entries, const Content& content) {
  std::vector<Array> places;
  for (const LoadEntry& entry : entries) {
    const Shape shape = entry.has_any_count() ? Shape{count_in(content, entry.name())} : entry.shape();
    places.push_back(entry.is_value() ? fresh_leaf(entry.type(), shape) : Array());
  }
  return places;
}

template <class Entry> void check_entries(const char* op, std::span<const Entry> entries) {
  for (const Entry& entry : entries) {
    const auto same_name = [&](const Entry& other) { return other.name() == entry.name(); };
    const bool once = std::count_if(entries.begin(), entries.end(), same_name) == 1;
    if (once && !entry.name().empty()) continue;
    throw Error(ErrorKind::argument, std::string(op) + ": every entry needs a name of its own; got '" +
                                         std::string(entry.name()) + "'" + (once ? "" : " twice") + "; rename it");
  }
}

std::vector<OutgoingArray> outgoing(const std::vector<NamedArray>& arrays) {
  std::vector<OutgoingArray> list;
  for (const NamedArray& entry : arrays) {
    if (!entry.value.is_nothing()) list.push_back({entry.name, entry.value, entry.value.shape()});
  }
  return list;
}

std::vector<OutgoingArray> arrays_of(ModelView model, const SaveOptions& options) {
  return options.names == NameStyle::torch ? to_torch(model) : outgoing(state(model));
}

JuliaFormat julia_format(FileFormat format) {
  return format == FileFormat::jld2 ? JuliaFormat::jld2 : JuliaFormat::bson;
}

/// The format of a file to write, which has what the options ask for.
FileFormat format_for(const std::string& path, const SaveOptions& options) {
  const FileFormat format = format_of("save", path, true);
  if (!options.compress || format == FileFormat::npz) return format;
  throw Error(ErrorKind::argument,
              "save: {.compress = true} is for .npz files; got '" + path + "'; save it without, or as .npz");
}

void refuse_torch(const std::string& path, const SaveOptions& options) {
  if (options.names != NameStyle::torch) return;
  throw Error(ErrorKind::argument, "save: files of Julia have Flux's names; got {.names = torch} for '" + path +
                                       "'; save it as .safetensors");
}

void write_julia(const std::string& path, FileFormat format, StateNode& root) {
  if (format == FileFormat::jld2) write_jld2(path, root);
  else write_bson(path, root);
}

/// Texts as entries of their own.
void add_texts(StateNode& root, std::span<const SaveEntry> entries) {
  for (const SaveEntry& entry : entries) {
    StateNode node;
    node.kind = entry.text() ? StateNode::Kind::text : StateNode::Kind::texts;
    if (!entry.text() && !entry.texts()) continue;
    if (entry.text()) node.text = *entry.text();
    for (size_t i = 0; entry.texts() && i < entry.texts()->size(); ++i) {
      StateNode& each = node.children.emplace_back().second;
      each.kind = StateNode::Kind::text;
      each.text = (*entry.texts())[i];
    }
    root.children.emplace_back(entry.name(), std::move(node));
  }
}

/// The metadata that a user gives, less the names that are the library's own.
MetadataTexts own_metadata(const std::string& path, const SaveOptions& options, const MetadataTexts& texts) {
  MetadataTexts kept;
  for (const auto& entry : options.metadata) {
    if (entry.first.starts_with("rosin.")) continue;
    const auto is_it = [&](const auto& other) { return other.first == entry.first; };
    if (std::any_of(kept.begin(), kept.end(), is_it) || std::any_of(texts.begin(), texts.end(), is_it)) {
      throw Error(ErrorKind::argument, "save: every text needs a name of its own; '" + entry.first + "' for '" + path +
                                           "' is used twice; rename it");
    }
    kept.push_back(entry);
  }
  return kept;
}

void refuse_metadata(const std::string& path, const SaveOptions& options) {
  if (options.metadata.empty()) return;
  throw Error(ErrorKind::argument, "save: safetensors files have metadata; got {.metadata} for '" + path +
                                       "'; save it as .safetensors, or texts as entries in .bson");
}

void write_arrays(const std::string& path, FileFormat format, const std::vector<OutgoingArray>& arrays,
                  MetadataTexts texts, const SaveOptions& options) {
  if (is_safetensors(format)) {
    const MetadataTexts metadata = own_metadata(path, options, texts);
    if (format == FileFormat::safetensors_shards) {
      return write_shards(path, arrays, texts, metadata, options.shard_bytes);
    }
    texts.insert(texts.end(), metadata.begin(), metadata.end());
    return write_safetensors(path, arrays, texts);
  }
  refuse_metadata(path, options);
  if (!texts.empty()) {
    throw Error(ErrorKind::argument, "save: NumPy's files hold arrays; got the text '" + texts.front().first +
                                         "' for '" + path + "'; save it as .safetensors or .bson");
  }
  if (format == FileFormat::npz) write_npz(path, arrays, options.compress);
  else write_npy(path, arrays);
}

bool has_all(const std::vector<NamedArray>& arrays, const std::vector<NamedArray>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const NamedArray& place) {
    const auto is_it = [&](const NamedArray& entry) { return entry.name == place.name; };
    return place.value.is_nothing() || std::any_of(arrays.begin(), arrays.end(), is_it);
  });
}

/// Whether the file fits the model only when it is read as one of PyTorch.
bool has_torch_names(ModelEdit model, const std::vector<NamedArray>& arrays) {
  const std::vector<NamedArray> wanted = state(model.view());
  return !has_all(arrays, wanted) && has_all(from_torch(model, arrays), wanted);
}

void load_arrays(const SavedFile& file, const std::string& path, ModelEdit model, const LoadFileOptions& options) {
  try {
    if (options.names == NameStyle::torch) loadmodel(model, from_torch(model, file.arrays()), {options.strict});
    else loadmodel(model, file.arrays(), {options.strict});
  } catch (const Error& error) {
    if (options.names == NameStyle::rosin && has_torch_names(model, file.arrays())) {
      throw Error(ErrorKind::argument,
                  "load: '" + path + "': its names are those that PyTorch uses; load it with {.names = torch}");
    }
    std::string_view text = error.what();
    constexpr std::string_view prefix = "loadmodel: ";
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    throw Error(error.kind(), "load: '" + path + "': " + std::string(text));
  }
}

/// The devices of a model's arrays by their names.
class DevicesByName : public ModelVisitor {
 public:
  void array(const Array& x, const ModelPath& path) override {
    if (!x.is_nothing() && x.node()->device != 0) found_[path.file_text()] = device_for(x);
  }
  Device operator()(std::string_view name) const {
    const auto at = found_.find(name);
    return at == found_.end() ? Device() : at->second;
  }

 private:
  /// No type changes on the way there, unless the device lacks Float64.
  static Device device_for(const Array& x) {
    const Device device = x.device();
    return device_facts(device.position()).float64 ? device.with(keep) : device;
  }

  std::map<std::string, Device, std::less<>> found_;
};

/// The file's arrays, named as this model's places.
SavedFile read_for(const std::string& path, ModelEdit model, const LoadFileOptions& options) {
  const FileFormat format = format_of("load", path, false);
  if (is_safetensors(format) && options.names == NameStyle::rosin) {
    DevicesByName devices;
    model.view().visit_with(devices);
    const ReadRequest request{{.map = options.map}, devices};
    return format == FileFormat::safetensors ? read_safetensors(path, request) : read_shards(path, request);
  }
  const bool flux = is_julias(format) && options.names != NameStyle::torch && !options.map;
  return flux ? read_julia_for(path, julia_format(format), model) : load(path, {.map = options.map});
}

/// The texts that entries ask for, in their order; nothing for other entries and, unless `strict`, for missing ones.
std::vector<std::optional<std::vector<std::string>>> find_texts(const SavedFile& file,
                                                                std::span<const LoadEntry> entries, bool strict) {
  std::vector<std::optional<std::vector<std::string>>> found(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool one = entries[i].text() != nullptr;
    if (!one && !entries[i].texts()) continue;
    if (!strict && !find_text(file, entries[i].name())) continue;
    found[i] = one ? std::vector{file.text(entries[i].name())} : file.texts(entries[i].name());
  }
  return found;
}

/// `places`: what the values are before.
void load_whole(const SavedFile& file, const std::string& path, EntriesToLoad& whole, const std::vector<Array>& places,
                const LoadFileOptions& options) {
  auto texts = find_texts(file, whole.entries, options.strict);
  load_arrays(file, path, whole, options);
  for (size_t i = 0; i < whole.entries.size(); ++i) {
    const LoadEntry& entry = whole.entries[i];
    if (!same(whole.values[i], places[i])) entry.set_value(whole.values[i]);
    if (texts[i] && entry.text()) *entry.text() = std::move(texts[i]->front());
    else if (texts[i]) *entry.texts() = std::move(*texts[i]);
  }
}

}  // namespace

bool SavedFile::contains(std::string_view name) const noexcept {
  return std::any_of(arrays_.begin(), arrays_.end(), [&](const NamedArray& entry) { return entry.name == name; });
}

const Array& SavedFile::operator[](std::string_view name) const {
  std::string names;
  for (const NamedArray& entry : arrays_) {
    if (entry.name == name) return entry.value;
    if (names.size() < 200) names += (names.empty() ? "" : ", ") + entry.name;
    else if (!names.ends_with("...")) names += ", ...";
  }
  throw Error(ErrorKind::argument, "load: an array must be in the file; '" + std::string(name) +
                                       "' is not; it has: " + (names.empty() ? "no arrays" : names));
}

std::vector<NamedArray> SavedFile::part(std::string_view entry) const {
  const std::string prefix = std::string(entry) + ".";
  std::vector<NamedArray> found;
  for (const NamedArray& array : arrays_) {
    if (array.name.starts_with(prefix)) found.push_back({array.name.substr(prefix.size()), array.value});
  }
  if (!found.empty()) return found;
  throw Error(ErrorKind::argument, "load: an entry must be in the file; '" + std::string(entry) +
                                       "' is not; arrays() lists the names of all arrays");
}

const std::string& SavedFile::text(std::string_view name) const {
  if (const std::string* found = find_text(*this, name)) return *found;
  throw Error(ErrorKind::argument, "load: a text must be in the file; '" + std::string(name) +
                                       "' is not; metadata() lists all, and arrays() what is no text");
}

std::vector<std::string> SavedFile::texts(std::string_view name) const { return parse_list(text(name), name); }

void save(const std::string& path, ModelView model, SaveOptions options) {
  const FileFormat format = format_for(path, options);
  if (is_julias(format)) {
    refuse_torch(path, options);
    StateNode root;
    root.children.emplace_back("model_state", flux_state(model));
    refuse_metadata(path, options);
    return write_julia(path, format, root);
  }
  write_arrays(path, format, arrays_of(model, options), {}, options);
}

void save(const std::string& path, std::initializer_list<SaveEntry> entries, SaveOptions options) {
  const std::span<const SaveEntry> list(entries.begin(), entries.size());
  check_entries("save", list);
  const FileFormat format = format_for(path, options);
  const EntriesToSave whole{list};
  if (is_julias(format)) {
    refuse_torch(path, options);
    StateNode root = flux_state(ModelView(whole));
    add_texts(root, list);
    refuse_metadata(path, options);
    return write_julia(path, format, root);
  }
  write_arrays(path, format, arrays_of(ModelView(whole), options), texts_of(list), options);
}

std::vector<OutgoingArray> arrays_of_entries(std::span<const SaveEntry> entries) {
  check_entries("save", entries);
  return arrays_of(ModelView(EntriesToSave{entries}), {});
}

std::vector<std::pair<std::string, std::string>> texts_of_entries(std::span<const SaveEntry> entries) {
  return texts_of(entries);
}

void save(const std::string& path, const std::vector<NamedArray>& arrays, const SaveOptions& options) {
  const FileFormat format = format_for(path, options);
  if (options.names == NameStyle::torch) {
    throw Error(ErrorKind::argument, "save: PyTorch's names are those of a model's layers; got arrays for '" + path +
                                         "' with {.names = torch}; save the model");
  }
  if (is_julias(format)) {
    refuse_metadata(path, options);
    StateNode root = nested_state(arrays);
    return write_julia(path, format, root);
  }
  write_arrays(path, format, outgoing(arrays), {}, options);
}

SavedFile load(const std::string& path, const ReadOptions& options) {
  const FileFormat format = format_of("load", path, false);
  check_options(options);
  if (format == FileFormat::safetensors) return read_safetensors(path, {options});
  if (format == FileFormat::safetensors_shards) return read_shards(path, {options});
  if (format == FileFormat::npy) return read_npy(path, {options});
  if (options.map) {
    throw Error(ErrorKind::argument, "load: .safetensors, .safetensors.index.json and .npy can be mapped; got '" +
                                         path + "' with {.map = true}; load it without");
  }
  const SavedFile file = format == FileFormat::npz       ? read_npz(path)
                         : format == FileFormat::pytorch ? read_torch(path)
                                                         : read_julia(path, julia_format(format));
  std::vector<NamedArray> arrays;
  for (const NamedArray& entry : file.arrays()) arrays.push_back({entry.name, adjusted(path, entry, options)});
  return SavedFile(std::move(arrays), file.metadata());
}

FileListing list_file(const std::string& path) {
  const FileFormat format = format_of("load", path, false);
  if (format == FileFormat::npz) return list_npz(path);
  if (format == FileFormat::npy) return list_npy(path);
  if (format == FileFormat::safetensors_shards) return list_shards(path);
  if (format == FileFormat::pytorch) return list_torch(path);
  return is_julias(format) ? list_julia(path, julia_format(format)) : list_safetensors(path);
}

void load(const std::string& path, ModelEdit model, LoadFileOptions options) {
  load_arrays(read_for(path, model, options), path, model, options);
}

void load(const std::string& path, std::initializer_list<LoadEntry> entries, LoadFileOptions options) {
  EntriesToLoad whole{{entries.begin(), entries.size()}, {}};
  check_entries("load", whole.entries);
  whole.values = places_for(whole.entries, list_file(path));
  const std::vector<Array> places = whole.values;
  load_whole(read_for(path, whole, options), path, whole, places, options);
}

void load_entries(const SavedFile& file, const std::string& path, std::span<const LoadEntry> entries) {
  EntriesToLoad whole{entries, places_for(entries, file)};
  const std::vector<Array> places = whole.values;
  load_whole(file, path, whole, places, {});
}

}  // namespace rosin
