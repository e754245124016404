// Rows of what solves and measures matrices, of tests under masks, and of ops that fit no other table. Read first:
// call.hpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

using Sizes = std::vector<int64_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();

Array triangular(const Array& t, const Array& b, bool upper, bool transposed) {
  return linalg::triangular_solve(t, b, {.upper = upper, .transposed = transposed});
}
/// Of a symmetric matrix whose triangular factor is given.
Array solved_by_factor(const Array& factor, const Array& b, bool upper) {
  return triangular(factor, triangular(factor, b, upper, upper), upper, !upper);
}
Array inverse_by_factor(Call& c) {
  const Array factor = mt(c.array(0));
  const Array identity = expand(eye(factor.size(0), factor.dtype()), factor.shape());
  return mt(solved_by_factor(factor, identity, c.flag(1, "upper", false)));
}

Array condition(Call& c) {
  const Array a = mt(c.array(0));
  if (c.has(1, "p")) throw Refused("cond: of order 2");
  const Array s = linalg::svdvals(a);
  return select(s, 0, 0) / select(s, 0, -1);
}

/// How many singular values are above the tolerance.
Array rank_of(Call& c) {
  const Array a = mt(c.array(0));
  c.flag(-1, "hermitian", false);
  const Array s = linalg::svdvals(a), largest = slice(s, 0, 0, 1);
  const double eps = a.dtype() == Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const bool named = c.has(-1, "atol");
  const Array none = zeros({}, a.dtype()), atol = named ? c.array(-1, "atol") + none : none;
  const Array usual = where(atol > 0, none, none + eps * static_cast<double>(std::max(a.size(0), a.size(1))));
  const Array rtol = c.has(-1, "rtol") ? c.array(-1, "rtol") + none : usual;
  const auto against = [](const Array& tolerance) { return tolerance.rank() ? unsqueeze(tolerance, 0) : tolerance; };
  return squeeze(sum(s > max(against(atol), against(rtol) * largest), 0), 0);
}

Array tensor_solution(Call& c) {
  const Array a = c.array(0), b = c.array(1);
  if (c.has(2, "dims")) throw Refused("tensorsolve: dims");
  const Array y = linalg::solve(mt(reshape(a, {-1, b.count()})), reshape(b, {-1}));
  Sizes sizes;
  for (int d = 0; d < a.rank() - b.rank(); ++d) sizes.push_back(a.size(d));
  return reshape(y, sizes);
}
/// PyTorch's first `ind` dims, which are the last here, are those of rows.
Array tensor_inverse(Call& c) {
  const Array a = c.array(0);
  const int columns = a.rank() - static_cast<int>(c.integer(1, "ind", 2));
  Sizes sizes;
  int64_t rows = 1;
  for (int d = columns; d < a.rank(); ++d) sizes.push_back(a.size(d)), rows *= a.size(d);
  for (int d = 0; d < columns; ++d) sizes.push_back(a.size(d));
  return reshape(mt(linalg::inv(mt(reshape(a, {-1, rows})))), sizes);
}

Array correlation(Call& c) {
  const Array x = c.array(0).rank() < 2 ? reshape(c.array(0), {-1, 1}) : c.array(0);
  const Array y = corrcoef(transpose(x));
  return y.count() == 1 ? reshape(y, Shape()) : y;
}

/// Distances of all pairs of rows, each once.
Array pair_distances(Call& c) {
  const Array x = c.array(0);
  Sizes first, second;
  for (int64_t i = 0; i < x.size(1); ++i) {
    for (int64_t j = i + 1; j < x.size(1); ++j) first.push_back(i), second.push_back(j);
  }
  const Array a = gather(x, Array(first, {first.size()}), 1), b = gather(x, Array(second, {second.size()}), 1);
  return squeeze(linalg::vector_norm(a - b, c.real(1, "p", 2), 0), 0);
}

constexpr const char* of_factors = "PyTorch's gradient by a triangular factor has both triangles";

Arrays parts_of_svd(Call& c) {
  c.flag(-1, "some", true);
  const linalg::SVD all = linalg::svd(mt(c.array(0)));
  return {all.s, mt(matmul(all.u * unsqueeze(all.s, 0), all.vt))};
}

