// A matrix product as the files that write its kernels see it. Read first: launches.hpp. Read next: matmul.cpp,
// matrix_lines.hpp, matrix_units.cpp.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "kernels/launches.hpp"

namespace rosin::kernels {

/// The operands and the result as the graph has them: a (m, k, batch...), b (k, n, batch...), c (m, n, batch...).
struct Product {
  const Layout& layout;
  int32_t a, b, c;

  Product(const Layout& all, int32_t node)
      : layout(all), a(all.structure->graph.values[static_cast<size_t>(node)].in[0]),
        b(all.structure->graph.values[static_cast<size_t>(node)].in[1]), c(node) {}

  const View& view(int32_t value) const { return layout.views[static_cast<size_t>(value)]; }
  const Value& result() const { return layout.structure->graph.values[static_cast<size_t>(c)]; }
  DType dtype() const { return result().dtype; }
  ScalarType compute() const { return scalar_type(dtype()); }
  int64_t m() const { return view(c).sizes[0]; }
  int64_t n() const { return view(c).sizes[1]; }
  int64_t k() const { return view(a).sizes[1]; }
  int64_t batch() const { return view(c).count() / (m() * n()); }
  ScalarType index() const { return index_type(layout, std::array{a, b, c}); }
  /// Parts of the result of so many rows and columns.
  int64_t parts(int64_t rows, int64_t columns) const {
    return groups_for(m(), rows) * groups_for(n(), columns) * batch();
  }
};

/// Which part of so many rows and columns a group computes: its row and column among parts, then the coordinates of its
/// matrix in the batch.
inline std::vector<Term> part_of_group(KernelWriter& w, const Product& product, int64_t rows, int64_t columns) {
  const std::vector<Term> sizes = size_terms(w, product.layout, product.c);
  std::vector<Term> parts{w.number(groups_for(product.m(), rows)), w.number(groups_for(product.n(), columns))};
  parts.insert(parts.end(), sizes.begin() + 2, sizes.end());
  return w.coordinates(w.group(0), parts);
}

/// So many groups keep a device busy.
inline constexpr int64_t groups_of_device = 64;

/// The product by the matrix units of the device, or nothing where it has none for these types and this mode, or they
/// do not pay. Sums are Float32.
std::optional<Launch> by_matrix_units(const Product& product, const Abilities& device);
/// The same by units that multiply square matrices, where the product is one for them; part of by_matrix_units.
std::optional<Launch> by_square_units(const Product& product, const Abilities& device);

}  // namespace rosin::kernels
