// Calls of routines: a batch of matrices, each by itself; see routine.hpp.
#include "cpu/routine.hpp"

#include <array>
#include <numeric>

namespace rosin::cpu {
namespace {

/// Bytes of one matrix of each result.
std::array<int64_t, 3> bytes_of_results(const Problem& p, int64_t element) {
  const int64_t m = p.rows, n = p.columns, least = p.least();
  switch (p.routine) {
    case Routine::triangular:
    case Routine::solve: return {m * p.columns_of_b * element};
    case Routine::lu: return {m * n * element, m * int64_t{sizeof(int32_t)}};
    case Routine::determinant: return {element};
    case Routine::logarithm: return {element, element};
    case Routine::qr: return {m * least * element, least * n * element};
    case Routine::svd: return {m * least * element, least * element, least * n * element};
    case Routine::eigh: return {n * element, n * n * element};
    case Routine::none:
    case Routine::cholesky:
    case Routine::inverse:
    case Routine::cofactors:
    case Routine::pseudoinverse:
    case Routine::fourier:
    case Routine::distances:
    case Routine::sequence:
    case Routine::sequence_gradient:
    case Routine::recurrent:  // of devices alone
    case Routine::recurrent_gradient: break;
  }
  return {m * n * element};
}

/// Of matrices without elements: the determinant is 1, rows keep their order, and other results are empty.
template <class T> void of_nothing(const Problem& p, const Matrices& matrices) {
  if (p.routine == Routine::determinant || p.routine == Routine::logarithm) {
    if (matrices.out[0]) *static_cast<T*>(matrices.out[0]) = 1;
    if (matrices.out[1]) *static_cast<T*>(matrices.out[1]) = 0;
  } else if (p.routine == Routine::lu && matrices.out[1]) {
    std::iota(static_cast<int32_t*>(matrices.out[1]), static_cast<int32_t*>(matrices.out[1]) + p.rows, 0);
  }
}

class RoutineCall final : public Call {
 public:
  RoutineCall(const Problem& problem, const CallSpec& spec, Work work)
      : problem_(problem), work_(work), many_(small_matrices_of(problem, spec.operands[0].type)),
        element_(static_cast<int64_t>(size_of(spec.operands[0].type))), results_(bytes_of_results(problem, element_)) {
    const Shape& shape = spec.operands[0].shape;
    int64_t count = 1;
    for (int d = 2; d < shape.rank(); ++d) count *= shape[d];
    batch_ = Pieces::of(count, problem.rows * problem.columns * std::max<int64_t>(problem.least(), 1));
  }

  int64_t chunks() const override { return batch_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const int64_t sizes[] = {problem_.rows * problem_.columns * element_,
                             problem_.rows * problem_.columns_of_b * element_};
    const auto matrices_from = [&](int64_t b) {
      Matrices matrices;
      for (size_t i = 0; i < 2; ++i) {
        const void* from = data.operands[i];
        if (from) matrices.in[i] = static_cast<const char*>(from) + b * sizes[i];
      }
      for (size_t k = 0; k < 3; ++k) {
        if (results_[k] == 0) continue;  // it is empty, or there is none
        void* to = data.results ? data.results[k] : k == 0 ? data.result : nullptr;
        if (to) matrices.out[k] = static_cast<char*>(to) + b * results_[k];
      }
      return matrices;
    };
    const int64_t first = batch_.first(chunk), last = batch_.last(chunk);
    if (many_) return many_(problem_, matrices_from(first), last - first);
    for (int64_t b = first; b < last; ++b) work_(problem_, matrices_from(b));
  }

 private:
  Problem problem_;
  Work work_;
  WorkOnMany many_;  // instead of it, where it is known
  int64_t element_;
  std::array<int64_t, 3> results_;
  Pieces batch_;
};

Work work_of(const Problem& problem, DType type) {
  if (problem.least() == 0) return type == DType::Float64 ? of_nothing<double> : of_nothing<float>;
#if ROSIN_HAVE_EIGEN
  if (const Work work = solver_of(problem.routine, type)) return work;
  return spectrum_of(problem.routine, type);
#else
  throw Error(ErrorKind::backend, std::string(problem.op) +
                                      ": linear algebra is computed by Eigen; this librosin was built without it; "
                                      "install libeigen3-dev and build it again");
#endif
}

}  // namespace

void refuse_singular(const Problem& problem) {
  throw Error(ErrorKind::numeric, std::string(problem.op) +
                                      ": the matrix must be invertible; got a singular one; use "
                                      "pinv or lstsq");
}

std::unique_ptr<Call> prepare_routine(const CallSpec& spec) {
  if (spec.op->routine == Routine::fourier) return prepare_fourier(spec);
  if (spec.op->routine == Routine::distances) return prepare_distances(spec);
  if (spec.op->routine == Routine::sequence) return prepare_sequence(spec);
  if (spec.op->routine == Routine::sequence_gradient) return prepare_sequence_gradient(spec);
  const Shape& a = spec.operands[0].shape;
  const Problem problem{.op = spec.op->name,
                        .routine = spec.op->routine,
                        .attributes = spec.attributes,
                        .rows = a[0],
                        .columns = a[1],
                        .columns_of_b = spec.operands.size() > 1 ? spec.operands[1].shape[1] : 0};
  return std::make_unique<RoutineCall>(problem, spec, work_of(problem, spec.operands[0].type));
}

}  // namespace rosin::cpu
