// The norm of many arrays together, and gradients scaled down by it: see rules.hpp, optim.hpp.
#include <cmath>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/show.hpp>

#include "graph/node.hpp"
#include "graph/transfer.hpp"
#include "ops/reduction.hpp"
#include "optim/numbers.hpp"

namespace rosin {
namespace {

/// Sums of powers, or the largest size where p is infinite; half types would overflow.
Array part_of_norm(const Array& x, double p) {
  const Array wide = rosin::wide(x);
  if (p == 2) return sum(squared_size(wide));
  return std::isinf(p) ? maximum(abs(wide)) : sum(pow(abs(wide), p));
}

/// In Float64 where one of the arrays is, else in Float32; on the device of the first.
Array norm_of_all(std::span<const Array> all, double p) {
  Array total;
  DType type = Float32;
  for (const Array& x : all) type = part_type(x.dtype()) == Float64 ? Float64 : type;
  for (const Array& x : all) {
    if (x.count() == 0) continue;
    const Array part = cast(transferred(part_of_norm(x, p), all.front().node()->device), type);
    if (total.is_nothing()) total = part;
    else total = std::isinf(p) ? max(total, part) : total + part;
  }
  if (total.is_nothing()) return zeros({}, type);
  if (std::isinf(p)) return total;
  return p == 2 ? sqrt(total) : pow(total, 1 / p);
}

void check_norm(const char* op, double p) {
  if (p > 0) return;
  throw Error(ErrorKind::argument,
              std::string(op) + ": the p of a norm must be positive; got " + number_text(p) + "; 2 is the usual one");
}

}  // namespace

Array global_norm(ModelView model, double p) {
  check_norm("global_norm", p);
  std::vector<detail::ArrayPlace<const Array*>> places;
  detail::list_arrays(model, places);
  std::vector<Array> all;
  std::unordered_set<const Node*> counted;
  for (const auto& place : places) {
    const bool has_numbers = place.trainable && !place.array->is_nothing();
    if (has_numbers && counted.insert(place.array->node()).second) all.push_back(*place.array);
  }
  return norm_of_all(all, p);
}

void ClipGlobalNorm::check() const {
  check_norm("ClipGlobalNorm", p);
  if (omega > 0) return;
  throw Error(ErrorKind::argument, "ClipGlobalNorm: omega, the largest norm, must be positive; got " +
                                       number_text(omega) + "; use ClipGlobalNorm{1}");
}

void ClipGlobalNorm::exchange(std::span<detail::NamedGradient> gradients) const {
  if (gradients.empty()) return;
  std::vector<Array> all;
  for (const detail::NamedGradient& of : gradients) all.push_back(of.gradient);
  const Array size = norm_of_all(all, p);
  if (throws) require_finite(size, "ClipGlobalNorm: the norm of the gradients must be finite");
  const Array scale = min(number(omega) / size, number(1));
  for (detail::NamedGradient& of : gradients) {
    const Array here = transferred(scale, of.gradient.node()->device);
    of.gradient = of.gradient * cast(here, part_type(of.gradient.dtype()));
  }
}

ClipGlobalNorm::State ClipGlobalNorm::init(const Array&) const { return {}; }
Array ClipGlobalNorm::apply(State&, const Array&, const Array& g) const { return g; }

}  // namespace rosin
