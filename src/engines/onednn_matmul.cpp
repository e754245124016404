// Matmul by oneDNN, without epilogues: it adds a bias before all products are summed, which rounds in another order
// than adding it to the product, and its relu turns NaN to 0. At most two primitives (a full chunk and the tail), one
// execution object for each chunk, which copies what lies apart where oneDNN has its blocks for nothing else. oneDNN is
// row-major, so the product is handed over transposed: C^T(n, m) = B^T(n, k) * A^T(k, m). Read after onednn_bridge.hpp;
// next onednn_conv.cpp.
#include "engines/onednn.hpp"

#if defined(ROSIN_HAVE_ONEDNN)

#include <algorithm>
#include <cstring>

#include "engines/cuts.hpp"
#include "engines/onednn_bridge.hpp"

namespace rosin::engines {

namespace {

using namespace onednn;

using Description = Owned<dnnl_primitive_desc_t>;

constexpr const char* what = "matmul";
constexpr size_t alignment = 64;
constexpr int64_t most_copied = 1 << 18;  // elements of an operand of a chunk

class OnednnMatmul final : public VendorCall {
 public:
  explicit OnednnMatmul(const MatmulSpec& spec)
      : spec_(spec), element_(static_cast<int64_t>(size_of(spec.type))), cut_(cut_matmul(spec, rate(spec.type))) {
    chunks_ = cut_.chunks();
    may_fail_ = true;
    if (chunks_ == 0) return;
    plan_copies(cut_.part(0));
    full_ = Primitive(description(cut_.part(0), copies_), what);
    if (cut_.axis != MatmulCut::Axis::items && cut_.tail() != cut_.step) {
      tail_ = Primitive(description(cut_.part(chunks_ - 1), copies_), what);
    }
    scratch_bytes_ = std::max(full_.scratch_bytes(), tail_ ? tail_.scratch_bytes() : 0);
    place_copies(cut_.part(0));
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const Primitive& primitive = tail_ && chunk == chunks_ - 1 ? tail_ : full_;
      sets_.add(primitive, operands(primitive), what);
    }
    sets_.prepare();
    workspace_bytes_ = ExecutionSets::bytes;
    has_begin_ = has_finish_ = true;
  }

  const char* engine() const noexcept override { return "onednn"; }
  size_t bytes() const noexcept override { return (tail_ ? 2 : 1) * primitive_bytes; }

