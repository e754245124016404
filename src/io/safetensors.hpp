// Safetensors files: reading one whole, and writing arrays one after another.
// Read next: safetensors_header.hpp (the format), file.cpp (save and load, the users).
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rosin/io.hpp>

#include "io/tensor_reading.hpp"

namespace rosin {

class AtomicFile;

/// An array to be written. `make` gives the values at the moment they are written, so that rearranged copies live one
/// at a time; null: the array as it is.
struct OutgoingArray {
  std::string name;
  Array array;
  Shape shape;  // of what is written
  Array (*make)(const Array& x) = nullptr;
};

using MetadataTexts = std::vector<std::pair<std::string, std::string>>;

/// Error (io): the file breaks a rule of the format. (dtype), (shape): arrays cannot hold what it has.
SavedFile read_safetensors(const std::string& path, const ReadRequest& request = {});
/// The same without the arrays. Error (io): the file breaks a rule of the format.
FileListing list_safetensors(const std::string& path);

/// Larger elements first, then by name: every tensor is aligned. Error (argument): a name is empty or used twice;
/// (dtype): the format has no such type; (io): the file cannot be written, and what stood there stays.
/// `texts`: metadata beside the file's own.
void write_safetensors(const std::string& path, std::vector<OutgoingArray> arrays, const MetadataTexts& texts = {});

/// The same into `file`, which the caller commits; arrays in that order. For several files of one whole.
void check_outgoing(const std::vector<OutgoingArray>& arrays, const std::string& path);
void put_in_order(std::vector<OutgoingArray>& arrays);
void write_safetensors_into(AtomicFile& file, const std::string& path, std::span<const OutgoingArray> arrays,
                            const MetadataTexts& texts);

}  // namespace rosin
