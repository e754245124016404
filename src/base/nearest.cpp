// Edit distance by rows (Wagner and Fischer 1974).
#include "base/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace rosin {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> names) {
  std::string_view best;
  size_t fewest = wrong.size() + 1;
  for (std::string_view name : names) {
    const size_t edits = distance(wrong, name);
    if (edits < fewest) fewest = edits, best = name;
  }
  return fewest * 3 <= std::max(wrong.size(), best.size()) ? best : std::string_view();
}

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace rosin
