// Large products of panels that the kernel reads from end to end. The operand with fewer lines is copied into panels
// first, as a whole, on all threads, the other one block by block where it is used, so that it is read from the second
// cache; but columns of B along memory are read where they stand, and so are those of A where caches hold them. A panel
// of A is some row vectors high, one of B some columns wide, and stays in the first cache. Sums have the bits of
// tile_matmul.cpp. Read after tile_kernel.hpp.
// Source: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008).
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/instruction_set.hpp"
#include "base/turn.hpp"
#include "base/workers.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/form_name.hpp"
#include "engines/gather_rows.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t step_block = 384;         // steps of k that panels stay in the cache for
constexpr int64_t a_block_bytes = 200'000;  // of panels of A that stay in the second cache
constexpr int64_t packed_at_once = 65536;   // elements that are worth a thread
constexpr int64_t most_copied = 1 << 24;    // elements of an operand that is copied as a whole

/// Elements of a B that is in a cache when it is read again. Measured on Granite Rapids: tiles of 128 rows and a larger
/// one take 0.87 to 0.94 of the time of panels.
constexpr int64_t most_read_again = 1 << 22;

/// Of panels of B that are copied where they are used: less than half of the second cache.
int64_t b_block_bytes() { return has_large_caches() ? 800'000 : 400'000; }

/// Whether columns of A are read where they stand: they are read again for each panel of B, so that steps that share
/// the places of a cache, or each of which needs a page of its own, cost more than copying from some columns on.
/// Measured on Zen 5, of 370 sizes with a new A each time: 32 columns take 0.75 to 0.9 of the time, 64 0.85 to 0.9, 256
/// 0.95.
bool reads_rows(const MatmulSpec& spec, size_t width) {
  constexpr size_t page = 4096, shared_page = 3072;
  const size_t step = static_cast<size_t>(spec.lda) * width;
  const int64_t most = step % page == 0 ? 48 : step >= shared_page ? 192 : std::numeric_limits<int64_t>::max();
  return !spec.a_transposed && spec.n <= most;
}

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

/// Lines across memory, too few for a panel.
template <class T> void pack_part(const Lines<T>& lines) {
  for (int64_t i = 0; i < lines.steps; ++i)
    std::copy_n(lines.from + i * lines.distance, lines.held, lines.to + i * lines.wide);
}

/// Whole panels of lines across memory, the first of which stands at `from`.
template <class T> struct Across {
  const T* from;
  int64_t distance;  // of a step from the next
  int64_t panels, steps;
  T* to;
  int64_t pitch;  // of a panel from the next
};

/// Some steps of each panel in turn, so that what stands side by side is read at once; what is read soon is asked for.
/// Measured on Granite Rapids: without asking 0.95 as fast.
template <size_t bytes, class T> void copy_across(const Across<T>& x) {
  constexpr int64_t wide = bytes / sizeof(T), turn = 8, ahead = 16;  // steps
  constexpr int64_t line = std::min<int64_t>(wide, 64 / sizeof(T));
  for (int64_t first = 0; first < x.steps; first += turn) {
    const int64_t last = std::min(x.steps, first + turn);
    for (int64_t panel = 0; panel < x.panels; ++panel) {
      for (int64_t step = first; step < last; ++step) {
        const T* const from = x.from + step * x.distance + panel * wide;
        for (int64_t i = 0; i < wide; i += line) __builtin_prefetch(from + i + ahead * x.distance);
        std::memcpy(x.to + panel * x.pitch + step * wide, from, bytes);
      }
    }
  }
}

/// Panels of B have 8 columns, those of A three whole registers.
template <class T> void pack_across(const Across<T>& x, int64_t wide) {
  return wide == 8 ? copy_across<8 * sizeof(T)>(x) : copy_across<192>(x);
}

