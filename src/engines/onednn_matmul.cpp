// Matmul by oneDNN, without epilogues: it adds a bias before all products are summed, which rounds in another order
// than adding it to the product, and its relu turns NaN to 0. At most two primitives (a full chunk and the tail), one
// execution object for each chunk. oneDNN is row-major, so the product is handed over transposed: C^T(n, m) = B^T(n, k)
// * A^T(k, m). Read after onednn_bridge.hpp; next onednn_conv.cpp.
#include "engines/onednn.hpp"

#if defined(ROSIN_HAVE_ONEDNN)

#include <algorithm>

#include "engines/cuts.hpp"
#include "engines/onednn_bridge.hpp"

namespace rosin::engines {

namespace {

using namespace onednn;

constexpr const char* what = "matmul";

class OnednnMatmul final : public VendorCall {
 public:
  explicit OnednnMatmul(const MatmulSpec& spec)
      : spec_(spec), element_(static_cast<int64_t>(size_of(spec.type))), cut_(cut_matmul(spec, rate(spec.type))) {
    chunks_ = cut_.chunks();
    may_fail_ = true;
    if (chunks_ == 0) return;
    full_ = make_primitive(cut_.part(0));
    if (cut_.axis != MatmulCut::Axis::items && cut_.tail() != cut_.step) tail_ = make_primitive(cut_.part(chunks_ - 1));
    scratch_bytes_ = std::max(full_.scratch_bytes(), tail_ ? tail_.scratch_bytes() : 0);
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
    const char* c = at(buffers.result, part.first_row + part.first_column * spec_.ldc);
    Execution& execution = ExecutionSets::of(buffers.workspace)[static_cast<size_t>(chunk)];
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      const void* data[] = {at(b, item * spec_.b_batch_stride), at(a, item * spec_.a_batch_stride),
                            at(c, item * spec_.c_batch_stride)};
      execution.run(data, scratch);
    }
  }

 private:
  static int64_t rate(DType type) { return type == DType::BFloat16 ? 100 : 50; }

  const char* at(const void* base, int64_t elements) const {
    return static_cast<const char*>(base) + elements * element_;
  }

  std::vector<Operand> operands(const Primitive& primitive) const {
    return {{DNNL_ARG_SRC, primitive.layout(dnnl_query_src_md)},
            {DNNL_ARG_WEIGHTS, primitive.layout(dnnl_query_weights_md)},
            {DNNL_ARG_DST, primitive.layout(dnnl_query_dst_md)}};
  }

  Primitive make_primitive(const MatmulPart& part) const {
    const int64_t m = part.last_row - part.first_row, n = part.last_column - part.first_column, k = spec_.k;
    const dnnl_data_type_t type = data_type_of(spec_.type, what);
    const dnnl_dims_t b_dims{n, k}, a_dims{k, m}, c_dims{n, m};
    const dnnl_dims_t b_strides{spec_.b_transposed ? 1 : spec_.ldb, spec_.b_transposed ? spec_.ldb : 1};
    const dnnl_dims_t a_strides{spec_.a_transposed ? 1 : spec_.lda, spec_.a_transposed ? spec_.lda : 1};
    const dnnl_dims_t c_strides{spec_.ldc, 1};
    const dnnl_memory_desc_t b = strided(2, b_dims, type, b_strides, what);
    const dnnl_memory_desc_t a = strided(2, a_dims, type, a_strides, what);
    const dnnl_memory_desc_t c = strided(2, c_dims, type, c_strides, what);
    dnnl_matmul_desc_t desc;
    check(dnnl_matmul_desc_init(&desc, &b, &a, nullptr, &c), what);
    const auto attr = attributes(spec_.accumulate, what);
    return Primitive(&desc, attr.get(), nullptr, what);
  }

  MatmulSpec spec_;
  int64_t element_;
  MatmulCut cut_;
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
