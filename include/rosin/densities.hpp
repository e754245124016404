// Distributions as values: draws, logarithms of densities, entropies and divergences, of which the losses of policies,
// variational models and flows are made. Functions that only draw stand in random.hpp and distributions.hpp.
//
// Parameters are arrays or numbers; elements are independent, and parameters broadcast against each other and against
// what log_prob is asked about. sample() draws one array of the shape that the parameters broadcast to, sample(shape)
// one of that shape, in the floating type of the parameters; gradients go through draws to the parameters (of Normal,
// Laplace, Uniform, Exponential, Gamma, Beta, TanhNormal: stop_gradient where that is not wanted). log_prob is
// -Infinity outside the support. A distribution is a plain struct: a model may have one, with parameters that are
// trained. Source: torch.distributions.
//
// Errors: shape (what does not broadcast), dtype (parameters of two floating types).
#pragma once

#include <rosin/array.hpp>
#include <rosin/random.hpp>

namespace rosin {

struct ROSIN_API Normal {
  Array mean = 0, deviation = 1;
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  Array log_prob(const Array& x) const;
  Array entropy() const;
};

/// Density e^(-|x - mean|/scale) / (2*scale).
struct ROSIN_API Laplace {
  Array mean = 0, scale = 1;
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  Array log_prob(const Array& x) const;
  Array entropy() const;
};

/// On [low, high).
struct ROSIN_API Uniform {
  Array low = 0, high = 1;
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  Array log_prob(const Array& x) const;
  Array entropy() const;
};

/// Density rate*e^(-rate*x) from 0 on.
struct ROSIN_API Exponential {
  Array rate = 1;
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  Array log_prob(const Array& x) const;
  Array entropy() const;
};

/// Density x^(concentration - 1) * e^(-x/scale) / (scale^concentration * Gamma(concentration)) above 0. (PyTorch's rate
/// is 1/scale.)
struct ROSIN_API Gamma {
  Array concentration = 1, scale = 1;
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  Array log_prob(const Array& x) const;
  Array entropy() const;
};

/// Density x^(a - 1) * (1 - x)^(b - 1) / B(a, b) on [0, 1].
struct ROSIN_API Beta {
  Array a = 1, b = 1;
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  Array log_prob(const Array& x) const;
  Array entropy() const;
};

/// Counts of mean `rate`; draws are Int32 without a gradient.
struct ROSIN_API Poisson {
  Array rate = 1;
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  Array log_prob(const Array& x) const;
};

/// 1 with probability sigmoid(logits), else 0; draws have the type of the logits and no gradient.
struct ROSIN_API Bernoulli {
  Array logits = 0;
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  Array log_prob(const Array& x) const;
  Array entropy() const;
};

/// One class for each column of the logits (classes, batch...), with probability softmax(logits, 0); -Infinity forbids
/// a class. Draws and what log_prob is asked about are labels (batch...), Int32 without a gradient; log_prob and
/// entropy are (batch...) too. Error, when log_prob is evaluated: a label that is none of the classes.
struct ROSIN_API Categorical {
  Array logits;
  Array sample(Rng& rng = default_rng()) const;
  Array log_prob(const Array& labels) const;
  Array entropy() const;
};

/// tanh of a normal variable, as bounded actions are. Source: Haarnoja et al., Soft Actor-Critic, appendix C.
struct ROSIN_API TanhNormal {
  Array mean = 0, deviation = 1;
  struct Draw {
    Array value, log_prob;
  };
  Array sample(Rng& rng = default_rng()) const;
  Array sample(const Shape& shape, Rng& rng = default_rng()) const;
  /// A draw with its log_prob, which is found from the normal variable: exact also where tanh rounds to 1.
  Draw sample_with_log_prob(Rng& rng = default_rng()) const;
  /// Of x in (-1, 1).
  Array log_prob(const Array& x) const;
};

/// The Kullback-Leibler divergence of q from p, E_p[log p - log q], of each element (Categorical: of each column).
ROSIN_API Array kl_divergence(const Normal& p, const Normal& q);
ROSIN_API Array kl_divergence(const Laplace& p, const Laplace& q);
ROSIN_API Array kl_divergence(const Exponential& p, const Exponential& q);
ROSIN_API Array kl_divergence(const Gamma& p, const Gamma& q);
ROSIN_API Array kl_divergence(const Beta& p, const Beta& q);
ROSIN_API Array kl_divergence(const Poisson& p, const Poisson& q);
ROSIN_API Array kl_divergence(const Bernoulli& p, const Bernoulli& q);
ROSIN_API Array kl_divergence(const Categorical& p, const Categorical& q);

}  // namespace rosin
