// Ops on the bits of integers. Operands broadcast and share a type as in elementwise.hpp, which is to be read first.
//
// Integers of every type; two's complement. Bool: the bitwise functions are those of logic, shifts take it as Int32.
// They have no gradient. There are no operators: & | ^ ! on arrays are logic, of Bool alone, and say so of integers.
// Error (dtype): floats and complex numbers; a C++ number that the array's type does not hold.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// The bits that both have, that at least one has, that exactly one has.
ROSIN_API Array bitwise_and(const Array& a, const Array& b);
ROSIN_API Array bitwise_or(const Array& a, const Array& b);
ROSIN_API Array bitwise_xor(const Array& a, const Array& b);
/// Every bit the other way: -x - 1 of signed types.
ROSIN_API Array bitwise_not(const Array& x);
/// x * 2^count in the type of both; bits that leave the type are lost. 0 where count is negative or the number of bits
/// of the type or more, as in NumPy and PyTorch.
ROSIN_API Array left_shift(const Array& x, const Array& count);
/// x / 2^count, rounded down: signed types copy their sign, into unsigned ones zeros enter. Where count is negative or
/// the number of bits of the type or more, all bits leave: 0, or -1 where x is negative, as in NumPy and PyTorch.
ROSIN_API Array right_shift(const Array& x, const Array& count);

}  // namespace rosin
