// Sums of products, in one item and over the items of a group: for the kernels of contractions.
// Read first: code.hpp. Read next: matmul.cpp, convolution.cpp.
#pragma once

#include <span>

#include "kernels/code.hpp"

namespace rosin::kernels {

inline bool is_float(ScalarType type) { return type == ScalarType::float32 || type == ScalarType::float64; }

/// sum += x * y, rounded once where they are floats.
inline void add_product(Term sum, Term x, Term y) {
  KernelWriter& w = *sum.writer;
  w.assign(sum, is_float(sum.type) ? w.apply(Primitive::fma, sum.type, {x, y, sum}) : sum + x * y);
}

/// Adds the variables of all items of the group, always in the same order; item 0 has the sums then. All items call it,
/// once in a kernel. Items of a group: a power of two.
inline void sum_over_group(KernelWriter& w, std::span<const Term> sums) {
  const int items = w.items();
  const Term item = w.item();
  const int shared = w.shared(sums[0].type, items * static_cast<int>(sums.size()));
  const auto place = [&](size_t i) { return item + static_cast<int64_t>(i) * items; };
  for (size_t i = 0; i < sums.size(); ++i) w.shared_store(shared, place(i), sums[i]);
  for (int half = items / 2; half > 0; half /= 2) {
    w.barrier();
    w.when(item < half, [&] {
      for (size_t i = 0; i < sums.size(); ++i) {
        w.assign(sums[i], sums[i] + w.shared_load(shared, place(i) + half));
        w.shared_store(shared, place(i), sums[i]);
      }
    });
  }
}

}  // namespace rosin::kernels
