// The files of a Checkpoint by their names: the plain one, and a row of numbered ones beside it.
// Read next: checkpoint.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rosin {

/// What a checkpoint's metadata say of it.
struct CheckpointMark {
  int64_t number = 0;           // higher is newer
  std::optional<double> score;  // lower is better
};
using MarkTexts = std::vector<std::pair<std::string, std::string>>;
MarkTexts mark_texts(const CheckpointMark& mark);
/// Nothing: there is no such file, it cannot be read, or it is no checkpoint.
std::optional<CheckpointMark> mark_of(const std::string& path) noexcept;
/// Error (io): the metadata are those of no checkpoint, or of a later version's.
void check_marked(const MarkTexts& metadata, const std::string& path);

/// "a/run.000012.safetensors" of "a/run.safetensors".
std::string numbered_path(const std::string& path, int64_t number);
/// The numbers of the files of the row that are there, ascending. Error (io): the folder cannot be read.
std::vector<int64_t> numbers_of_row(const std::string& path);
/// The newest file, plain or numbered, and the numbered one with the lowest score; empty: none.
std::string newest_file(const std::string& path);
std::string best_file(const std::string& path);
/// Removes all of the row but the newest so many and the best. Error (io): one cannot be removed.
void remove_old(const std::string& path, int64_t keep);

}  // namespace rosin