template <class T> class PackedMatmul final : public VendorCall {
 public:
  explicit PackedMatmul(const MatmulSpec& spec)
      : spec_(spec), kernels_(tile_kernels()), height_(kernels_.packed.vectors * kernels_.lanes<T>()),
        width_(kernels_.packed.columns), row_panels_((spec.m + height_ - 1) / height_),
        column_panels_((spec.n + width_ - 1) / width_), steps_(std::min(step_block, spec.k)), given_rows_(rows_given()),
        copied_rows_(reads_rows(spec, sizeof(T)) ? first_partial() : 0),
        row_block_(std::max<int64_t>(1, a_block_bytes / (height_ * steps_ * int64_t{sizeof(T)}))),
        keeps_a_(spec.batch == 1 && spec.m <= spec.n), reads_b_(keeps_a_ && !spec.b_transposed) {
    cut();
    const int64_t columns = (column_panels_ + column_parts_ - 1) / column_parts_;
    column_block_ = std::min(columns, std::max<int64_t>(1, b_block_bytes() / (width_ * steps_ * int64_t{sizeof(T)})));
    const int64_t rows = (row_panels_ - copied_rows_) * height_;
    const int64_t kept = keeps_a_ ? rows : column_panels_ * width_;
    const int64_t block = !keeps_a_ ? std::min(row_block_ * height_, rows) : reads_b_ ? width_ : column_block_ * width_;
    workspace_bytes_ = static_cast<size_t>(kept * spec.k) * sizeof(T);
    scratch_bytes_ = static_cast<size_t>(block * steps_) * sizeof(T);
    has_begin_ = kept > 0;
  }

  const char* engine() const noexcept override { return "packed"; }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    const Panels p = panels_of(chunk);
    return MatmulPart{
        p.first_item,        p.last_item,       p.first_column * width_, std::min(spec_.n, p.last_column * width_),
        row_of(p.first_row), row_of(p.last_row)};
  }

  /// All panels of an operand; of B not where it is read as it stands.
  Form form(int operand) const override {
    if (operand == 0 ? spec_.batch > 1 : reads_b_) return {};
    const Operand x = operand == 0 ? a_of(nullptr) : b_of(nullptr);
    const uint64_t name = form_name("packed", {sizeof(T), x.along, x.distance, x.lines, spec_.k, x.wide, x.unit});
    return {name, static_cast<size_t>(panels_of(operand) * x.wide * spec_.k) * sizeof(T)};
  }
  void make_form(int operand, const void* from, void* to) const override {
    pack_all(operand == 0 ? a_of(from) : b_of(from), 0, panels_of(operand), static_cast<T*>(to));
  }

  void begin(const VendorBuffers& buffers) const override {
    const int kept = keeps_a_ ? 0 : 1;
    if (buffers.forms[kept]) return;
    const Operand x = keeps_a_ ? a_of(buffers.first) : b_of(buffers.second);
    pack_all(x, first_copied(kept), panels_of(kept), static_cast<T*>(buffers.workspace));
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const Panels p = panels_of(chunk);
    for (int64_t item = p.first_item; item < p.last_item; ++item) {
      if (keeps_a_) run_columns(p, buffers, static_cast<T*>(scratch));
      else run_rows(item, p, buffers, static_cast<T*>(scratch));
    }
  }

 private:
  static constexpr int64_t least_columns = 8, least_rows = 2;  // panels of a chunk, about

  /// A power of two as far as there may be so many: of three or five parts one of two threads would have one more.
  static int64_t evenly(int64_t parts, int64_t most) {
    return parts <= 2 ? parts : std::min(most, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(parts))));
  }

  int64_t panels_of(int operand) const { return operand == 0 ? row_panels_ : column_panels_; }
  int64_t rows_given() const {
    const int64_t lanes = kernels_.lanes<T>(), vectors = (spec_.m + lanes - 1) / lanes;
    return vectors > kernels_.packed.vectors && vectors % kernels_.packed.vectors == 1 ? lanes : 0;
  }
  /// The panel of A that ends within a register, or behind all.
  int64_t first_partial() const { return row_panels_ - (spec_.m % kernels_.lanes<T>() == 0 ? 0 : 1); }
  /// The first row of a panel.
  int64_t row_of(int64_t panel) const { return a_of(nullptr).line_of(panel); }
  /// The first panel of operand i that is copied if no form of it is there.
  int64_t first_copied(int operand) const { return operand == 0 ? copied_rows_ : 0; }

  struct Panels {
    int64_t first_item, last_item, first_row, last_row, first_column, last_column;
  };

  /// By columns where A is copied as a whole, as far as they go; by rows then. A chunk reads all of what was copied, so
  /// that narrow ones take longer together; but there are two where one is worth so many. Of unequal rows there are
  /// pairs with half of the columns each, so that two threads have as much to do.
  void cut() {
    const int64_t wanted = worthwhile_chunks(microseconds_of(spec_, sizeof(T) == sizeof(float) ? 60 : 30));
    item_parts_ = std::min(wanted, spec_.batch);
    if (keeps_a_) {
      const int64_t parts = std::clamp<int64_t>(column_panels_ / least_columns, 1, wanted);
      column_parts_ = evenly(parts, std::max(parts, std::min(wanted, 2 * column_panels_ / least_columns)));
    }
    const int64_t most_rows =
        std::min(row_panels_, std::max<int64_t>(row_panels_ / least_rows, column_parts_ > 1 ? 1 : 2));
    const int64_t left = wanted / (item_parts_ * column_parts_);
    row_parts_ = evenly(std::clamp<int64_t>(left, 1, most_rows), std::max(most_rows, std::min(left, row_panels_)));
    if (has_uneven_rows() && item_parts_ * column_parts_ == 1 && column_panels_ >= 2 * least_columns) {
      row_parts_ /= 2;
      column_parts_ = 2;
    }
    chunks_ = item_parts_ * row_parts_ * column_parts_;
  }
  bool has_uneven_rows() const { return row_parts_ > 1 && (row_panels_ % row_parts_ != 0 || given_rows_ > 0); }
  Panels panels_of(int64_t chunk) const {
    const int64_t item = chunk % item_parts_, rest = chunk / item_parts_;
    const int64_t row = rest % row_parts_, column = rest / row_parts_;
    return {part_begin(spec_.batch, item_parts_, item),        part_begin(spec_.batch, item_parts_, item + 1),
            part_begin(row_panels_, row_parts_, row),          part_begin(row_panels_, row_parts_, row + 1),
            part_begin(column_panels_, column_parts_, column), part_begin(column_panels_, column_parts_, column + 1)};
  }

  /// Panels of an operand, behind each other: of all steps, or only of those of a block.
  struct Kept {
    const T* from;
    int64_t first;  // panel
    int64_t steps;
  };
  /// Some steps, and panels of both operands for them.
  struct Block {
    int64_t item, first_step, steps;
    Kept a, b;
  };
  /// All panels of operand i: those that were made before, or the ones in the workspace.
  Kept all_of(int i, const VendorBuffers& buffers) const {
    if (buffers.forms[i]) return {static_cast<const T*>(buffers.forms[i]), 0, spec_.k};
    return {static_cast<const T*>(buffers.workspace), first_copied(i), spec_.k};
  }

  /// A was copied; some columns of B are for some steps, or only the last ones where too few for a panel.
  void run_columns(const Panels& p, const VendorBuffers& buffers, T* scratch) const {
    for (int64_t column = p.first_column; column < p.last_column; column += column_block_) {
      const int64_t last = std::min(p.last_column, column + column_block_);
      const int64_t copied = reads_b_ ? std::clamp(spec_.n / width_, column, last) : column;
      for (int64_t first = 0; first < spec_.k; first += step_block) {
        const int64_t steps = std::min(step_block, spec_.k - first);
        if (!buffers.forms[1])
          pack(b_of(buffers.second), {copied, last, first, first + steps}, {scratch, copied, first, steps});
        const Kept b = buffers.forms[1] ? all_of(1, buffers) : Kept{scratch, copied, steps};
        const Block block{0, first, steps, all_of(0, buffers), b};
        for (int64_t row = p.first_row; row < p.last_row; row += row_block_)
          run_block(block, row, std::min(p.last_row, row + row_block_), column, last, buffers);
      }
    }
  }

  /// B was copied; some rows of A are for some steps.
  void run_rows(int64_t item, const Panels& p, const VendorBuffers& buffers, T* scratch) const {
    for (int64_t first = 0; first < spec_.k; first += step_block) {
      const int64_t steps = std::min(step_block, spec_.k - first);
      for (int64_t row = p.first_row; row < p.last_row; row += row_block_) {
        const int64_t last = std::min(p.last_row, row + row_block_);
        const T* const from = static_cast<const T*>(buffers.first) + item * spec_.a_batch_stride;
        const int64_t copied = std::clamp(copied_rows_, row, last);
        if (!buffers.forms[0]) pack(a_of(from), {copied, last, first, first + steps}, {scratch, copied, first, steps});
        const Kept a = buffers.forms[0] ? all_of(0, buffers) : Kept{scratch, copied, steps};
        const Block block{item, first, steps, a, all_of(1, buffers)};
        run_block(block, row, last, p.first_column, p.last_column, buffers);
      }
    }
  }

  void run_block(const Block& block, int64_t first_row, int64_t last_row, int64_t column, int64_t last_column,
                 const VendorBuffers& buffers) const {
    for (; column < last_column; ++column) {
      PackedTile<T> tile = tile_of(block, column, buffers);
      for (int64_t row = first_row; row < last_row; ++row) {
        place_rows(tile, block, row, column, buffers);
        tile.next_c = row + 1 < last_row ? column_of(block, row + 1, column, buffers)
                                         : column_of(block, first_row, column + 1, buffers);
        if constexpr (sizeof(T) == sizeof(float)) kernels_.packed.floats(tile);
        else kernels_.packed.doubles(tile);
      }
    }
  }

  /// Without its rows.
  PackedTile<T> tile_of(const Block& block, int64_t column, const VendorBuffers& buffers) const {
    const bool last = block.first_step + block.steps == spec_.k;
    PackedTile<T> tile;
    tile.columns = std::min(width_, spec_.n - column * width_);
    tile.steps = block.steps;
    if (reads_b_ && tile.columns == width_) {
      tile.b = static_cast<const T*>(buffers.second) + column * width_ * spec_.ldb + block.first_step;
      tile.b_column = spec_.ldb;
    } else {
      tile.b = panel_of(block.b, column, width_, width_, block);
    }
    tile.c_column = spec_.ldc;
    tile.accumulate = block.first_step > 0 || spec_.accumulate;
    tile.relu = last && spec_.epilogue.activation == Activation::relu;
    return tile;
  }

  void place_rows(PackedTile<T>& tile, const Block& block, int64_t row, int64_t column,
                  const VendorBuffers& buffers) const {
    const bool last = block.first_step + block.steps == spec_.k;
    tile.rows = row_of(row + 1) - row_of(row);
    const bool stands = row < copied_rows_ && !buffers.forms[0];
    tile.a_step = stands ? spec_.lda : 0;
    tile.a = stands ? standing(block, row, buffers)
                    : panel_of(block.a, row, height_, round_up(tile.rows, kernels_.lanes<T>()), block);
    tile.c = column_of(block, row, column, buffers);
    tile.bias = last && spec_.epilogue.bias ? static_cast<const T*>(buffers.third) + row_of(row) : nullptr;
  }

  /// A panel of A where it stands.
  const T* standing(const Block& block, int64_t row, const VendorBuffers& buffers) const {
    const T* const item = static_cast<const T*>(buffers.first) + block.item * spec_.a_batch_stride;
    return item + row_of(row) + block.first_step * spec_.lda;
  }

  /// A panel from the block's first step on; `filled` of its `wide` lines are there.
  const T* panel_of(const Kept& x, int64_t panel, int64_t wide, int64_t filled, const Block& block) const {
    const int64_t step = x.steps == block.steps ? 0 : block.first_step;
    return x.from + (panel - x.first) * wide * x.steps + step * filled;
  }

  T* column_of(const Block& block, int64_t row, int64_t column, const VendorBuffers& buffers) const {
    T* const item = static_cast<T*>(buffers.result) + block.item * spec_.c_batch_stride;
    return item + row_of(row) + column * width_ * spec_.ldc;
  }

  /// Rows of A or columns of B as lines, each `along` memory or across it; panels are `wide` lines, the last one filled
  /// up to a multiple of `unit`. A single register of rows would wait for its loads: the panel before gives it one.
  struct Operand {
    const T* from;
    bool along;
    int64_t distance, lines, wide, unit;
    int64_t panels, given;  // how many panels there are; lines that the last one has of the one before
    /// The first line of a panel.
    int64_t line_of(int64_t panel) const { return std::min(lines, panel * wide - (panel + 1 == panels ? given : 0)); }
    /// Panels of as many lines as the first, which come first.
    int64_t whole() const { return given > 0 ? panels - 2 : lines / wide; }
    const T* at(int64_t line, int64_t step) const {
      return along ? from + line * distance + step : from + line + step * distance;
    }
  };
  Operand a_of(const void* from) const {
    return {static_cast<const T*>(from), spec_.a_transposed, spec_.lda,  spec_.m, height_,
            kernels_.lanes<T>(),         row_panels_,        given_rows_};
  }
  Operand b_of(const void* from) const {
    return {static_cast<const T*>(from), !spec_.b_transposed, spec_.ldb, spec_.n, width_, width_, column_panels_, 0};
  }

  struct Range {
    int64_t first_panel, last_panel, first_step, last_step;
  };
  /// Where panels of so many steps begin, with which panel and step.
  struct Place {
    T* to;
    int64_t panel, step, steps;
  };

  /// Lines along memory are copied some panels at a time, those across it some steps of all panels.
  void pack_all(const Operand& x, int64_t first, int64_t last, T* to) const {
    if (first == last) return;
    const int64_t panels = last - first, all = x.along ? panels : spec_.k;
    const int64_t each = x.wide * (x.along ? spec_.k : panels);
    const int64_t pieces = evenly(std::min(all, all * each / packed_at_once + 1), all);
    parallel_for(pieces, [&](int64_t piece) {
      const int64_t begin = part_begin(all, pieces, piece), end = part_begin(all, pieces, piece + 1);
      const Range range = x.along ? Range{first + begin, first + end, 0, spec_.k} : Range{first, last, begin, end};
      pack(x, range, {to, first, 0, spec_.k});
    });
  }

  static void pack(const Operand& x, const Range& range, const Place& place) {
    const int64_t whole = x.along ? range.first_panel : std::clamp(x.whole(), range.first_panel, range.last_panel);
    const int64_t steps = range.last_step - range.first_step, pitch = x.wide * place.steps;
    T* const to = place.to + (range.first_panel - place.panel) * pitch + (range.first_step - place.step) * x.wide;
    const T* const from = x.at(x.line_of(range.first_panel), range.first_step);
    if (whole > range.first_panel)
      pack_across<T>({from, x.distance, whole - range.first_panel, steps, to, pitch}, x.wide);
    for (int64_t panel = whole; panel < range.last_panel; ++panel) {
      const int64_t line = x.line_of(panel), held = x.line_of(panel + 1) - line, filled = round_up(held, x.unit);
      T* const part = place.to + (panel - place.panel) * pitch + (range.first_step - place.step) * filled;
      const Lines<T> lines{x.at(line, range.first_step), x.distance, held, filled, steps, part};
      x.along ? pack_along(lines) : pack_part(lines);
      for (int64_t i = 0; held < filled && i < steps; ++i) std::fill_n(part + i * filled + held, filled - held, T(0));
    }
  }

  MatmulSpec spec_;
  const TileKernels& kernels_;
  int64_t height_, width_;  // of panels: rows of A, columns of B
  int64_t row_panels_, column_panels_, steps_;
  int64_t given_rows_;                    // that the last panel of A has of the one before
  int64_t copied_rows_;                   // the panel of A from which on they are copied
  int64_t row_block_, column_block_ = 1;  // panels of A and B that stay in the second cache
  bool keeps_a_;                          // A is copied as a whole, B block by block; else the other way
  bool reads_b_;                          // but B is read where it stands
  int64_t item_parts_ = 1, row_parts_ = 1, column_parts_ = 1;
};

}  // namespace

