// Embedding and EmbeddingBag: see rosin/embedding.hpp.
#include <rosin/embedding.hpp>

#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "ops/lookup.hpp"

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

}  // namespace

Embedding::Embedding(const Array& w) : weight(checked_weight("Embedding", w)) {}

Array Embedding::operator()(const Array& x) const {
  return located(*this, [&] {
    if (x.dtype() == Bool) return of_onehot(weight, x, rosin_show());
    if (!is_integer(x.dtype())) {
      throw Error(ErrorKind::dtype, "layer " + rosin_show() + ": indices must be integers or one-hot Bool; got " +
                                        summary(x) + "; convert them with cast(x, Int32)");
    }
    return embedding(weight, x);
  });
}

std::string Embedding::rosin_show() const { return text_of("Embedding", weight); }

EmbeddingBag::EmbeddingBag(const Array& w, Reduction reduce)
    : weight(checked_weight("EmbeddingBag", w)), reduction(reduce) {}

Array EmbeddingBag::operator()(const Array& x) const {
  return located(*this, [&] {
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

Array EmbeddingBag::operator()(const Array& data, const Array& at) const {
  return located(*this, [&] {
    const std::vector<int64_t> starts = at.to_vector<int64_t>();
    if (starts.empty() || starts[0] != 0) {
      throw Error(ErrorKind::argument, "layer " + rosin_show() + ": the first bag must begin at 0; got " +
                                           (starts.empty() ? "no bags" : std::to_string(starts[0])) + "; prepend 0");
    }
    std::vector<Array> bags;
    for (size_t i = 0; i < starts.size(); ++i) {
      if (starts[i] > data.size(0) || (i > 0 && starts[i] < starts[i - 1])) {
        throw Error(ErrorKind::argument, "layer " + rosin_show() +
                                             ": bags must begin inside the data, one after the other; got " +
                                             std::to_string(starts[i]) + " as the start of bag " + std::to_string(i) +
                                             " with " + std::to_string(data.size(0)) + " indices; sort the starts");
      }
      bags.push_back(slice(data, 0, starts[i], i + 1 < starts.size() ? starts[i + 1] : to_end));
    }
    return (*this)(std::span<const Array>(bags));
  });
}

std::string EmbeddingBag::rosin_show() const { return text_of("EmbeddingBag", weight); }

}  // namespace rosin
