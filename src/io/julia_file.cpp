// From a tree to what load and list_file give.
#include "io/julia_file.hpp"

#include <map>

#include "io/bson_values.hpp"
#include "io/flux_names.hpp"
#include "io/jld2_values.hpp"
#include "io/julia_arrays.hpp"
#include "io/safetensors_header.hpp"

namespace rosin {
namespace {

JuliaTree read_tree(const InputFile& file, JuliaFormat format) {
  return format == JuliaFormat::bson ? read_bson_values(file) : read_jld2_values(file);
}

using Texts = std::vector<std::pair<std::string, std::string>>;

/// Entries of the file that are texts or lists of them.
Texts texts_of(const JuliaTree& tree) {
  Texts texts;
  const JuliaValue& root = tree.values[tree.root];
  if (root.kind != JuliaKind::named) return texts;
  for (uint32_t i = 0; i < root.count; ++i) {
    const JuliaChild& child = tree.child(root, i);
    const JuliaValue& value = tree.values[child.value];
    if (value.kind == JuliaKind::text || value.kind == JuliaKind::symbol) {
      texts.emplace_back(tree.text(child.name), tree.text_of(value));
    }
#ifdef ROSIN_HAVE_JSON  // lists of texts are JSON in metadata
    if (value.kind != JuliaKind::list) continue;
    std::vector<std::string> list;
    for (uint32_t j = 0; j < value.count; ++j) {
      const JuliaValue& each = tree.values[tree.child(value, j).value];
      if (each.kind == JuliaKind::text) list.push_back(tree.text_of(each));
    }
    if (!list.empty() && list.size() == value.count) texts.emplace_back(tree.text(child.name), list_text(list));
#endif
  }
  return texts;
}

/// How files of safetensors call the type.
std::string listed_type(const JuliaTree& tree, const JuliaValue& value) {
  const DType type = value.kind == JuliaKind::array     ? tree.arrays[value.array].type
                     : value.kind == JuliaKind::boolean ? DType::Bool
                                                        : value.number;
  return type == DType::ComplexF64 ? "C128" : file_type(type);
}

}  // namespace

SavedFile read_julia(const std::string& path, JuliaFormat format) {
  const InputFile file(path, "load");
  const JuliaTree tree = read_tree(file, format);
  const std::vector<FluxEntry> entries = list_entries(tree, tree.root, path);
  std::map<uint32_t, int> uses;
  for (const FluxEntry& entry : entries) ++uses[entry.value];
  std::map<uint32_t, Array> shared;
  std::vector<NamedArray> arrays;
  for (const FluxEntry& entry : entries) {
    const bool ties = uses[entry.value] > 1 && entry.storage == FluxStorage::plain;
    if (!ties) {
      arrays.push_back({entry.name, entry_array(tree, entry, file)});
      continue;
    }
    const auto [place, fresh] = shared.try_emplace(entry.value);
    if (fresh) place->second = tied(entry_array(tree, entry, file));
    arrays.push_back({entry.name, place->second});
  }
  return SavedFile(std::move(arrays), texts_of(tree));
}

SavedFile read_julia_for(const std::string& path, JuliaFormat format, ModelEdit model) {
  const InputFile file(path, "load");
  const JuliaTree tree = read_tree(file, format);
  return SavedFile(entries_for(model, tree, file), texts_of(tree));
}

FileListing list_julia(const std::string& path, JuliaFormat format) {
  const InputFile file(path, "load");
  const JuliaTree tree = read_tree(file, format);
  FileListing listing;
  for (const FluxEntry& entry : list_entries(tree, tree.root, path)) {
    const JuliaValue& value = tree.values[entry.value];
    TensorListing tensor{entry.name, listed_type(tree, value), {}, 0};
    if (value.kind == JuliaKind::array) {
      const JuliaArray& array = tree.arrays[value.array];
      for (int64_t size : array.sizes) tensor.sizes.push_back(static_cast<uint64_t>(size));
      tensor.bytes = array.bytes;
    } else {
      tensor.bytes = value.kind == JuliaKind::boolean ? 1 : size_of(value.number);
    }
    listing.tensors.push_back(std::move(tensor));
  }
  listing.metadata = texts_of(tree);
  return listing;
}

}  // namespace rosin
