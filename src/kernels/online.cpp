// See online.hpp.
#include "kernels/online.hpp"

#include <limits>
#include <optional>

namespace rosin::kernels {
namespace {

using Do = Instr::Do;

bool is_float(ScalarType type) { return type == ScalarType::float32 || type == ScalarType::float64; }

/// Whether the instr is this op at elements, where the order of sums is free.
bool applies(const Instr& instr, const Op* op) {
  return instr.what == Do::apply && !instr.row && instr.op == op && instr.mode != MathMode::exact;
}

std::optional<ShiftedSum> shifted_sum(const KernelBody& body, size_t reduction) {
  static const Op* const exp = find_op("exp");
  static const Op* const difference = find_op("sub");
  const std::vector<Instr>& instrs = body.kernel().instrs;
  const Instr& sum = instrs[reduction];
  if (sum.mode == MathMode::exact || !is_float(sum.type) || sum.reducer->name != "sum") return std::nullopt;
  const size_t exponential = body.definition(reduction, 0);
  if (!applies(instrs[exponential], exp)) return std::nullopt;
  const size_t shifted = body.definition(exponential, 0);
  if (!applies(instrs[shifted], difference)) return std::nullopt;
  const size_t element = body.definition(shifted, 0), expanded = body.definition(shifted, 1);
  if (instrs[expanded].what != Do::expand) return std::nullopt;
  return ShiftedSum{reduction, exponential, element, body.definition(expanded, 0)};
}

}  // namespace

std::vector<ShiftedSum> OnlineSums::of_phase(const KernelBody& body, int phase) {
  std::vector<ShiftedSum> found;
  for (size_t i = 0; i < body.kernel().instrs.size(); ++i) {
    if (body.kernel().instrs[i].what != Do::reduce || !body.is_needed(i) || body.phase(i) != phase) continue;
    const std::optional<ShiftedSum> sum = shifted_sum(body, i);
    if (!sum || body.phase(sum->element) > phase - 2) return {};
    found.push_back(*sum);
  }
  return found;
}

void OnlineSums::begin(std::span<const ShiftedSum> sums) {
  running_.clear();
  for (const ShiftedSum& each : sums) {
    const ScalarType type = body_.kernel().instrs[each.sum].type;
    const Term none = w_.literal(type, 0), least = w_.literal(type, -std::numeric_limits<double>::infinity());
    running_.push_back({each, w_.variable(least), w_.variable(none), w_.variable(none)});
  }
}

Term OnlineSums::exp(const Running& running, Term x) const {
  const Instr& instr = body_.kernel().instrs[running.of.exponential];
  return apply_op(w_, *instr.op, instr.type, allowed(instr), std::span(&x, 1));
}

/// No difference with it is a NaN, unless an element is one.
Term OnlineSums::shift_by(Term largest) const {
  const Term size = w_.apply(Primitive::absolute, largest.type, {largest});
  const Term finite = size < w_.literal(largest.type, std::numeric_limits<double>::infinity());
  return w_.select(finite, largest, w_.literal(largest.type, 0));
}

/// Where there is `none` yet the factor may be infinite.
Term OnlineSums::scaled(Term sum, Term factor, Term none) const { return w_.select(none, sum, sum * factor); }

/// (A NaN is no larger element: it makes the sum one.)
void OnlineSums::add(size_t i, std::span<const Term> elements) {
  const Running& running = running_[i];
  Term most = elements[0];
  for (const Term& x : elements.subspan(1)) most = max(most, x);
  w_.when(running.largest < most, [&] {
    const Term shift = shift_by(most);
    w_.assign(running.sum, scaled(running.sum, exp(running, running.shift - shift), running.sum == 0));
    w_.assign(running.largest, most);
    w_.assign(running.shift, shift);
  });
  Term sum = exp(running, elements[0] - running.shift);
  for (const Term& x : elements.subspan(1)) sum = sum + exp(running, x - running.shift);
  w_.assign(running.sum, running.sum + sum);
}

Term OnlineSums::sum(size_t i, Term shift) const {
  const Running& running = running_[i];
  return scaled(running.sum, exp(running, running.shift - shift), running.sum == 0 && shift_by(shift) == shift);
}

}  // namespace rosin::kernels
