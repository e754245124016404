// The table of one processor's kernels: included once by each tile_*.cpp, behind all the bodies.
#pragma once

template <class T> constexpr TypedKernels<T> typed_kernels() {
  return {.multiply = &multiply_tiles<T>,
          .multiply_items = &multiply_items<T>,
          .dots = &multiply_dots<T>,
          .sweep = &sweep<T>,
          .max_forward = &max_forward_run<T>,
          .max_backward = &max_backward_run<T>,
          .mean_forward = &mean_forward_run<T>,
          .mean_backward = &mean_backward_run<T>,
          .finite = &all_finite<T>,
          .fourier = &transform_lines<T>,
          .copy_rows = &copy_rows<T>,
          .give_gradients = &give_gradients<T>,
          .pull_gradients = &pull_gradients<T>,
          .filter_plane = &filter_plane<T>,
          .dot_planes = &dot_planes<T>,
          .weigh_rows = &weigh_rows<T>,
          .weigh_lines = &weigh_lines<T>,
          .epilogue = &add_and_activate<T>};
}

template <class H> constexpr HalfKernels<H> half_kernels() { return {&dots_of_rows<H, float>, &sweep<H>}; }

constexpr TileKernels kernels_of(const char* name, int vector_bytes, const PackedKernels& packed = {}) {
  return {.name = name,
          .vector_bytes = vector_bytes,
          .row_vectors = 2,
          .floats = typed_kernels<float>(),
          .doubles = typed_kernels<double>(),
          .halves = half_kernels<Half>(),
          .bfloats = half_kernels<BFloat>(),
          .attention = {&fold_logits, &weigh_slopes},
          .winograd = winograd_kernels(),
          .packed = packed,
          .distances = &distances};
}
