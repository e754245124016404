// Products of BFloat16 by the kernel of amx_kernel.hpp: operands are copied into panels first, on all threads; those of
// a batch, and a large A or one for few columns, by the chunk that multiplies them. What is not finite stays where it
// is: what panels are filled up with meets nothing but itself. Read after amx_kernel.hpp and packed_matmul.cpp.
#include "engines/tile.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "base/workers.hpp"
#include "engines/amx_kernel.hpp"
#include "engines/cuts.hpp"
#include "engines/form_name.hpp"
#include "engines/onednn.hpp"

namespace rosin::engines {

#if defined(__x86_64__)

namespace {

constexpr int64_t side = 2 * amx_lines;           // of what is computed at a time
constexpr int64_t thousands = 500;                // multiply-adds a microsecond
constexpr int64_t block_elements = 1 << 19;       // of panels of A that stay in the second cache
constexpr int64_t packed_at_once = 1 << 16;       // elements that are worth a thread
constexpr int64_t few_columns = 256;              // up to which panels of A are filled where they are used
constexpr int64_t most_copied = 1 << 22;          // elements of A, for all chunks together
constexpr int64_t most_steps_between = 256;       // of lines of B that lie well
constexpr int64_t least_columns = 4 * amx_lines;  // of a chunk

class AmxMatmul final : public VendorCall {
 public:
  explicit AmxMatmul(const MatmulSpec& spec)
      : spec_(spec), blocks_((spec.k + amx_steps - 1) / amx_steps), row_pairs_((spec.m + side - 1) / side),
        column_pairs_((spec.n + side - 1) / side), b_lies_well_(lies_well(spec)),
        a_elements_(panels_of(spec.m) * panel()), b_elements_(b_lies_well_ ? 0 : panels_of(spec.n) * panel()) {
    const int64_t wanted = worthwhile_chunks(microseconds_of(spec, thousands));
    const auto bytes = [](int64_t elements) { return static_cast<size_t>(elements) * sizeof(uint16_t); };
    const bool few = spec.a_transposed && spec.n <= few_columns && b_elements_ <= block_elements;
    if (spec.batch > 1) {
      item_parts_ = std::min(wanted, spec.batch);
      row_parts_ = std::clamp<int64_t>(wanted / item_parts_, 1, row_pairs_);
    } else if (row_pairs_ >= wanted && (few || a_elements_ > most_copied)) {
      row_parts_ = wanted;
    } else {
      const int64_t most_columns = std::max<int64_t>(1, spec.n / least_columns);
      column_parts_ = std::clamp<int64_t>(wanted / (a_elements_ / block_elements + 1), 1, most_columns);
      row_parts_ = std::clamp<int64_t>(wanted / column_parts_, 1, row_pairs_);
    }
    a_where_used_ = spec.batch > 1 || column_parts_ == 1;
    const int64_t rows = (row_pairs_ + row_parts_ - 1) / row_parts_ * side;
    block_ = std::min(rows, std::max<int64_t>(1, block_elements / (2 * panel())) * side);
    const int64_t block = block_ / amx_lines * panel();
    scratch_bytes_ = bytes(a_where_used_ ? block + (spec.batch > 1 ? b_elements_ : 0) : 0);
    workspace_bytes_ = bytes(spec.batch > 1 ? 0 : b_elements_ + (a_where_used_ ? 0 : a_elements_));
    has_begin_ = workspace_bytes_ > 0;
    chunks_ = item_parts_ * row_parts_ * column_parts_;
  }

  const char* engine() const noexcept override { return "amx"; }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    const int64_t item = chunk % item_parts_, column = chunk / item_parts_ % column_parts_,
                  row = chunk / item_parts_ / column_parts_;
    return MatmulPart{part_begin(spec_.batch, item_parts_, item),
                      part_begin(spec_.batch, item_parts_, item + 1),
                      part_begin(column_pairs_, column_parts_, column) * side,
                      std::min(spec_.n, part_begin(column_pairs_, column_parts_, column + 1) * side),
                      part_begin(row_pairs_, row_parts_, row) * side,
                      std::min(spec_.m, part_begin(row_pairs_, row_parts_, row + 1) * side)};
  }