const Table algebra("solvers",
                    {
                        {"cholesky_solve",
                         [](Call& c) {
                           return mt(solved_by_factor(mt(c.array(1)), mt(c.array(0)), c.flag(2, "upper", false)));
                         },
                         1000, of_factors},
                        {"cholesky_inverse", inverse_by_factor, 1000, of_factors},
                        {"linalg.cond", condition, 100},
                        {"linalg.matrix_rank", rank_of},
                        {"linalg.matrix_rank/hermitian", rank_of},
                        {"linalg.tensorsolve", tensor_solution, 100},
                        {"linalg.tensorinv", tensor_inverse, 100},
                        {"svd", parts_of_svd, 100},
                        {"corrcoef", correlation, 10},
                        {"nn.functional.pdist", pair_distances},
                    });

Array mask_of(Call& c, const char* name = "mask") {
  return c.has(-1, name) ? c.array(-1, name) : ones_like(c.array(0)) > 0;
}
std::vector<int> masked_dims(Call& c, const Array& x, int at) { return c.dims(x, at, "dim"); }

Array masked_norm(Call& c) {
  const double order = c.real(1, "ord", 2);
  const Array x = where(mask_of(c), c.array(0), order < 0 ? infinity : 0);
  const std::vector<int> dims = masked_dims(c, x, 2);
  return without(linalg::vector_norm(x, order, Dims(dims)), dims, c.flag(3, "keepdim", false));
}
Array masked_var(Call& c) {
  const Array x = c.array(0), mask = expand(cast(mask_of(c), x.dtype()), x.shape());
  const Dims dims(masked_dims(c, x, 1));
  const double correction = c.has(-1, "correction")        ? c.real(-1, "correction", 1)
                            : c.flag(-1, "unbiased", true) ? 1
                                                           : 0;
  const Array count = sum(mask, dims), middle = sum(mask * x, dims) / count;
  const Array spread = sum(mask * square(x - middle), dims) / max(count - correction, 0);
  return without(spread, masked_dims(c, x, 1), c.flag(-1, "keepdim", false));
}
Array masked_normalize(Call& c) {
  const Array x = where(mask_of(c), c.array(0), 0);
  const int dim = c.dim(x, 2, "dim", -1);
  return x / max(linalg::vector_norm(x, c.real(1, "ord", 2), dim), c.real(-1, "eps", 1e-12));
}

const Table under_masks("solvers",
                        {
                            {"masked.norm", masked_norm},
                            {"masked.normalize", masked_normalize},
                            {"masked.var", masked_var, 10, "of fewer elements than are taken off PyTorch gives NaN"},
                            {"masked.std", [](Call& c) { return sqrt(masked_var(c)); }, 10,
                             "of fewer elements than are taken off PyTorch gives NaN"},
                            {"masked.softmin",
                             [](Call& c) {
                               const Array x = -c.typed(c.array(0));
                               return softmax(where(mask_of(c), x, -infinity), c.dim(x, 1, "dim", 0));
                             }},
                            {"masked.logaddexp",
                             [](Call& c) {
                               return logaddexp(where(mask_of(c, "input_mask"), c.array(0), -infinity),
                                                where(mask_of(c, "other_mask"), c.array(1), -infinity));
                             },
                             1, "PyTorch's second gradient of what is masked is NaN"},
                            {"masked.median",
                             [](Call& c) {
                               if (c.has(-1, "mask")) throw Refused("median: no mask");
                               const Array x = c.array(0);
                               const int dim = c.dim(x, 1, "dim", -1);
                               const Array y = select(sort(x, dim), dim, (x.size(dim) - 1) / 2);
                               return c.flag(2, "keepdim", false) ? unsqueeze(y, dim) : y;
                             }},
                        });

Array nan_gives_way(Call& c, Array (*f)(const Array&, const Array&)) {
  const Array a = c.array(0), b = c.array(1, "other");
  return where(is_nan(a), b, where(is_nan(b), a, f(a, b)));
}

Array even_steps(Call& c, bool powers) {
  const DType type = c.typed(zeros({})).dtype();
  const Array y = linspace(c.real(0, "", 0), c.real(1, "end", 0), c.integer(2, "steps", 100), Float64);
  return cast(powers ? pow(Array(c.real(3, "base", 10)), y) : y, type);
}

Array put(Call& c) {
  const Array x = c.array(0), at = reshape(c.array(1), {-1}), values = reshape(c.array(2), {-1});
  const Array flat = reshape(x, {-1}), places = mod(at, x.count());
  return reshape((c.flag(3, "accumulate", false) ? scatter_add : scatter)(flat, places, values, 0), x.shape());
}

