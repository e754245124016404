// Embedding and EmbeddingBag: see rosin/embedding.hpp.
#include <rosin/embedding.hpp>

#include <limits>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/search.hpp>

#include "graph/context.hpp"
#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "ops/lookup.hpp"
#include "ops/stop_gradient.hpp"

namespace rosin {
namespace {

Array checked_weight(const char* layer, const Array& w) {
  if (w.is_nothing() || w.rank() != 2) {
    throw Error(ErrorKind::shape, std::string(layer) + ": the weight must be (out, in); got " +
                                      (w.is_nothing() ? "nothing" : to_string(w.shape())) + "; reshape it");
  }
  eval(w);
  return w;
}

std::string text_of(const char* name, const Array& weight) {
  if (weight.is_nothing()) return std::string(name) + "()";
  return std::string(name) + "(" + std::to_string(weight.size(1)) + " => " + std::to_string(weight.size(0)) + ")";
}

/// The product of the weight with one-hot columns (in, shape...).
Array of_onehot(const Array& weight, const Array& x, const std::string& layer) {
  if (is_complex(weight.dtype())) refuse_complex(layer, weight);
  if (x.rank() == 0 || x.size(0) != weight.size(1)) {
    refuse_input(layer, "expects size(input, 0) == " + std::to_string(weight.size(1)) + " of one-hot input", x,
                 "give indices, or onehot(labels, classes)");
  }
  const Array columns = x.rank() == 1 ? x : reshape(x, {x.size(0), -1});
  const Array y = matmul(weight, cast(columns, weight.dtype()));
  if (x.rank() <= 2) return y;
  int64_t sizes[Shape::max_rank];
  for (int d = 0; d < x.rank(); ++d) sizes[d] = d == 0 ? weight.size(0) : x.size(d);
  return reshape(y, Shape(std::span<const int64_t>(sizes, static_cast<size_t>(x.rank()))));
}

/// y (out, shape...) of indices x or one-hot columns; what stands at the padding is a constant.
Array without_padding(const Array& y, const Array& x, int64_t padding) {
  if (padding < 0) return y;
  const Array is_padding = x.dtype() == Bool ? slice(x, 0, padding, padding + 1) : unsqueeze(eq(x, padding), 0);
  return where(is_padding, stop_gradient(y), y);
}

/// `weight` with zeros in one column.
Array with_zeros_at(const Array& weight, int64_t column) {
  return where(eq(reshape(arange(weight.size(1)), {1, -1}), column), zeros_like(weight), weight);
}

}  // namespace

namespace {

/// The number of the column that the options keep from training; -1: none.
int64_t padding_of(const std::string& layer, const EmbeddingOptions& options, int64_t in) {
  if (!options.padding_idx) return -1;
  const int64_t padding = *options.padding_idx < 0 ? *options.padding_idx + in : *options.padding_idx;
  if (padding >= 0 && padding < in) return padding;
  throw Error(ErrorKind::argument, layer + ": padding_idx must lie in [0, " + std::to_string(in) + "); got " +
                                       std::to_string(*options.padding_idx) + "; negative ones count from the end");
}

}  // namespace

Embedding::Embedding(const Array& w) : weight(checked_weight("Embedding", w)) {}

Embedding::Embedding(int64_t in, int64_t out, const EmbeddingOptions& options) : Embedding(options.init({out, in})) {
  padding = padding_of("Embedding", options, in);
  if (padding < 0) return;
  weight = with_zeros_at(weight, padding);
  eval(weight);
}

Array Embedding::operator()(const Array& x) const {
  return located(*this, [&] {
    if (x.dtype() == Bool) return without_padding(of_onehot(weight, x, rosin_show()), x, padding);
    if (!is_integer(x.dtype())) {
      throw Error(ErrorKind::dtype, "layer " + rosin_show() + ": indices must be integers or one-hot Bool; got " +
                                        summary(x) + "; convert them with cast(x, Int32)");
    }
    return without_padding(embedding(weight, x), x, padding);
  });
}

std::string Embedding::rosin_show() const { return text_of("Embedding", weight); }

EmbeddingBag::EmbeddingBag(const Array& w, Reduction reduce)
    : weight(checked_weight("EmbeddingBag", w)), reduction(reduce) {}

EmbeddingBag::EmbeddingBag(int64_t in, int64_t out, Reduction reduce, const EmbeddingOptions& options)
    : EmbeddingBag(options.init({out, in}), reduce) {
  padding = padding_of("EmbeddingBag", options, in);
  if (padding < 0) return;
  weight = with_zeros_at(weight, padding);
  eval(weight);
}

namespace {

bool reduces_by(const EmbeddingBag& layer, Reduction known) { return layer.reduction == known; }

/// Whether bags are sums, means or maxima, which scatters compute.
bool scatters(const EmbeddingBag& layer) {
  return reduces_by(layer, sum) || reduces_by(layer, mean) || reduces_by(layer, maximum);
}

[[noreturn]] void refuse_bags(const EmbeddingBag& layer, const std::string& rule, const std::string& cure) {
  throw Error(ErrorKind::argument, "layer " + layer.rosin_show() + ": " + rule + "; " + cure);
}

/// Error: indices that are no integers, or weights that do not fit them.
void check_bags(const EmbeddingBag& layer, const Array& data, const BagOptions& options) {
  if (!is_integer(data.dtype()) || data.rank() == 0) {
    throw Error(ErrorKind::dtype, "layer " + layer.rosin_show() + ": bags must be integers (bag, ...); got " +
                                      summary(data) + "; convert them with cast(x, Int32)");
  }
  if (layer.padding >= 0 && !scatters(layer)) {
    refuse_bags(layer, "padding is left out of sums, means and maxima; got another reduction", "use one of those");
  }
  if (options.weights.is_nothing()) return;
  if (!reduces_by(layer, sum)) {
    refuse_bags(layer, "weights are of sums; got another reduction", "make the layer with sum");
  }
  if (options.weights.shape() == data.shape()) return;
  throw Error(ErrorKind::shape, "layer " + layer.rosin_show() + ": there is a weight for each index; got " +
                                    to_string(options.weights.shape()) + " for " + to_string(data.shape()) +
                                    "; reshape them");
}

/// The vectors of indices (n), times their weights (n).
Array weighted(const EmbeddingBag& layer, const Array& data, const Array& weights) {
  const Array columns = embedding_bag(layer.weight, data);
  return weights.is_nothing() ? columns : columns * reshape(cast(weights, columns.dtype()), {1, -1});
}

/// Sum, mean or maximum of the vectors (out, n) of each bag; zeros for those without any. Bags are numbered below
/// `bags`; what is in bag number `bags` is in none.
Array scattered_bags(const EmbeddingBag& layer, const Array& columns, const Array& bag, int64_t bags) {
  const DeviceScope scope(*columns.node());
  const Shape shape = {columns.size(0), bags + 1};
  const Array none = zeros(shape, columns.dtype());
  Array all;
  if (reduces_by(layer, sum)) {
    all = scatter_add(none, bag, columns);
  } else if (reduces_by(layer, mean)) {
    all = scatter_mean(none, bag, columns, -1, false);
  } else {
    const double nothing = -std::numeric_limits<double>::infinity();
    const Array most = scatter_max(full(shape, nothing, columns.dtype()), bag, columns);
    all = where(eq(most, nothing), 0, most);
  }
  return slice(all, 1, 0, bags);
}

/// Bags of one length, the columns of indices (bag, shape...), without the padding.
Array counted_bags(const EmbeddingBag& layer, const Array& data, const BagOptions& options) {
  const DeviceScope scope(*data.node());
  const int64_t length = data.size(0), bags = length == 0 ? 0 : data.count() / length;
  const Array flat = reshape(data, {-1}), weights = options.weights;
  const Array columns = weighted(layer, flat, weights.is_nothing() ? weights : reshape(weights, {-1}));
  const Array number = reshape(expand(reshape(arange(bags), {1, bags}), {length, bags}), {-1});
  const Array bag = layer.padding < 0 ? number : where(eq(flat, layer.padding), bags, number);
  std::vector<int64_t> sizes = {columns.size(0)};
  for (int d = 1; d < data.rank(); ++d) sizes.push_back(data.size(d));
  return reshape(scattered_bags(layer, columns, bag, bags), Shape(std::span<const int64_t>(sizes)));
}

}  // namespace

Array EmbeddingBag::operator()(const Array& x, const BagOptions& options) const {
  return located(*this, [&] {
    if (x.dtype() == Bool && x.rank() > 1) {
      if (padding >= 0 || !options.weights.is_nothing()) {
        refuse_bags(*this, "padding and weights are of indices; got one-hot bags", "give indices");
      }
      return squeeze(reduction(of_onehot(weight, x, rosin_show()), 1), 1);
    }
    check_bags(*this, x, options);
    if (padding >= 0 || !options.weights.is_nothing()) return counted_bags(*this, x, options);
    return squeeze(reduction(embedding_bag(weight, x), 1), 1);
  });
}

Array EmbeddingBag::operator()(std::span<const Array> bags) const {
  return located(*this, [&] {
    std::vector<Array> columns;
    for (const Array& bag : bags) columns.push_back((*this)(bag));
    return stack(columns, 1);
  });
}

namespace {

/// Error (argument): the bags do not begin one after the other in n indices.
void check_starts(const std::vector<int64_t>& starts, int64_t n, const EmbeddingBag& layer) {
  if (starts.empty() || starts[0] != 0) {
    throw Error(ErrorKind::argument, "layer " + layer.rosin_show() + ": the first bag must begin at 0; got " +
                                         (starts.empty() ? "no bags" : std::to_string(starts[0])) + "; prepend 0");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] <= n && (i == 0 || starts[i] >= starts[i - 1])) continue;
    throw Error(ErrorKind::argument, "layer " + layer.rosin_show() +
                                         ": bags must begin inside the data, one after the other; got " +
                                         std::to_string(starts[i]) + " as the start of bag " + std::to_string(i) +
                                         " with " + std::to_string(n) + " indices; sort the starts");
  }
}

