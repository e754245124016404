// save and load: which format a path means, and how entries become one model with named parts.
// Read next: safetensors.hpp (the format), torch_names.hpp, model.hpp (loadmodel).
#include <rosin/io.hpp>

#include <algorithm>
#include <span>

#include <rosin/error.hpp>

#include "graph/leaf.hpp"
#include "io/safetensors.hpp"
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

/// The same for loading; numbers are loaded into arrays first, so that a failure changes nothing.
struct EntriesToLoad {
  std::span<const LoadEntry> entries;
  std::vector<Array> numbers;  // one for each entry; nothing for models
  void rosin_visit(ModelEditor& editor, const ModelPath& path) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const ModelPath place = path.field(entries[i].name());
      if (entries[i].is_number()) editor.array(numbers[i], place.fixed());
      else entries[i].edit_with(editor, place);
    }
  }
};

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

void load_entries(const std::string& path, ModelEdit model, const LoadFileOptions& options) {
  const SavedFile file = load(path);
  try {
    if (options.names == NameStyle::torch) loadmodel(model, from_torch(model, file.arrays()), {options.strict});
    else loadmodel(model, file.arrays(), {options.strict});
  } catch (const Error& error) {
    std::string_view text = error.what();
    constexpr std::string_view prefix = "loadmodel: ";
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    throw Error(error.kind(), "load: '" + path + "': " + std::string(text));
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

void save(const std::string& path, ModelView model, SaveOptions options) {
  check_extension("save", path);
  write_safetensors(path, options.names == NameStyle::torch ? to_torch(model) : outgoing(state(model)));
}

void save(const std::string& path, std::initializer_list<SaveEntry> entries, SaveOptions options) {
  const std::span<const SaveEntry> list(entries.begin(), entries.size());
  check_entries("save", list);
  const EntriesToSave whole{list};
  save(path, ModelView(whole), options);
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

void load(const std::string& path, ModelEdit model, LoadFileOptions options) { load_entries(path, model, options); }

void load(const std::string& path, std::initializer_list<LoadEntry> entries, LoadFileOptions options) {
  EntriesToLoad whole{{entries.begin(), entries.size()}, {}};
  check_entries("load", whole.entries);
  for (const LoadEntry& entry : whole.entries) {
    whole.numbers.push_back(entry.is_number() ? fresh_leaf(entry.type(), Shape()) : Array());
  }
  const std::vector<Array> before = whole.numbers;
  load_entries(path, whole, options);
  for (size_t i = 0; i < whole.entries.size(); ++i) {
    if (!same(whole.numbers[i], before[i])) whole.entries[i].set_number(whole.numbers[i]);
  }
}

}  // namespace rosin
