// Determinants and inverses of many small matrices, side by side: element (i, j) of some of them is one vector, and
// every step of the elimination is the same for all. Read first: routine.hpp.
#include "cpu/routine.hpp"

namespace rosin::cpu {
namespace {

constexpr int64_t most_rows = 8;

template <class T> class SideBySide {
  typedef T Lanes __attribute__((vector_size(16)));

 public:
  static constexpr int64_t lanes = 16 / sizeof(T);

  /// Up to `lanes` matrices (n, n) from `a` on; the lanes behind them hold the identity.
  SideBySide(const T* a, int64_t n, int64_t count) : n_(n), columns_(n), count_(count) {
    each_element([&](int64_t i, int64_t j) {
      values_[i][j] = Lanes{} + static_cast<T>(i == j);
      for (int64_t l = 0; l < count; ++l) values_[i][j][l] = a[(l * n + j) * n + i];
    });
  }

  /// By upper triangles.
  void write_determinants(T* out) {
    for (int64_t k = 0; k < n_; ++k) eliminate(k, k + 1);
    for (int64_t l = 0; l < count_; ++l) out[l] = determinant_[l];
  }

  /// By what the same steps make of the identity. False: one of the matrices has none.
  bool write_inverses(T* out) {
    columns_ = 2 * n_;
    each_element([&](int64_t i, int64_t j) { values_[i][n_ + j] = Lanes{} + static_cast<T>(i == j); });
    for (int64_t k = 0; k < n_; ++k) eliminate(k, 0);
    each_element([&](int64_t i, int64_t j) {
      for (int64_t l = 0; l < count_; ++l) out[(l * n_ + j) * n_ + i] = values_[i][n_ + j][l];
    });
    return !singular_;
  }

 private:
  template <class F> void each_element(F&& f) {
    for (int64_t j = 0; j < n_; ++j) {
      for (int64_t i = 0; i < n_; ++i) f(i, j);
    }
  }

  /// The rows from `first` on lose their part of row k, of which element k becomes 1. One text for both users.
  [[gnu::noinline]] void eliminate(int64_t k, int64_t first) {
    for (int64_t i = k + 1; i < n_; ++i) exchange_if_larger(k, i);
    const Lanes pivot = values_[k][k], divisor = pivot == Lanes{} ? Lanes{} + T{1} : pivot;
    for (int64_t l = 0; l < lanes; ++l) singular_ |= pivot[l] == T{0};
    determinant_ *= pivot;
    for (int64_t j = k + 1; j < columns_; ++j) values_[k][j] /= divisor;
    for (int64_t i = first; i < n_; ++i) {
      for (int64_t j = k + 1; i != k && j < columns_; ++j) values_[i][j] -= values_[i][k] * values_[k][j];
    }
  }

  /// Rows k and i change places in the lanes where element k of row i is the larger one.
  void exchange_if_larger(int64_t k, int64_t i) {
    const Lanes a = values_[k][k], b = values_[i][k];
    const auto larger = (b < Lanes{} ? -b : b) > (a < Lanes{} ? -a : a);
    determinant_ = larger ? -determinant_ : determinant_;
    for (int64_t j = k; j < columns_; ++j) {
      const Lanes upper = values_[k][j], lower = values_[i][j];
      values_[k][j] = larger ? lower : upper;
      values_[i][j] = larger ? upper : lower;
    }
  }

  int64_t n_, columns_, count_;
  bool singular_ = false;
  Lanes determinant_ = Lanes{} + T{1};
  Lanes values_[most_rows][2 * most_rows];
};

/// Calls f(matrices side by side, number of the first, how many).
template <class T, class F> void each_few(const Problem& p, const Matrices& m, int64_t count, F&& f) {
  constexpr int64_t lanes = SideBySide<T>::lanes;
  for (int64_t b = 0; b < count; b += lanes) {
    const int64_t some = std::min(lanes, count - b);
    SideBySide<T> few(static_cast<const T*>(m.in[0]) + b * p.rows * p.rows, p.rows, some);
    f(few, b);
  }
}

template <class T> void determinants(const Problem& p, const Matrices& m, int64_t count) {
  each_few<T>(p, m, count,
              [&](SideBySide<T>& few, int64_t b) { few.write_determinants(static_cast<T*>(m.out[0]) + b); });
}

template <class T> void inverses(const Problem& p, const Matrices& m, int64_t count) {
  each_few<T>(p, m, count, [&](SideBySide<T>& few, int64_t b) {
    if (!few.write_inverses(static_cast<T*>(m.out[0]) + b * p.rows * p.rows)) refuse_singular(p);
  });
}

template <class T> WorkOnMany work_on_many(Routine routine) {
  switch (routine) {
    case Routine::determinant: return determinants<T>;
    case Routine::inverse: return inverses<T>;
    default: return nullptr;
  }
}

}  // namespace

WorkOnMany small_matrices_of(const Problem& p, DType type) {
  if (p.rows > most_rows) return nullptr;
  return type == DType::Float64 ? work_on_many<double>(p.routine) : work_on_many<float>(p.routine);
}

}  // namespace rosin::cpu
