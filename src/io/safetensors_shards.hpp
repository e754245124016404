// A model in several safetensors files, beside an index that says which tensor is where (as Hugging Face's libraries
// have it). Read first: safetensors.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/safetensors.hpp"

namespace rosin {

/// All tensors that the index names, in the order of the files. Error (io): the index breaks its rules, names a file
/// that is not beside it, or a tensor that its file lacks; else as read_safetensors.
SavedFile read_shards(const std::string& path, const ReadRequest& request = {});
FileListing list_shards(const std::string& path);

/// Files of at most `shard_bytes` (or one array), "model-00001-of-00003.safetensors", and the index. All are written
/// before the first takes its name, the index last. Texts go into the index, `metadata` into the index and each file.
/// Errors: as write_safetensors; argument (no bytes).
void write_shards(const std::string& path, std::vector<OutgoingArray> arrays, const MetadataTexts& texts,
                  const MetadataTexts& metadata, uint64_t shard_bytes);

}  // namespace rosin
