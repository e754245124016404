// Conversions of recurrent layers, unrolled step by step. Here x is (features, batch, time), a state (hidden, batch).
// Read first: convert.hpp.
#include <algorithm>
#include <string>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

struct Activation {
  std::string name;
  double alpha, beta;

  Array operator()(const Array& x) const {
    if (name == "Sigmoid") return sigmoid(x);
    if (name == "Tanh") return tanh(x);
    if (name == "Relu") return relu(x);
    if (name == "LeakyRelu") return leakyrelu(x, alpha);
    if (name == "HardSigmoid") return hardsigmoid(x, alpha, beta);
    if (name == "Elu") return elu(x, alpha);
    if (name == "Softsign") return softsign(x);
    if (name == "Softplus") return softplus(x);
    if (name == "ThresholdedRelu") return trelu(x, alpha);
    if (name == "ScaledTanh") return alpha * tanh(beta * x);
    return alpha * x + beta;  // Affine
  }
};

double default_alpha(const std::string& name) {
  if (name == "LeakyRelu") return 0.01;
  if (name == "HardSigmoid") return 0.2;
  return 1;
}

/// One layer in one direction, and what runs along its steps.
struct Direction {
  Array input_weight, recurrent_weight;  // (gates, features), (gates, hidden)
  Array input_bias, recurrent_bias;      // (gates), or nothing
  Array state, cell, peepholes;
  std::vector<Activation> activations;
  bool backwards = false;
};

/// What a step makes of its share of the input and the states.
using Cell = void(const NodeCall& call, Direction& d, const Array& gates);

Array limited(const NodeCall& call, const Array& x) {
  const double clip = call.real("clip", 0);
  return clip > 0 ? clamp(x, -clip, clip) : x;
}

Array part(const Array& gates, int64_t which, int64_t hidden) {
  return slice(gates, 0, which * hidden, (which + 1) * hidden);
}

std::vector<Activation> activations_of(const NodeCall& call, size_t direction, std::vector<std::string> names) {
  const Attribute* stated = call.find("activations");
  const std::vector<double> alphas = call.reals("activation_alpha"), betas = call.reals("activation_beta");
  std::vector<Activation> list;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t at = direction * names.size() + i;
    if (stated && at < stated->texts.size()) names[i] = stated->texts[at];
    const double beta = names[i] == "HardSigmoid" ? 0.5 : names[i] == "ScaledTanh" ? 1 : 0;
    list.push_back(
        {names[i], at < alphas.size() ? alphas[at] : default_alpha(names[i]), at < betas.size() ? betas[at] : beta});
    constexpr const char* known[] = {"Sigmoid",  "Tanh",     "Relu",   "LeakyRelu",       "HardSigmoid", "Elu",
                                     "Softsign", "Softplus", "Affine", "ThresholdedRelu", "ScaledTanh"};
    if (std::find(std::begin(known), std::end(known), names[i]) == std::end(known)) {
      call.refuse("an activation must be known", names[i]);
    }
  }
  return list;
}

/// States have their direction as the last dim, or before the batch where the batch comes first.
Array initial(const NodeCall& call, size_t input, size_t direction, int64_t hidden, int64_t batch, DType type) {
  if (!call.has(input)) return zeros({hidden, batch}, type);
  return select(call[input], call.integer("layout", 0) != 0 ? 1 : 2, static_cast<int64_t>(direction));
}

Direction direction_of(const NodeCall& call, size_t index, int64_t gates, int64_t batch) {
  const auto at = static_cast<int64_t>(index);
  Direction d;
  d.input_weight = transpose(select(call[1], 2, at));
  d.recurrent_weight = transpose(select(call[2], 2, at));
  const int64_t hidden = d.recurrent_weight.size(1), rows = d.recurrent_weight.size(0);
  if (rows != gates * hidden) call.refuse("weights must have a row for each gate and unit", std::to_string(rows));
  if (call.has(3)) {
    const Array bias = select(call[3], 1, at);
    d.input_bias = slice(bias, 0, 0, rows);
    d.recurrent_bias = slice(bias, 0, rows, 2 * rows);
  }
  const std::string way = call.text("direction", "forward");
  d.backwards = way == "reverse" || (way == "bidirectional" && index == 1);
  d.state = initial(call, 5, index, hidden, batch, call[0].dtype());
  return d;
}

/// Runs over time; returns the states (hidden, batch) of each step, in the order of time. Where a sequence has ended
/// the state stays, and 0 comes out.
Arrays run_over_time(const NodeCall& call, Direction& d, const Array& x, Cell* cell) {
  const int64_t steps = x.size(2), batch = x.size(1);
  Array shares = matmul(d.input_weight, reshape(x, {x.size(0), batch * steps}));
  if (!d.input_bias.is_nothing()) shares = shares + d.input_bias;
  shares = reshape(shares, {d.input_weight.size(0), batch, steps});
  Arrays states(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = d.backwards ? steps - 1 - i : i;
    const Array before = d.state, cell_before = d.cell;
    cell(call, d, select(shares, 2, t));
    Array& out = states[static_cast<size_t>(t)];
    out = d.state;
    if (!call.has(4)) continue;
    const Array going = unsqueeze(gt(call[4], t), 0);
    out = where(going, d.state, zeros_like(d.state));
    d.state = where(going, d.state, before);
    if (!d.cell.is_nothing()) d.cell = where(going, d.cell, cell_before);
  }
  return states;
}

