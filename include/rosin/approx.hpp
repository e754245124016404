// Comparing arrays to within a tolerance, as a bool; complex ones by the sizes of differences. Infinite elements must
// be equal, NaN never is.
#pragma once

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

struct ApproxOptions {
  double rtol = -1;  // negative: the square root of the epsilon of the coarser type; 0 where atol is given
  double atol = 0;
};
/// Whether norm(x - y) <= max(atol, rtol * max(norm(x), norm(y))), over all elements; both are read on the host.
/// Error (shape) when the shapes differ. Source: Julia's isapprox.
ROSIN_API bool isapprox(const Array& x, const Array& y, ApproxOptions options = {});

struct CloseOptions {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;  // whether NaN is close to NaN
};
/// Whether |x - y| <= atol + rtol * |y| for every element. Error (shape) when the shapes differ. Source: NumPy.
ROSIN_API bool allclose(const Array& x, const Array& y, CloseOptions options = {});
/// The same element by element, recorded: Bool, of operands that broadcast; integers are compared as Float32.
ROSIN_API Array isclose(const Array& x, const Array& y, CloseOptions options = {});

}  // namespace rosin
