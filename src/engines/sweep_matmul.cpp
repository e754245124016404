// Matmul of a large matrix by few columns, or of few rows by one, where sums run across memory: the matrix is read
// from end to end, once. Read after tile_kernel.hpp; the kernel is sweep_body.hpp.
#include <algorithm>

#include "engines/converted.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

/// The product as `lines` of the matrix by `few` columns: A by B, or B' by A' of a transposed B.
struct Swept {
  bool turned;         // the matrix is B
  int64_t lines, few;  // of the result
  int64_t step;        // distance of the matrix's steps
  int64_t few_step, few_column;
};

Swept swept(const MatmulSpec& spec) {
  if (!spec.a_transposed && spec.n <= most_swept) {
    return {false, spec.m, spec.n, spec.lda, spec.b_transposed ? spec.ldb : 1, spec.b_transposed ? 1 : spec.ldb};
  }
  return {true, spec.n, spec.m, spec.ldb, spec.a_transposed ? 1 : spec.lda, spec.a_transposed ? spec.lda : 1};
}

template <class A> class SweepMatmul final : public VendorCall {
 public:
  explicit SweepMatmul(const MatmulSpec& spec) : spec_(spec), swept_(swept(spec)) {
    const int64_t wanted = worthwhile_chunks(microseconds_of(spec, thousands));
    by_steps_ = swept_.lines < wanted * most_lines;
    const int64_t length = by_steps_ ? spec.k : swept_.lines, unit = by_steps_ ? 8 : 64;
    cut_ = round_up((length + wanted - 1) / wanted, unit);
    chunks_ = (length + cut_ - 1) / cut_;
    const auto sums = static_cast<size_t>(swept_.few * (by_steps_ ? chunks_ * swept_.lines : cut_)) * sizeof(Wide);
    (by_steps_ ? workspace_bytes_ : scratch_bytes_) = sums;
    has_finish_ = by_steps_;
  }

  const char* engine() const noexcept override { return "tile"; }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    if (by_steps_) return std::nullopt;
    const int64_t first = chunk * cut_, last = std::min(swept_.lines, first + cut_);
    return swept_.turned ? MatmulPart{0, 1, first, last, 0, spec_.m} : MatmulPart{0, 1, 0, spec_.n, first, last};
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t first = chunk * cut_;
    Sweep<A> sweep;
    sweep.a = static_cast<const A*>(swept_.turned ? buffers.second : buffers.first);
    sweep.a_step = swept_.step;
    sweep.b = static_cast<const A*>(swept_.turned ? buffers.first : buffers.second);
    sweep.b_step = swept_.few_step;
    sweep.b_column = swept_.few_column;
    sweep.columns = swept_.few;
    if (by_steps_) {
      sweep.a += first * sweep.a_step;
      sweep.b += first * sweep.b_step;
      sweep.rows = sweep.sums_column = swept_.lines;
      sweep.steps = std::min(cut_, spec_.k - first);
      sweep.sums = static_cast<Wide*>(buffers.workspace) + chunk * swept_.lines * swept_.few;
      return tile_kernels().of<A>().sweep(sweep);
    }
    sweep.a += first;
    sweep.rows = sweep.sums_column = std::min(cut_, swept_.lines - first);
    sweep.steps = spec_.k;
    sweep.sums = static_cast<Wide*>(scratch);
    tile_kernels().of<A>().sweep(sweep);
    store(sweep.sums, first, sweep.rows, buffers);
  }

  void finish(const VendorBuffers& buffers) const override {
    if (!by_steps_) return;
    auto* sums = static_cast<Wide*>(buffers.workspace);
    const int64_t count = swept_.lines * swept_.few;
    for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
      for (int64_t i = 0; i < count; ++i) sums[i] += sums[chunk * count + i];
    }
    store(sums, 0, swept_.lines, buffers);
  }

 private:
  using Wide = WideOf<A>;
  static constexpr int64_t thousands = sizeof(Wide) == 4 ? 50 : 25;  // of multiply-adds in a microsecond
  static constexpr int64_t most_lines = 2048;  // of a chunk of steps: columns that are much longer are cut

  /// Sums of `lines` lines from `first` on, as the result's elements.
  void store(const Wide* sums, int64_t first, int64_t lines, const VendorBuffers& buffers) const {
    const int64_t line = swept_.turned ? spec_.ldc : 1, column = swept_.turned ? 1 : spec_.ldc;
    A* c = static_cast<A*>(buffers.result) + first * line;
    for (int64_t few = 0; few < swept_.few; ++few) {
      for (int64_t i = 0; i < lines; ++i) {
        A& element = c[i * line + few * column];
        const Wide sum = sums[few * lines + i];
        element = static_cast<A>(spec_.accumulate ? static_cast<Wide>(element) + sum : sum);
      }
    }
  }

  MatmulSpec spec_;
  Swept swept_;
  bool by_steps_ = false;
  int64_t cut_ = 0;  // lines or steps of a chunk
};

}  // namespace

/// Measured on AVX-512 (Zen 4): of floats, tiles are as fast while the matrix is in the second cache, and half as fast
/// where it comes from memory. oneDNN and copies as Float32 are slower with halves of any size.
bool sweep_pays(const MatmulSpec& spec) {
  constexpr int64_t least_lines = 64, few_steps = 8, least_bytes = 1 << 20;
  const bool by_columns = !spec.a_transposed && spec.n <= most_swept;
  const bool by_rows = spec.b_transposed && spec.m <= most_swept;
  if (spec.batch != 1 || spec.k < few_steps || !(by_columns || by_rows)) return false;
  const int64_t lines = swept(spec).lines;
  const auto element = static_cast<int64_t>(size_of(spec.type));
  if (element == 2) return lines >= least_lines && !spec.accumulate;
  return lines >= 8 * least_lines && lines * spec.k * element >= least_bytes;
}

std::unique_ptr<VendorCall> prepare_sweep_matmul(const MatmulSpec& spec) {
  return with_epilogue(spec, false, [](const MatmulSpec& inner) -> std::unique_ptr<VendorCall> {
    switch (inner.type) {
      case DType::Float16: return std::make_unique<SweepMatmul<Half>>(inner);
      case DType::BFloat16: return std::make_unique<SweepMatmul<BFloat>>(inner);
      case DType::Float64: return std::make_unique<SweepMatmul<double>>(inner);
      default: return std::make_unique<SweepMatmul<float>>(inner);
    }
  });
}

}  // namespace rosin::engines
