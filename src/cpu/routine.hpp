// Routines of whole matrices: what one of them does to one matrix of a batch. Read next: routine.cpp (the call),
// linalg_solvers.cpp and linalg_spectra.cpp (what Eigen computes), small_matrices.cpp, fourier.cpp, distances.cpp,
// sequence.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "cpu/dispatch.hpp"

namespace rosin::cpu {

/// Sizes of the matrices: a (rows, columns), and the columns of b where there is one.
struct Problem {
  std::string_view op;
  Routine routine = Routine::none;
  Attributes attributes;
  int64_t rows = 0, columns = 0, columns_of_b = 0;

  int64_t least() const { return std::min(rows, columns); }
};

/// One matrix of each operand and result, contiguous; null where nobody reads a result.
struct Matrices {
  const void* in[2] = {};
  void* out[3] = {};
};

/// Error (numeric): the values have no such result.
using Work = void (*)(const Problem& problem, const Matrices& matrices);

/// The same for so many matrices one after another.
using WorkOnMany = void (*)(const Problem& problem, const Matrices& first, int64_t count);

/// Of matrices with few rows; null where they are taken one by one.
WorkOnMany small_matrices_of(const Problem& problem, DType type);

[[noreturn]] void refuse_singular(const Problem& problem);

/// Null where the other file has the routine.
Work solver_of(Routine routine, DType type);
Work spectrum_of(Routine routine, DType type);

std::unique_ptr<Call> prepare_fourier(const CallSpec& spec);
std::unique_ptr<Call> prepare_distances(const CallSpec& spec);
std::unique_ptr<Call> prepare_sequence(const CallSpec& spec);
std::unique_ptr<Call> prepare_sequence_gradient(const CallSpec& spec);

}  // namespace rosin::cpu