/// Measured on Cascade Lake, of 40 sizes in three orders: 0.7 to 1 of the time of the faster one of oneDNN and the tile
/// kernel; fewer columns of a transposed A are faster with oneDNN. On Granite Rapids that is so of none; items that
/// share their B, and sums of 16 to 63 steps, take 0.42 to 1.07 (27 sizes in three orders). On Zen 5 (90 sizes) 0.5 to
/// 1.1. On Zen 4, which multiplies half as many at a time, the tile kernel does so without copies at nine tenths of
/// what a core can.
bool packing_pays(const MatmulSpec& spec) {
  if (!multiplies_widest_in_pairs() || (spec.batch > 1 && spec.b_batch_stride != 0)) return false;
  const bool large = spec.m >= 96 && spec.k >= 16 && spec.m * spec.n * spec.k >= 1'000'000;
  const bool needs_many = spec.a_transposed && spec.k >= short_sum && !has_large_first_cache();
  const bool few_read_b = spec.m <= 128 && !spec.b_transposed && spec.n * spec.k > most_read_again;
  const int64_t kept = spec.batch == 1 ? std::min(spec.m, spec.n) : spec.n;
  return large && !few_read_b && spec.n >= (needs_many ? 128 : 32) && kept * spec.k <= most_copied;
}

std::unique_ptr<VendorCall> prepare_packed_matmul(const MatmulSpec& spec) {
  require_tile_type(spec.type, "matmul");
  return with_epilogue(spec, true, [](const MatmulSpec& inner) -> std::unique_ptr<VendorCall> {
    if (inner.type == DType::Float32) return std::make_unique<PackedMatmul<float>>(inner);
    return std::make_unique<PackedMatmul<double>>(inner);
  });
}

}  // namespace rosin::engines
