// Large products: operands are copied into panels that the kernel reads from end to end: first all of them, on all
// threads, but a large A for few columns, and those of a batch that shares its B, block by block, where they are used.
// A panel of A is some row vectors high, one of B some columns wide; panels of a block of A stay in the second cache, a
// panel of B in the first one. Sums have the bits of tile_matmul.cpp. Read after tile_kernel.hpp.
// Source: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008).
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/instruction_set.hpp"
#include "base/turn.hpp"
#include "base/workers.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/gather_rows.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t step_block = 256;        // steps of k that panels stay in the cache for
constexpr int64_t block_bytes = 200'000;   // of panels of A
constexpr int64_t packed_at_once = 65536;  // elements that are worth a thread
constexpr int64_t most_copied = 1 << 24;   // elements of B, and of A before it is copied block by block
/// Elements of an operand that are in a cache when its copy is read. Measured on Granite Rapids: of an A with more,
/// blocks take 0.75 to 0.93 of the time for up to 512 columns.
constexpr int64_t most_read_again = 1 << 22;

/// The first `held` of a panel's `wide` lines, as they stand in memory and in the panel, for `steps` steps.
template <class T> struct Lines {
  const T* from;
  int64_t distance;  // of a line from the next, or where lines lie across memory of a step from the next
  int64_t held, wide, steps;
  T* to;
};

/// Lines along memory.
template <class T> void pack_along(const Lines<T>& lines) {
  using Word = std::conditional_t<sizeof(T) == sizeof(uint32_t), uint32_t, uint64_t>;
  const Turner<Word> turner = turner_of<Word>(lines.wide);
  const int64_t turned = lines.held == lines.wide ? lines.steps / turner.side * turner.side : 0;
  turner.turn({reinterpret_cast<Word*>(lines.to), lines.wide, reinterpret_cast<const Word*>(lines.from), lines.distance,
               lines.wide, turned});
  gather_rows(lines.from + turned, lines.distance, lines.to + turned * lines.wide, lines.wide, lines.held,
              lines.steps - turned);
}

template <size_t bytes, class T> void copy_steps(const Lines<T>& lines) {
  for (int64_t i = 0; i < lines.steps; ++i)
    std::memcpy(lines.to + i * lines.wide, lines.from + i * lines.distance, bytes);
}

/// Lines across memory.
template <class T> void pack_across(const Lines<T>& lines) {
  switch (lines.held * int64_t{sizeof(T)}) {  // those of whole panels
    case 16: return copy_steps<16>(lines);
    case 32: return copy_steps<32>(lines);
    case 64: return copy_steps<64>(lines);
    case 96: return copy_steps<96>(lines);
    case 192: return copy_steps<192>(lines);
    default:
      for (int64_t i = 0; i < lines.steps; ++i)
        std::copy_n(lines.from + i * lines.distance, lines.held, lines.to + i * lines.wide);
  }
}

