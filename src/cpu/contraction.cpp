// Matmul: operands whose strides the vendor calls understand are read where they stand (transposed or not), others are
// copied first; batch dims that broadcast become a batch stride of 0.
#include "cpu/contraction.hpp"

#include <optional>
#include <vector>

#include "cpu/dispatch.hpp"

namespace rosin::cpu {
namespace {

CallArray contiguous_array(DType type, const Shape& shape) {
  CallArray array{type, shape, {}};
  int64_t stride = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    array.strides[d] = stride;
    stride *= shape[d];
  }
  return array;
}

// How a matrix (rows, columns) stands in memory.
struct MatrixLayout {
  bool transposed = false;
  int64_t distance = 0;  // of columns, or of rows where transposed
};

// None where neither its columns nor its rows are contiguous.
std::optional<MatrixLayout> layout_of(const CallArray& x) {
  for (int d = 0; d < x.shape.rank(); ++d) {
    if (x.strides[d] < 0) return std::nullopt;
  }
  const int64_t rows = x.shape[0], columns = x.shape[1];
  if (x.shape.count() == 0) return MatrixLayout{false, std::max<int64_t>(rows, 1)};
  if (rows == 1 || x.strides[0] == 1) {
    const int64_t distance = columns == 1 ? std::max<int64_t>(rows, 1) : x.strides[1];
    if (distance >= rows && distance >= 1) return MatrixLayout{false, distance};
  }
  if (columns == 1 || x.strides[1] == 1) {
    const int64_t distance = rows == 1 ? std::max<int64_t>(columns, 1) : x.strides[0];
    if (distance >= columns && distance >= 1) return MatrixLayout{true, distance};
  }
  return std::nullopt;
}

// Items of a batch, as strides of the two operands and the result.
struct Batch {
  int64_t size = 1, a = 0, b = 0, c = 0;
};

int64_t batch_stride(const CallArray& x, int dim) {
  return dim < x.shape.rank() && x.shape[dim] != 1 ? x.strides[dim] : 0;
}

// The batch dims as one, or none where they do not line up.
std::optional<Batch> batch_of(const CallArray& a, const CallArray& b, const CallArray& c) {
  std::optional<Batch> batch;
  for (int d = 2; d < c.shape.rank(); ++d) {
    const Batch next{c.shape[d], batch_stride(a, d), batch_stride(b, d), c.strides[d]};
    if (next.size == 1) continue;
    if (!batch) {
      batch = next;
      continue;
    }
    if (next.a != batch->a * batch->size || next.b != batch->b * batch->size || next.c != batch->c * batch->size) {
      return std::nullopt;
    }
    batch->size *= next.size;
  }
  return batch ? batch : Batch{};
}

class MatmulCall final : public Call {
 public:
  explicit MatmulCall(const CallSpec& spec) : operands_{spec.operands[0], spec.operands[1]} {
    for (int i = 0; i < 2; ++i) {
      if (!layout_of(operands_[i])) copy(i, operands_[i].shape);
    }
    if (!batch_of(operands_[0], operands_[1], spec.result)) {
      for (int i = 0; i < 2; ++i) copy(i, whole_batch(spec.operands[static_cast<size_t>(i)], spec.result), &spec);
    }
    call_ = engines::prepare_matmul(matmul_spec(spec));
    for (int i = 0; i < 2; ++i) {
      if (!copies_[i]) continue;
      copy_at_[i] = parts_.add(static_cast<size_t>(operands_[i].shape.count()) * size_of(operands_[i].type));
    }
    workspace_at_ = parts_.add(call_->workspace_bytes());
    chunk_bytes_ = (call_->scratch_bytes_per_chunk() + 63) / 64 * 64;
    chunks_at_ = parts_.add(chunk_bytes_ * static_cast<size_t>(call_->chunks()));
  }

  int64_t chunks() const override { return call_->chunks(); }
  size_t scratch_bytes() const override { return parts_.total(); }
  bool may_fail() const override { return call_->may_fail(); }

