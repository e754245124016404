// Sequences as one op, and its gradient as another: see sequence.hpp. What is a product over all steps at once, the
// gradient by the weights, is a product here too.
#include "ops/sequence.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "graph/autocast.hpp"
#include "graph/context.hpp"
#include "graph/record.hpp"

namespace rosin {
namespace {

constinit thread_local StepByStep::Where step_by_step = StepByStep::nowhere;

/// Values of gates that are kept for the gradient, for each output; in what order, the executor knows alone.
int64_t kept_gates(SequenceCell cell) {
  switch (cell) {
    case SequenceCell::lstm:
    case SequenceCell::gru: return 4;
    case SequenceCell::gruv3: return 3;
    default: return 0;
  }
}

/// (rows, batch, steps) as (rows, batch * steps).
Array columns_of(const Array& x) { return reshape(x, {x.size(0), x.size(1) * x.size(2)}); }

/// sum over columns of slopes x values.
Array weight_slope(const Array& slopes, const Array& values) { return matmul(slopes, transpose(values)); }

void sequence_gradient_rule(Backward& b);

const Op& sequence_op = *register_op({.name = "sequence",
                                      .kind = Kind::routine,
                                      .operands = Op::any,
                                      .results = 3,
                                      .doc = "all steps of a recurrent layer: states, cells, gates",
                                      .type_rule = TypeRule::attribute,
                                      .routine = Routine::sequence,
                                      .attribute_words = 1,
                                      .gradient = sequence_gradient_rule});

/// No gradient is asked of it: see takes_sequence. One that stopped here would be lost silently.
void refuse_gradient(Backward&) {
  throw Error(ErrorKind::internal, "sequence_gradient: it is recorded where it needs no gradient; report it");
}

const Op& sequence_gradient_op =
    *register_op({.name = "sequence_gradient",
                  .kind = Kind::routine,
                  .operands = Op::any,
                  .results = 4,
                  .doc = "slopes of a sequence: shares, products, h and c before the first step",
                  .type_rule = TypeRule::attribute,
                  .routine = Routine::sequence_gradient,
                  .attribute_words = 1,
                  .gradient = refuse_gradient});

/// Of a sequence that was recorded: its attributes, sizes and operands.
struct Recorded {
  SequenceAttributes how;
  Array shares, weight, second;  // second: c before the first step, or V
  Array lengths;
  int64_t out, batch, steps;

