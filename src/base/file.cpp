// See file.hpp: names of temporary files, and the order in which one takes the place of another. Read next:
// platform/files.hpp.
#include "base/file.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>

#include <rosin/error.hpp>

#include "platform/paths.hpp"
#include "platform/processes.hpp"

namespace rosin {

namespace {

namespace fs = std::filesystem;
using platform::name_of;
using platform::path_of;

// Short, so that the longest name that the system takes has a temporary file too.
constexpr std::string_view temporary_prefix = ".rosin-unfinished-";

std::string directory_of(const std::string& path) {
  const fs::path folder = path_of(path).parent_path();
  return folder.empty() ? "." : name_of(folder);
}

bool is_name_of_temporary(std::string_view name) {
  if (!name.starts_with(temporary_prefix)) return false;
  name.remove_prefix(temporary_prefix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

// What killed processes left. What cannot be opened, held or removed stays.
void remove_abandoned(const std::string& directory) {
  std::error_code error;
  fs::directory_iterator entry(path_of(directory), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (is_name_of_temporary(name_of(entry->path().filename()))) platform::remove_if_abandoned(name_of(entry->path()));
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, FileAccess access) : path_(path), target_(path) {
  if (path.empty()) fail({"the path is empty"});
  if (access == FileAccess::owner_only) create_temporary(platform::NewFileAccess::owner_only);
  else replace_politely();
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::replace_politely() {
  platform::OldFile old;
  if (const platform::Refusal refusal = platform::look_at_old_file(path_, old)) fail(refusal);
  if (!old.is_there) return create_temporary(platform::NewFileAccess::usual);
  target_ = old.name;
  create_temporary(platform::NewFileAccess::owner_only);
  if (const platform::Refusal refusal = platform::take_over_rights(file_, old)) fail(refusal);
}

void AtomicFile::create_temporary(platform::NewFileAccess access) {
  static std::atomic<uint64_t> serial{0};
  const std::string directory = directory_of(target_);
  remove_abandoned(directory);
  const std::string stem =
      directory + "/" + std::string(temporary_prefix) + std::to_string(platform::process_number()) + "-";
  std::error_code error;
  do {
    temporary_ = stem + std::to_string(serial++);
    error = platform::make_file(temporary_, access, file_);
    // Another file system's process may have the same number; and who cleans up may have come first.
  } while (error == std::errc::file_exists);
  if (!error) return;
  temporary_.clear();
  fail({"cannot create a file in its directory", error});
}

void AtomicFile::check_open() const {
  if (!file_) throw Error(ErrorKind::internal, "write: '" + path_ + "' is already complete");
}

void AtomicFile::write(const void* bytes, std::size_t count) {
  check_open();
  if (const std::error_code error = platform::write_all(file_, bytes, count)) {
    fail({"the system refused to store the data", error});
  }
}

void AtomicFile::commit() {
  check_open();
  if (const std::error_code error = platform::flush(file_)) fail({"the data did not reach the disk", error});
  // Held until it has its name, so that nobody takes it for abandoned.
  if (const std::error_code error = platform::rename_open_file(file_, temporary_, target_)) {
    fail({"the finished file could not take its name", error});
  }
  temporary_.clear();
  discard();
  if (const std::error_code error = platform::flush_folder(directory_of(target_))) {
    fail({"its directory did not reach the disk", error});
  }
}

void AtomicFile::discard() noexcept {
  file_.close();
  if (!temporary_.empty()) platform::remove_file(temporary_);
  temporary_.clear();
}

// Also called by the constructor, whose destructor would not run: the temporary goes here.
void AtomicFile::fail(const platform::Refusal& refusal) {
  discard();
  const std::string reason = refusal.error ? ": " + refusal.error.message() : std::string();
  throw Error(ErrorKind::io, "write: cannot write '" + path_ + "'; " + refusal.rule + reason);
}

void write_file_atomically(const std::string& path, std::string_view text, FileAccess access) {
  AtomicFile file(path, access);
  file.write(text.data(), text.size());
  file.commit();
}

std::string make_private_folder(const std::string& path) {
  std::error_code ignored;
  fs::create_directories(path_of(path).parent_path(), ignored);  // what fails here fails again below
  if (const std::error_code error = platform::make_folder_for_user(path)) return error.message();
  return platform::trouble_with_private_folder(path);
}

}  // namespace rosin
