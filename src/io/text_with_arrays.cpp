#include "io/text_with_arrays.hpp"

#include "base/file.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/row_major.hpp"

namespace rosin {

void write_text_with_arrays(const std::string& path, const std::string& text, const std::vector<ArrayGap>& gaps) {
  AtomicFile file(path);
  size_t written = 0;
  for (const ArrayGap& gap : gaps) {
    file.write(text.data() + written, gap.place - written);
    written = gap.place;
    const Array values = with_values(gap.array);
    file.write(values.node()->data(), bytes_of(values.dtype(), values.shape()));
  }
  file.write(text.data() + written, text.size() - written);
  file.commit();
}

}  // namespace rosin
