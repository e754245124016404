// Each file of a model in several is read and written as one that stands alone.
#include "io/safetensors_shards.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include <rosin/error.hpp>

#include "base/file.hpp"
#include "graph/leaf.hpp"
#include "io/file_formats.hpp"
#include "io/safetensors_header.hpp"

namespace rosin {
namespace {

constexpr std::string_view index_extension = ".safetensors.index.json";

using NamesByFile = std::map<std::string, std::set<std::string, std::less<>>>;

ShardIndex read_index(const std::string& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path, longest_header);
  return parse_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

/// A name of this folder, and no way out of it.
void check_file_name(const std::string& name, const std::string& path) {
  const bool plain = name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
  if (plain && name.ends_with(".safetensors")) return;
  refuse_file(path, "", "an index names safetensors files of its own folder", "it names '" + name.substr(0, 200) + "'");
}

NamesByFile names_by_file(const ShardIndex& index, const std::string& path) {
  NamesByFile names;
  for (const auto& [tensor, file] : index.files) names[file].insert(tensor);
  for (const auto& [file, tensors] : names) check_file_name(file, path);
  return names;
}

std::string beside(const std::string& path, const std::string& file) {
  return path.substr(0, path.rfind('/') + 1) + file;
}

void check_found(const std::set<std::string, std::less<>>& wanted, std::set<std::string> found,
                 const std::string& file) {
  for (const std::string& name : wanted) {
    if (found.contains(name)) continue;
    refuse_file(file, name, "a file must hold the tensors that the index names", "this one is not there");
  }
}

/// What the index says beats what a file says; a file's hash of its own tensors is none of the whole.
void add_metadata(MetadataTexts& all, const MetadataTexts& more) {
  for (const auto& entry : more) {
    const auto is_it = [&](const auto& known) { return known.first == entry.first; };
    if (entry.first != "rosin.model" && std::none_of(all.begin(), all.end(), is_it)) all.push_back(entry);
  }
}

/// Positions at which new files begin.
std::vector<size_t> first_of_files(const std::vector<OutgoingArray>& arrays, uint64_t shard_bytes) {
  std::vector<size_t> first{0};
  uint64_t filled = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const uint64_t bytes = bytes_of(arrays[i].array.dtype(), arrays[i].shape);
    if (filled > 0 && (bytes > shard_bytes || filled > shard_bytes - bytes)) first.push_back(i), filled = 0;
    filled += bytes;
  }
  first.push_back(arrays.size());
  return first;
}

std::string shard_name(const std::string& stem, size_t number, size_t count) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu.safetensors", number, count);
  return stem + numbers;
}

}  // namespace

SavedFile read_shards(const std::string& path, const ReadRequest& request) {
  ShardIndex index = read_index(path);
  std::vector<NamedArray> arrays;
  for (const auto& [file, tensors] : names_by_file(index, path)) {
    ReadRequest part = request;
    part.wants = [&wanted = tensors](std::string_view name) { return wanted.contains(name); };
    const SavedFile read = read_safetensors(beside(path, file), part);
    std::set<std::string> found;
    for (const NamedArray& entry : read.arrays()) {
      found.insert(entry.name);
      arrays.push_back(entry);
    }
    check_found(tensors, std::move(found), beside(path, file));
    add_metadata(index.metadata, read.metadata());
  }
  return SavedFile(std::move(arrays), std::move(index.metadata));
}

FileListing list_shards(const std::string& path) {
  ShardIndex index = read_index(path);
  FileListing listing;
  for (const auto& [file, tensors] : names_by_file(index, path)) {
    FileListing part = list_safetensors(beside(path, file));
    std::set<std::string> found;
    for (TensorListing& tensor : part.tensors) {
      if (!tensors.contains(tensor.name)) continue;
      found.insert(tensor.name);
      listing.tensors.push_back(std::move(tensor));
    }
    check_found(tensors, std::move(found), beside(path, file));
    add_metadata(index.metadata, part.metadata);
  }
  listing.metadata = std::move(index.metadata);
  return listing;
}

void write_shards(const std::string& path, std::vector<OutgoingArray> arrays, const MetadataTexts& texts,
                  const MetadataTexts& metadata, uint64_t shard_bytes) {
  if (shard_bytes == 0) {
    throw Error(ErrorKind::argument, "save: a file of several has room for bytes; got {.shard_bytes = 0}; give some");
  }
  check_outgoing(arrays, path);
  put_in_order(arrays);
  const std::string whole = path.substr(0, path.size() - index_extension.size());
  const std::vector<size_t> first = first_of_files(arrays, shard_bytes);
  const size_t count = first.size() - 1;
  ShardIndex index{{}, metadata};
  index.metadata.insert(index.metadata.end(), texts.begin(), texts.end());
  uint64_t bytes = 0;
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (size_t k = 0; k < count; ++k) {
    const std::string name = shard_name(whole, k + 1, count);
    const std::span<const OutgoingArray> part(arrays.data() + first[k], first[k + 1] - first[k]);
    files.push_back(std::make_unique<AtomicFile>(name));
    write_safetensors_into(*files.back(), name, part, metadata);
    for (const OutgoingArray& entry : part) {
      index.files.emplace_back(entry.name, name.substr(name.rfind('/') + 1));
      bytes += bytes_of(entry.array.dtype(), entry.shape);
    }
  }
  AtomicFile index_file(path);
  const std::string text = index_text(index, bytes);
  index_file.write(text.data(), text.size());
  for (const auto& file : files) file->commit();
  index_file.commit();
}

}  // namespace rosin
