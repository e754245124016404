// Reading and writing safetensors files. Read next: safetensors_header.cpp (the rules), row_major.hpp (order of
// elements).
#include "io/safetensors.hpp"

#include <algorithm>
#include <cstdio>
#include <new>

#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/input_file.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/row_major.hpp"
#include "io/safetensors_header.hpp"

namespace rosin {
namespace {

/// Elements in more than one dim stand in another order in the file.
bool changes_order(const Shape& shape) {
  int wide = 0;
  for (int64_t size : shape) wide += size > 1;
  return wide > 1;
}

uint64_t read_header_length(const InputFile& file) {
  if (file.size() < 8) {
    refuse_file(file.path(), "", "a safetensors file begins with 8 bytes that give the length of its header",
                "it has " + std::to_string(file.size()) + " bytes");
  }
  unsigned char bytes[8];
  file.read(0, bytes, 8);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | bytes[i];
  if (length > longest_header) {
    refuse_file(file.path(), "", "a header has at most 100000000 bytes", "it states " + std::to_string(length));
  }
  if (length > file.size() - 8) {
    refuse_file(
        file.path(), "", "the header must be inside the file",
        "it states " + std::to_string(length) + " bytes and the file goes on for " + std::to_string(file.size() - 8));
  }
  return length;
}

SafetensorsHeader read_header(const InputFile& file, uint64_t length) {
  std::string text(static_cast<size_t>(length), '\0');
  file.read(8, text.data(), text.size());
  SafetensorsHeader header = parse_header(text, file.path());
  check_header(header, file.size() - 8 - length, file.path());
  return header;
}

std::string summary_hash(const SafetensorsHeader& header) {
  uint64_t hash = 0;
  const auto add = [&](const std::string& text) {
    for (char c : text) hash = mix(hash, static_cast<unsigned char>(c));
    hash = mix(hash, text.size());
  };
  for (const TensorInfo& tensor : header.tensors) {
    add(tensor.name);
    add(tensor.type);
    for (uint64_t size : tensor.sizes) hash = mix(hash, size);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// What is written can be read again.
void check_length(const std::string& header, const std::string& path) {
  if (header.size() <= longest_header) return;
  throw Error(ErrorKind::argument, "save: names and texts must fit into a header of 100000000 bytes; those for '" +
                                       path + "' take " + std::to_string(header.size()) +
                                       "; save long texts as arrays of UInt8");
}

SafetensorsHeader make_header(std::span<const OutgoingArray> arrays) {
  SafetensorsHeader header;
  uint64_t place = 0;
  for (const OutgoingArray& entry : arrays) {
    TensorInfo tensor{entry.name, file_type(entry.array.dtype()), {}, place, 0};
    if (tensor.type.empty()) {
      throw Error(ErrorKind::dtype, "save: safetensors has no type for every element; '" + entry.name + "' is " +
                                        to_string(entry.array.dtype()) + "; convert it to ComplexF32 first");
    }
    for (int64_t size : entry.shape) tensor.sizes.push_back(static_cast<uint64_t>(size));
    place += bytes_of(entry.array.dtype(), entry.shape);
    tensor.end = place;
    header.tensors.push_back(std::move(tensor));
  }
  header.metadata = {{"rosin.format", "1"}, {"rosin.version", ROSIN_VERSION}, {"rosin.model", summary_hash(header)}};
  return header;
}

void write_array(AtomicFile& file, const OutgoingArray& entry) {
  const Array x = entry.make ? entry.make(entry.array) : with_values(entry.array);
  const size_t bytes = bytes_of(x.dtype(), x.shape());
  if (!changes_order(x.shape())) return file.write(x.node()->data(), bytes);
  std::vector<uint64_t> rows = detail::host_vector<uint64_t>("safetensors", static_cast<int64_t>((bytes + 7) / 8));
  to_row_major(rows.data(), x.node()->data(), x.shape(), size_of(x.dtype()));
  file.write(rows.data(), bytes);
}

}  // namespace

SavedFile read_safetensors(const std::string& path, const ReadRequest& request) {
  const InputFile file(path, "load");
  const uint64_t length = read_header_length(file);
  SafetensorsHeader header = read_header(file, length);
  TensorReader reader(file, request);
  std::vector<NamedArray> arrays;
  for (const TensorInfo& tensor : header.tensors) {
    if (request.wants && !request.wants(tensor.name)) continue;
    const StoredElements stored{8 + length + tensor.begin, array_type(tensor, path), array_shape(tensor, path)};
    arrays.push_back({tensor.name, reader.read(stored, tensor.name)});
  }
  return SavedFile(std::move(arrays), std::move(header.metadata));
}

FileListing list_safetensors(const std::string& path) {
  const InputFile file(path, "load");
  SafetensorsHeader header = read_header(file, read_header_length(file));
  FileListing listing;
  for (TensorInfo& tensor : header.tensors) {
    const uint64_t bytes = tensor.end - tensor.begin;
    listing.tensors.push_back({std::move(tensor.name), std::move(tensor.type), std::move(tensor.sizes), bytes});
  }
  listing.metadata = std::move(header.metadata);
  return listing;
}

void check_outgoing(const std::vector<OutgoingArray>& arrays, const std::string& path) {
  std::vector<std::string_view> names;
  for (const OutgoingArray& entry : arrays) {
    if (entry.name.empty()) {
      throw Error(ErrorKind::argument, "save: an array in a file needs a name; one for '" + path +
                                           "' has none; write save(path, {{\"x\", x}})");
    }
    names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end() && !std::binary_search(names.begin(), names.end(), "__metadata__")) return;
  throw Error(ErrorKind::argument, "save: every array needs a name of its own, other than __metadata__; '" +
                                       std::string(twice == names.end() ? "__metadata__" : *twice) + "' for '" + path +
                                       "' is not; rename it");
}

void put_in_order(std::vector<OutgoingArray>& arrays) {
  std::sort(arrays.begin(), arrays.end(), [](const OutgoingArray& a, const OutgoingArray& b) {
    const size_t wide = size_of(a.array.dtype()), other = size_of(b.array.dtype());
    return wide != other ? wide > other : a.name < b.name;
  });
}

void write_safetensors_into(AtomicFile& file, const std::string& path, std::span<const OutgoingArray> arrays,
                            const MetadataTexts& texts) {
  SafetensorsHeader header = make_header(arrays);
  header.metadata.insert(header.metadata.end(), texts.begin(), texts.end());
  const std::string text = header_text(header);
  check_length(text, path);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
  file.write(length, 8);
  file.write(text.data(), text.size());
  for (const OutgoingArray& entry : arrays) write_array(file, entry);
}

void write_safetensors(const std::string& path, std::vector<OutgoingArray> arrays, const MetadataTexts& texts) {
  check_outgoing(arrays, path);
  put_in_order(arrays);
  AtomicFile file(path);
  write_safetensors_into(file, path, arrays, texts);
  file.commit();
}

}  // namespace rosin