/// The bag of each of n indices. Where the starts do not ascend from 0, as where indices stand before the first, it is
/// one that no scatter takes; what stands from the end of the last bag on is in bag number `bags`.
Array bags_of(const Array& at, int64_t n, int64_t bags) {
  const DeviceScope scope(*at.node());
  const int64_t places = at.count();
  const Array found = searchsorted(cast(at, Int64), arange(int64_t{0}, n, 1, ArrayOptions(Int64)), true) - 1;
  const Array ascend = all(le(slice(at, 0, 0, places - 1), slice(at, 0, 1, places)));
  return where(logical_and(ge(found, 0), ascend), found, bags + 1);
}

/// Bags of any reduction: each by itself.
Array bags_one_by_one(const EmbeddingBag& layer, const Array& data, const std::vector<int64_t>& starts, int64_t count) {
  std::vector<Array> bags;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    bags.push_back(slice(data, 0, starts[at], at + 1 < starts.size() ? starts[at + 1] : to_end));
  }
  return layer(std::span<const Array>(bags));
}

}  // namespace

Array EmbeddingBag::operator()(const Array& data, const Array& at, const BagOptions& options) const {
  return located(*this, [&] {
    check_bags(*this, data, options);
    const int64_t bags = at.count() - (options.last_offset ? 1 : 0);
    if (!scatters(*this) || at.node()->device == 0) {
      const std::vector<int64_t> starts = at.to_vector<int64_t>();
      check_starts(starts, data.count(), *this);
      if (!scatters(*this)) return bags_one_by_one(*this, data, starts, bags);
    }
    const Array number = bags_of(at, data.count(), bags);
    const Array bag = padding < 0 ? number : where(eq(data, padding), bags, number);
    return scattered_bags(*this, weighted(*this, data, options.weights), bag, bags);
  });
}

std::string EmbeddingBag::rosin_show() const { return text_of("EmbeddingBag", weight); }

}  // namespace rosin
