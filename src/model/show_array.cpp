// to_string of arrays: the heading, then one table for each slice along the dims after the second.
#include <rosin/array.hpp>

#include <vector>

#include "graph/device_facts.hpp"
#include "graph/node.hpp"
#include "model/element_text.hpp"
#include "model/number_text.hpp"
#include "model/table.hpp"

namespace rosin {
namespace {

/// Positions along one of the later dims that are shown: of more than ten the first and the last three.
std::vector<int64_t> shown_slices(int64_t size) {
  std::vector<int64_t> shown;
  for (int64_t i = 0; i < size; ++i) {
    if (size <= 10 || i < 3 || i >= size - 3) shown.push_back(i);
  }
  return shown;
}

class Slices {
 public:
  Slices(const Shape& shape, const ElementTexts& elements) : shape_(shape), elements_(elements) {}

  std::string text() {
    add(shape_.rank() - 1, "", 0);
    return text_;
  }

 private:
  /// Goes over the dims after the second, the last one slowest.
  void add(int dim, const std::string& after, int64_t slice) {
    if (dim == 1) return add_table(after, slice);
    int64_t before = -1;
    for (int64_t i : shown_slices(shape_[dim])) {
      if (i != before + 1) text_ += "\n\n...";
      before = i;
      add(dim - 1, ", " + std::to_string(i) + after, slice * shape_[dim] + i);
    }
  }

  void add_table(const std::string& after, int64_t slice) {
    if (!text_.empty()) text_ += "\n\n";
    const int64_t rows = shape_[0], columns = shape_[1], offset = slice * rows * columns;
    text_ += "[:, :" + after + "] =\n";
    text_ += table_text(rows, columns, [&](int64_t i, int64_t j) { return elements_.text(offset + j * rows + i); });
  }

  const Shape& shape_;
  const ElementTexts& elements_;
  std::string text_;
};

}  // namespace

std::string to_string(const Array& x) {
  if (x.is_nothing()) return "nothing";
  const Shape shape = x.shape();
  const bool compact = shape.rank() > 1 && shape[1] > 1;
  if (shape.rank() == 0) return ElementTexts(x, compact).text(0, true);
  std::string text = heading_text(shape, x.dtype()) + " on " + device_text(x.node()->device);
  if (shape.count() == 0) return text;
  text += ":\n";
  const ElementTexts elements(x, compact);
  if (shape.rank() > 2) return text + Slices(shape, elements).text();
  const int64_t rows = shape[0], columns = shape.rank() == 1 ? 1 : shape[1];
  return text + table_text(rows, columns, [&](int64_t i, int64_t j) { return elements.text(j * rows + i); });
}

}  // namespace rosin