/// Bags as matrices, and vectors with the places where they begin.
Array bags(Call& c) {
  c.refuse(-1, "max_norm");
  c.refuse(-1, "scale_grad_by_freq");
  c.has(-1, "sparse");
  c.has(-1, "norm_type");
  const BagOptions options{.weights = c.array_or_nothing(-1, "per_sample_weights"),
                           .last_offset = c.flag(-1, "include_last_offset", false)};
  const std::string mode = c.text(-1, "mode", "mean");
  EmbeddingBag layer(c.array(0));
  layer.reduction = mode == "sum" ? Reduction(sum) : mode == "max" ? Reduction(maximum) : Reduction(mean);
  if (const int64_t padding = c.integer(-1, "padding_idx", layer.weight.size(1)); padding < layer.weight.size(1)) {
    layer.padding = padding < 0 ? padding + layer.weight.size(1) : padding;
  }
  return c.has(-1, "offsets") ? layer(c.array(1), c.array(-1, "offsets"), options) : layer(c.array(1), options);
}

Array sampled(Call& c) {
  const int64_t mode = c.integer(2, "interpolation_mode", 0), border = c.integer(3, "padding_mode", 0);
  constexpr Interpolation modes[] = {Interpolation::linear, Interpolation::nearest, Interpolation::cubic};
  return grid_sample(c.array(0), c.array(1),
                     {.mode = modes[mode],
                      .border = static_cast<GridBorder>(border),
                      .align_corners = c.flag(4, "align_corners", false)});
}

Arrays group_norm_with_statistics(Call& c) {
  const Array x = c.array(0);
  const int64_t groups = c.integer(6, "group", 1), batch = x.size(-1);
  const Array parts = reshape(x, {-1, groups, batch});
  const double eps = c.real(7, "eps", 1e-5);
  Array y = reshape(normalise(parts, 0, eps), x.shape());
  Sizes sizes(static_cast<size_t>(x.rank()), 1);
  sizes[sizes.size() - 2] = x.size(-2);
  if (c.has(1, "")) y = y * reshape(c.array(1), sizes);
  if (c.has(2, "")) y = y + reshape(c.array(2), sizes);
  for (int at = 3; at < 6; ++at) c.has(at, "");
  return {y, squeeze(mean(parts, 0), 0), squeeze(1 / sqrt(var(parts, 0, false) + eps), 0)};
}

Array ctc(Call& c) {
  const auto lengths = [&](int at, const char* name) {
    const Value* const value = c.find(at, name);
    if (value && value->kind == Value::Kind::array) return c.array(at, name);
    const Sizes all = c.integers(at, name);
    return Array(all, {all.size()});
  };
  CtcOptions options{.blank = c.integer(-1, "blank", 0),
                     .lengths = lengths(2, "input_lengths"),
                     .label_lengths = lengths(3, "target_lengths"),
                     .zero_infinity = c.flag(-1, "zero_infinity", false)};
  const std::string how = c.text(-1, "reduction", "mean");
  if (how == "mean") throw Refused("ctc_loss: PyTorch's mean divides by the numbers of labels");
  options.agg =
      how == "sum" ? Aggregation([](const Array& x) { return sum(x); }) : Aggregation([](const Array& x) { return x; });
  return ctc_loss(permute(c.array(0), {0, 2, 1}), c.array(1), options);
}

const Table others("solvers", {
                                  {"fmax", [](Call& c) { return nan_gives_way(c, max); }},
                                  {"fmin", [](Call& c) { return nan_gives_way(c, min); }},
                                  {"special.xlog1py", xlog1py},
                                  {"linspace/tensor_overload", [](Call& c) { return even_steps(c, false); }},
                                  {"logspace/tensor_overload", [](Call& c) { return even_steps(c, true); }},
                                  {"put", put},
                                  {"zero_", [](Call& c) { return zeros_like(c.array(0)); }},
                                  {"native_group_norm", group_norm_with_statistics, 10},
                                  {"grid_sampler_2d", sampled},
                                  {"grid_sampler_3d", sampled},
                                  {"nn.functional.embedding_bag", bags, 1,
                                   "the mean of an empty bag is NaN, as of an empty array"},
                                  {"nn.functional.ctc_loss", ctc, 200},
                              });

}  // namespace
}  // namespace rosin::opinfo
