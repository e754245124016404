// Complex arrays: their parts, and what complex numbers have beside + - * / square abs == != where sum mean, exp, log
// and sqrt, which take them too (elementwise.hpp, reduce.hpp). They have at most seven dims.
//
// The gradient of a real loss by z = x + iy is dL/dx + i dL/dy, as in Zygote and PyTorch: z - eta*gradient descends.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// re + i*im; both are Float32 or Float64 and broadcast. Error (dtype).
ROSIN_API Array complex(const Array& re, const Array& im);
/// The real part of z, the imaginary part of z; a real array is its own real part, its imaginary part is 0.
ROSIN_API Array real(const Array& z);
ROSIN_API Array imag(const Array& z);
/// re - i*im; a real array stays.
ROSIN_API Array conj(const Array& z);
/// atan2(im, re), in (-pi, pi].
ROSIN_API Array angle(const Array& z);

/// The same memory as reals: (sizes...) becomes (2, sizes...), the real parts first. Error (dtype): z is not complex.
ROSIN_API Array view_as_real(const Array& z);
/// The way back; the first dim has size 2. Error (shape, dtype).
ROSIN_API Array view_as_complex(const Array& parts);

}  // namespace rosin
