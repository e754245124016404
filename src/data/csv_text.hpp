// The fields of a CSV text one after the other. Read next: csv_text.cpp; csv.cpp, which gives them types.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rosin {

/// Walks through a text. Errors (io) name the file, the line and the column.
class CsvText {
 public:
  CsvText(const std::string& path, std::string_view text, char delimiter, char quote);

  /// Skips empty lines. Whether a row follows.
  bool begins_row();
  /// The next field of the row: valid until the next call. `is_last` says whether it ends the row.
  std::string_view next();
  bool is_last() const noexcept { return last_; }
  /// Throws the Error of the field that next() gave.
  [[noreturn]] void refuse(const std::string& what) const { refuse_at(field_, field_line_, field_line_begin_, what); }

 private:
  bool has_stop(const char* bytes) const noexcept;
  std::string_view quoted_field();
  void end_of_field();
  void take_line_end();
  [[noreturn]] void refuse_at(size_t at, int64_t line, size_t line_begin, const std::string& what) const;

  const std::string& path_;
  std::string_view text_;
  char delimiter_;
  char quote_;
  std::array<bool, 256> stops_{};  // a field without quotes ends before these
  std::string unescaped_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  int64_t line_ = 1;
  size_t field_ = 0;  // where the last field began, and its line
  size_t field_line_begin_ = 0;
  int64_t field_line_ = 1;
  bool last_ = true;
};

}  // namespace rosin
