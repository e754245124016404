// Names, marks and removal of checkpoints.
#include "train/rotation.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <rosin/error.hpp>

#include "io/safetensors.hpp"
#include "platform/paths.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;
using platform::name_of;
using platform::path_of;

constexpr std::string_view extension = ".safetensors";
constexpr const char *version_key = "rosin.checkpoint", *number_key = "rosin.checkpoint.number",
                     *score_key = "rosin.checkpoint.score";
constexpr const char* version = "1";

const std::string* find(const MarkTexts& metadata, std::string_view name) {
  for (const auto& [key, text] : metadata) {
    if (key == name) return &text;
  }
  return nullptr;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return {};
  return number;
}

[[noreturn]] void refuse(const std::string& rule, const std::string& path, const std::string& what) {
  throw Error(ErrorKind::io, "checkpoint: " + rule + "; '" + path + "': " + what);
}

/// The file of the row with the lowest score; -1: none has one.
int64_t best_number(const std::string& path, const std::vector<int64_t>& numbers) {
  int64_t best = -1;
  double lowest = 0;
  for (int64_t number : numbers) {
    const std::optional<CheckpointMark> mark = mark_of(numbered_path(path, number));
    if (!mark || !mark->score || std::isnan(*mark->score)) continue;
    if (best < 0 || *mark->score < lowest) best = number, lowest = *mark->score;
  }
  return best;
}

}  // namespace

MarkTexts mark_texts(const CheckpointMark& mark) {
  MarkTexts texts = {{version_key, version}, {number_key, std::to_string(mark.number)}};
  if (mark.score) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", *mark.score);
    texts.emplace_back(score_key, text);
  }
  return texts;
}

std::optional<CheckpointMark> mark_of(const std::string& path) noexcept {
  try {
    const MarkTexts metadata = list_safetensors(path).metadata;
    if (!find(metadata, version_key)) return {};
    CheckpointMark mark;
    if (const std::string* text = find(metadata, number_key)) mark.number = whole_number(*text).value_or(0);
    if (const std::string* text = find(metadata, score_key)) mark.score = std::strtod(text->c_str(), nullptr);
    return mark;
  } catch (...) {
    return {};
  }
}

void check_marked(const MarkTexts& metadata, const std::string& path) {
  const std::string* found = find(metadata, version_key);
  if (found && *found == version) return;
  refuse("the file must be a checkpoint of version 1 or earlier", path,
         found ? "it is of version " + *found + "; update rosin"
               : "its metadata say nothing of one; read it with rosin::load");
}

std::string numbered_path(const std::string& path, int64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return path.substr(0, path.size() - extension.size()) + "." + digits + std::string(extension);
}

std::vector<int64_t> numbers_of_row(const std::string& path) {
  const fs::path place = path_of(path);
  std::string stem = name_of(place.filename());
  stem.resize(stem.size() - extension.size());
  const fs::path folder = place.has_parent_path() ? place.parent_path() : fs::path(".");
  std::vector<int64_t> numbers;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = name_of(entry->path().filename());
    const size_t around = stem.size() + 1 + extension.size();
    if (name.size() <= around || !name.starts_with(stem + ".") || !name.ends_with(extension)) continue;
    const auto number = whole_number(std::string_view(name).substr(stem.size() + 1, name.size() - around));
    if (number && name_of(path_of(numbered_path(path, *number)).filename()) == name) numbers.push_back(*number);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    refuse("the folder of a checkpoint must be readable", path, error.message() + "; choose another folder");
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string newest_file(const std::string& path) {
  const std::vector<int64_t> numbers = numbers_of_row(path);
  const bool plain = platform::is_there(path);
  if (numbers.empty()) return plain ? path : std::string();
  const std::optional<CheckpointMark> mark = plain ? mark_of(path) : std::nullopt;
  return mark && mark->number > numbers.back() ? path : numbered_path(path, numbers.back());
}

std::string best_file(const std::string& path) {
  const int64_t best = best_number(path, numbers_of_row(path));
  return best < 0 ? std::string() : numbered_path(path, best);
}

void remove_old(const std::string& path, int64_t kept) {
  const std::vector<int64_t> numbers = numbers_of_row(path);
  const int64_t best = best_number(path, numbers);
  for (size_t i = 0; i + static_cast<size_t>(kept) < numbers.size(); ++i) {
    if (numbers[i] == best) continue;
    const std::string old = numbered_path(path, numbers[i]);
    std::error_code error;
    fs::remove(path_of(old), error);
    if (error) refuse("an old file must go", old, error.message() + "; remove it, or let this program do so");
  }
}

}  // namespace rosin
