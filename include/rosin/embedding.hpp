// Embedding and EmbeddingBag: layers that look up columns.
// Read first: index.hpp (gather), dense.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <rosin/array.hpp>
#include <rosin/fields.hpp>
#include <rosin/init.hpp>
#include <rosin/reduce.hpp>

namespace rosin {

struct EmbeddingOptions {
  Init init = randn32;
  std::optional<int64_t> padding_idx = {};  // negative ones count from the end
};

/// Columns of the weight. The column `padding`, where there is one, begins as zeros and gets no gradient. Sources:
/// Flux.Embedding; torch.nn.Embedding (padding_idx).
struct ROSIN_API Embedding {
  Array weight;          // (out, in)
  int64_t padding = -1;  // -1: none
  static constexpr auto rosin_fields = fields<&Embedding::weight>{};

  Embedding() = default;
  /// Error (argument): the padding is no index.
  Embedding(int64_t in, int64_t out, const EmbeddingOptions& options = {});
  explicit Embedding(const Array& w);

  /// x is integers in [0, in) of any shape -> (out, shape...); or one-hot Bool (in, shape...) -> (out, shape...).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// A reduction over some dims, such as mean, sum or maximum.
using Reduction = Array (*)(const Array& x, Dims dims);

struct BagOptions {
  Array weights = {};        // of each index, in their shape: what its vector is multiplied by; of sums alone
  bool last_offset = false;  // the last place is the end of the last bag, not the beginning of one
};

/// The vectors of a bag of indices reduced to one. A bag without indices gives what the reduction gives of nothing, or
/// zeros from the form with `at`. Indices of `padding`, where it is not -1, count as if they were not there (with sum,
/// mean and maximum; zeros where nothing else is there), and its column gets no gradient. Sources: Flux.EmbeddingBag;
/// torch.nn.EmbeddingBag (offsets, padding_idx, per_sample_weights, include_last_offset).
struct ROSIN_API EmbeddingBag {
  Array weight;  // (out, in)
  Reduction reduction = mean;
  int64_t padding = -1;  // -1: none
  static constexpr auto rosin_fields = fields<&EmbeddingBag::weight>{};

  EmbeddingBag() = default;
  /// Error (argument): the padding is no index.
  EmbeddingBag(int64_t in, int64_t out, Reduction reduce = mean, const EmbeddingOptions& options = {});
  explicit EmbeddingBag(const Array& w, Reduction reduce = mean);

  /// x is integers (bag, shape...) -> (out, shape...); or one-hot Bool (in, bag, shape...) -> (out, shape...). Error
  /// (argument): weights or padding with another reduction, or with one-hot bags.
  Array operator()(const Array& x, const BagOptions& options = {}) const;
  /// Bags of several lengths: each is a vector of integers -> (out, bags).
  Array operator()(std::span<const Array> bags) const;
  /// The bags of `data` (n) that begin at the places `at` (bags), ascending, the first at 0 -> (out, bags). Nothing is
  /// read for sum, mean and maximum on a device: places that are not ascending then make the step fail. Other
  /// reductions, and bags on the CPU, evaluate `at`: Error (argument).
  Array operator()(const Array& data, const Array& at, const BagOptions& options = {}) const;
  std::string rosin_show() const;
};

}  // namespace rosin
