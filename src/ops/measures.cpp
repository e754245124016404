// Functions made of recorded ops, one of them for distances alone; see rosin/measures.hpp. Gradients follow from their
// parts.
#include <rosin/measures.hpp>

#include <algorithm>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/linalg.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "graph/autocast.hpp"
#include "graph/context.hpp"
#include "graph/op.hpp"
#include "graph/refuse_type.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/in_parts.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

Array not_nan(const Array& x) { return is_float(x.dtype()) ? where(is_nan(x), 0, x) : x; }

const bool named[] = {name_function(count_nonzero, "count_nonzero"), name_function(nansum, "nansum"),
                      name_function(nanmean, "nanmean"), name_function(corrcoef, "corrcoef")};

Array covariance(std::string_view op, const Array& x, int64_t correction) {
  if (x.rank() != 2) {
    refuse(ErrorKind::shape, op, "x is (features, n)", to_string(x.shape()), "reshape it to two dims");
  }
  require_real(op, x);
  const Array values = wide(x), centred = values - mean(values, 1);
  const auto count = static_cast<double>(std::max<int64_t>(x.size(1) - correction, 0));
  return matmul(centred, transpose(centred)) / count;
}

/// The areas between neighbours.
Array areas(std::string_view op, const Array& y, const Array& dx, int dim) {
  const int at = checked_dim(op, dim, y.shape());
  const int64_t between = std::max<int64_t>(y.size(at) - 1, 0);
  Array widths = dx;
  if (dx.rank() == 1 && dx.count() == between) {
    std::vector<int64_t> along(static_cast<size_t>(y.rank()), 1);
    along[static_cast<size_t>(at)] = between;
    widths = reshape(dx, along);
  }
  return (slice(y, at, 1, to_end) + slice(y, at, 0, between)) * (widths * 0.5);
}

}  // namespace

Array count_nonzero(const Array& x) { return sum(ne(x, 0)); }
Array count_nonzero(const Array& x, Dims dims) { return sum(ne(x, 0), dims); }

Array nansum(const Array& x) { return sum(not_nan(x)); }
Array nansum(const Array& x, Dims dims) { return sum(not_nan(x), dims); }
Array nanmean(const Array& x) { return reshape(nanmean(reshape(x, {-1}), 0), Shape{}); }
Array nanmean(const Array& x, Dims dims) {
  const Array values = wide(x), known = cast(sum(logical_not(is_nan(values)), dims), values.dtype());
  return narrow(nansum(values, dims) / known, x);
}

Array cross(const Array& a, const Array& b, int dim) {
  const auto part = [&](const Array& x, int64_t i) {
    const int at = checked_dim("cross", dim, x.shape());
    if (x.size(at) == 3) return slice(x, at, i % 3, i % 3 + 1);
    refuse(ErrorKind::shape, "cross", "vectors have three elements", to_string(x.shape()), "name their dim");
  };
  std::vector<Array> parts;
  for (int64_t i = 0; i < 3; ++i) {
    parts.push_back(part(a, i + 1) * part(b, i + 2) - part(a, i + 2) * part(b, i + 1));
  }
  return concat(parts, dim);
}

namespace {

/// Differences of all columns: (features, n, m, batch...).
Array differences(const Array& a, const Array& b) { return unsqueeze(a, 2) - unsqueeze(b, 1); }

/// Of Float32 on the CPU, which has a kernel for them; the gradient adds up what the definition's does.
const Op& distances_op = (*register_op({.name = "distances",
                                        .kind = Kind::routine,
                                        .operands = 2,
                                        .doc = "Euclidean distances between the columns of two matrices",
                                        .routine = Routine::distances}))
                             .with_gradient([](Backward& b) {
                               const Array y = b.out(), weights = b.gradient / where(eq(y, 0), 1, y);
                               const Array slopes = unsqueeze(weights, 0) * differences(b.in(0), b.in(1));
                               b.give(0, squeeze(sum(slopes, 2), 2));
                               b.give(1, -squeeze(sum(slopes, 1), 1));
                             });

/// With one batch, of both.
Array euclidean_distances(const Array& a, const Array& b) {
  const auto batch_of = [](const Array& x) { return with_dims(x.shape(), 0, 2, {}); };
  const Shape batch = broadcast_shapes("cdist", batch_of(a), batch_of(b));
  const Array x = wide(expand(a, with_dims(batch, 0, 0, {a.size(0), a.size(1)})));
  const Array y = wide(expand(b, with_dims(batch, 0, 0, {b.size(0), b.size(1)})));
  const Array* in[] = {&x, &y};
  return narrow(record(distances_op, in, Float32, with_dims(batch, 0, 0, {a.size(1), b.size(1)})), a);
}

bool has_distances_kernel(const Array& a, const Array& b) {
  const bool takes = a.dtype() == b.dtype() && (a.dtype() == Float32 || is_half(a.dtype()));
  return takes && InParts::now() != InParts::all && a.node()->device == 0 && b.node()->device == 0 && a.count() > 0 &&
         b.count() > 0;
}

}  // namespace

Array cdist(const Array& a, const Array& b, double p) {
  if (a.rank() < 2 || b.rank() < 2 || a.size(0) != b.size(0)) {
    refuse(ErrorKind::shape, "cdist", "columns of both have as many elements",
           to_string(a.shape()) + " and " + to_string(b.shape()), "they are (features, n, batch...)");
  }
  if (p == 2 && has_distances_kernel(a, b)) return euclidean_distances(widened(a), widened(b));
  return squeeze(linalg::vector_norm(differences(a, b), p, 0), 0);
}

Array cov(const Array& x, int64_t correction) { return narrow(covariance("cov", x, correction), x); }

Array corrcoef(const Array& x) {
  const DeviceScope scope(*x.node());
  const Array all = covariance("corrcoef", x, 1);
  const Array own = cast(eye(x.size(0)), all.dtype()), deviations = sqrt(sum(all * own, 1));
  return narrow(all / deviations / transpose(deviations), x);
}

Array trapezoid(const Array& y, const Array& dx, int dim) { return sum(areas("trapezoid", y, dx, dim), dim); }

Array cumulative_trapezoid(const Array& y, const Array& dx, int dim) {
  return cumsum(areas("cumulative_trapezoid", y, dx, dim), dim);
}

}  // namespace rosin