  /// All panels of an operand; of B not where it is read as it stands.
  Form form(int operand) const override {
    if (spec_.batch > 1 || (operand == 1 && b_lies_well_)) return {};
    const AmxLines x = operand == 0 ? a_of({}, 0, nullptr) : b_of({}, 0, nullptr);
    const uint64_t name = form_name("amx", {x.along, x.distance, x.lines, x.steps, operand});
    return {name, static_cast<size_t>(operand == 0 ? a_elements_ : b_elements_) * sizeof(uint16_t)};
  }
  void make_form(int operand, const void* from, void* to) const override {
    AmxLines all = operand == 0 ? a_of({}, 0, nullptr) : b_of({}, 0, nullptr);
    all.from = static_cast<const uint16_t*>(from);
    all.to = static_cast<uint16_t*>(to);
    pack_all(all);
  }

  void begin(const VendorBuffers& buffers) const override {
    uint16_t* const to = static_cast<uint16_t*>(buffers.workspace);
    if (!b_lies_well_ && !buffers.forms[1]) pack_all(b_of(buffers, 0, to));
    if (!a_where_used_ && !buffers.forms[0]) pack_all(a_of(buffers, 0, to + b_elements_));
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const AmxRegisters registers;
    const MatmulPart part = *part_of(chunk);
    auto* const own = static_cast<uint16_t*>(scratch);
    uint16_t* const own_b = own + block_ / amx_lines * panel();
    const auto* const shared = static_cast<const uint16_t*>(buffers.workspace);
    const auto* const panels_of_a = static_cast<const uint16_t*>(buffers.forms[0]);
    const auto* const panels_of_b = buffers.forms[1] ? static_cast<const uint16_t*>(buffers.forms[1]) : shared;
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      const AmxLines b = b_of(buffers, item, own_b);
      uint16_t* const c = static_cast<uint16_t*>(buffers.result) + item * spec_.c_batch_stride;
      Operands x{a_of(buffers, item, own), {spec_.batch > 1 ? own_b : panels_of_b, amx_steps, amx_block, panel()}, c};
      if (b_lies_well_) x.b = {b.from, b.distance, amx_steps, amx_lines * b.distance};
      else if (spec_.batch > 1 && (item == part.first_item || spec_.b_batch_stride != 0)) pack_for_amx(b);
      if (panels_of_a) x.panels = panels_of_a;
      else if (!a_where_used_) x.panels = shared + b_elements_;
      multiply(part, x);
    }
  }

 private:
  static int64_t panels_of(int64_t lines) { return (lines + amx_lines - 1) / amx_lines; }
  /// Whether registers are filled from B as it stands: lines that are not many, so that they do not drive each other
  /// out of the first cache, and whole blocks.
  static bool lies_well(const MatmulSpec& spec) {
    return !spec.b_transposed && spec.ldb <= most_steps_between && spec.n % amx_lines == 0 && spec.k % amx_steps == 0;
  }
  int64_t panel() const { return blocks_ * amx_block; }  // elements

  AmxLines a_of(const VendorBuffers& buffers, int64_t item, uint16_t* to) const {
    const uint16_t* from = static_cast<const uint16_t*>(buffers.first) + item * spec_.a_batch_stride;
    return {from, spec_.a_transposed, spec_.lda, spec_.m, spec_.k, true, to, panel()};
  }
  AmxLines b_of(const VendorBuffers& buffers, int64_t item, uint16_t* to) const {
    const uint16_t* from = static_cast<const uint16_t*>(buffers.second) + item * spec_.b_batch_stride;
    return {from, !spec_.b_transposed, spec_.ldb, spec_.n, spec_.k, false, to, panel()};
  }