template <class T> class PackedMatmul final : public VendorCall {
 public:
  explicit PackedMatmul(const MatmulSpec& spec)
      : spec_(spec), kernels_(tile_kernels()), height_(kernels_.packed.vectors * kernels_.lanes<T>()),
        width_(kernels_.packed.columns), row_panels_((spec.m + height_ - 1) / height_),
        column_panels_((spec.n + width_ - 1) / width_),
        block_(std::max<int64_t>(1, block_bytes / (height_ * std::min(step_block, spec.k) * int64_t{sizeof(T)}))) {
    const int64_t wanted = worthwhile_chunks(microseconds_of(spec, sizeof(T) == sizeof(float) ? 60 : 30));
    item_parts_ = std::min(wanted, spec.batch);
    const int64_t few = spec.m * spec.k > most_read_again ? few_columns_of_large : few_columns;
    by_blocks_ = spec.batch > 1 || row_panels_ >= 4 * wanted || (row_panels_ >= wanted && column_panels_ <= few) ||
                 spec.m * spec.k > most_copied;
    column_parts_ = by_blocks_ ? 1 : std::clamp<int64_t>(column_panels_ / least_columns, 1, wanted);
    row_parts_ = std::clamp<int64_t>(wanted / (item_parts_ * column_parts_), 1, row_panels_);
    chunks_ = item_parts_ * row_parts_ * column_parts_;
    b_at_ = by_blocks_ ? 0 : round_up(row_panels_ * height_ * spec.k, 64);
    workspace_bytes_ = static_cast<size_t>(b_at_ + column_panels_ * width_ * spec.k) * sizeof(T);
    if (by_blocks_) scratch_bytes_ = static_cast<size_t>(block_ * height_ * std::min(step_block, spec.k)) * sizeof(T);
    has_begin_ = true;
  }

  const char* engine() const noexcept override { return "packed"; }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    const Panels p = panels_of(chunk);
    return MatmulPart{p.first_item,
                      p.last_item,
                      p.first_column * width_,
                      std::min(spec_.n, p.last_column * width_),
                      p.first_row * height_,
                      std::min(spec_.m, p.last_row * height_)};
  }

  void begin(const VendorBuffers& buffers) const override {
    T* const workspace = static_cast<T*>(buffers.workspace);
    if (!by_blocks_) pack_all(a_of(buffers, 0), row_panels_, workspace);
    pack_all(b_of(buffers), column_panels_, workspace + b_at_);
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const Panels p = panels_of(chunk);
    for (int64_t item = p.first_item; item < p.last_item; ++item) run_item(item, p, buffers, static_cast<T*>(scratch));
  }

 private:
  static constexpr int64_t least_columns = 16;  // panels of a chunk
  /// Panels of B, up to which copying A takes a part of the time that counts.
  static constexpr int64_t few_columns = 31, few_columns_of_large = 64;

  struct Panels {
    int64_t first_item, last_item, first_row, last_row, first_column, last_column;
  };
  Panels panels_of(int64_t chunk) const {
    const int64_t item = chunk % item_parts_, rest = chunk / item_parts_;
    const int64_t row = rest % row_parts_, column = rest / row_parts_;
    return {part_begin(spec_.batch, item_parts_, item),        part_begin(spec_.batch, item_parts_, item + 1),
            part_begin(row_panels_, row_parts_, row),          part_begin(row_panels_, row_parts_, row + 1),
            part_begin(column_panels_, column_parts_, column), part_begin(column_panels_, column_parts_, column + 1)};
  }

  /// Panels of A for some steps: panel `row` at `a`, the next ones `distance` behind each other.
  struct Block {
    const T* a;
    int64_t item, row, distance, first, steps;
  };

  void run_item(int64_t item, const Panels& p, const VendorBuffers& buffers, T* scratch) const {
    for (int64_t first = 0; first < spec_.k; first += step_block) {
      for (int64_t row = p.first_row; row < p.last_row; row += block_) {
        const int64_t last_row = std::min(p.last_row, row + block_), steps = std::min(step_block, spec_.k - first);
        Block block{scratch, item, row, height_ * steps, first, steps};
        if (by_blocks_) pack(a_of(buffers, item), {row, last_row, first, first + steps}, scratch);
        else block = as_copied(block, buffers);
        for (int64_t column = p.first_column; column < p.last_column; ++column) {
          for (int64_t panel = row; panel < last_row; ++panel) run_tile(block, panel, column, buffers);
        }
      }
    }
  }

  /// A block whose panels were copied before the first chunk.
  Block as_copied(Block block, const VendorBuffers& buffers) const {
    block.distance = height_ * spec_.k;
    block.a = static_cast<const T*>(buffers.workspace) + block.row * block.distance;
    return block;
  }

  void run_tile(const Block& block, int64_t row_panel, int64_t column_panel, const VendorBuffers& buffers) const {
    const int64_t row = row_panel * height_, column = column_panel * width_;
    const bool last = block.first + block.steps == spec_.k;
    PackedTile<T> tile;
    tile.rows = std::min(height_, spec_.m - row);
    tile.columns = std::min(width_, spec_.n - column);
    tile.steps = block.steps;
    tile.a = block.a + (row_panel - block.row) * block.distance;
    if (!by_blocks_) tile.a += block.first * round_up(tile.rows, kernels_.lanes<T>());
    tile.b = static_cast<const T*>(buffers.workspace) + b_at_ + column * spec_.k + block.first * width_;
    tile.c = static_cast<T*>(buffers.result) + block.item * spec_.c_batch_stride + row + column * spec_.ldc;
    tile.c_column = spec_.ldc;
    tile.accumulate = block.first > 0 || spec_.accumulate;
    tile.bias = last && spec_.epilogue.bias ? static_cast<const T*>(buffers.third) + row : nullptr;
    tile.relu = last && spec_.epilogue.activation == Activation::relu;
    if constexpr (sizeof(T) == sizeof(float)) kernels_.packed.floats(tile);
    else kernels_.packed.doubles(tile);
  }

  /// Rows of A or columns of B as lines, each `along` memory or across it; panels are `wide` lines, the last one filled
  /// up to a multiple of `unit`.
  struct Operand {
    const T* from;
    bool along;
    int64_t distance, lines, wide, unit;
  };
  Operand a_of(const VendorBuffers& buffers, int64_t item) const {
    const T* const from = static_cast<const T*>(buffers.first) + item * spec_.a_batch_stride;
    return {from, spec_.a_transposed, spec_.lda, spec_.m, height_, kernels_.lanes<T>()};
  }
  Operand b_of(const VendorBuffers& buffers) const {
    return {static_cast<const T*>(buffers.second), !spec_.b_transposed, spec_.ldb, spec_.n, width_, width_};
  }

  void pack_all(const Operand& x, int64_t panels, T* to) const {
    const int64_t together = std::clamp<int64_t>(packed_at_once / (x.wide * spec_.k), 1, 16);
    parallel_for((panels + together - 1) / together, [&](int64_t piece) {
      const int64_t begin = piece * together, end = std::min(panels, begin + together);
      pack(x, {begin, end, 0, spec_.k}, to + begin * x.wide * spec_.k);
    });
  }

  struct Range {
    int64_t first_panel, last_panel, first_step, last_step;
  };
  /// Of lines across memory some panels get a few steps each in turn, so that what stands side by side is read at once.
  static void pack(const Operand& x, const Range& range, T* to) {
    const int64_t steps = range.last_step - range.first_step, few = x.along ? steps : 8;
    for (int64_t step = 0; step < steps; step += few) {
      for (int64_t panel = range.first_panel; panel < range.last_panel; ++panel) {
        const int64_t line = panel * x.wide, held = std::min(x.wide, x.lines - line), at = range.first_step + step;
        const int64_t filled = round_up(held, x.unit);
        const Lines<T> part{x.from + (x.along ? line * x.distance + at : line + at * x.distance),
                            x.distance,
                            held,
                            filled,
                            std::min(few, steps - step),
                            to + (panel - range.first_panel) * x.wide * steps + step * filled};
        x.along ? pack_along(part) : pack_across(part);
        for (int64_t i = 0; held < filled && i < part.steps; ++i)
          std::fill_n(part.to + i * filled + held, filled - held, T(0));
      }
    }
  }

  MatmulSpec spec_;
  const TileKernels& kernels_;
  int64_t height_, width_;  // of panels: rows of A, columns of B
  int64_t row_panels_, column_panels_, item_parts_ = 1, row_parts_ = 1, column_parts_ = 1;
  int64_t block_;           // panels of A that stay in the cache
  bool by_blocks_ = false;  // A is copied where it is used
  int64_t b_at_ = 0;        // in the workspace, in elements
};

}  // namespace

