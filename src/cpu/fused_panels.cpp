// Loads of matrices that stand row by row (transposed ones, those of mapped files, images in CWHN that a kernel goes
// through in logical order, or the other way round). Walked in the order of the domain, each element would come from a
// line of memory of its own, which may be gone before its neighbour is wanted: of a large matrix, or of one whose rows
// are a power of two apart and share a few places of the cache.
// Therefore some columns are turned together, and strips are taken from those: the same elements in the same order.
#include <algorithm>
#include <cstring>

#include "base/strided_copy.hpp"
#include "cpu/fused.hpp"
#include "cpu/fused_state.hpp"

namespace rosin::cpu {
namespace {

constexpr int64_t most_bytes = int64_t{4} << 20;  // of a panel
constexpr int64_t most_columns = 64;
constexpr int64_t least_rows = 16, least_columns = 4;  // fewer are not worth it

/// Columns of a matrix that stands row by row.
void turn(unsigned char* out, const unsigned char* x, int64_t rows, int64_t stride, int64_t columns, size_t size) {
  const StridedCopy copy{.rank = 2, .sizes = {rows, columns}, .target = {1, rows}, .source = {stride, 1}};
  const BlockCopy blocks(copy, size, 0, 1);
  for (int64_t chunk = 0; chunk < blocks.chunks(); ++chunk) blocks.run(chunk, out, x);
}

}  // namespace

void FusedKernel::find_panel(Load& load) {
  const auto size = static_cast<int64_t>(size_of(load.storage));
  const int64_t rows = load.sizes[0];
  const bool by_rows = load.access == Access::strided && !load.row && (load.dims == 2 || load.dims == 3) &&
                       load.strides[1] == 1 && load.strides[0] >= load.sizes[1];
  if (!by_rows || rows < least_rows) return;
  const int64_t columns = std::min({most_columns, load.sizes[1], most_bytes / (rows * size)});
  if (columns < least_columns || cut_.part < least_columns * rows) return;
  cut_by_columns(rows, 64 / size);
  load.panel_columns = columns;
  load.panel_at = panel_bytes_;
  panel_bytes_ += sizeof(Panel) + static_cast<size_t>((columns * rows * size + 63) / 64 * 64);
}

/// Chunks that begin with whole lines of memory of a matrix, so that no panel ends within some. Where nothing is summed
/// they may be cut anywhere.
void FusedKernel::cut_by_columns(int64_t rows, int64_t together) {
  const int64_t unit = rows * together;
  const bool may_be_cut = kernel_->roots.empty() && !kernel_->whole_rows && (cut_.parts == 1 || 2 * unit <= total_);
  if (may_be_cut) cut_ = SumOrder::cut(total_, total_, unit, cut_.part);
}

/// The strip's elements: in a panel, or in `room` where it does not lie in one. A panel has no columns that the chunk
/// does not need.
const unsigned char* FusedKernel::from_panel(const Load& load, const unsigned char* memory, const Strip& strip,
                                             unsigned char* room, State& state) const {
  Panel& panel = *reinterpret_cast<Panel*>(state.panels + load.panel_at);
  const size_t size = size_of(load.storage);
  const int64_t rows = load.sizes[0], columns = load.sizes[1], end = strip.begin + strip.count;
  for (int64_t at = strip.begin; at < end;) {
    const int64_t column = at / rows;
    if (column < panel.first || column >= panel.end) {
      panel.first = column;
      const int64_t matrix = column / columns,
                    place = matrix == 0 ? column : matrix * load.strides[2] + column % columns;
      panel.end = std::min({column + load.panel_columns, (matrix + 1) * columns, (state.end + rows - 1) / rows});
      turn(panel.values(), memory + place * static_cast<int64_t>(size), rows, load.strides[0], panel.end - column,
           size);
    }
    const unsigned char* from = panel.values() + static_cast<size_t>(at - panel.first * rows) * size;
    const int64_t count = std::min(end, panel.end * rows) - at;
    if (count == strip.count) return from;
    std::memcpy(room + static_cast<size_t>(at - strip.begin) * size, from, static_cast<size_t>(count) * size);
    at += count;
  }
  return room;
}

}  // namespace rosin::cpu
