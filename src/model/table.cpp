// Layout of a table: which rows and columns fit, how wide they are, where dots stand for the rest.
#include "model/table.hpp"

#include <algorithm>
#include <vector>

#include "model/number_text.hpp"

namespace rosin {
namespace {

constexpr int64_t screen_rows = 20;     // 24 lines less the heading and the prompt
constexpr int64_t screen_columns = 79;  // 80 less the leading space
constexpr int64_t gap = 2;              // between columns
constexpr int64_t dots_width = 5;
constexpr int64_t dots_every = 5;  // rows with "…", columns with "⋮"

/// Characters left and right of the point.
struct Width {
  int64_t left = 0;
  int64_t right = 0;
  int64_t total() const { return left + right; }
};

Width width_of_number(const std::string& text) {
  const size_t split = std::min(text.find_first_of(".eEfF"), text.size());
  return {static_cast<int64_t>(split), static_cast<int64_t>(text.size() - split)};
}

std::string spaces(int64_t count) { return std::string(static_cast<size_t>(std::max<int64_t>(count, 0)), ' '); }

class Table {
 public:
  Table(int64_t rows, int64_t columns, const ElementText& element) : columns_(columns), element_(element) {
    for (int64_t i = 0; i < rows; ++i) {
      // Of a long table the first and the last rows are shown, half a screen each.
      if (rows <= screen_rows || i < screen_rows / 2 || i >= rows - (screen_rows - 1) / 2) shown_.push_back(i);
      else i = rows - (screen_rows - 1) / 2 - 1;
    }
    elided_ = rows > screen_rows;
  }

  std::string text() {
    left_ = widths(false, screen_columns);
    if (static_cast<int64_t>(left_.size()) < columns_) {
      const int64_t half = (screen_columns - dots_width + 1) / 2 + 1;
      right_ = widths(true, half);
      std::reverse(right_.begin(), right_.end());
      int64_t rest = screen_columns - dots_width - static_cast<int64_t>(right_.size() - 1) * gap;
      for (const Width& width : right_) rest -= width.total();
      left_ = widths(false, rest);
    }
    std::string text;
    for (size_t at = 0; at < shown_.size(); ++at) {
      if (at > 0) text += '\n';
      text += row(shown_[at]);
      if (elided_ && at + 1 == screen_rows / 2) text += '\n' + vertical_dots();
    }
    return text;
  }

 private:
  /// Widths of the columns that fit, from the first on or from the last back.
  std::vector<Width> widths(bool from_last, int64_t available) const {
    std::vector<Width> found;
    int64_t used = 0;
    for (int64_t k = 0; k < columns_; ++k) {
      Width width;
      for (int64_t i : shown_) {
        const Width one = width_of_number(element_(i, from_last ? columns_ - 1 - k : k));
        width = {std::max(width.left, one.left), std::max(width.right, one.right)};
      }
      used += width.total();
      if (!found.empty() && used + gap * (k + 1) >= available) break;
      found.push_back(width);
    }
    used = 0;
    for (const Width& width : found) used += width.total();
    while (found.size() > 1 && static_cast<int64_t>(found.size()) < columns_ &&
           used + gap * static_cast<int64_t>(found.size()) >= available) {
      used -= found.back().total();
      found.pop_back();
    }
    return found;
  }

  std::string columns_text(int64_t i, const std::vector<Width>& widths, int64_t first) const {
    std::string text;
    for (size_t k = 0; k < widths.size(); ++k) {
      const int64_t column = first + static_cast<int64_t>(k);
      const std::string number = element_(i, column);
      const Width width = width_of_number(number);
      if (k > 0) text += spaces(gap);
      text += spaces(widths[k].left - width.left) + number;
      if (column + 1 < columns_) text += spaces(widths[k].right - width.right);
    }
    return text;
  }

  std::string row(int64_t i) const {
    std::string text = " " + columns_text(i, left_, 0);
    if (right_.empty()) return text;
    text += i % dots_every == 0 ? "  …  " : spaces(dots_width);
    return text + columns_text(i, right_, columns_ - static_cast<int64_t>(right_.size()));
  }

  /// "⋮" under every fifth column, counted so that the first and the last one have it.
  static std::string dots_under(const std::vector<Width>& widths, int64_t which, bool pad) {
    std::string text;
    for (size_t k = 0; k < widths.size(); ++k) {
      const bool last = k + 1 == widths.size();
      if (k > 0) text += spaces(gap);
      if (static_cast<int64_t>(k + 1) % dots_every == which) {
        text += spaces(widths[k].left - 1) + "⋮";
        if (!last || pad) text += spaces(widths[k].total() - std::max<int64_t>(widths[k].left, 1));
      } else if (!last || pad) {
        text += spaces(widths[k].total());
      }
    }
    return text;
  }

  std::string vertical_dots() const {
    if (right_.empty()) return " " + dots_under(left_, 1, false);
    const int64_t offset = (static_cast<int64_t>(right_.size()) - columns_ + 1) % dots_every;
    return " " + dots_under(left_, 1, true) + "  ⋱  " + dots_under(right_, (offset + dots_every) % dots_every, false);
  }

  int64_t columns_;
  const ElementText& element_;
  std::vector<int64_t> shown_;
  bool elided_;
  std::vector<Width> left_, right_;
};

}  // namespace

std::string table_text(int64_t rows, int64_t columns, const ElementText& element) {
  return Table(rows, columns, element).text();
}

}  // namespace rosin
