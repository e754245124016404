// Functions made of recorded ops; see rosin/measures.hpp. Gradients follow from their parts.
#include <rosin/measures.hpp>

#include <algorithm>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/linalg.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/op.hpp"
#include "graph/refuse_type.hpp"
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

Array cdist(const Array& a, const Array& b, double p) {
  if (a.rank() < 2 || b.rank() < 2 || a.size(0) != b.size(0)) {
    refuse(ErrorKind::shape, "cdist", "columns of both have as many elements",
           to_string(a.shape()) + " and " + to_string(b.shape()), "they are (features, n, batch...)");
  }
  return squeeze(linalg::vector_norm(unsqueeze(a, 2) - unsqueeze(b, 1), p, 0), 0);
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
