// RFC 4180, with what other programs write (csv_text.hpp).
#include "data/csv_text.hpp"

#include <cstring>

#include <rosin/error.hpp>

#include "data/bpe_files.hpp"

namespace rosin {

CsvText::CsvText(const std::string& path, std::string_view text, char delimiter, char quote)
    : path_(path), text_(text), delimiter_(delimiter), quote_(quote) {
  for (char stop : {delimiter, '\n', '\r'}) stops_[static_cast<unsigned char>(stop)] = true;
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
}

/// Whether one of eight bytes ends a field without quotes; never false where one does.
bool CsvText::has_stop(const char* bytes) const noexcept {
  constexpr uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  const auto zeros = [&](char wanted) {
    const uint64_t other = word ^ ones * static_cast<unsigned char>(wanted);
    return (other - ones) & ~other & highs;
  };
  return (zeros(delimiter_) | zeros('\n') | zeros('\r')) != 0;
}

void CsvText::refuse_at(size_t at, int64_t line, size_t line_begin, const std::string& what) const {
  refuse_text_file("read_csv", path_, std::to_string(line) + ":" + std::to_string(at - line_begin + 1), what);
}

void CsvText::take_line_end() {
  if (text_[at_++] == '\r' && at_ < text_.size() && text_[at_] == '\n') ++at_;
  ++line_;
  line_begin_ = at_;
}

bool CsvText::begins_row() {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) take_line_end();
  return at_ < text_.size();
}

void CsvText::end_of_field() {
  last_ = at_ >= text_.size() || text_[at_] != delimiter_;
  if (!last_) ++at_;
  else if (at_ < text_.size()) take_line_end();
}

std::string_view CsvText::next() {
  field_ = at_;
  field_line_ = line_;
  field_line_begin_ = line_begin_;
  if (at_ < text_.size() && text_[at_] == quote_) return quoted_field();
  const char* const first = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  const char* place = first;
  while (end - place >= 8 && !has_stop(place)) place += 8;
  while (place != end && !stops_[static_cast<unsigned char>(*place)]) ++place;
  at_ += static_cast<size_t>(place - first);
  end_of_field();
  return {first, static_cast<size_t>(place - first)};
}

std::string_view CsvText::quoted_field() {
  size_t begin = ++at_;
  bool is_plain = true;
  unescaped_.clear();
  for (;;) {
    if (at_ >= text_.size()) refuse("a quote must have its end; this one has none");
    const char byte = text_[at_];
    if (byte == '\n' || byte == '\r') {
      take_line_end();
      continue;
    }
    if (byte != quote_) {
      ++at_;
      continue;
    }
    if (at_ + 1 >= text_.size() || text_[at_ + 1] != quote_) break;
    unescaped_.append(text_.substr(begin, at_ + 1 - begin));
    is_plain = false;
    begin = at_ += 2;
  }
  std::string_view field = text_.substr(begin, at_ - begin);
  if (!is_plain) field = unescaped_.append(field);
  ++at_;
  if (at_ < text_.size() && !stops_[static_cast<unsigned char>(text_[at_])]) {
    refuse_at(at_, line_, line_begin_, "after a closing quote there must be a delimiter or the end of the line");
  }
  end_of_field();
  return field;
}

}  // namespace rosin
