// Copies elements between two orders of dims: the dim that is contiguous in the target and the one that is contiguous
// in the source are walked in blocks, which are turned in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include <rosin/shape.hpp>

#include "base/turn.hpp"

namespace rosin {

/// out[j * out_step + i] = x[j * x_step + i * stride] for i < count, j < rows.
template <class T>
void copy_runs(int64_t rows, T* out, int64_t out_step, const T* x, int64_t x_step, int64_t stride, int64_t count) {
  if constexpr (std::is_unsigned_v<T>) {
    if (stride == 0) return row_writer<T>().fill({count, rows, out, x, out_step, x_step});
    if (stride == -1) return row_writer<T>().flip({count, rows, out, x, out_step, x_step});
  }
  for (int64_t j = 0; j < rows; ++j, out += out_step, x += x_step) {
    if (stride == 1) std::memcpy(out, x, static_cast<size_t>(count) * sizeof(T));
    for (int64_t i = 0; stride == 2 && i < count; ++i) out[i] = x[2 * i];  // a known stride becomes vectors
    for (int64_t i = 0; stride != 1 && stride != 2 && i < count; ++i) out[i] = x[i * stride];
  }
}
/// out[i] = x[i * stride] for i < count.
template <class T> void copy_run(T* out, const T* x, int64_t stride, int64_t count) {
  copy_runs(1, out, 0, x, 0, stride, count);
}

/// What goes where: strides are in elements, and may be 0 or less in the source.
struct StridedCopy {
  int rank = 0;
  int64_t sizes[Shape::max_rank] = {};
  int64_t target[Shape::max_rank] = {};
  int64_t source[Shape::max_rank] = {};
};

/// A copy cut into independent chunks, by sizes only. Target and source do not overlap.
class BlockCopy {
 public:
  BlockCopy() = default;
  /// `width`: bytes of an element, a power of two up to 16. The dims `inner` and `outer` differ, and are those of the
  /// blocks, best those whose stride is 1 in the target and in the source. One whose stride is 1 in both (-1 or 0 in
  /// the source) is copied by rows.
  BlockCopy(const StridedCopy& copy, size_t width, int inner, int outer);

  int64_t chunks() const { return chunks_; }
  void run(int64_t chunk, void* target, const void* source) const;
  /// All chunks, on all threads where there is enough to copy.
  void run(void* target, const void* source) const;
  /// All chunks, on this thread.
  void run_here(void* target, const void* source) const;

 private:
  template <class Word> void run_words(int64_t chunk, void* target, const void* source) const;

  StridedCopy copy_;
  size_t width_ = 1;
  int inner_ = 0, outer_ = 1;
  int64_t strip_ = 1;            // rows of a block
  int64_t strips_ = 0;           // of a block's width, all planes one after another
  int64_t strips_of_plane_ = 0;  // a plane: all elements of the two dims
  int64_t chunk_strips_ = 1;
  int64_t chunks_ = 0;
};

/// The copy by blocks; none where the source's own rows are as good as these.
std::optional<BlockCopy> turned_copy(const StridedCopy& copy, size_t width);
/// The copy of a view with these sizes and strides into contiguous memory, column-major: by blocks, or by rows that
/// stand in the view as they are wanted, or backwards, or are one element each. None where the view is one such row, or
/// its rows have gaps.
std::optional<BlockCopy> view_copy(int rank, const int64_t* sizes, const int64_t* strides, size_t width);

}  // namespace rosin