  void begin(const VendorBuffers& buffers) const override {
    if (chunks_ > 0) sets_.begin(buffers.workspace);
  }
  void finish(const VendorBuffers& buffers) const override {
    if (chunks_ > 0) sets_.finish(buffers.workspace);
  }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return cut_.part(chunk); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const MatmulPart part = cut_.part(chunk);
    const char* a = at(buffers.first, part.first_row * (spec_.a_transposed ? spec_.lda : 1));
    const char* b = at(buffers.second, part.first_column * (spec_.b_transposed ? 1 : spec_.ldb));
    char* c = at(buffers.result, part.first_row + part.first_column * spec_.ldc);
    Execution& execution = ExecutionSets::of(buffers.workspace)[static_cast<size_t>(chunk)];
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      char* c_item = at(c, item * spec_.c_batch_stride);
      char* result = copies_.c.is_made ? static_cast<char*>(scratch) + copies_.c.at : c_item;
      const void* data[] = {placed(b_lines(part), copies_.b, at(b, item * spec_.b_batch_stride), scratch),
                            placed(a_lines(part), copies_.a, at(a, item * spec_.a_batch_stride), scratch), result};
      const Lines lines = c_lines(part);
      if (copies_.c.is_made && spec_.accumulate) copy(lines, c_item, lines.distance, result, lines.length);
      execution.run(data, scratch);
      if (copies_.c.is_made) copy(lines, result, lines.length, c_item, lines.distance);
    }
  }

 private:
  static int64_t rate(DType type) { return type == DType::BFloat16 ? 100 : 50; }

  const char* at(const void* base, int64_t elements) const {
    return static_cast<const char*>(base) + elements * element_;
  }
  char* at(void* base, int64_t elements) const { return static_cast<char*>(base) + elements * element_; }

  std::vector<Operand> operands(const Primitive& primitive) const {
    return {{DNNL_ARG_SRC, primitive.layout(dnnl_query_src_md)},
            {DNNL_ARG_WEIGHTS, primitive.layout(dnnl_query_weights_md)},
            {DNNL_ARG_DST, primitive.layout(dnnl_query_dst_md)}};
  }

  /// How an operand of a chunk lies.
  struct Lines {
    int64_t count, length, distance;
  };
  Lines a_lines(const MatmulPart& part) const {
    const int64_t rows = part.last_row - part.first_row;
    return spec_.a_transposed ? Lines{rows, spec_.k, spec_.lda} : Lines{spec_.k, rows, spec_.lda};
  }
  Lines b_lines(const MatmulPart& part) const {
    const int64_t columns = part.last_column - part.first_column;
    return spec_.b_transposed ? Lines{spec_.k, columns, spec_.ldb} : Lines{columns, spec_.k, spec_.ldb};
  }

  Lines c_lines(const MatmulPart& part) const {
    return {part.last_column - part.first_column, part.last_row - part.first_row, spec_.ldc};
  }

  /// Of which arrays a chunk uses copies, with their lines side by side, and where in scratch.
  struct Copy {
    bool is_made = false;
    size_t at = 0;
  };
  struct Copies {
    Copy a, b, c;
  };

  /// oneDNN 2.6 has blocks (brgemm) only for lines side by side, in most orders of the operands. Else it takes an
  /// engine that writes all of its code at its first product, which takes 30 ms, and that is slower where A is
  /// transposed. Copies of what a chunk reads and writes, which cost less than 3 %, keep it with the blocks.
  void plan_copies(const MatmulPart& part) {
    const auto has_blocks = [&](const Copies& copies) {
      return engine_of(description(part, copies).get()).starts_with("brg");
    };
    const auto may = [](const Lines& lines) {
      return lines.distance > lines.length && lines.count * lines.length <= most_copied;
    };
    const bool a = may(a_lines(part)), b = may(b_lines(part)), c = may(c_lines(part));
    const Copies all{{a}, {b}, {c}};
    if (has_blocks({}) || !has_blocks(all)) return;
    for (const Copies& copies : {Copies{{}, {b}, {}}, Copies{{a}, {}, {}}, Copies{{}, {}, {c}}, Copies{{a}, {}, {c}},
                                 Copies{{}, {b}, {c}}, Copies{{a}, {b}, {}}, all}) {
      copies_ = copies;
      if (has_blocks(copies)) return;
    }
  }

  /// Copies lie in scratch behind oneDNN's own.
  void place_copies(const MatmulPart& part) {
    const auto place = [&](Copy& copy, const Lines& lines) {
      if (!copy.is_made) return;
      copy.at = (scratch_bytes_ + alignment - 1) / alignment * alignment;
      scratch_bytes_ = copy.at + static_cast<size_t>(lines.count * lines.length * element_);
    };
    place(copies_.a, a_lines(part));
    place(copies_.b, b_lines(part));
    place(copies_.c, c_lines(part));
  }

  void copy(const Lines& lines, const char* from, int64_t from_distance, char* to, int64_t to_distance) const {
    for (int64_t line = 0; line < lines.count; ++line) {
      std::memcpy(at(to, line * to_distance), at(from, line * from_distance),
                  static_cast<size_t>(lines.length * element_));
    }
  }

  /// The operand that lies at `from`, or its copy.
  const char* placed(const Lines& lines, const Copy& made, const char* from, void* scratch) const {
    if (!made.is_made) return from;
    char* to = static_cast<char*>(scratch) + made.at;
    copy(lines, from, lines.distance, to, lines.length);
    return to;
  }

  Description description(const MatmulPart& part, const Copies& copies) const {
    const int64_t m = part.last_row - part.first_row, n = part.last_column - part.first_column, k = spec_.k;
    const int64_t lda = copies.a.is_made ? a_lines(part).length : spec_.lda;
    const int64_t ldb = copies.b.is_made ? b_lines(part).length : spec_.ldb;
    const dnnl_data_type_t type = data_type_of(spec_.type, what);
    const dnnl_dims_t b_dims{n, k}, a_dims{k, m}, c_dims{n, m};
    const dnnl_dims_t b_strides{spec_.b_transposed ? 1 : ldb, spec_.b_transposed ? ldb : 1};
    const dnnl_dims_t a_strides{spec_.a_transposed ? 1 : lda, spec_.a_transposed ? lda : 1};
    const dnnl_dims_t c_strides{copies.c.is_made ? c_lines(part).length : spec_.ldc, 1};
    const dnnl_memory_desc_t b = strided(2, b_dims, type, b_strides, what);
    const dnnl_memory_desc_t a = strided(2, a_dims, type, a_strides, what);
    const dnnl_memory_desc_t c = strided(2, c_dims, type, c_strides, what);
    dnnl_matmul_desc_t desc;
    check(dnnl_matmul_desc_init(&desc, &b, &a, nullptr, &c), what);
    const auto attr = attributes(spec_.accumulate, what);
    return described(&desc, attr.get(), nullptr, what);
  }

  MatmulSpec spec_;
  int64_t element_;
  MatmulCut cut_;
  Copies copies_;
  Primitive full_, tail_;
  mutable ExecutionSets sets_;  // entry i of a set belongs to the thread that runs chunk i
};

}  // namespace

std::unique_ptr<VendorCall> prepare_onednn_matmul(const MatmulSpec& spec) {
  return std::make_unique<OnednnMatmul>(spec);
}

}  // namespace rosin::engines

#else

#include <rosin/error.hpp>

namespace rosin::engines {

std::unique_ptr<VendorCall> prepare_onednn_matmul(const MatmulSpec&) {
  throw Error(ErrorKind::backend, "matmul: oneDNN was asked for; this build has none; install libdnnl-dev and rebuild");
}

}  // namespace rosin::engines

#endif