  /// In pieces of what stands side by side: of whole lines along memory, of whole steps across it.
  void pack_all(const AmxLines& all) const {
    const int64_t units = all.along ? panels_of(all.lines) : blocks_;
    const int64_t unit = all.along ? amx_lines : amx_steps;
    const int64_t together = std::max<int64_t>(1, packed_at_once / (unit * (all.along ? all.steps : all.lines)));
    parallel_for((units + together - 1) / together, [&](int64_t piece) {
      const int64_t begin = piece * together;
      AmxLines some = all;
      some.from += begin * unit * all.distance;
      some.to += begin * (all.along ? panel() : amx_block);
      int64_t& count = all.along ? some.lines : some.steps;
      count = std::min(together * unit, count - begin * unit);
      pack_for_amx(some);
    });
  }

  /// Of an item: A as it stands, and its panels where all of them are there; B in blocks; the result.
  struct Operands {
    AmxLines a;
    AmxBlocks b;
    uint16_t* c;
    const uint16_t* panels = nullptr;
  };

  /// Panels of A that stay in the second cache meet all of B, of which two panels stay in the first one meanwhile.
  void multiply(const MatmulPart& part, const Operands& x) const {
    for (int64_t first = part.first_row; first < part.last_row; first += block_) {
      const int64_t last = std::min(part.last_row, first + block_);
      const uint16_t* const panels = x.panels ? x.panels + first / amx_lines * panel() : pack_rows(x.a, first, last);
      for (int64_t column = part.first_column; column < part.last_column; column += side) {
        for (int64_t row = first; row < last; row += side) {
          run_tile(part, row, column, panels + (row - first) / amx_lines * panel(), x);
        }
      }
    }
  }

  static const uint16_t* pack_rows(AmxLines a, int64_t first, int64_t last) {
    a.from += first * (a.along ? a.distance : 1);
    a.lines = last - first;
    pack_for_amx(a);
    return a.to;
  }

  void run_tile(const MatmulPart& part, int64_t row, int64_t column, const uint16_t* a, const Operands& x) const {
    AmxBlocks b = x.b;
    b.from += column / amx_lines * b.panel;
    multiply_on_amx({a, b, blocks_, std::min(side, part.last_row - row), std::min(side, part.last_column - column),
                     x.c + row + column * spec_.ldc, spec_.ldc, spec_.accumulate});
  }

  MatmulSpec spec_;
  int64_t blocks_;                    // of steps
  int64_t row_pairs_, column_pairs_;  // of panels
  bool b_lies_well_;
  int64_t a_elements_, b_elements_;  // of the panels of an item
  bool a_where_used_ = false;        // panels of A are filled by the chunk that uses them
  int64_t block_ = 0;                // rows of A whose panels stay in the second cache
  int64_t item_parts_ = 1, row_parts_ = 1, column_parts_ = 1;
};

}  // namespace

bool amx_can(const MatmulSpec& spec) {
  return spec.type == DType::BFloat16 && onednn_bfloat_products() == BFloatProducts::tiles &&
         std::min({spec.m, spec.n, spec.k, spec.batch}) > 0;
}

std::unique_ptr<VendorCall> prepare_amx_matmul(const MatmulSpec& spec) {
  if (!amx_can(spec)) {
    throw Error(ErrorKind::backend,
                "matmul: matrix registers multiply BFloat16 that are there, on processors with AMX; "
                "got other ones; take another engine");
  }
  return std::make_unique<AmxMatmul>(spec);
}

#else

bool amx_can(const MatmulSpec&) { return false; }

std::unique_ptr<VendorCall> prepare_amx_matmul(const MatmulSpec&) {
  throw Error(ErrorKind::backend, "matmul: this build knows no matrix registers; take another engine");
}

#endif

}  // namespace rosin::engines
