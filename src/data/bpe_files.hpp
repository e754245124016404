// The two files of a byte-pair encoding as GPT-2 has them. Read first: text.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rosin {

/// Names of tokens as the files have them, token by token: each byte of a token is a visible character.
/// Error (io): the file is no JSON object of names and the numbers 0 ... n - 1, once each; with line and column.
std::vector<std::string> read_token_names(const std::string& path);

/// A line of merges.txt: two names.
struct MergeLine {
  std::string left;
  std::string right;
  int64_t line;  // from 1
};
/// Error (io): a line is not two names with a space between; with its number.
std::vector<MergeLine> read_merge_lines(const std::string& path);

/// The bytes behind a name; a name with a character that stands for no byte is its own text.
std::string bytes_of_name(std::string_view name);

/// Throws the Error (io) of a file that breaks a rule at a place ("3:1", or a line).
[[noreturn]] void refuse_text_file(const char* op, const std::string& path, const std::string& place,
                                   const std::string& what);

}  // namespace rosin