  void begin(const CallData& data) override {
    for (int i = 0; i < 2; ++i) {
      if (!copies_[i]) continue;
      CallData part;
      part.operands[0] = data.operands[i];
      part.result = part_at(data, copy_at_[i]);
      for (int64_t chunk = 0; chunk < copies_[i]->chunks(); ++chunk) copies_[i]->run(chunk, part);
    }
    if (call_->has_begin()) call_->begin(buffers(data));
  }
  void run(int64_t chunk, const CallData& data) override {
    call_->run_chunk(chunk, buffers(data), part_at(data, chunks_at_ + static_cast<size_t>(chunk) * chunk_bytes_));
  }
  void finish(const CallData& data) override {
    if (call_->has_finish()) call_->finish(buffers(data));
  }

 private:
  // Operand i is copied; `original` gives its strides where a copy of a copy was planned.
  void copy(int i, const Shape& shape, const CallSpec* original = nullptr) {
    const CallArray& from = original != nullptr ? original->operands[static_cast<size_t>(i)] : operands_[i];
    copies_[i] = prepare_copy(from, shape);
    operands_[i] = contiguous_array(from.type, shape);
  }

  // The operand's matrix with the result's batch dims.
  static Shape whole_batch(const CallArray& x, const CallArray& result) {
    std::vector<int64_t> sizes(result.shape.begin(), result.shape.end());
    sizes[0] = x.shape[0];
    sizes[1] = x.shape[1];
    return Shape(std::span<const int64_t>(sizes));
  }

  engines::MatmulSpec matmul_spec(const CallSpec& spec) const {
    const MatrixLayout a = *layout_of(operands_[0]), b = *layout_of(operands_[1]);
    const Batch batch = *batch_of(operands_[0], operands_[1], spec.result);
    engines::MatmulSpec matmul;
    matmul.type = spec.result.type;
    matmul.m = spec.result.shape[0];
    matmul.n = spec.result.shape[1];
    matmul.k = operands_[0].shape[1];
    matmul.batch = batch.size;
    matmul.a_transposed = a.transposed;
    matmul.b_transposed = b.transposed;
    matmul.lda = a.distance;
    matmul.ldb = b.distance;
    matmul.ldc = std::max<int64_t>(matmul.m, 1);
    matmul.a_batch_stride = batch.a;
    matmul.b_batch_stride = batch.b;
    matmul.c_batch_stride = batch.c;
    if (spec.operands.size() > 2) matmul.epilogue = engines::Epilogue::bias;
    return matmul;
  }

  engines::VendorBuffers buffers(const CallData& data) const {
    return {copies_[0] ? part_at(data, copy_at_[0]) : data.operands[0],
            copies_[1] ? part_at(data, copy_at_[1]) : data.operands[1], data.operands[2], data.result,
            part_at(data, workspace_at_)};
  }

  CallArray operands_[2];
  std::unique_ptr<Call> copies_[2];
  size_t copy_at_[2] = {};
  std::unique_ptr<engines::VendorCall> call_;
  ScratchParts parts_;
  size_t workspace_at_ = 0, chunks_at_ = 0, chunk_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Call> prepare_matmul_call(const CallSpec& spec) {
  const CallArray& a = spec.operands[0];
  const CallArray& b = spec.operands[1];
  if (a.type != b.type || a.type != spec.result.type || a.shape.rank() < 2 || b.shape.rank() < 2) {
    throw Error(ErrorKind::internal, std::string(spec.op->name) + ": operands must be matrices of one type; got " +
                                         to_string(a.type) + to_string(a.shape) + " and " + to_string(b.type) +
                                         to_string(b.shape) + "; report it");
  }
  return std::make_unique<MatmulCall>(spec);
}

std::unique_ptr<Call> prepare_contraction(const CallSpec& spec) {
  return spec.op->contraction == Contraction::matmul ? prepare_matmul_call(spec) : prepare_conv_call(spec);
}

}  // namespace rosin::cpu