  explicit Recorded(const Backward& b)
      : how(b.attributes<SequenceAttributes>()), shares(b.in(0)), weight(b.in(1)), out(weight.size(1)),
        batch(shares.size(1)), steps(shares.size(2)) {
    if (how.cell == SequenceCell::lstm || how.cell == SequenceCell::gruv3) second = b.in(3);
    if (how.lengths) lengths = b.in(b.operands() - 1);
  }
  Shape states() const { return {out, batch, steps + 1}; }
  Shape gates() const { return {kept_gates(how.cell) * out, batch, steps}; }
};

/// The four results of the gradient. `second`: of gru the slopes by W h, of gruv3 r h, which V multiplies.
struct Slopes {
  Array shares, second, hidden, cells;
};

Shape second_shape(const Recorded& of) {
  if (of.how.cell == SequenceCell::gru) return of.shares.shape();
  return of.how.cell == SequenceCell::gruv3 ? Shape{of.out, of.batch, of.steps} : Shape{0};
}

Slopes slopes_of(const Backward& b, const Recorded& of, const Array& hidden, const Array& gates) {
  SequenceAttributes how = of.how;
  const bool is_lstm = how.cell == SequenceCell::lstm;
  const Array& by_cells = b.gradient_of(1);
  how.cell_slope = is_lstm && !by_cells.is_nothing();
  const Array by_hidden = b.gradient_of(0).is_nothing() ? zeros(of.states()) : b.gradient_of(0);
  const Array cells = is_lstm ? b.out(1, Float32, of.states()) : Array();
  std::vector<const Array*> operands{&of.weight, &hidden, &by_hidden};
  if (!gates.is_nothing()) operands.push_back(&gates);
  if (is_lstm) operands.push_back(&cells);
  if (how.cell_slope) operands.push_back(&by_cells);
  if (how.cell == SequenceCell::gruv3) operands.push_back(&of.second);
  if (how.lengths) operands.push_back(&of.lengths);
  const Shape state = {of.out, of.batch};
  const ResultForm forms[] = {{Float32, of.shares.shape()},
                              {Float32, second_shape(of)},
                              {Float32, state},
                              {Float32, is_lstm ? state : Shape{0}}};
  Array results[4];
  record(sequence_gradient_op, operands, forms, Attributes::of(how), results);
  return {results[0], results[1], results[2], results[3]};
}

void sequence_gradient_rule(Backward& b) {
  const Recorded of(b);
  const SequenceCell cell = of.how.cell;
  const Array hidden = b.out(0, Float32, of.states());
  const Array gates = kept_gates(cell) > 0 ? b.out(2, Float32, of.gates()) : Array();
  const Slopes slopes = slopes_of(b, of, hidden, gates);
  b.give(0, slopes.shares);
  b.give(2, slopes.hidden);
  if (cell == SequenceCell::lstm) b.give(3, slopes.cells);
  const int64_t first = of.how.reversed;
  const auto before = [&] { return columns_of(slice(hidden, 2, first, first + of.steps)); };
  if (cell != SequenceCell::gruv3) {
    const Array& by_products = cell == SequenceCell::gru ? slopes.second : slopes.shares;
    if (b.needs(1)) b.give(1, weight_slope(columns_of(by_products), before()));
    return;
  }
  const Array by_shares = columns_of(slopes.shares);
  if (b.needs(1)) b.give(1, weight_slope(slice(by_shares, 0, 0, 2 * of.out), before()));
  const Array by_candidate = slice(by_shares, 0, 2 * of.out, 3 * of.out);
  if (b.needs(3)) b.give(3, weight_slope(by_candidate, columns_of(slopes.second)));
}

}  // namespace

StepByStep::StepByStep(Where where) noexcept : outer_(std::exchange(step_by_step, where)) {}
StepByStep::~StepByStep() { step_by_step = outer_; }
bool StepByStep::is_wanted() noexcept { return step_by_step != nowhere; }

bool records_steps() {
  const int most_gradients = step_by_step == StepByStep::in_gradients ? 0 : 1;
  const int gradients = Context::current().gradient_depth.load(std::memory_order_relaxed);
  return is_autocast() || step_by_step == StepByStep::everywhere || gradients > most_gradients;
}

bool takes_sequence(const SequenceOperands& of) {
  if (records_steps()) return false;
  const auto is_taken = [](const Array& x, DType type) {
    return x.is_nothing() || (x.dtype() == type && x.node()->device == 0);
  };
  const Array* floats[] = {&of.shares, &of.recurrent_weight, &of.candidate_weight, &of.hidden, &of.cells};
  return is_taken(of.lengths, Int64) &&
         std::all_of(std::begin(floats), std::end(floats), [&](const Array* x) { return is_taken(*x, Float32); });
}

Array state_of_batch(const Array& state, int64_t batch) {
  return expand(reshape(state, {state.size(0), state.rank() == 2 ? state.size(1) : 1}), {state.size(0), batch});
}

SequenceStates sequence(const SequenceOperands& of) {
  const bool is_lstm = of.cell == SequenceCell::lstm, has_lengths = !of.lengths.is_nothing();
  std::vector<const Array*> operands{&of.shares, &of.recurrent_weight, &of.hidden};
  if (is_lstm) operands.push_back(&of.cells);
  if (of.cell == SequenceCell::gruv3) operands.push_back(&of.candidate_weight);
  if (has_lengths) operands.push_back(&of.lengths);
  const int64_t out = of.recurrent_weight.size(1), batch = of.shares.size(1), steps = of.shares.size(2);
  const Shape states = {out, batch, steps + 1};
  const ResultForm forms[] = {{Float32, states},
                              {Float32, is_lstm ? states : Shape{0}},
                              {Float32, Shape{kept_gates(of.cell) * out, batch, steps}}};
  Array results[3];
  const SequenceAttributes how{.cell = of.cell, .reversed = of.reversed, .lengths = has_lengths};
  record(sequence_op, operands, forms, Attributes::of(how), results);
  return {std::move(results[0]), std::move(results[1])};
}

}  // namespace rosin
