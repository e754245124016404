// PyTorch's files (torch.save) behind load and list_file: a zip archive with a pickle and the bytes of storages.
// Read next: torch_file.cpp, pickle.hpp, zip.hpp.
#pragma once

#include <string>

#include <rosin/io.hpp>

namespace rosin {

/// Tensors and numbers by their path in lists and dicts ("model.fc.weight", "optimizer.state.0.step"), texts as
/// metadata. A tensor by itself is called as the file. Equal views of one storage are one array. Error (io): damaged,
/// of PyTorch before 1.6, or with an opcode or class beside those of pickle.hpp; (shape): more than eight dims.
SavedFile read_torch(const std::string& path);
FileListing list_torch(const std::string& path);

}  // namespace rosin
