// Functions made of recorded ops; see rosin/compose.hpp. Gradients follow from their parts.
#include <rosin/compose.hpp>

#include <algorithm>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/refuse_type.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/loss_terms.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

uint64_t one_dim(std::string_view op, int dim, const Array& x) { return dims_mask(op, dim, x.shape()); }

void check_equal_shapes(std::string_view op, const Array& a, const Array& b) {
  if (a.shape() == b.shape()) return;
  refuse(ErrorKind::shape, op, "both arrays must have one shape", to_string(a.shape()) + " and " + to_string(b.shape()),
         "reshape or expand one of them");
}

// Where the column index minus the row index is at most (or at least) k.
Array triangle(std::string_view op, const Array& x, int64_t k, bool lower) {
  if (x.rank() < 2) refuse(ErrorKind::shape, op, "it takes matrices", to_string(x.shape()), "reshape to two dims");
  const int64_t diagonal = std::clamp(k, -x.size(0), x.size(1));  // beyond these all is zero, or all stays
  const DeviceScope scope(*x.node());
  const Array distance = reshape(arange(x.size(1)), {1, x.size(1)}) - arange(x.size(0));
  const Array none = x.dtype() == Bool ? Array(false) : Array(0);
  return where(lower ? le(distance, diagonal) : ge(distance, diagonal), x, none);
}

uint64_t dims_of(const Backward& b) { return b.attributes<ReductionAttributes>().dims; }

/// The identity of operand 0, computed from operand 1 along some dims: the gradient by that is a rule of its own, so
/// that none of the parts of operand 0 has one.
Op& result_op(std::string_view name, int operands, std::string_view doc) {
  return *register_op({.name = name, .kind = Kind::argument, .operands = operands, .doc = doc});
}

/// From the result alone: its parts need not be kept.
const Op& softmax_op =
    result_op("softmax", 2, "exp(x) over its sum along a dim").called(softmax).with_gradient([](Backward& b) {
      const Array y = wide(b.out()), g = wide(b.gradient);
      b.give(1, y * (g - sum_over(g * y, dims_of(b))));
    });

/// From the result alone as well, or, where there are operands 2 and 3, from exp(x - peak) and its sum.
const Op& logsoftmax_op =
    result_op("logsoftmax", Op::any, "log(softmax(x)) along a dim").called(logsoftmax).with_gradient([](Backward& b) {
      const Array sum = sum_over(b.gradient, dims_of(b));
      b.give(1, b.gradient - (b.operands() > 2 ? b.in(2) * (sum / b.in(3)) : exp(b.out()) * sum));
    });

/// From exp(x - peak), its sum, and where the result is taken.
const Op& logsoftmax_at_op =
    result_op("logsoftmax_at", 5, "log(softmax(x)) at one place along a dim").with_gradient([](Backward& b) {
      b.give(1, where(b.in(4), b.gradient, 0) - b.in(2) * (b.gradient / b.in(3)));
    });

/// operands[0] as the result of `op`.
Array result_of(const Op& op, std::initializer_list<const Array*> operands, uint64_t mask) {
  const Array& y = **operands.begin();
  if (y.node()->weak) return y;  // of C++ numbers: its parts have gradients as well
  return record(op, std::span(operands.begin(), operands.size()), y.dtype(), y.shape(),
                Attributes::of(ReductionAttributes{mask}));
}

const bool named[] = {name_function(normalise, "normalise")};

}  // namespace

Array softmax(const Array& x) { return softmax(x, 0); }

Array softmax(const Array& x, int dim) {
  if (widens(x)) return softmax(cast(x, Float32), dim);
  require_real("softmax", x);
  const uint64_t mask = one_dim("softmax", dim, x);
  if (x.count() == 0) return as_float(x);
  const Array values = wide(x);
  const Array raised = exp(values - peak_over(values, mask));
  const Array y = narrow(raised / sum_over(raised, mask), x);
  return result_of(softmax_op, {&y, &x}, mask);
}

Array logsoftmax(const Array& x) { return logsoftmax(x, 0); }

namespace {

/// `parts`: with what its gradient follows from beside the result.
Array logsoftmax_with(const Array& x, int dim, bool parts) {
  if (widens(x)) return logsoftmax_with(cast(x, Float32), dim, parts);
  require_real("logsoftmax", x);
  const uint64_t mask = one_dim("logsoftmax", dim, x);
  if (x.count() == 0) return as_float(x);
  const Array values = wide(x);
  const Array lowered = values - peak_over(values, mask);
  const Array raised = exp(lowered), total = sum_over(raised, mask), y = lowered - log(total);
  const Array result = parts ? result_of(logsoftmax_op, {&y, &values, &raised, &total}, mask)
                             : result_of(logsoftmax_op, {&y, &values}, mask);
  return narrow(result, x);
}

}  // namespace

Array logsoftmax_at(const Array& x, const Array& place, const Array& there, int dim) {
  const uint64_t mask = one_dim("logsoftmax", dim, x);
  const Array values = wide(widened(x)), peak = peak_over(values, mask);
  const Array raised = exp(values - peak), total = sum_over(raised, mask);
  const Array score = take_along(unwidened(x), place, dim), y = cast(score, values.dtype()) - peak - log(total);
  return narrow(result_of(logsoftmax_at_op, {&y, &values, &raised, &total, &there}, mask), widened(x));
}

Array logsoftmax(const Array& x, int dim) { return logsoftmax_with(x, dim, false); }
Array logsoftmax_in_loss(const Array& x, int dim) { return logsoftmax_with(x, dim, true); }

Array normalise(const Array& x) { return normalise(x, -1); }

Array normalise(const Array& x, Dims dims, double eps) {
  if (widens(x)) return normalise(cast(x, Float32), dims, eps);
  const uint64_t mask = dims_mask("normalise", dims, x.shape());
  const Array values = wide(x);
  const Array distance = values - mean_over(values, mask);
  return narrow(distance * rsqrt(spread_over(values, distance, mask) + eps), x);
}

Array dot(const Array& a, const Array& b) {
  check_equal_shapes("dot", a, b);
  const auto is_whole = [](const Array& x) { return is_integer(x.dtype()) || x.dtype() == Bool; };
  if (is_whole(a) && is_whole(b)) return sum(cast(a, sum_type(a.dtype())) * cast(b, sum_type(b.dtype())));
  if (!is_float(a.dtype())) return sum(a * b);
  return narrow(sum(wide(a) * wide(b)), a);
}

Array outer(const Array& a, const Array& b) {
  if (a.rank() != 1 || b.rank() != 1) {
    refuse(ErrorKind::shape, "outer", "it takes two vectors", to_string(a.shape()) + " and " + to_string(b.shape()),
           "use matmul for matrices");
  }
  return a * reshape(b, {1, b.count()});
}

Array cosine_similarity(const Array& a, const Array& b, int dim) {
  check_equal_shapes("cosine_similarity", a, b);
  require_real("cosine_similarity", a);
  require_real("cosine_similarity", b);
  const Array x = wide(a), y = wide(b);
  const Array sizes = norm(x, dim) * norm(y, dim);
  const Array zero = eq(sizes, 0);
  return narrow(where(zero, 0, sum(x * y, dim) / where(zero, 1, sizes)), is_autocast() ? x : a);
}

Array tril(const Array& x, int64_t k) { return triangle("tril", x, k, true); }
Array triu(const Array& x, int64_t k) { return triangle("triu", x, k, false); }

}  // namespace rosin
