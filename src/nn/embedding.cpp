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

Embedding::Embedding(const Array& w) : weight(checked_weight("Embedding", w)) {}

Embedding::Embedding(int64_t in, int64_t out, const EmbeddingOptions& options) : Embedding(options.init({out, in})) {
  if (!options.padding_idx) return;
  padding = *options.padding_idx < 0 ? *options.padding_idx + in : *options.padding_idx;
  if (padding < 0 || padding >= in) {
    throw Error(ErrorKind::argument, "Embedding: padding_idx must lie in [0, " + std::to_string(in) + "); got " +
                                         std::to_string(*options.padding_idx) + "; negative ones count from the end");
  }
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

Array EmbeddingBag::operator()(const Array& x) const {
  return located(*this, [&] {
    if (x.dtype() == Bool && x.rank() > 1) {
      return squeeze(reduction(of_onehot(weight, x, rosin_show()), 1), 1);
    }
    if (!is_integer(x.dtype()) || x.rank() == 0) {
      throw Error(ErrorKind::dtype, "layer " + rosin_show() + ": bags must be integers (bag, ...); got " + summary(x) +
                                        "; convert them with cast(x, Int32)");
    }
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

/// The bag of each of n indices, in [0, bags); what is in no bag, as all are where the starts do not ascend from 0, is
/// in bag number `bags`, which no scatter takes.
Array bags_of(const Array& at, int64_t n) {
  const DeviceScope scope(*at.node());
  const int64_t bags = at.count();
  const Array found = searchsorted(cast(at, Int64), arange(int64_t{0}, n, 1, ArrayOptions(Int64)), true) - 1;
  const Array ascend = all(le(slice(at, 0, 0, bags - 1), slice(at, 0, 1, bags)));
  return where(logical_and(ge(found, 0), ascend), found, bags);
}

/// Sum, mean or maximum of each bag; zeros for those without indices.
Array scattered_bags(const EmbeddingBag& layer, const Array& data, const Array& at) {
  const Array columns = embedding_bag(layer.weight, data), bag = bags_of(at, data.count());
  const DeviceScope scope(*columns.node());
  const Shape shape = {columns.size(0), at.count()};
  if (layer.reduction == static_cast<Reduction>(sum)) return scatter_add(zeros(shape, columns.dtype()), bag, columns);
  if (layer.reduction == static_cast<Reduction>(mean)) {
    return scatter_mean(zeros(shape, columns.dtype()), bag, columns, -1, false);
  }
  const double nothing = -std::numeric_limits<double>::infinity();
  const Array most = scatter_max(full(shape, nothing, columns.dtype()), bag, columns);
  return where(eq(most, nothing), 0, most);
}

}  // namespace

Array EmbeddingBag::operator()(const Array& data, const Array& at) const {
  return located(*this, [&] {
    const auto reduces_by = [&](Reduction known) { return reduction == known; };
    const bool scatters = reduces_by(sum) || reduces_by(mean) || reduces_by(maximum);
    if (scatters && at.node()->device != 0) return scattered_bags(*this, data, at);
    const std::vector<int64_t> starts = at.to_vector<int64_t>();
    check_starts(starts, data.count(), *this);
    if (scatters) return scattered_bags(*this, data, at);
    std::vector<Array> bags;
    for (size_t i = 0; i < starts.size(); ++i) {
      bags.push_back(slice(data, 0, starts[i], i + 1 < starts.size() ? starts[i + 1] : to_end));
    }
    return (*this)(std::span<const Array>(bags));
  });
}

std::string EmbeddingBag::rosin_show() const { return text_of("EmbeddingBag", weight); }

}  // namespace rosin
