// Finds the four files of an MNIST-format folder and checks that they belong together (include/rosin/idx.hpp).
// Read next: idx_file.hpp, the format of one file.
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include <rosin/error.hpp>
#include <rosin/idx.hpp>

#include "data/idx_file.hpp"
#include "platform/paths.hpp"

namespace rosin {

namespace {

constexpr int unsigned_byte = 0x08;

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::io, "read_image_folder: " + message); }

void check_directory(const std::string& directory) {
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(platform::path_of(directory), error);
  if (error) fail("cannot open '" + directory + "'; " + error.message() + "; check the path");
  if (!is_directory(found)) fail("'" + directory + "' is not a folder; give the folder that holds the idx files");
}

std::string find_file(const std::string& directory, const std::string& name) {
  std::string plain = directory + (directory.back() == '/' ? "" : "/") + name;
  if (platform::is_there(plain)) return plain;
  std::string packed = plain + ".gz";
  if (platform::is_there(packed)) return packed;
  fail("'" + directory + "' has neither '" + name + "' nor '" + name + ".gz'");
}

IdxFile read_bytes(const std::string& path, std::size_t rank, const char* what) {
  IdxFile file = read_idx_file(path);
  if (file.type != unsigned_byte) fail("'" + path + "' does not hold unsigned bytes, so it cannot be " + what);
  if (file.dims.size() != rank) {
    fail("'" + path + "' has " + std::to_string(file.dims.size()) + " dimensions; " + what + " have " +
         std::to_string(rank));
  }
  return file;
}

LabelledImages read_half(const std::string& directory, const std::string& half) {
  const std::string image_path = find_file(directory, half + "-images-idx3-ubyte");
  const std::string label_path = find_file(directory, half + "-labels-idx1-ubyte");
  IdxFile labels = read_bytes(label_path, 1, "labels");  // the small file first: its errors come at once
  IdxFile images = read_bytes(image_path, 3, "images");
  if (labels.dims[0] != images.dims[0]) {
    fail("'" + label_path + "' does not match its images; it has " + std::to_string(labels.dims[0]) + " labels, '" +
         image_path + "' has " + std::to_string(images.dims[0]) + " images");
  }
  if (images.bytes.empty()) fail("'" + image_path + "' holds no pixels");
  return {images.dims[0], images.dims[1], images.dims[2], std::move(images.bytes), std::move(labels.bytes)};
}

}  // namespace

ImageFolder read_image_folder(const std::string& directory) {
  check_directory(directory);
  ImageFolder folder{read_half(directory, "train"), read_half(directory, "t10k")};
  if (folder.train.rows != folder.test.rows || folder.train.columns != folder.test.columns) {
    const auto size = [](const LabelledImages& images) {
      return std::to_string(images.rows) + "x" + std::to_string(images.columns);
    };
    fail("'" + directory + "' holds training images of " + size(folder.train) + " and test images of " +
         size(folder.test) + " pixels; they must be equal");
  }
  return folder;
}

}  // namespace rosin
