// What tests of file formats share: where the real files are, scratch folders, and error texts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <rosin/error.hpp>

#include "../tests/error_testing.hpp"

namespace rosin::testing {

/// A folder of real files made by others; ROSIN_FILES, or ../shared/files beside the checkout.
inline std::string real_files(const std::string& name) {
  const char* root = std::getenv("ROSIN_FILES");
  return (root ? std::string(root) : std::string(ROSIN_SOURCE_DIR) + "/../shared/files") + "/" + name;
}

inline std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// The rows of a table of tab-separated cells, less those that begin with #.
inline std::vector<std::vector<std::string>> table_rows(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') rows.push_back(split_text(line, '\t'));
  }
  return rows;
}

/// A test with a folder of its own, removed afterwards.
class ScratchFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "rosin-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string bytes_of_file(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// The error's text with DIR for the folder.
  template <class F> std::string error_here(F f) const {
    std::string text = error_of(f);
    for (size_t at; (at = text.find(folder_)) != std::string::npos;) text.replace(at, folder_.size(), "DIR");
    return text;
  }
  std::vector<std::string> names_in_folder() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string folder_;
};

/// A safetensors file of these parts.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + data;
}

}  // namespace rosin::testing
