// Dropout and AlphaDropout: see rosin/dropout.hpp.
#include <rosin/dropout.hpp>

#include <cmath>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/layer.hpp>
#include <rosin/show.hpp>

#include "graph/context.hpp"
#include "graph/record.hpp"
#include "model/locate.hpp"
#include "nn/layer_parts.hpp"

namespace rosin {
namespace {

void check_probability(const char* layer, double p) {
  if (p >= 0 && p <= 1) return;
  throw Error(ErrorKind::argument, std::string(layer) + ": the probability must be between 0 and 1; got " +
                                       number_text(p) + "; 0.5 drops half of the elements");
}

/// Size 1 in all dims that are not named.
Shape noise_shape(const Array& x, const Dims& dims) {
  if (dims.list().empty()) return x.shape();
  int64_t sizes[Shape::max_rank];
  for (int64_t& size : sizes) size = 1;
  for (int dim : dims.list()) {
    const int d = checked_dim("dropout", dim, x.shape());
    sizes[d] = x.size(d);
  }
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(x.rank())));
}

std::string mode_text(LayerMode mode) {
  if (mode == LayerMode::automatic) return "";
  return mode == LayerMode::train ? ", active=true" : ", active=false";
}

std::string dims_text(const Dims& dims) {
  const auto list = dims.list();
  if (list.empty()) return "";
  if (list.size() == 1) return ", dims=" + std::to_string(list[0]);
  std::string text;
  for (int dim : list) text += (text.empty() ? ", dims=(" : ", ") + std::to_string(dim);
  return text + ")";
}

Rng& generator(Rng* rng) { return rng ? *rng : default_rng(); }

}  // namespace

Array dropout(const Array& x, double p, const Dims& dims) { return dropout(default_rng(), x, p, dims); }

Array dropout(Rng& rng, const Array& x, double p, const Dims& dims) {
  check_probability("dropout", p);
  if (p == 0) return x;
  const DeviceScope scope(*x.node());
  const Array kept = bernoulli(rng, 1 - p, noise_shape(x, dims));
  return where(kept, p == 1 ? x : x * (1 / (1 - p)), 0);
}

Dropout::Dropout(double probability, const DropoutOptions& options)
    : p(probability), dims(options.dims), mode(options.active), rng(options.rng) {
  check_probability("Dropout", p);
}

Array Dropout::operator()(const Array& x) const {
  return located(*this, [&] { return is_training(mode) ? dropout(generator(rng), x, p, dims) : x; });
}

std::string Dropout::rosin_show() const {
  return "Dropout(" + number_text(p) + dims_text(dims) + mode_text(mode) + ")";
}

AlphaDropout::AlphaDropout(double probability, const AlphaDropoutOptions& options)
    : p(probability), mode(options.active), rng(options.rng) {
  check_probability("AlphaDropout", p);
}

Array AlphaDropout::operator()(const Array& x) const {
  return located(*this, [&] {
    if (is_complex(x.dtype())) refuse_complex(rosin_show(), x);
    if (!is_training(mode) || p == 0) return x;
    constexpr double low = -1.7580993408473766;  // selu at -infinity
    const DeviceScope scope(*x.node());
    if (p == 1) return where(bernoulli(generator(rng), 0, x.shape()), x, low);
    const double a = 1 / std::sqrt((1 - p) * (1 + p * low * low)), b = -a * low * p;
    return a * where(bernoulli(generator(rng), 1 - p, x.shape()), x, low) + b;
  });
}

std::string AlphaDropout::rosin_show() const { return "AlphaDropout(" + number_text(p) + mode_text(mode) + ")"; }

}  // namespace rosin
