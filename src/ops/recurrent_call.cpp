// See recurrent_call.hpp. The op and its gradient; what the library keeps between them is an array of bytes.
#include "ops/recurrent_call.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/hooks.hpp"
#include "graph/node.hpp"
#include "graph/record.hpp"
#include "ops/sequence.hpp"

namespace rosin {
namespace {

void recurrent_gradient_rule(Backward& b);

const Op& recurrent_op = *register_op({.name = "recurrent",
                                       .kind = Kind::routine,
                                       .operands = Op::any,
                                       .results = 4,
                                       .doc = "a recurrent layer by a device's library: outputs, last h and c, reserve",
                                       .type_rule = TypeRule::attribute,
                                       .routine = Routine::recurrent,
                                       .attribute_words = 1,
                                       .gradient = recurrent_gradient_rule});

/// No gradient is asked of it: see takes_recurrent. One that stopped here would be lost silently.
void refuse_gradient(Backward&) {
  throw Error(ErrorKind::internal, "recurrent_gradient: it is recorded where it needs no gradient; report it");
}

const Op& recurrent_gradient_op = *register_op({.name = "recurrent_gradient",
                                                .kind = Kind::routine,
                                                .operands = Op::any,
                                                .results = 4,
                                                .doc = "slopes of a recurrent layer: x, weights, h and c at first",
                                                .type_rule = TypeRule::attribute,
                                                .routine = Routine::recurrent_gradient,
                                                .attribute_words = 1,
                                                .gradient = refuse_gradient});

RecurrentLayer layer_of(SequenceCell cell, const Array& x, int64_t out) {
  return {.device = x.node()->device,
          .cell = cell,
          .type = x.dtype(),
          .features = x.size(0),
          .out = out,
          .steps = x.size(1),
          .batch = x.size(2)};
}

/// Of a layer that was recorded: its attributes, sizes and operands.
struct Recorded {
  RecurrentAttributes how;
  Array x, weights, hidden, cells;
  int64_t out;

  explicit Recorded(const Backward& b)
      : how(b.attributes<RecurrentAttributes>()), x(b.in(0)), weights(b.in(1)), hidden(b.in(2)), out(hidden.size(0)) {
    if (is_lstm()) cells = b.in(3);
  }
  bool is_lstm() const { return how.cell == SequenceCell::lstm; }
  Shape outputs() const { return {out, x.size(1), x.size(2)}; }
};

void recurrent_gradient_rule(Backward& b) {
  const Recorded of(b);
  const DType type = of.x.dtype();
  RecurrentAttributes how = of.how;
  how.output_slope = !b.gradient_of(0).is_nothing();
  how.state_slope = !b.gradient_of(1).is_nothing();
  how.cell_slope = !b.gradient_of(2).is_nothing();
  const Array outputs = b.out(0, type, of.outputs());
  const int64_t bytes = hooks.recurrent_reserve(layer_of(how.cell, of.x, of.out));
  const Array reserve = b.out(3, UInt8, Shape{bytes});
  std::vector<const Array*> operands{&of.x, &of.weights, &of.hidden};
  if (of.is_lstm()) operands.push_back(&of.cells);
  operands.insert(operands.end(), {&outputs, &reserve});
  for (int k = 0; k < 3; ++k) {
    if (!b.gradient_of(k).is_nothing()) operands.push_back(&b.gradient_of(k));
  }
  const ResultForm forms[] = {{type, of.x.shape()},
                              {type, of.weights.shape()},
                              {type, of.hidden.shape()},
                              {type, of.is_lstm() ? of.hidden.shape() : Shape{0}}};
  Array slopes[4];
  record(recurrent_gradient_op, operands, forms, Attributes::of(how), slopes);
  for (int i = 0; i < (of.is_lstm() ? 4 : 3); ++i) b.give(i, slopes[i]);
}

/// (rows, columns) column by column, as one row.
Array line_of(const Array& matrix) { return reshape(transpose(matrix), {matrix.size(0) * matrix.size(1)}); }

Array packed(const RecurrentWeights& weights) {
  const Array bias = weights.bias.is_nothing() ? zeros({weights.input.size(0)}, weights.input.dtype()) : weights.bias;
  return concat({line_of(weights.input), line_of(weights.recurrent), bias}, 0);
}

}  // namespace

bool takes_recurrent(const RecurrentOperands& of) {
  const int device = of.x.node()->device;
  if (device == 0 || of.cell == SequenceCell::gruv3 || records_steps() || StepByStep::is_wanted()) return false;
  const Array* all[] = {&of.weights.input, &of.weights.recurrent, &of.weights.bias, &of.hidden, &of.cells};
  const bool alike = std::all_of(std::begin(all), std::end(all), [&](const Array* a) {
    return a->is_nothing() || (a->dtype() == of.x.dtype() && a->node()->device == device);
  });
  return alike && hooks.recurrent_reserve(layer_of(of.cell, of.x, of.hidden.size(0))) >= 0;
}

RecurrentStates recurrent(const RecurrentOperands& of) {
  const DeviceScope scope(*of.x.node());
  const RecurrentLayer layer = layer_of(of.cell, of.x, of.hidden.size(0));
  const bool is_lstm = of.cell == SequenceCell::lstm;
  // Libraries have no layer that begins with the last step: input and output change ends.
  const Array x = of.reversed ? flip(of.x, 1) : of.x, weights = packed(of.weights);
  const Array hidden = state_of_batch(of.hidden, layer.batch);
  const Array cells = is_lstm ? state_of_batch(of.cells, layer.batch) : Array();
  std::vector<const Array*> operands{&x, &weights, &hidden};
  if (is_lstm) operands.push_back(&cells);
  const ResultForm forms[] = {{layer.type, Shape{layer.out, layer.steps, layer.batch}},
                              {layer.type, hidden.shape()},
                              {layer.type, is_lstm ? hidden.shape() : Shape{0}},
                              {UInt8, Shape{hooks.recurrent_reserve(layer)}}};
  Array results[4];
  record(recurrent_op, operands, forms, Attributes::of(RecurrentAttributes{.cell = of.cell}), results);
  return {of.reversed ? flip(results[0], 1) : results[0], results[1], results[2]};
}

}  // namespace rosin