/// Measured on Cascade Lake, of 40 sizes in three orders: 0.7 to 1 of the time of the faster one of oneDNN and the tile
/// kernel; fewer columns of a transposed A are faster with oneDNN. On Granite Rapids that is so of none; items that
/// share their B, and sums of 16 to 63 steps, take 0.42 to 1.07 (27 sizes in three orders). On Zen 4, which multiplies
/// half as many at a time, the tile kernel does so without copies at nine tenths of what a core can.
bool packing_pays(const MatmulSpec& spec) {
  if (!multiplies_widest_in_pairs() || (spec.batch > 1 && spec.b_batch_stride != 0)) return false;
  const bool large = spec.m >= 96 && spec.k >= 16 && spec.m * spec.n * spec.k >= 1'000'000;
  const bool needs_many = spec.a_transposed && spec.k >= short_sum && !has_large_caches();
  const bool few_read_b = spec.m < 256 && !spec.b_transposed && spec.n * spec.k > most_read_again;  // which is copied
  return large && !few_read_b && spec.n >= (needs_many ? 128 : 32) && spec.n * spec.k <= most_copied;
}

std::unique_ptr<VendorCall> prepare_packed_matmul(const MatmulSpec& spec) {
  require_tile_type(spec.type, "matmul");
  return with_epilogue(spec, true, [](const MatmulSpec& inner) -> std::unique_ptr<VendorCall> {
    if (inner.type == DType::Float32) return std::make_unique<PackedMatmul<float>>(inner);
    return std::make_unique<PackedMatmul<double>>(inner);
  });
}

}  // namespace rosin::engines