Array with_bias(const Array& x, const Array& bias) { return bias.is_nothing() ? x : x + bias; }

/// Gates: input, output, forget, cell.
void lstm_cell(const NodeCall& call, Direction& d, const Array& share) {
  const int64_t n = d.state.size(0);
  const Array g = with_bias(share + matmul(d.recurrent_weight, d.state), d.recurrent_bias);
  const auto gate = [&](int64_t which, int64_t peephole, const Array& cell) {
    Array value = part(g, which, n);
    if (!d.peepholes.is_nothing()) value = value + part(d.peepholes, peephole, n) * cell;
    return d.activations[0](limited(call, value));
  };
  const Array in = gate(0, 0, d.cell);
  const Array forget = call.integer("input_forget", 0) != 0 ? 1.0 - in : gate(2, 2, d.cell);
  d.cell = forget * d.cell + in * d.activations[1](limited(call, part(g, 3, n)));
  d.state = gate(1, 1, d.cell) * d.activations[2](d.cell);
}

/// Gates: update, reset, hidden.
void gru_cell(const NodeCall& call, Direction& d, const Array& share) {
  const int64_t n = d.state.size(0);
  const auto weight = [&](int64_t from, int64_t to) { return slice(d.recurrent_weight, 0, from * n, to * n); };
  const auto bias = [&](int64_t from, int64_t to) {
    return d.recurrent_bias.is_nothing() ? Array() : slice(d.recurrent_bias, 0, from * n, to * n);
  };
  const Array zr =
      d.activations[0](limited(call, slice(share, 0, 0, 2 * n) + with_bias(matmul(weight(0, 2), d.state), bias(0, 2))));
  const Array z = part(zr, 0, n), r = part(zr, 1, n);
  const Array before = call.integer("linear_before_reset", 0) != 0
                           ? r * with_bias(matmul(weight(2, 3), d.state), bias(2, 3))
                           : with_bias(matmul(weight(2, 3), r * d.state), bias(2, 3));
  const Array h = d.activations[1](limited(call, part(share, 2, n) + before));
  d.state = (1.0 - z) * h + z * d.state;
}

void rnn_cell(const NodeCall& call, Direction& d, const Array& share) {
  const Array g = with_bias(share + matmul(d.recurrent_weight, d.state), d.recurrent_bias);
  d.state = d.activations[0](limited(call, g));
}

Arrays recurrent(const NodeCall& call, int64_t gates, const std::vector<std::string>& names, bool has_cell,
                 Cell* cell) {
  if (call[0].rank() != 3 || call[1].rank() != 3 || call[2].rank() != 3) {
    call.refuse("input and weights must have three axes", to_string(call[0].shape()));
  }
  const bool batch_first = call.integer("layout", 0) != 0;
  const Array x = batch_first ? permute(call[0], {0, 2, 1}) : call[0];
  const auto count = static_cast<size_t>(call[1].size(2));
  if (count == 0 || x.size(2) == 0) call.refuse("there must be a direction and a step of time", "none");
  std::vector<Arrays> states;  // by direction, by time
  Arrays last, cells;
  for (size_t i = 0; i < count; ++i) {
    Direction d = direction_of(call, i, gates, x.size(1));
    d.activations = activations_of(call, i, names);
    if (has_cell) d.cell = initial(call, 6, i, d.state.size(0), x.size(1), x.dtype());
    if (has_cell && call.has(7)) d.peepholes = select(call[7], 1, static_cast<int64_t>(i));
    states.push_back(run_over_time(call, d, x, cell));
    last.push_back(d.state);
    cells.push_back(d.cell);
  }
  Arrays whole;  // (hidden, batch, directions) by time
  for (size_t t = 0; t < states[0].size(); ++t) {
    Arrays sides;
    for (const Arrays& side : states) sides.push_back(side[t]);
    whole.push_back(stack(sides, -1));
  }
  const auto ordered = [&](const Array& y) { return batch_first ? permute(y, {0, 2, 1}) : y; };
  const Array y = stack(whole, -1);
  return {batch_first ? permute(y, {0, 2, 3, 1}) : y, ordered(stack(last, -1)),
          has_cell ? ordered(stack(cells, -1)) : Array()};
}

}  // namespace

Arrays lstm(const NodeCall& call) { return recurrent(call, 4, {"Sigmoid", "Tanh", "Tanh"}, true, lstm_cell); }
Arrays gru(const NodeCall& call) { return recurrent(call, 3, {"Sigmoid", "Tanh"}, false, gru_cell); }
Arrays rnn(const NodeCall& call) { return recurrent(call, 1, {"Tanh"}, false, rnn_cell); }

}  // namespace rosin::onnx
