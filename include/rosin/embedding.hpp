// Embedding and EmbeddingBag: layers that look up columns.
// Read first: index.hpp (gather), dense.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <rosin/array.hpp>
#include <rosin/fields.hpp>
#include <rosin/init.hpp>
#include <rosin/reduce.hpp>

namespace rosin {

struct EmbeddingOptions {
  Init init = randn32;
};

/// Columns of the weight. Source: Flux.Embedding.
struct ROSIN_API Embedding {
  Array weight;  // (out, in)
  static constexpr int rosin_fields = 1;

  Embedding() = default;
  Embedding(int64_t in, int64_t out, const EmbeddingOptions& options = {}) : Embedding(options.init({out, in})) {}
  explicit Embedding(const Array& w);

  /// x is integers in [0, in) of any shape -> (out, shape...); or one-hot Bool (in, shape...) -> (out, shape...).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// A reduction over some dims, such as mean, sum or maximum.
using Reduction = Array (*)(const Array& x, Dims dims);

/// The vectors of a bag of indices reduced to one. Source: Flux.EmbeddingBag.
struct ROSIN_API EmbeddingBag {
  Array weight;  // (out, in)
  Reduction reduction = mean;
  static constexpr auto rosin_fields = fields<&EmbeddingBag::weight>{};

  EmbeddingBag() = default;
  EmbeddingBag(int64_t in, int64_t out, Reduction reduce = mean, const EmbeddingOptions& options = {})
      : EmbeddingBag(options.init({out, in}), reduce) {}
  explicit EmbeddingBag(const Array& w, Reduction reduce = mean);

  /// x is integers (bag, shape...) -> (out, shape...).
  Array operator()(const Array& x) const;
  /// Bags of several lengths: each is a vector of integers -> (out, bags).
  Array operator()(std::span<const Array> bags) const;
  /// The bags of `data` (n) that begin at the places `at` (bags), the first at 0 -> (out, bags); evaluates `at`.
  Array operator()(const Array& data, const Array& at) const;
  std::string rosin_show() const;
};

}  // namespace rosin
