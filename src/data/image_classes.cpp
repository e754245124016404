// Folders of pictures, one for each class (image.hpp).
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include <rosin/error.hpp>
#include <rosin/image.hpp>

#include "platform/paths.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;
using platform::name_of;
using platform::path_of;

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorKind::io, "ImageClasses: " + text); }

bool is_picture(const fs::path& path) {
  std::string extension = name_of(path.extension());
  for (char& letter : extension) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto known = {".png", ".jpg", ".jpeg", ".ppm", ".pgm"};
  return std::find(known.begin(), known.end(), extension) != known.end();
}

/// Sorted names of the folders in a folder.
std::vector<std::string> folders_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_of(directory))) {
    if (entry.is_directory()) names.push_back(name_of(entry.path().filename()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Sorted paths of the pictures below a folder.
std::vector<std::string> pictures_below(const fs::path& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_picture(entry.path())) paths.push_back(name_of(entry.path()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

ImageClasses::ImageClasses(const std::string& directory, const ImageOptions& options) : options_(options) {
  try {
    classes_ = folders_in(directory);
    for (size_t label = 0; label < classes_.size(); ++label) {
      const std::vector<std::string> found = pictures_below(path_of(directory) / path_of(classes_[label]));
      if (found.empty()) {
        refuse("'" + directory + "/" + classes_[label] +
               "' has no picture (png, jpg, jpeg, ppm, pgm); each folder is a class");
      }
      paths_.insert(paths_.end(), found.begin(), found.end());
      labels_.insert(labels_.end(), found.size(), static_cast<int32_t>(label));
    }
  } catch (const fs::filesystem_error& error) {
    refuse("cannot read '" + directory + "'; " + error.code().message());
  }
  if (classes_.empty()) refuse("'" + directory + "' has no folders; give one with a folder for each class");
}

std::tuple<Array, Array> ImageClasses::getobs(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  if (i < 0 || at >= paths_.size()) {
    throw Error(ErrorKind::argument, "getobs: observation " + std::to_string(i) + " is out of range; there are " +
                                         std::to_string(paths_.size()) + ", counted from 0");
  }
  return {read_image(paths_[at], options_), Array(std::vector<int32_t>{labels_[at]}, Shape{})};
}

}  // namespace rosin
