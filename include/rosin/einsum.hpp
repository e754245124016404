// Sums of products over named dims: einsum and what is made of it; diagonals. Read first: matmul.hpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// Sums of products over the dims that `equation` names: einsum("ij,jk->ik", {a, b}) is a matrix product. A letter
/// stands for one size everywhere; one that the result lacks is summed over, one that an operand has twice is its
/// diagonal; without an arrow the result has the letters that occur once, in the order of the alphabet. "..." are the
/// dims that are not named, which broadcast as of elementwise ops. Operands are taken from the left, two at a time; the
/// products are matmul's. Errors: argument (the equation), shape (sizes differ). Source: numpy.einsum.
ROSIN_API Array einsum(std::string_view equation, std::span<const Array> operands);
inline Array einsum(std::string_view equation, std::initializer_list<Array> operands) {
  return einsum(equation, std::span<const Array>(operands.begin(), operands.size()));
}

/// Products summed over the last `dims` dims of a and the first of b; 0: all products. Source: numpy.tensordot.
ROSIN_API Array tensordot(const Array& a, const Array& b, int dims = 2);
/// The same over dims of a and of b, in pairs.
ROSIN_API Array tensordot(const Array& a, const Array& b, std::span<const int> dims_of_a,
                          std::span<const int> dims_of_b);
inline Array tensordot(const Array& a, const Array& b, std::initializer_list<int> dims_of_a,
                       std::initializer_list<int> dims_of_b) {
  return tensordot(a, b, std::span<const int>(dims_of_a.begin(), dims_of_a.size()),
                   std::span<const int>(dims_of_b.begin(), dims_of_b.size()));
}

/// The matrix with a(i, j) * b in place of each element of a: (m, n), (p, q) -> (m p, n q). Source: Julia's kron.
ROSIN_API Array kron(const Array& a, const Array& b);

/// Elements (i, i + k) of the first two dims, or (i - k, i) for k < 0, as the first dim: (m, n, ...) -> (l, ...).
/// Error (shape): fewer than two dims, or k is beyond them.
ROSIN_API Array diagonal(const Array& x, int64_t k = 0);
/// The square matrix with the vector on diagonal k, zeros elsewhere. Error (shape): not a vector.
ROSIN_API Array diagm(const Array& v, int64_t k = 0);
/// The sum of the main diagonal of the first two dims: (m, n, ...) -> (...). Source: numpy.trace.
ROSIN_API Array trace(const Array& x);

}  // namespace rosin
