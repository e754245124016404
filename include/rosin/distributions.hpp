// Random arrays of more distributions than random.hpp has, which is to be read first: uniform, normal, bernoulli,
// randint and permutation stand there.
//
// All are composed of recorded ops, so that they fuse, run on every device and can be part of a gradient call. As
// everywhere, key and counter of the generator are taken at the call; without a generator this thread's is used.
// Parameters are numbers or arrays that broadcast to the shape; gradients go to them where nothing else is said. The
// type of the result is that of the options; Float64 is drawn with 53 random bits, all else with 24.
//
// Errors: shape (a parameter does not broadcast to the shape), dtype (the options state a type that is no float, but
// for counts). argument (a parameter that is a C++ number lies outside its range). Arrays are not looked
// at: where one is outside its range the elements mean nothing, mostly NaN.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/array_options.hpp>
#include <rosin/random.hpp>

namespace rosin {

/// Density rate*e^(-rate*x) from 0 on; mean 1/rate.
ROSIN_API Array exponential(Rng& rng, const Shape& shape, const Array& rate = 1, const ArrayOptions& options = Float32);
ROSIN_API Array exponential(const Shape& shape, const Array& rate = 1, const ArrayOptions& options = Float32);
/// Density e^(-|x - mean|/scale) / (2*scale); variance 2*scale^2.
ROSIN_API Array laplace(Rng& rng, const Shape& shape, const Array& mean = 0, const Array& scale = 1,
                        const ArrayOptions& options = Float32);
ROSIN_API Array laplace(const Shape& shape, const Array& mean = 0, const Array& scale = 1,
                        const ArrayOptions& options = Float32);
/// Of the largest of many: distribution function e^(-e^(-(x - location)/scale)); mean location + 0.5772*scale.
ROSIN_API Array gumbel(Rng& rng, const Shape& shape, const Array& location = 0, const Array& scale = 1,
                       const ArrayOptions& options = Float32);
ROSIN_API Array gumbel(const Shape& shape, const Array& location = 0, const Array& scale = 1,
                       const ArrayOptions& options = Float32);
/// Normal numbers that lie in [low, high], by the inverse of the distribution function, as torch.nn.init.trunc_normal_.
/// Both bounds on one side of the mean must begin within 4 deviations of it (Float64: 7); beyond, that is an Error
/// (argument) of numbers, and of arrays elements mean nothing.
/// (truncated_normal of a shape alone is the initialiser, init.hpp.)
ROSIN_API Array truncated_normal(Rng& rng, const Shape& shape, const Array& mean, const Array& deviation,
                                 const Array& low, const Array& high, const ArrayOptions& options = Float32);
ROSIN_API Array truncated_normal(const Shape& shape, const Array& mean, const Array& deviation, const Array& low,
                                 const Array& high, const ArrayOptions& options = Float32);

/// Density x^(concentration - 1) * e^(-x/scale) / (scale^concentration * Gamma(concentration)), concentration > 0; mean
/// concentration*scale. Eight candidates are drawn for each element and the first that is accepted is taken; one
/// element in 10^10 has none and gets (concentration - 1/3)*scale. The gradient by the concentration is that of the
/// accepted candidate, an approximation. Source: Marsaglia and Tsang, A simple method for generating gamma variables.
ROSIN_API Array gamma(Rng& rng, const Shape& shape, const Array& concentration, const Array& scale = 1,
                      const ArrayOptions& options = Float32);
ROSIN_API Array gamma(const Shape& shape, const Array& concentration, const Array& scale = 1,
                      const ArrayOptions& options = Float32);
/// Density x^(a - 1) * (1 - x)^(b - 1) / B(a, b) in [0, 1], a > 0 and b > 0; mean a/(a + b). The share of one of two
/// gamma variables, found by their logarithms: small parameters give 0 and 1, not NaN.
ROSIN_API Array beta(Rng& rng, const Shape& shape, const Array& a, const Array& b,
                     const ArrayOptions& options = Float32);
ROSIN_API Array beta(const Shape& shape, const Array& a, const Array& b, const ArrayOptions& options = Float32);
/// Counts of mean and variance `rate` >= 0; Int32, or the type of the options. No gradient. Below a rate of 10 the
/// distribution function is inverted, above it 12 candidates are drawn for each element; one element in 10^7 (of a rate
/// near 10) has none that is accepted and gets the rate, rounded down. Rates up to 10^6 are drawn well, that is as far
/// as 24 random bits go. Source: Hormann, The transformed rejection method for generating Poisson random variables
/// (PTRS).
ROSIN_API Array poisson(Rng& rng, const Shape& shape, const Array& rate, const ArrayOptions& options = Int32);
ROSIN_API Array poisson(const Shape& shape, const Array& rate, const ArrayOptions& options = Int32);

/// One class for each column of the logits (classes, batch...), with probability softmax(logits, 0): (batch...), Int32.
/// With a number of draws: (draws, batch...). -Inf forbids a class. The place of the largest of logits + gumbel; with a
/// number of draws, the class whose share of the sum of all probabilities a uniform number meets: shares are told apart
/// by 24 bits (Float64: 53). No gradient. Errors: argument (no classes, draws < 0), dtype (logits are no floats), shape
/// (logits are 0-d).
ROSIN_API Array categorical(Rng& rng, const Array& logits);
ROSIN_API Array categorical(const Array& logits);
ROSIN_API Array categorical(Rng& rng, const Array& logits, int64_t draws);
ROSIN_API Array categorical(const Array& logits, int64_t draws);
/// As many classes for each column of the weights (classes, batch...) as draws, in proportion to the weights >= 0:
/// (draws, batch...), Int32. Without replacement no class comes twice in a column, in the order of drawing; classes of
/// weight 0 come only when no others are left. With replacement as categorical, of many draws. Source:
/// torch.multinomial; Efraimidis and Spirakis, Weighted random sampling with a reservoir (without replacement). Errors:
/// as categorical; argument: more draws than classes, without replacement.
ROSIN_API Array multinomial(Rng& rng, const Array& weights, int64_t draws, bool replacement = false);
ROSIN_API Array multinomial(const Array& weights, int64_t draws, bool replacement = false);

/// Uniform in [0, 1), or standard normal, of the shape and type and on the device of x. Error (dtype): x is no float.
ROSIN_API Array rand_like(const Array& x);
ROSIN_API Array randn_like(const Array& x);

struct ChoiceOptions {
  bool replacement = true;  // whether a slice may be taken twice
  int dim = -1;             // the slices are taken along; the last dim is that of observations
  Array weights = {};       // of the slices: (size of the dim); nothing: all alike
};
/// Slices of x taken at random: x.shape() with `draws` instead of the size of the dim. Gradients go to what was taken.
/// Source: numpy.random.Generator.choice. Errors: argument (x has no slices, draws < 0, more draws than slices without
/// replacement), shape (no such dim; weights of another size).
ROSIN_API Array choice(Rng& rng, const Array& x, int64_t draws, const ChoiceOptions& options = {});
ROSIN_API Array choice(const Array& x, int64_t draws, const ChoiceOptions& options = {});

}  // namespace rosin
