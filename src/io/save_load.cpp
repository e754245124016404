// save and load: which format a path means, and how entries become one model with named parts.
// Read next: safetensors.hpp (the format), torch_names.hpp, model.hpp (loadmodel).
#include <rosin/io.hpp>

#include <algorithm>
#include <optional>
#include <span>

#include <rosin/error.hpp>

#include "graph/leaf.hpp"
#include "io/safetensors.hpp"
#include "io/safetensors_header.hpp"
#include "io/torch_names.hpp"

namespace rosin {
namespace {

void check_extension(const char* op, const std::string& path) {
  if (path.ends_with(".safetensors")) return;
  throw Error(ErrorKind::argument, std::string(op) + ": the extension of the file must name a supported format; got '" +
                                       path + "'; supported: .safetensors");
}

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
};

using Texts = std::vector<std::pair<std::string, std::string>>;

Texts texts_of(std::span<const SaveEntry> entries) {
  Texts texts;
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

/// A place for the value of the file; where any count will do, of the file's.
Array place_for(const LoadEntry& entry, const SavedFile& file) {
  Shape shape = entry.shape();
  if (entry.has_any_count()) {
    shape = {0};
    if (file.contains(entry.name())) shape = {file[entry.name()].count()};
  }
  return fresh_leaf(entry.type(), shape);
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
  check_extension("save", path);
  write_safetensors(path, arrays_of(model, options));
}

void save(const std::string& path, std::initializer_list<SaveEntry> entries, SaveOptions options) {
  const std::span<const SaveEntry> list(entries.begin(), entries.size());
  check_entries("save", list);
  check_extension("save", path);
  const EntriesToSave whole{list};
  write_safetensors(path, arrays_of(ModelView(whole), options), texts_of(list));
}

void save(const std::string& path, const std::vector<NamedArray>& arrays) {
  check_extension("save", path);
  write_safetensors(path, outgoing(arrays));
}

SavedFile load(const std::string& path) {
  check_extension("load", path);
  return read_safetensors(path);
}

FileListing list_file(const std::string& path) {
  check_extension("load", path);
  return list_safetensors(path);
}

void load(const std::string& path, ModelEdit model, LoadFileOptions options) {
  load_arrays(load(path), path, model, options);
}

void load(const std::string& path, std::initializer_list<LoadEntry> entries, LoadFileOptions options) {
  EntriesToLoad whole{{entries.begin(), entries.size()}, {}};
  check_entries("load", whole.entries);
  const SavedFile file = load(path);
  for (const LoadEntry& entry : whole.entries) {
    whole.values.push_back(entry.is_value() ? place_for(entry, file) : Array());
  }
  const std::vector<Array> before = whole.values;
  auto texts = find_texts(file, whole.entries, options.strict);
  load_arrays(file, path, whole, options);
  for (size_t i = 0; i < whole.entries.size(); ++i) {
    const LoadEntry& entry = whole.entries[i];
    if (!same(whole.values[i], before[i])) entry.set_value(whole.values[i]);
    if (texts[i] && entry.text()) *entry.text() = std::move(texts[i]->front());
    else if (texts[i]) *entry.texts() = std::move(*texts[i]);
  }
}

}  // namespace rosin
